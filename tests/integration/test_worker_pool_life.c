/* test_worker_pool_life.c - the processes of a pool: their options, and how they are
 * replaced and stopped, and die with their worker. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/pool_test.h"
#include "tests/support/proc.h"

enum { LONG_MS = 30000 };

static const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                    .minder = HF_TEST_COMMAND};
/* Its ticks come each 500 ms. Its processes end if it stands still for half of the lease,
 * which a busy machine may have it do. */
static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};

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

static void one_that_has_left_and_stays_is_killed(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.grace_ms = 300;
    start(&quick, pool, true);
    put("a", "leave", "stays");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    const pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    is_served("b");
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
    const size_t before = did("begin");
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == before + 1);
    return hf_pool_fixture_pid_of(&f, "a");
}

static void processes_die_with_their_worker(void **state)
{
    (void)state;
    pid_t pid = begin_elsewhere();
    hf_proc_kill(&other);
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
}

enum { TRIES = 5, STOOD_MS = 100 };

/* Stops its worker. Returns what was left of the lease when its process was seen dead,
 * ms; `blind_ms`: for how long nobody had looked. */
static long long left_at_death(pid_t pid, uint64_t *blind_ms)
{
    uint64_t looked_ns = hf_boot_ns(), before_ns = looked_ns;
    hf_proc_signal(&other, SIGSTOP);
    EVENTUALLY(SOON_MS,
               (before_ns = looked_ns, looked_ns = hf_boot_ns(), !hf_pid_alive(pid)));
    long long left = hf_fixture_number(&f.queue.redis, "PTTL hf:{q}:lock:a");
    *blind_ms = (hf_boot_ns() - before_ns) / HF_MS_NS;
    return left;
}

/* Another worker may have the job from then on. Where the machine stood at that moment
 * the test has not seen in which order it was, and tries again. */
static void processes_of_a_worker_that_stands_die_before_the_lease_ends(void **state)
{
    (void)state;
    for (unsigned i = 0;; i++) {
        uint64_t blind_ms;
        long long left = left_at_death(begin_elsewhere(), &blind_ms);
        if (left > 0)
            break;
        print_message("its lease was over (%lld), and nobody had looked for %d ms\n",
                      left, (int)blind_ms);
        assert_true(blind_ms >= STOOD_MS && i < TRIES);
        hf_proc_kill(&other);
        hf_fixture_command(&f.queue.redis, "FLUSHALL");
    }
}

#define OTHER_TEST(name)                                                                 \
    cmocka_unit_test_prestate_setup_teardown(name, hf_pool_fixture_up, down, &f)

int main(int argc, char **args)
{
    const struct CMUnitTest tests[] = {
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
        HF_POOL_TEST(one_that_has_left_and_stays_is_killed, &f),
        HF_POOL_TEST(idle_processes_end_and_come_back, &f),
        HF_POOL_TEST(they_come_back_in_a_worker_of_pools_alone, &f),
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
