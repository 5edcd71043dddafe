/* test_worker_metrics.c - what a worker counts, and whether it says that it is alive and
 * ready. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue_scripts.h"
#include "tests/support/pool_test.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"

enum { TEXT = 128 };

static const hf_worker_opts plain = {HF_WORKER_OPTS_INIT, .lease_ms = 30000,
                                     .minder = HF_TEST_COMMAND};
static char *text; /* as it was read last */

static const char *read_text(hf_metrics_format format)
{
    size_t len;
    free(text);
    assert_int_equal(hf_worker_metrics(f.worker.worker, format, &text, &len), HF_OK);
    assert_int_equal(strlen(text), len);
    return text;
}

/* -1: there is no such line. */
static double value_of(const char *series)
{
    const size_t len = strlen(series);
    const char *at = read_text(HF_METRICS_PROMETHEUS);
    for (; (at = strstr(at, series)) != NULL; at += len)
        if ((at == text || at[-1] == '\n') && at[len] == ' ')
            return strtod(at + len + 1, NULL);
    return -1;
}

static double ended_as(const char *type, const char *outcome)
{
    char series[TEXT];
    (void)snprintf(series, sizeof series,
                   "holdfast_jobs_ended_total{queue=\"q\",type=\"%s\",outcome=\"%s\"}",
                   type, outcome);
    return value_of(series);
}

static double attempts_of(const char *type, const char *what)
{
    char series[TEXT];
    (void)snprintf(series, sizeof series,
                   "holdfast_job_%s_seconds_count{queue=\"q\",type=\"%s\"}", what, type);
    return value_of(series);
}

static bool is_ready(const char *why)
{
    char detail[HF_DETAIL_SIZE] = "";
    const bool ready = hf_worker_ready(f.worker.worker, detail);
    return ready ? why == NULL : why != NULL && strcmp(detail, why) == 0;
}

static int down(void **state)
{
    free(text);
    text = NULL;
    return hf_pool_fixture_down(state);
}

static void start_worker(void)
{
    hf_worker_fixture_start(&f.worker, f.queue.redis.url, &plain, 0);
    EVENTUALLY(SOON_MS, hf_worker_ready(f.worker.worker, NULL));
}

/* ---- jobs ---- */

static void each_end_is_counted_as_the_log_has_it(void **state)
{
    (void)state;
    start_worker();
    put("a", "t", "ok");
    put("b", "t", "ok");
    put("c", "t", "fail"); /* and again, until it is dead */
    put("d", "t", "dead");
    EVENTUALLY(SOON_MS, ended_as("t", "done") == 2 && ended_as("t", "dead") == 1);
    EVENTUALLY(SOON_MS, ended_as("t", "retry") > 0);
    EVENTUALLY(SOON_MS, attempts_of("t", "run") >= 4);
    hf_worker_stop(f.worker.worker);
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.ended));
    assert_int_equal(ended_as("t", "retry"), said("outcome=retry"));
    assert_int_equal(attempts_of("t", "run"), meta("done") + meta("failed"));
    assert_int_equal(attempts_of("t", "wait"), attempts_of("t", "run"));
    assert_int_equal(ended_as("t", "crashed"), 0);
    assert_true(value_of("holdfast_worker_claims_total") > 0);
    assert_true(value_of("holdfast_worker_redis_request_seconds_count") >=
                value_of("holdfast_worker_claims_total"));
}

/* With a 65th type: */
static void types_without_end_are_counted_together(void **state)
{
    static const hf_worker_opts no_wait = {HF_WORKER_OPTS_INIT, .lease_ms = 30000};
    char name[TEXT];
    (void)state;
    hf_worker_fixture_start(&f.worker, f.queue.redis.url, &no_wait, 0);
    for (int i = 0; i < 70; i++) { /* no handler has them: they go back */
        (void)snprintf(name, sizeof name, "type-%d", i);
        put(name, name, "");
    }
    EVENTUALLY(SOON_MS, said("outcome=no_handler") >= 70);
    EVENTUALLY(SOON_MS, ended_as("other", "no_handler") >= 6);
    size_t types = 0;
    for (const char *at = read_text(HF_METRICS_PROMETHEUS);
         (at = strstr(at, "outcome=\"no_handler\"} ")) != NULL; at++)
        types++;
    assert_int_equal(types, 65);
}

/* ---- health ---- */

static void it_is_ready_while_it_serves(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    start_worker();
    assert_true(hf_worker_alive(f.worker.worker, detail));
    hf_worker_quiet(f.worker.worker);
    EVENTUALLY(SOON_MS, is_ready("the worker is quiet: it claims nothing"));
    assert_int_equal(value_of("holdfast_worker_ready"), 0);
    assert_true(hf_worker_alive(f.worker.worker, NULL));
    hf_worker_resume(f.worker.worker);
    EVENTUALLY(SOON_MS, is_ready(NULL));
    assert_int_equal(value_of("holdfast_worker_ready"), 1);
    put("a", "t", "deaf");
    EVENTUALLY(SOON_MS, value_of("holdfast_worker_slots{state=\"busy\"}") == 1);
    hf_worker_stop(f.worker.worker);
    assert_true(is_ready("the worker is being stopped"));
    assert_true(hf_worker_alive(f.worker.worker, NULL));
    atomic_store(&f.worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.ended));
    assert_false(hf_worker_alive(f.worker.worker, detail));
    assert_string_equal(detail, "the worker does not run");
    assert_false(hf_worker_ready(f.worker.worker, NULL));
}

