/* test_past_memory.c - the history of a worker while memory is short: what could not be
 * counted is dropped, and the worker goes on. past.c as it is; Redis takes all. */
#include "worker/past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "queue/past.h"
#include "queue/send.h"
#include "worker/node/site.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/run.h"

static hf_worker w;
static hf_site site;
static hf_server redis;
static hf_served served;
static hf_run *run;
static size_t sent, logged;
static unsigned left; /* allocations that find memory; 0: all do */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker gives these names */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
/* NOLINTEND(bugprone-reserved-identifier) */

void *__wrap_calloc(size_t n, size_t size)
{
    if (left > 0 && --left == 0)
        return NULL;
    return __real_calloc(n, size);
}

/* ---- the others ---- */

hf_err hf_queue_send(hf_client *client, const hf_queue *queue, const hf_script *script,
                     hf_args *args, uint32_t timeout_ms, hf_answer_cb cb, void *arg)
{
    (void)client, (void)queue, (void)script, (void)timeout_ms, (void)cb, (void)arg;
    hf_args_done(args);
    sent++;
    return HF_OK;
}

void hf_report(hf_worker *worker, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n)
{
    (void)worker, (void)level, (void)message, (void)fields, (void)n;
    logged++;
}

bool hf_queue_is(const hf_served *of, unsigned traits)
{
    (void)of, (void)traits;
    return false;
}

bool hf_site_can_ask(const hf_site *at)
{
    (void)at;
    return true;
}

bool hf_site_unserved(hf_site *at, hf_err err, const char *detail)
{
    (void)at, (void)err, (void)detail;
    return false;
}

void hf_site_clock_read(hf_site *at, int64_t now_ms, uint64_t sent_ns)
{
    (void)at, (void)now_ms, (void)sent_ns;
}

void hf_client_flush(hf_client *client)
{
    (void)client;
}

uint64_t hf_run_ran_ns(const hf_run *of)
{
    (void)of;
    return 1;
}

/* ---- the tests ---- */

static int up(void **state)
{
    (void)state;
    w = (hf_worker){.opts.history_ms = 3600000};
    site = (hf_site){.worker = &w, .base.redis = &redis};
    served = (hf_served){.worker = &w, .site = &site};
    w.nodes.first = &site.base;
    sent = logged = 0;
    left = 0;
    run = __real_calloc(1, sizeof *run + 1);
    assert_non_null(run);
    run->worker = &w;
    run->served = &served;
    run->record.type[0] = 't';
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(hf_counters_new(&w.counters), HF_OK);
    assert_int_equal(hf_past_new(&w), HF_OK);
    hf_past_open(&w);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_past_close(&w);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    hf_past_free(&w);
    hf_counters_free(w.counters);
    free(run);
    return 0;
}

static void a_minute_in_which_nothing_could_be_counted_is_not_sent(void **state)
{
    (void)state;
    left = 2; /* the minute is begun, and its first type finds no memory */
    hf_past_note(run, HF_PAST_DONE);
    assert_int_equal(left, 0);
    assert_int_equal(logged, 1);
    assert_int_equal(hf_past_goodbye(&w, NULL, NULL), 0);
    assert_int_equal(sent, 0);
    assert_int_equal(logged, 1);
}

static void what_comes_after_it_is_sent(void **state)
{
    (void)state;
    left = 2;
    hf_past_note(run, HF_PAST_DONE);
    hf_past_note(run, HF_PAST_DONE);
    assert_int_equal(hf_past_goodbye(&w, NULL, NULL), 1);
    assert_int_equal(sent, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_minute_in_which_nothing_could_be_counted_is_not_sent),
        CASE(what_comes_after_it_is_sent),
    };
    return cmocka_run_group_tests_name("past_memory", tests, NULL, NULL);
}
