/* test_worker_pool_life.c - the processes of a pool: how they start and fail to, are
 * replaced, reloaded and stopped, and what happens to jobs while there is no slot. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/support/pool_test.h"
#include "tests/support/proc.h"

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

static bool is_untouched(const char *id)
{
    const char *record = hf_pool_fixture_record(&f, id);
    return strcmp(record, "(nil)") != 0 && strstr(record, "\"attempts\"") == NULL &&
           strcmp(hf_pool_fixture_crashes(&f, id), "(nil)") == 0;
}

/* ---- it does not start ---- */

static void jobs_wait_for_a_program_that_fails_to_start(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    assert_true(said("no module named app") > 0);
    put("a", "noop", "");
    put("b", "t", "ok"); /* of the handler in C: its queue is served */
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, did("start ") >= 2);
    assert_true(is_untouched("a"));
    assert_int_equal(said("outcome=dead"), 0);
    hf_write_file(f.start, "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    is_served("c");
}

static void starts_that_fail_come_less_and_less_often(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(4, NULL), false);
    EVENTUALLY(SOON_MS, said("next_try=") >= 4);
    /* 4 at first, so the fourth failure in a row: 8 s, a tenth more or less. */
    EVENTUALLY(SOON_MS, said("next_try=7") + said("next_try=8") > 0);
    assert_true(did("start ") <= 5);
}

/* Also before all that it has left behind has gone. */
static void no_start_comes_before_the_back_off_of_one_that_failed(void **state)
{
    (void)state;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("next_try=") == 1);
    assert_int_equal(did("start "), 1);
}

static void one_that_is_not_ready_in_time_is_killed(void **state)
{
    (void)state;
    hf_write_file(f.start, "never");
    hf_pool pool = impatient(pool_of(1, NULL));
    pool.start_timeout_ms = 300;
    start(&quick, pool, false);
    EVENTUALLY(SOON_MS, said("it was not ready in time") > 0);
    hf_write_file(f.start, "");
    is_served("a");
}

static void another_version_is_refused_by_name(void **state)
{
    (void)state;
    start(&quick, pool_of(1, ARGS("version=2")), false);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    assert_int_equal(said("a process of a pool is ready"), 0);
    assert_true(said("version") > 0);
}

static void a_second_ready_is_a_protocol_error(void **state)
{
    (void)state;
    hf_write_file(f.start, "twice");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("protocol error") > 0);
    hf_write_file(f.start, "");
    is_served("a");
}

static void a_type_has_one_handler(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop t");
    start(&quick, pool_of(1, NULL), false);
    EVENTUALLY(SOON_MS, said("its type 't' has a handler of its own already") > 0);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    hf_write_file(f.types, "noop");
    is_served("a");
}

static void a_process_that_offers_something_else_is_refused(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop exit");
    start(&quick, pool_of(1, NULL), true);
    is_served("a");
    hf_write_file(f.types, "noop echo");
    put("b", "exit", "1");
    EVENTUALLY(SOON_MS, said("after a new version of the program") > 0);
    assert_int_equal(said("a process of a pool is ready"), 1);
    hf_write_file(f.types, "exit noop");
    is_served("c");
}

/* A pool with a process that died, and cannot be replaced, does not stop its queue. */
static void a_pool_that_goes_down_does_not_stop_its_queue(void **state)
{
    (void)state;
    start(&quick, impatient(pool_of(1, NULL)), true);
    put("a", "die-idle", "0");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    hf_write_file(f.start, "never");
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    pid = 0;
    hf_pool_fixture_put_many(&f, "n", "noop", "", 20); /* which wait too long */
    hf_test_pause_ms(300);
    hf_write_file(f.start, "exit 1");
    FILE *log = fopen(f.log, "re");
    char line[128];
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        if (strncmp(line, "start ", 6) == 0)
            pid = (pid_t)strtol(line + 6, NULL, 10);
    if (log != NULL)
        (void)fclose(log);
    assert_true(pid > 1 && hf_pid_alive(pid));
    kill(pid, SIGKILL);
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") > 0);
    put("b", "t", "ok");
    EVENTUALLY(5000, ended("b", "done"));
    hf_write_file(f.start, "");
    EVENTUALLY(60000, meta("done") == 22);
    assert_int_equal(said("outcome=crashed"), 0);
}

/* ---- its options ---- */