static void it_is_not_ready_before_redis_has_answered(void **state)
{
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, f.queue.redis.socket);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_check.sha1);
    hf_worker_fixture_start(&f.worker, proxy.url, &plain, 0);
    EVENTUALLY(SOON_MS, hf_proxy_kept(&proxy) == 1);
    ALWAYS(200, is_ready("Redis has not answered a claim yet"));
    assert_true(hf_worker_alive(f.worker.worker, NULL));
    hf_proxy_let_go(&proxy);
    EVENTUALLY(SOON_MS, is_ready(NULL));
    hf_worker_fixture_end(&f.worker);
    hf_proxy_stop(&proxy);
}

/* The text is made although the loop cannot turn. */
static void a_loop_that_hangs_is_seen(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    (void)state;
    start_worker();
    ALWAYS(200, value_of("holdfast_worker_loop_age_seconds") < 5);
    atomic_store(&f.worker.hold_loop, true);
    put("a", "t", "ok");
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.loop_held));
    EVENTUALLY(SOON_MS, value_of("holdfast_worker_loop_age_seconds") > 1);
    assert_true(hf_worker_alive(f.worker.worker, NULL));
    EVENTUALLY(SOON_MS, !hf_worker_alive(f.worker.worker, detail));
    assert_string_equal(detail, "the loop has not turned for 10 s");
    assert_true(value_of("holdfast_worker_loop_age_seconds") > 10);
    assert_false(hf_worker_ready(f.worker.worker, NULL));
    atomic_store(&f.worker.hold_loop, false);
    EVENTUALLY(SOON_MS, hf_worker_alive(f.worker.worker, NULL));
}

/* ---- leases ---- */

static void the_margin_of_renewals_is_known(void **state)
{
    static const hf_worker_opts brief = {HF_WORKER_OPTS_INIT, .lease_ms = 3000};
    (void)state;
    hf_worker_fixture_start(&f.worker, f.queue.redis.url, &brief, 0);
    put("a", "t", "gate");
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.started) == 1);
    EVENTUALLY(SOON_MS, value_of("holdfast_worker_renewal_margin_seconds") > 0);
    assert_true(value_of("holdfast_worker_renewal_margin_seconds") < 2.5);
}

/* ---- pools ---- */

static double pool_value(const char *name, const char *more)
{
    const char *at = read_text(HF_METRICS_PROMETHEUS);
    const size_t len = strlen(name);
    for (; (at = strstr(at, name)) != NULL; at += len) {
        const char *end = strchr(at, '\n'), *value = strstr(at, "\"} ");
        const char *found = more == NULL ? value : strstr(at, more);
        if (at[-1] == '\n' && at[len] == '{' && value != NULL && value < end &&
            found != NULL && found < end)
            return strtod(value + 3, NULL);
    }
    return -1;
}

static double ends(const char *reason)
{
    char label[TEXT];
    (void)snprintf(label, sizeof label, "reason=\"%s\"", reason);
    return pool_value("holdfast_pool_process_ends_total", label);
}

static void it_is_not_ready_without_a_pool(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&plain, pool_of(2, NULL), false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    put("b", "t", "ok"); /* of the handler in C: its queue is served */
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, is_ready("no pool is ready"));
    assert_int_equal(pool_value("holdfast_pool_up", NULL), 0);
    assert_true(ends("start_failed") > 0);
    hf_write_file(f.start, "");
    EVENTUALLY(SOON_MS, is_ready(NULL));
    EVENTUALLY(SOON_MS, pool_value("holdfast_pool_processes", NULL) == 2);
    assert_int_equal(pool_value("holdfast_pool_up", NULL), 1);
    assert_int_equal(pool_value("holdfast_pool_slots", NULL), 2);
    assert_true(pool_value("holdfast_pool_memory_bytes", NULL) > 0);
}

static void each_end_of_a_process_has_its_reason(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.max_jobs = 1;
    start(&plain, pool, true);
    is_served("a");
    EVENTUALLY(SOON_MS, ends("max_jobs") == 1);
    pool.max_jobs = 0;
    reload(&plain, &pool, 1);
    EVENTUALLY(SOON_MS, ends("reload") == 1);
    put("b", "crash", "SEGV");
    EVENTUALLY(SOON_MS, ends("died") >= 1);
    EVENTUALLY(SOON_MS, ended_as("crash", "crashed") >= 1);
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_pool_fixture_up, down, &f)
    const struct CMUnitTest tests[] = {
        CASE(each_end_is_counted_as_the_log_has_it),
        CASE(types_without_end_are_counted_together),
        CASE(it_is_ready_while_it_serves),
        CASE(it_is_not_ready_before_redis_has_answered),
        CASE(a_loop_that_hangs_is_seen),
        CASE(the_margin_of_renewals_is_known),
        CASE(it_is_not_ready_without_a_pool),
        CASE(each_end_of_a_process_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
