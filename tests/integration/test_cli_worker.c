/* `holdfast worker` as a service: its jobs, its signals, its end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {concurrency: 4, shutdown_timeout: 1s}\n"                                   \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: [sh, -c, 'cat; echo']}\n"                                    \
    "  - {type: bad, exec: [sh, -c, 'echo boom >&2; exit 65']}\n"                        \
    "  - {type: long, exec: [sleep, '600']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc *const worker = &hf_try_proc;

static int run(const char *line)
{
    return hf_cli_fixture_run(fixture, line, NULL, NULL);
}

static void end_by(int signal, int code)
{
    hf_proc_signal(worker, signal);
    if (!hf_proc_wait(worker, 15000))
        fail_msg("it does not end: %s", hf_cli_fixture_get(fixture, "log"));
    assert_int_equal(worker->status, code);
}

static void a_row_of_a_list_tells_what_a_trace_was_of(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "trace.sh",
                       "echo 'about to start' >&2\n"
                       "echo 'Traceback (most recent call last):' >&2\n"
                       "echo '  File \"send.py\", line 3, in <module>' >&2\n"
                       "echo 'ValueError: no such street' >&2\n"
                       "exit 65\n");
    hf_cli_fixture_put(fixture, "w.yaml",
                       HF_CLI_PATIENT
                       "handlers: [{type: trace, exec: [sh, trace.sh]}]\n");
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue trace @ --id t1 --wait"), 1);
    assert_int_equal(run("dead list @"), 0);
    assert_non_null(strstr(fixture->out, "ago  ValueError: no such street\n"));
    assert_int_equal(run("job show t1 @"), 0);
    assert_non_null(strstr(fixture->out,
                           "error     about to start\n"
                           "          Traceback (most recent call last):\n"));
}

/* Runs on a kernel that is too old: one line says so. */
static void refuse_old(const char *line)
{
    fixture->command = HF_TEST_BUILD "/tests/helpers/hf-lock-trials";
    int code = run(line);
    fixture->command = HF_TEST_COMMAND;
    assert_int_equal(code, 71);
    hf_try_has(fixture->err, "expected Linux 5.4 or newer, found ");
    assert_ptr_equal(strchr(fixture->err, '\n'), fixture->err + strlen(fixture->err) - 1);
}

static void a_kernel_that_is_too_old_is_named(void **state)
{
    (void)state;
    refuse_old("old " HF_TEST_COMMAND " worker @ -c w.yaml");
    refuse_old("old " HF_TEST_COMMAND " lock @ a touch locked");
    assert_false(hf_cli_fixture_has(fixture, "locked"));
}

static void a_waiter_learns_whether_its_job_is_done_or_dead(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue good hello @ --id g1 --wait"), 0);
    assert_string_equal(fixture->out, "g1\n");
    assert_int_equal(run("enqueue bad @ --id b1 --wait"), 1);
    assert_string_equal(fixture->out, "b1\n");
    assert_string_equal(fixture->err, "holdfast: b1 is dead: boom\n");
    assert_true(hf_try_logged("line=hello"));
    assert_true(hf_try_logged("job=g1 queue=default type=good attempt=1"));
    assert_int_equal(run("dead list @ --type bad --json"), 0);
    assert_non_null(strstr(fixture->out, "\"error\":\"boom\""));
    assert_int_equal(run("dead list @ --type other --json"), 0);
    assert_string_equal(fixture->out, "");
    assert_int_equal(run("dead retry b1 @"), 0);
    end_by(SIGTERM, 0);
}

static void
a_running_job_shows_its_holder_and_goes_back_when_the_worker_is_stopped(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue long @ --id l1"), 0);
    EVENTUALLY(15000, run("job show l1 @ --json") == 0 &&
                          strstr(fixture->out, "\"state\":\"running\"") != NULL);
    assert_null(strstr(fixture->out, "\"holder\":null"));
    assert_null(strstr(fixture->out, "\"fence\":null"));
    assert_null(strstr(fixture->out, "\"lease_remaining_ms\":null"));
    end_by(SIGTERM, 0);
    assert_int_equal(run("job show l1 @ --json"), 0);
    assert_non_null(strstr(fixture->out, "\"state\":\"ready\",\"attempts\":0"));
}