static void options_of_a_type_take_precedence(void **state)
{
    static const hf_pool_type types[] = {
        {HF_POOL_TYPE_INIT, .type = "gentle", .timeout_ms = 150}};
    (void)state;
    hf_pool pool = pool_of(1, ARGS("timeout=60000"));
    pool.types = types;
    pool.n_types = 1;
    start(&opts, pool, true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 150ms"));
}

static void a_type_has_the_time_out_that_its_program_names(void **state)
{
    (void)state;
    start(&opts, pool_of(1, ARGS("timeout=170")), true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 170ms"));
}

static void its_environment_and_directory_are_as_configured(void **state)
{
    static const char *const names[] = {"HF_TEST_GIVEN", NULL};
    (void)state;
    setenv("HF_TEST_GIVEN", "given", 1);
    setenv("HF_TEST_OTHER", "other", 1);
    hf_pool pool = pool_of(1, NULL);
    pool.env = names;
    pool.cwd = f.queue.redis.dir;
    pool.keep_ms = 60000;
    start(&opts, pool, true);
    put("a", "env", "HF_TEST_GIVEN");
    put("b", "env", "HF_TEST_OTHER");
    put("c", "cwd", "");
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "a"), "given") == 0);
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "b"), "(none)") == 0);
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "c"), f.queue.redis.dir) == 0);
}

static void the_whole_environment_is_passed_on_where_asked(void **state)
{
    (void)state;
    setenv("HF_TEST_OTHER", "other", 1);
    hf_pool pool = pool_of(1, NULL);
    pool.env_all = true;
    pool.keep_ms = 60000;
    start(&opts, pool, true);
    put("b", "env", "HF_TEST_OTHER");
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "b"), "other") == 0);
}

static void its_outputs_are_kept_where_asked(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.logs = true;
    start(&opts, pool, true);
    put("a", "dead", ""); /* its log stays */
    EVENTUALLY(SOON_MS, strstr(hf_fixture_command(&f.queue.redis, "HVALS hf:{q}:log:a"),
                               "to stdout a") != NULL);
}

/* ---- it is replaced ---- */

/* How many processes there were at most, by their own words. */
static int most_at_once(void)
{
    char line[160];
    int now = 0, most = 0;
    FILE *log = fopen(f.log, "re");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        now += strncmp(line, "start ", 6) == 0 ? 1 : 0;
        now -= strncmp(line, "stop ", 5) == 0 ? 1 : 0;
        most = now > most ? now : most;
    }
    if (log != NULL)
        (void)fclose(log);
    return most;
}

static void a_process_is_replaced_after_its_number_of_jobs(void **state)
{
    (void)state;
    hf_pool pool = pool_of(2, ARGS("ready-after=100"));
    pool.max_jobs = 10;
    start(&quick, pool, true);
    for (unsigned i = 0; did("stop ") < 8; i++) { /* each of the two, some times */
        char prefix[8];
        snprintf(prefix, sizeof prefix, "n%u", i);
        hf_pool_fixture_put_many(&f, prefix, "sleep", "5", 40);
        EVENTUALLY(SOON_MS, meta("done") == 40 * (long long)(i + 1));
    }
    assert_true(said("because=max_jobs") >= 8);
    assert_true(most_at_once() <= 4); /* one is new; one may not have ended yet */
    assert_int_equal(said("outcome=crashed"), 0);
}

static void it_takes_jobs_until_its_replacement_is_ready(void **state)
{
    (void)state;
    hf_pool pool = impatient(pool_of(1, NULL));
    pool.max_jobs = 2;
    pool.start_timeout_ms = 3000;
    start(&quick, pool, true);
    hf_write_file(f.start, "never");
    put("a", "noop", "");
    put("b", "noop", "");
    put("c", "noop", "");
    EVENTUALLY(SOON_MS, did("start ") >= 2);
    is_served("d");
    assert_int_equal(hf_pool_fixture_pid_of(&f, "d"), hf_pool_fixture_pid_of(&f, "a"));
    assert_int_equal(did("stop "), 0);
    EVENTUALLY(SOON_MS, said("it was not ready in time") > 0);
    is_served("e");
    hf_write_file(f.start, ""); /* and then it is replaced */
    EVENTUALLY(SOON_MS, did("stop ") >= 1);
    is_served("f");
    assert_int_not_equal(hf_pool_fixture_pid_of(&f, "f"),
                         hf_pool_fixture_pid_of(&f, "a"));
}

static void it_is_replaced_when_it_is_old(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.max_age_ms = 300;
    start(&quick, pool, true);
    EVENTUALLY(SOON_MS, did("stop ") >= 2);
    assert_true(said("because=max_age") >= 2);
    is_served("a");
}

