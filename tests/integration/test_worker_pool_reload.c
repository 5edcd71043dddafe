/* test_worker_pool_reload.c - pools that are reloaded: when new processes take the place
 * of the old ones. And pools without a free slot. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/pool_test.h"

enum { LONG_MS = 30000 };

static const char *argv_2[HF_POOL_FIXTURE_ARGS];
static const hf_worker_queue two[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                      {HF_WORKER_QUEUE_INIT, .name = "r"}};
static const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                    .minder = HF_TEST_COMMAND};
/* Its ticks come each 500 ms. Its processes end if it stands still for half of the lease,
 * which a busy machine may have it do. */
static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};

/* ---- it is reloaded ---- */

static void a_reload_brings_new_processes_before_the_old_ones_stop(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, ARGS("ready-after=200"));
    start(&quick, pool, true);
    is_served("a");
    put("long", "sleep", "800");
    EVENTUALLY(SOON_MS, did("begin") == 2);
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, did("start ") == 2);
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    EVENTUALLY(SOON_MS, ended("long", "done"));
    is_served("b");
    assert_int_not_equal(hf_pool_fixture_pid_of(&f, "b"),
                         hf_pool_fixture_pid_of(&f, "a"));
    assert_int_equal(said("outcome=crashed"), 0);
    ALWAYS(300, did("start ") == 2);
}

/* Where the new ones offer the same, the pool keeps its slots. */
static void a_reload_replaces_one_at_a_time(void **state)
{
    char line[160];
    int starts = 0, stops = 0;
    (void)state;
    hf_pool pool = pool_of(3, ARGS("ready-after=150"));
    start(&quick, pool, true);
    EVENTUALLY(SOON_MS, said("a process of a pool is ready") == 3);
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, did("stop ") == 3);
    FILE *log = fopen(f.log, "re");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL) {
        starts += strncmp(line, "start ", 6) == 0 ? 1 : 0;
        stops += strncmp(line, "stop ", 5) == 0 ? 1 : 0;
        if (stops > 0 && starts - stops < 3)
            fail_msg("%d started, %d stopped", starts, stops);
    }
    (void)fclose(log);
    is_served("a");
}

static void the_old_processes_stay_if_new_ones_fail(void **state)
{
    (void)state;
    hf_pool pool = pool_of(2, NULL);
    start(&quick, pool, true);
    EVENTUALLY(SOON_MS, said("a process of a pool is ready") == 2);
    hf_write_file(f.start, "exit 1");
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, said("the new program of a pool cannot start") == 1);
    is_served("a");
    assert_int_equal(did("stop "), 0);
    hf_write_file(f.start, "");
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, did("stop ") == 2);
    is_served("b");
}

/* It says by its status that no start can succeed. */
static void a_program_that_refuses_is_not_started_before_a_reload(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 78");
    hf_pool pool = pool_of(1, NULL);
    start(&quick, pool, false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") == 1);
    assert_int_equal(said("next_try=reload"), 1);
    hf_write_file(f.start, "");
    put("a", "noop", "");
    put("b", "t", "ok"); /* of the handler in C: its queue is served */
    EVENTUALLY(SOON_MS, ended("b", "done"));
    ALWAYS(2500, did("start ") == 1);
    assert_true(is_untouched("a"));
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, ended("a", "done"));
}

static void on_worker(const hf_worker_info *info, void *arg)
{
    bool *down = arg;
    for (size_t i = 0; i < info->n_pools; i++)
        *down = *down || strcmp(info->pools[i].state, "down") == 0;
}

static bool is_down(hf_admin *admin)
{
    bool down = false;
    assert_int_equal(hf_admin_workers(admin, on_worker, &down, NULL), HF_OK);
    return down;
}

static void a_pool_is_down_when_its_last_old_process_has_ended(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    start(&quick, pool, true);
    hf_admin *admin = hf_queue_fixture_admin(&f.queue);
    hf_write_file(f.start, "exit 78");
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, said("the new program of a pool cannot start") == 1);
    is_served("a");
    assert_false(is_down(admin));
    put("b", "die-idle", "0");
    EVENTUALLY(SOON_MS, is_down(admin));
    hf_admin_close(admin);
}

static void a_reload_may_bring_other_types(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop sleep");
    hf_pool pool = pool_of(1, NULL);
    start(&quick, pool, true);
    put("long", "sleep", "500");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_write_file(f.types, "noop echo");
    reload(&quick, &pool, 1);
    put("b", "echo", "");
    EVENTUALLY(SOON_MS, ended("b", "done") && ended("long", "done"));
    is_served("c");
}