static void a_second_int_ends_the_waiting(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "w.yaml",
                       HF_CLI_PATIENT "worker: {shutdown_timeout: 1h}\n"
                                      "handlers: [{type: long, exec: [sleep, '600']}]\n");
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue long @ --id l1"), 0);
    EVENTUALLY(15000,
               run("job list @ --state running --json") == 0 && fixture->out[0] != '\0');
    hf_proc_signal(worker, SIGINT);
    EVENTUALLY(15000, run("workers @ --json") == 0 && /* it has heard the first */
                          strstr(fixture->out, "\"state\":\"stopping\"") != NULL);
    ALWAYS(200, !hf_proc_wait(worker, 0));
    end_by(SIGINT, 0);
}

static void a_quiet_worker_claims_nothing_until_it_is_continued(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_proc_signal(worker, SIGTSTP);
    EVENTUALLY(15000, hf_try_logged("quiet"));
    assert_int_equal(run("enqueue good @ --id g1"), 0);
    ALWAYS(200, hf_fixture_number(&fixture->redis, "HLEN hf:{default}:jobs") == 1);
    hf_proc_signal(worker, SIGCONT);
    EVENTUALLY(15000, hf_fixture_number(&fixture->redis, "HLEN hf:{default}:jobs") == 0);
    end_by(SIGTERM, 0);
}

static void hup_reads_the_file_again_and_a_bad_one_changes_nothing(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_cli_fixture_put(fixture, "w.yaml", HANDLERS "log: {format: json}\nlog: {}\n");
    hf_proc_signal(worker, SIGHUP);
    EVENTUALLY(15000, hf_try_logged(
                          "level=error msg=\"the configuration is not valid, nothing was "
                          "changed\" error=\"w.yaml:8:1: expected each key once"));
    hf_cli_fixture_put(fixture, "w.yaml", HANDLERS "log: {format: json}\n");
    hf_proc_signal(worker, SIGHUP);
    EVENTUALLY(15000, hf_try_logged("reloaded"));
    EVENTUALLY(15000, hf_try_logged("msg=changed key=log.format was=logfmt now=json"));
    assert_int_equal(run("enqueue good @ --wait"), 0);
    end_by(SIGTERM, 0);
}

/* It comes after TERM, while a job keeps the worker: nothing of it is taken. */
static void a_reload_that_is_ignored_leaves_the_log_as_it_is(void **state)
{
    (void)state;
    static const char handlers[] =
        HF_CLI_PATIENT "worker: {shutdown_timeout: 1h}\n"
                       "handlers: [{type: long, exec: [sleep, '600']}]\n";
    char other[sizeof handlers + 32];
    snprintf(other, sizeof other, "%slog: {format: json}\n", handlers);
    hf_cli_fixture_put(fixture, "w.yaml", handlers);
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue long @ --id l1"), 0);
    EVENTUALLY(15000,
               run("job list @ --state running --json") == 0 && fixture->out[0] != '\0');
    hf_proc_signal(worker, SIGTERM);
    EVENTUALLY(15000, run("workers @ --json") == 0 && strstr(fixture->out, "stopping"));
    hf_cli_fixture_put(fixture, "w.yaml", other);
    hf_proc_signal(worker, SIGHUP);
    EVENTUALLY(15000, hf_try_logged("msg=\"stopping: the reload is ignored\""));
    ALWAYS(100, !hf_try_logged("log.format"));
    end_by(SIGTERM, 0);
    assert_false(hf_try_logged("log.format"));
    assert_true(hf_try_logged("outcome=released"));
}