static void it_is_replaced_when_it_is_large(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.max_rss = INT64_C(40) << 20;
    start(&quick, pool, true);
    ALWAYS(300, did("start ") == 1);
    put("a", "grow", "80");
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    assert_int_equal(said("because=max_rss"), 1);
    is_served("b");
}

static void one_that_wants_to_leave_is_replaced(void **state)
{
    (void)state;
    start(&quick, pool_of(1, NULL), true);
    put("a", "leave", "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
}

static void idle_processes_end_and_come_back(void **state)
{
    (void)state;
    hf_pool pool = pool_of(3, NULL);
    pool.idle_ms = 200;
    start(&quick, pool, true);
    EVENTUALLY(SOON_MS, did("stop ") == 2);
    ALWAYS(400, did("stop ") == 2); /* the first one stays */
    hf_pool_fixture_put_many(&f, "n", "sleep", "400", 6);
    EVENTUALLY(SOON_MS, did("start ") >= 5);
    EVENTUALLY(SOON_MS, meta("done") == 6);
}

/* Nothing else makes it claim more jobs than it has slots. */
static void they_come_back_in_a_worker_of_pools_alone(void **state)
{
    (void)state;
    f.alone = true;
    hf_pool pool = pool_of(3, NULL);
    pool.idle_ms = 200;
    start(&quick, pool, true);
    f.alone = false;
    EVENTUALLY(SOON_MS, did("stop ") == 2);
    hf_pool_fixture_put_many(&f, "n", "sleep", "600", 12);
    EVENTUALLY(SOON_MS, did("start ") >= 5);
    EVENTUALLY(SOON_MS, meta("done") == 12);
}

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

/* ---- it is stopped ---- */

static void idle_processes_exit_when_the_worker_stops(void **state)
{
    (void)state;
    start(&opts, pool_of(3, NULL), true);
    EVENTUALLY(SOON_MS, said("a process of a pool is ready") == 3);
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_int_equal(did("stop "), 3);
}

static void busy_ones_finish_first(void **state)
{
    (void)state;
    start(&opts, pool_of(1, NULL), true);
    put_long("a");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_worker_stop(f.worker.worker);
    EVENTUALLY(SOON_MS, strstr(hf_fixture_command(&f.queue.redis, "GET hf:{/}:worker:%s",
                                                  hf_worker_id(f.worker.worker)),
                               "\"state\":\"stopping\"") != NULL);
    let_end();
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_true(ended("a", "done"));
    assert_int_equal(did("stop "), 1);
    assert_int_equal(did("begin"), 1);
    assert_true(is_untouched("b"));
}

static void those_that_do_not_are_asked_and_killed(void **state)
{
    (void)state;
    hf_worker_opts with = opts;
    with.shutdown_timeout_ms = 300;
    start(&with, impatient(pool_of(2, NULL)), true);
    put("a", "gentle", "");
    put("b", "hang", "");
    EVENTUALLY(SOON_MS, did("begin") == 2);
    pid_t pid = hf_pool_fixture_pid_of(&f, "b");
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_false(hf_pid_alive(pid));
    assert_true(is_untouched("a") && is_untouched("b"));
    assert_int_equal(hf_fixture_number(&f.queue.redis, "ZCARD hf:{q}:running"), 0);
    assert_int_equal(said("outcome=crashed"), 0);
}

static void one_that_starts_is_killed_when_the_worker_stops(void **state)
{
    (void)state;
    hf_write_file(f.start, "never");
    start(&opts, impatient(pool_of(1, NULL)), false);
    EVENTUALLY(SOON_MS, did("start ") == 1);
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_OK);
    assert_true(hf_test_fair_ms() - before < LONG_MS / 3);
}

/* ---- its worker dies, or stands still ---- */

static int be_a_worker(char **args)
{
    static hf_worker_fixture own;
    const char *const program[] = {args[3], args[4], NULL};
    const hf_pool pool = {HF_POOL_INIT, .argv = program, .processes = 2};
    const hf_worker_opts with = {HF_WORKER_OPTS_INIT, .lease_ms = 10000,
                                 .minder = HF_TEST_COMMAND};
    hf_worker_fixture_start_pools(&own, args[2], &with, &pool, 1, true);
    pthread_join(own.thread, NULL);
    return 0;
}

static hf_proc other;

static int down(void **state)
{
    hf_proc_kill(&other);
    f.queue.broken = true;
    return hf_pool_fixture_down(state);
}

