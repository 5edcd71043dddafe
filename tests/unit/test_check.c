/* test_check.c - no check that is asked for is forgotten. check.c as it is; Redis is
 * played by the test, which answers when it likes. */
#include "worker/source/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "worker/node/site.h"
#include "worker/queues/bundle.h"
#include "worker/queues/queues.h"
#include "worker/queues/shards.h"
#include "worker/register.h"
#include "worker/report.h"
#include "worker/schedules.h"
#include "worker/source/readings.h"
#include "worker/worker.h"

enum { SOON_MS = 1000 };

static hf_worker w;
static hf_queues queues;
static hf_site site;
static hf_server redis;
static hf_bundle bundle;
static hf_served served;
static hf_answer_cb answer_cb;
static size_t sent;
static bool can_ask;

/* ---- Redis ---- */

hf_err hf_op_check(hf_client *client, const hf_queue *const *list, size_t n,
                   const hf_check_args *args, hf_answer_cb cb, void *arg)
{
    (void)client, (void)list, (void)n, (void)args, (void)arg;
    answer_cb = cb;
    sent++;
    return HF_OK;
}

hf_err hf_checked_read(const hf_answer *answer, hf_checked *out, hf_checked_queue *of,
                       size_t n)
{
    *out = (hf_checked){.now_ms = 1};
    for (size_t i = 0; i < n; i++)
        of[i] = (hf_checked_queue){.divided = false};
    return answer->err;
}

static void answer(void)
{
    answer_cb(&(hf_answer){.err = HF_OK, .detail = ""}, &bundle);
}

bool hf_site_can_ask(const hf_site *at)
{
    (void)at;
    return can_ask;
}

/* ---- what is not looked at here ---- */

#define NOTHING(name, ...)                                                               \
    void name(__VA_ARGS__)                                                               \
    {                                                                                    \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(hf_queue_debt, hf_served *of, hf_debt_event event)
NOTHING(hf_queue_forgotten, hf_served *of)
NOTHING(hf_queues_unserved_in, hf_bundle *b, hf_site *at, hf_err err,
        const hf_answer *answer)
NOTHING(hf_readings_answered, hf_bundle *b, hf_served *const *list,
        const hf_read_queue *read, size_t n, int64_t now_ms, uint32_t shortest_ms)
NOTHING(hf_readings_send, hf_bundle *b)
NOTHING(hf_register_site, hf_site *at)
NOTHING(hf_report_text, hf_worker *worker, hf_log_level level, const char *message,
        const char *key, const char *text)
NOTHING(hf_schedules_checked, hf_served *of, bool ticks)
NOTHING(hf_queue_recheck, hf_served *of)
NOTHING(hf_site_clock_read, hf_site *at, int64_t now_ms, uint64_t sent_ns)
NOTHING(hf_site_refused, hf_site *at, hf_err err, const char *detail)
NOTHING(hf_site_report_lacks, hf_site *at)
NOTHING(hf_blocking_close, hf_blocking *blocking, void (*cb)(void *))

bool hf_queue_is(const hf_served *of, unsigned traits)
{
    return false;
}

bool hf_queues_only_shards_in(const hf_bundle *b)
{
    return false;
}

bool hf_queues_quiet(const hf_worker *worker)
{
    return false;
}

hf_asker hf_readings_asker(const hf_worker *worker)
{
    return (hf_asker){.machine = "m"};
}

/* ---- the tests ---- */

static int up(void **state)
{
    w = (hf_worker){.opts.lease_ms = 60000, .phase = HF_SERVING, .queues = &queues};
    site = (hf_site){.worker = &w, .base.redis = &redis};
    bundle = (hf_bundle){.site = &site};
    served =
        (hf_served){.worker = &w, .site = &site, .bundle = &bundle, .state = HF_Q_IDLE};
    queues =
        (hf_queues){.slots = &served, .n_slots = 1, .bundles = &bundle, .n_bundles = 1};
    sent = 0;
    can_ask = true;
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &bundle.look), 0);
    bundle.look.data = &bundle;
    hf_check_open(&w);
    return 0;
}

static int down(void **state)
{
    uv_close((uv_handle_t *)&bundle.look, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    return 0;
}

/* The timer of the look, and how soon it comes again. */
static uint64_t look(void)
{
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    return uv_timer_get_due_in(&bundle.look);
}

static void one_that_was_asked_for_beside_another_comes_after_it(void **state)
{
    hf_check_bundle(&bundle, false);
    assert_int_equal(sent, 1);
    hf_bundle_check_at(&bundle, hf_boot_ns());
    assert_in_range(look(), 1, SOON_MS);
    assert_int_equal(sent, 1);
    answer();
    hf_bundle_look_in(&bundle, 0); /* that time has come */
    assert_true(look() > SOON_MS);
    assert_int_equal(sent, 2);
    answer();
}

static void one_that_could_not_be_sent_comes_when_it_can(void **state)
{
    hf_check_bundle(&bundle, false);
    answer();
    can_ask = false;
    hf_bundle_check_at(&bundle, hf_boot_ns());
    assert_in_range(look(), 1, SOON_MS);
    assert_int_equal(sent, 1);
    can_ask = true;
    hf_bundle_look_in(&bundle, 0);
    assert_true(look() > SOON_MS);
    assert_int_equal(sent, 2);
    answer();
}

static void one_is_enough(void **state)
{
    hf_bundle_check_at(&bundle, hf_boot_ns());
    assert_true(look() > SOON_MS);
    assert_int_equal(sent, 1);
    answer();
    hf_bundle_look_in(&bundle, 0);
    assert_true(look() > SOON_MS);
    assert_int_equal(sent, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(one_that_was_asked_for_beside_another_comes_after_it),
        CASE(one_that_could_not_be_sent_comes_when_it_can),
        CASE(one_is_enough),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