static void hup_brings_queues_and_handlers_but_the_command_line_holds(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml -q default -q more -n 2");
    hf_cli_fixture_put(
        fixture, "w.yaml",
        "redis: {url: 'redis://nowhere:1', connect_timeout: 5m, request_timeout: 30s}\n"
        "worker: {concurrency: 9, lease: 20s}\n"
        "queues: [{name: other}, {name: more, weight: 5, max_running: 3}]\n"
        "handlers: [{type: good, exec: [sh, -c, 'cat; echo \" anew\"']}]\n");
    hf_proc_signal(worker, SIGHUP);
    EVENTUALLY(15000, hf_try_logged(
                          "msg=reloaded queues=2 handlers=1 changed=6 needs_restart=1"));
    assert_true(hf_try_logged("msg=changed key=queues[].weight name=more was=1 now=5"));
    assert_true(
        hf_try_logged("msg=changed key=queues[].max_running name=more was=0 now=3"));
    assert_true(hf_try_logged("msg=changed key=worker.shutdown_timeout was=1s now=25s"));
    assert_true(hf_try_logged("msg=changed key=handlers name=bad now=removed"));
    assert_true(hf_try_logged("msg=changed key=handlers name=good now=changed"));
    assert_true(
        hf_try_logged("level=warn msg=\"needs a restart\" key=worker.lease now=10s "
                      "file=20s"));
    assert_int_equal(run("enqueue good it @ -q more --wait"), 0);
    EVENTUALLY(15000, hf_try_logged("line=\"it anew\""));
    assert_int_equal(
        hf_fixture_number(&fixture->redis, "HGET hf:{more}:meta max_running"), 3);
    hf_cli_fixture_put(fixture, "w.yaml", "worker: {concurrency: 9}\n");
    hf_proc_signal(worker, SIGHUP);
    EVENTUALLY(15000, hf_try_logged("w.yaml:1:1: 'handlers' is missing"));
    end_by(SIGTERM, 0);
}

static void the_log_and_check_tell_of_the_schedules_of_the_file(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "w.yaml",
                       HANDLERS "schedules: [{id: one, every: 1h, type: good}, {id: two, "
                                "every: 1h, type: good}]\n");
    assert_int_equal(run("check -c w.yaml"), 0);
    assert_non_null(strstr(fixture->out, ", schedules: 2)\n"));
    assert_int_equal(run("check -c w.yaml --json"), 0);
    assert_non_null(strstr(fixture->out, ",\"schedules\":2,\"warnings\":0}"));
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(15000, hf_try_logged("msg=\"Redis knows a schedule of the file\" "
                                    "queue=default schedule=one\n"));
    EVENTUALLY(15000, hf_try_logged(" queue=default schedule=two\n"));
}

static void burst_ends_when_nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(run("enqueue good @ --in 300ms -q one"), 0);
    assert_int_equal(run("enqueue good @ -q two"), 0);
    assert_int_equal(run("enqueue good @ -q three"), 0);
    assert_int_equal(run("worker @ -c w.yaml --burst -q one -q two -n 1"), 0);
    assert_int_equal(
        hf_fixture_number(&fixture->redis, "EXISTS hf:{one}:jobs hf:{two}:jobs"), 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "HLEN hf:{three}:jobs"), 1);
}

#ifndef HF_SANITIZED /* there memory has other rules */
static long resident_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (kib < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    }
    (void)fclose(file);
    return kib;
}