static pid_t begin_elsewhere(void)
{
    hf_pool_fixture_argv(&f, argv, NULL);
    const char *const args[] = {hf_proc_self(), "worker", f.queue.redis.url,
                                argv[0],        argv[1],  NULL};
    hf_proc_start(&other, &(hf_proc_options){.args = args});
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    return hf_pool_fixture_pid_of(&f, "a");
}

static void processes_die_with_their_worker(void **state)
{
    (void)state;
    pid_t pid = begin_elsewhere();
    hf_proc_kill(&other);
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
}

/* Another worker may have the job from then on. */
static void processes_of_a_worker_that_stands_die_before_the_lease_ends(void **state)
{
    (void)state;
    pid_t pid = begin_elsewhere();
    hf_proc_signal(&other, SIGSTOP);
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    assert_true(hf_fixture_number(&f.queue.redis, "PTTL hf:{q}:lock:a") > 0);
}

#define OTHER_TEST(name)                                                                 \
    cmocka_unit_test_prestate_setup_teardown(name, hf_pool_fixture_up, down, &f)

int main(int argc, char **args)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(jobs_wait_for_a_program_that_fails_to_start, &f),
        HF_POOL_TEST(starts_that_fail_come_less_and_less_often, &f),
        HF_POOL_TEST(no_start_comes_before_the_back_off_of_one_that_failed, &f),
        HF_POOL_TEST(one_that_is_not_ready_in_time_is_killed, &f),
        HF_POOL_TEST(another_version_is_refused_by_name, &f),
        HF_POOL_TEST(a_second_ready_is_a_protocol_error, &f),
        HF_POOL_TEST(a_type_has_one_handler, &f),
        HF_POOL_TEST(a_process_that_offers_something_else_is_refused, &f),
        HF_POOL_TEST(a_pool_that_goes_down_does_not_stop_its_queue, &f),
        HF_POOL_TEST(options_of_a_type_take_precedence, &f),
        HF_POOL_TEST(a_type_has_the_time_out_that_its_program_names, &f),
        HF_POOL_TEST(its_environment_and_directory_are_as_configured, &f),
        HF_POOL_TEST(the_whole_environment_is_passed_on_where_asked, &f),
        HF_POOL_TEST(its_outputs_are_kept_where_asked, &f),
        HF_POOL_TEST(a_process_is_replaced_after_its_number_of_jobs, &f),
        HF_POOL_TEST(it_takes_jobs_until_its_replacement_is_ready, &f),
        HF_POOL_TEST(it_is_replaced_when_it_is_old, &f),
        HF_POOL_TEST(it_is_replaced_when_it_is_large, &f),
        HF_POOL_TEST(one_that_wants_to_leave_is_replaced, &f),
        HF_POOL_TEST(idle_processes_end_and_come_back, &f),
        HF_POOL_TEST(they_come_back_in_a_worker_of_pools_alone, &f),
        HF_POOL_TEST(a_reload_brings_new_processes_before_the_old_ones_stop, &f),
        HF_POOL_TEST(a_reload_replaces_one_at_a_time, &f),
        HF_POOL_TEST(the_old_processes_stay_if_new_ones_fail, &f),
        HF_POOL_TEST(a_program_that_refuses_is_not_started_before_a_reload, &f),
        HF_POOL_TEST(a_reload_may_bring_other_types, &f),
        HF_POOL_TEST(jobs_run_while_a_pool_that_a_reload_adds_starts, &f),
        HF_POOL_TEST(a_reload_may_bring_another_program_with_the_same_types, &f),
        HF_POOL_TEST(a_pool_that_a_reload_takes_out_finishes, &f),
        HF_POOL_TEST(jobs_of_a_full_pool_go_back_and_others_go_on, &f),
        HF_POOL_TEST(a_full_pool_does_not_hold_up_another, &f),
        HF_POOL_TEST(idle_processes_exit_when_the_worker_stops, &f),
        HF_POOL_TEST(busy_ones_finish_first, &f),
        HF_POOL_TEST(those_that_do_not_are_asked_and_killed, &f),
        HF_POOL_TEST(one_that_starts_is_killed_when_the_worker_stops, &f),
        OTHER_TEST(processes_die_with_their_worker),
        OTHER_TEST(processes_of_a_worker_that_stands_die_before_the_lease_ends),
    };
    if (argc > 4 && strcmp(args[1], "worker") == 0)
        return be_a_worker(args);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
