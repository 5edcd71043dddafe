/* test_unserved.c - how long a queue backs off when nodes of a cluster say that they do
 * not have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis/cluster.h"
#include "worker/node/site.h"
#include "worker/queues/queues.h"
#include "worker/worker.h"

static hf_worker w;
static hf_server redis;
static hf_site site;
static hf_served served;
static int warnings;

static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    (void)message, (void)fields, (void)n, (void)arg;
    warnings += level == HF_LOG_WARN ? 1 : 0;
}

static int up(void **state)
{
    (void)state;
    char detail[HF_DETAIL_SIZE];
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = "redis://127.0.0.1:1"};
    memset(&w, 0, sizeof w); /* not a cluster: there is no table to correct */
    assert_int_equal(hf_cluster_open(&w.nodes.cluster, &opts, detail), HF_OK);
    w.opts.log = on_log;
    pthread_mutex_init(&w.log_lock, NULL);
    site = (hf_site){.worker = &w, .base.redis = &redis};
    served = (hf_served){.worker = &w, .site = &site, .whole = &served.own};
    served.own = (hf_whole){.members = &served, .n_members = 1};
    warnings = 0;
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_cluster_close(w.nodes.cluster, NULL, NULL);
    return pthread_mutex_destroy(&w.log_lock);
}

/* Whether the queue backs off, because of a request that was sent at this time. */
static bool moved(uint64_t sent_ns)
{
    const hf_answer answer = {
        .err = HF_MOVED, .detail = "MOVED 1 127.0.0.1:1", .sent_ns = sent_ns};
    return hf_queue_refused(&served, &site, HF_MOVED, &answer);
}

static void requests_that_were_under_way_count_once(void **state)
{
    (void)state;
    const uint64_t sent_ns = hf_boot_ns();
    assert_false(moved(sent_ns));
    assert_false(moved(sent_ns));
    assert_int_equal(warnings, 0);
    assert_int_equal(served.backoff.until_ns, 0);
}

static void a_second_refusal_in_a_row_backs_off(void **state)
{
    (void)state;
    assert_false(moved(hf_boot_ns()));
    assert_true(moved(hf_boot_ns()));
    assert_true(served.backoff.until_ns > hf_boot_ns());
    assert_int_equal(warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_that_were_under_way_count_once, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_second_refusal_in_a_row_backs_off, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