static void memory_for_large_payloads_is_given_back(void **state)
{
    enum { BURSTS = 3, JOBS = 32, BYTES = 1000000, KEPT_KIB = 12 << 10 };
    static char line[BYTES + 64];
    char path[HF_CLI_PATH];
    (void)state;
    hf_cli_fixture_path(fixture, "large.jsonl", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    size_t n = (size_t)snprintf(line, sizeof line, "{\"type\":\"eat\",\"payload\":\"");
    memset(line + n, 'x', BYTES);
    memcpy(line + n + BYTES, "\"}\n", 4);
    for (int i = 0; i < JOBS; i++)
        assert_true(fputs(line, file) >= 0);
    assert_int_equal(fclose(file), 0);
    hf_cli_fixture_put(
        fixture, "w.yaml",
        "handlers: [{type: eat, exec: [sh, -c, 'sleep 0.2; cat >/dev/null']}]\n");
    hf_cli_fixture_put(fixture, "patient.yaml", "redis: {connect_timeout: 5m}\n");
    hf_try_worker("worker @ -c w.yaml");
    for (int i = 0; i < BURSTS; i++) {
        assert_int_equal(run("enqueue @ -c patient.yaml --bulk large.jsonl"), 0);
        EVENTUALLY(15000,
                   hf_fixture_number(&fixture->redis, "HLEN hf:{default}:jobs") == 0);
        EVENTUALLY(15000, resident_kib(worker->pid) < KEPT_KIB);
    }
    end_by(SIGTERM, 0);
}
#endif

static void a_redis_that_may_evict_locks_is_refused(void **state)
{
    (void)state;
    hf_fixture other;
    char line[512];
    const hf_fixture_options options = {.args = {"--maxmemory-policy", "allkeys-lru"}};
    hf_fixture_start(&other, &options);
    snprintf(line, sizeof line, "worker -c w.yaml --redis %s", other.url);
    int code = run(line);
    hf_fixture_stop(&other);
    assert_int_equal(code, 78);
    assert_non_null(strstr(fixture->err, "holdfast: Redis may evict keys"));
}

static void queues_on_the_command_line_are_checked(void **state)
{
    (void)state;
    assert_int_equal(run("worker @ -c w.yaml -q a -q a"), 64);
    assert_non_null(
        strstr(fixture->err, "-q: expected each queue once, found 'a' again"));
    assert_int_equal(run("worker @ -c w.yaml -q a{"), 65);
    assert_int_equal(run("worker @ -c w.yaml -n 0"), 64);
}

static void an_idle_worker_does_not_wait_for_a_redis_that_is_away(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGSTOP};
    for (size_t i = 0; i < 2; i++) {
        hf_cli_fixture_put(fixture, "w.yaml",
                           "redis: {request_timeout: 30s}\n"
                           "log: {level: debug}\n"
                           "worker: {shutdown_timeout: 1m}\n"
                           "handlers: [{type: good, exec: [cat]}]\n");
        hf_try_worker("worker @ -c w.yaml");
        /* Before the answer to its first claim it may have jobs. */
        EVENTUALLY(15000, hf_try_logged("msg=claimed"));
        if (signals[i] == SIGKILL)
            hf_fixture_kill(&fixture->redis, SIGKILL);
        else
            hf_fixture_signal(&fixture->redis, SIGSTOP);
        uint64_t began_ms = hf_test_fair_ms();
        end_by(SIGTERM, 0);
        assert_true(hf_test_fair_ms() - began_ms < 5000); /* it takes less than 1000 */
        if (signals[i] == SIGKILL)
            hf_fixture_restart(&fixture->redis);
        else
            hf_fixture_signal(&fixture->redis, SIGCONT);
    }
}

static void a_worker_without_redis_ends_at_the_end_of_its_shutdown_timeout(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    assert_int_equal(run("enqueue long @ --id l1"), 0);
    EVENTUALLY(15000, run("job show l1 @ --json") == 0 &&
                          strstr(fixture->out, "\"state\":\"running\"") != NULL);
    hf_fixture_kill(&fixture->redis, SIGKILL);
    end_by(SIGTERM, 0);
    hf_fixture_restart(&fixture->redis);
}

static void a_redis_that_ends_idle_connections_is_no_error(void **state)
{
    (void)state;
    hf_fixture_command(&fixture->redis, "CONFIG SET timeout 1");
    hf_try_worker("worker @ -c w.yaml");
    ALWAYS(4000, !hf_try_logged("level=error") && !hf_try_logged("level=warn msg=\"the"));
    assert_int_equal(run("enqueue good @ --wait"), 0);
    assert_false(hf_try_logged("Redis is back"));
    /* the fixture's own connection may be closed as well */
    EVENTUALLY(5000, strcmp(hf_fixture_command(&fixture->redis, "CONFIG SET timeout 0"),
                            "OK") == 0);
    end_by(SIGTERM, 0);
}