/* It may take long to start, or never do so. */
static void jobs_run_while_a_pool_that_a_reload_adds_starts(void **state)
{
    (void)state;
    hf_pool_fixture_argv(&f, argv_2, ARGS("parallel=2"));
    hf_pool pools[] = {pool_of(1, NULL), pool_of(1, NULL)};
    pools[1].argv = argv_2;
    start(&quick, pools[0], true);
    is_served("a");
    hf_write_file(f.start, "never");
    reload(&quick, pools, 2);
    EVENTUALLY(SOON_MS, did("start ") == 3); /* of each pool one more */
    put("b", "t", "ok");
    is_served("c");
    EVENTUALLY(SOON_MS, ended("b", "done"));
}

/* Another command with the same types: a deployment into a new directory. */
static void a_reload_may_bring_another_program_with_the_same_types(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    start(&quick, pool, true);
    is_served("a");
    put("long", "sleep", "600");
    EVENTUALLY(SOON_MS, did("begin") == 2);
    hf_pool_fixture_argv(&f, argv_2, ARGS("timeout=60000"));
    pool.argv = argv_2;
    reload(&quick, &pool, 1);
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done") && ended("long", "done"));
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    is_served("c");
    assert_int_equal(said("a process of a pool does not live"), 0);
    assert_int_equal(said("outcome=no_handler"), 0);
}

static void a_pool_that_a_reload_takes_out_finishes(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    start(&quick, pool, true);
    put_long("long");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    put("next", "noop", "");
    hf_test_pause_ms(200); /* so that the pool is full for a while */
    reload(&quick, NULL, 0);
    let_end();
    EVENTUALLY(SOON_MS, ended("long", "done"));
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    assert_true(is_untouched("next"));
    reload(&quick, &pool, 1);
    EVENTUALLY(60000, ended("next", "done"));
}

/* ---- there is no free slot ---- */

static void jobs_of_a_full_pool_go_back_and_others_go_on(void **state)
{
    (void)state;
    hf_worker_opts with = opts;
    with.queues = two;
    with.n_queues = 2;
    start(&with, pool_of(1, NULL), true);
    put("long", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_pool_fixture_put_many(&f, "n", "noop", "", 5);
    put_on("r", "b", "t", "ok");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, hf_fixture_number(&f.queue.redis, "ZCARD hf:{q}:running") == 1);
    ALWAYS(500, hf_fixture_number(&f.queue.redis, "ZCARD hf:{q}:running") == 1);
    assert_false(ended("long", "done"));
    assert_true(is_untouched("n-0"));
    hf_pool_fixture_cancel(&f, "long");
    EVENTUALLY(SOON_MS, meta("done") == 5);
    assert_int_equal(said("outcome=crashed"), 0);
}

static void a_full_pool_does_not_hold_up_another(void **state)
{
    (void)state;
    hf_worker_opts with = quick; /* a renewal brings the cancel */
    with.queues = two;
    with.n_queues = 2;
    hf_write_file(f.types, "gentle");
    hf_pool_fixture_argv(&f, argv_2, NULL);
    argv_2[3] = "parallel=2"; /* in the place of types= */
    hf_pool pools[] = {pool_of(1, NULL), pool_of(1, NULL)};
    pools[1].argv = argv_2;
    char text[200];
    snprintf(text, sizeof text, "%s-2", f.types);
    hf_write_file(text, "noop");
    char types[220];
    snprintf(types, sizeof types, "types=%s", text);
    argv_2[4] = types;
    argv_2[5] = NULL;
    hf_pool_fixture_start(&f, &with, pools, 2, true);
    hf_pool_fixture_put_many(&f, "s", "gentle", "", 2);
    EVENTUALLY(SOON_MS, did("begin") == 1);
    for (unsigned i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "n%u", i);
        put_on("r", id, "noop", "");
        EVENTUALLY(SOON_MS, ended(id, "done"));
    }
    assert_int_equal(did("begin"), 21);
    hf_pool_fixture_cancel(&f, hf_pool_fixture_pid_of(&f, "s-0") > 0 ? "s-0" : "s-1");
    EVENTUALLY(SOON_MS, did("begin") == 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(a_reload_brings_new_processes_before_the_old_ones_stop, &f),
        HF_POOL_TEST(a_reload_replaces_one_at_a_time, &f),
        HF_POOL_TEST(the_old_processes_stay_if_new_ones_fail, &f),
        HF_POOL_TEST(a_program_that_refuses_is_not_started_before_a_reload, &f),
        HF_POOL_TEST(a_pool_is_down_when_its_last_old_process_has_ended, &f),
        HF_POOL_TEST(a_reload_may_bring_other_types, &f),
        HF_POOL_TEST(jobs_run_while_a_pool_that_a_reload_adds_starts, &f),
        HF_POOL_TEST(a_reload_may_bring_another_program_with_the_same_types, &f),
        HF_POOL_TEST(a_pool_that_a_reload_takes_out_finishes, &f),
        HF_POOL_TEST(jobs_of_a_full_pool_go_back_and_others_go_on, &f),
        HF_POOL_TEST(a_full_pool_does_not_hold_up_another, &f),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