static void what_the_file_says_comes_back_after_flushall(void **state)
{
    (void)state;
    hf_cli_fixture_put(
        fixture, "w.yaml",
        "queues: [{name: default, rate: {limit: 7, per: 1s}, on_dead: died}]\n"
        "schedules: [{id: tick, every: 1h, type: good}]\n"
        "handlers: [{type: good, exec: [cat]}]\n");
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(15000, hf_fixture_number(&fixture->redis, "HLEN hf:{default}:cron") == 1);
    for (int i = 0; i < 2; i++) { /* the first one may meet what is told at the start */
        hf_fixture_command(&fixture->redis, "FLUSHALL");
        EVENTUALLY(
            30000,
            hf_fixture_number(&fixture->redis, "HGET hf:{default}:meta rate_limit") ==
                    7 &&
                hf_fixture_number(&fixture->redis, "HEXISTS hf:{default}:meta on_dead") &&
                hf_fixture_number(&fixture->redis, "HLEN hf:{default}:cron") == 1 &&
                hf_fixture_number(&fixture->redis, "SCARD hf:{/}:queues") == 1);
    }
    EVENTUALLY(15000, hf_try_logged("it is registered again"));
    end_by(SIGTERM, 0);
}

/* The last heartbeat has this many busy slots; when it came. */
static bool shows_busy(int n, long long *heard_ms)
{
    static const char heard[] = "\"heard_ms\":";
    char busy[24];
    snprintf(busy, sizeof busy, "\"running\":%d,", n);
    if (run("workers @ --json") != 0 || strstr(fixture->out, busy) == NULL)
        return false;
    *heard_ms = strtoll(strstr(fixture->out, heard) + strlen(heard), NULL, 10);
    return true;
}

static void workers_show_busy_slots_soon_and_go_at_their_end(void **state)
{
    enum { REGULAR_MS = 10000 };
    long long idle_ms = 0, busy_ms = 0;
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(15000, shows_busy(0, &idle_ms));
    const uint64_t from_ms = hf_test_now_ms(), fair_from_ms = hf_test_fair_ms();
    assert_int_equal(run("enqueue long @"), 0);
    EVENTUALLY(15000, !shows_busy(0, &idle_ms) && shows_busy(1, &busy_ms));
    const long long late_ms = (long long)(hf_test_now_ms() - from_ms) -
                              (long long)(hf_test_fair_ms() - fair_from_ms);
    assert_true(busy_ms - idle_ms < REGULAR_MS - 1000 + late_ms);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:workers"), 1);
    end_by(SIGTERM, 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:workers"), 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "EXISTS hf:{default}:handles"),
                     0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hf_try_clean, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_of_a_list_tells_what_a_trace_was_of),
        TEST(a_kernel_that_is_too_old_is_named),
        TEST(a_waiter_learns_whether_its_job_is_done_or_dead),
        TEST(a_running_job_shows_its_holder_and_goes_back_when_the_worker_is_stopped),
        TEST(a_second_int_ends_the_waiting),
        TEST(a_quiet_worker_claims_nothing_until_it_is_continued),
        TEST(hup_reads_the_file_again_and_a_bad_one_changes_nothing),
        TEST(a_reload_that_is_ignored_leaves_the_log_as_it_is),
        TEST(hup_brings_queues_and_handlers_but_the_command_line_holds),
        TEST(the_log_and_check_tell_of_the_schedules_of_the_file),
        TEST(burst_ends_when_nothing_is_left),
#ifndef HF_SANITIZED
        TEST(memory_for_large_payloads_is_given_back),
#endif
        TEST(a_redis_that_may_evict_locks_is_refused),
        TEST(queues_on_the_command_line_are_checked),
        TEST(an_idle_worker_does_not_wait_for_a_redis_that_is_away),
        TEST(a_worker_without_redis_ends_at_the_end_of_its_shutdown_timeout),
        TEST(a_redis_that_ends_idle_connections_is_no_error),
        TEST(what_the_file_says_comes_back_after_flushall),
        TEST(workers_show_busy_slots_soon_and_go_at_their_end),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
