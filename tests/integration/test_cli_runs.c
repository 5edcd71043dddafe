/* test_cli_runs.c - `holdfast runs`: what runs, what starts and ends, and who died. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { SOON_MS = 30000, SILENT_MS = 45000, LEASE_MS = 5000, MATCH_SIZE = 256 };

#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {concurrency: 2, lease: 5s, shutdown_timeout: 1s}\n"                        \
    "handlers:\n"                                                                        \
    "  - {type: long, exec: [sleep, '300']}\n"                                           \
    "  - {type: some, exec: [sleep, '3']}\n"                                             \
    "  - {type: bad, exec: [sh, -c, 'sleep 3; exit 65']}\n"                              \
    "  - {type: quick, exec: ['true']}\n"                                                \
    "  - {pool: ['" HF_TEST_HELPERS "/hf-pool-program']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;
static hf_proc follower, second;

static int clean(void **state)
{
    hf_proc_kill(&follower);
    hf_proc_kill(&second);
    return hf_try_clean(state);
}

/* ---- what it prints while it follows ---- */

static void follow(void)
{
    char out[HF_CLI_PATH];
    const char *const args[] = {
        HF_TEST_COMMAND,    "runs", "--follow", "--json", "--redis",
        fixture->redis.url, NULL};
    hf_cli_fixture_path(fixture, "followed", out);
    hf_proc_start(&follower, &(hf_proc_options){.args = args, .out = out});
    EVENTUALLY(SOON_MS, hf_fixture_number(&fixture->redis, "EXISTS hf:{/}:watch") == 1);
}

/* The first whole line with all of these; the caller ends it. NULL: there is none. */
static json_t *line_with(const char *id, const char *key, const char *value)
{
    const char *at = hf_cli_fixture_get(fixture, "followed");
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        json_t *o = json_loadb(at, (size_t)(end - at), 0, NULL);
        assert_non_null(o);
        const char *is = json_string_value(json_object_get(o, "id"));
        const char *has = json_string_value(json_object_get(o, key));
        if (is != NULL && strcmp(is, id) == 0 && has != NULL && strcmp(has, value) == 0)
            return o;
        json_decref(o);
    }
    return NULL;
}

static bool followed(const char *id, const char *outcome)
{
    json_t *o = line_with(id, "outcome", outcome);
    json_decref(o);
    return o != NULL;
}

static long long number_of(const char *id, const char *outcome, const char *key)
{
    json_t *o = line_with(id, "outcome", outcome);
    assert_non_null(o);
    const long long n = hf_try_number(o, key);
    json_decref(o);
    return n;
}

static bool printed(const char *text)
{
    return strstr(hf_cli_fixture_get(fixture, "followed"), text) != NULL;
}

static long long now_ms(void)
{
    return hf_fixture_number(&fixture->redis, "EVAL %s 0",
                             "local t = redis.call('TIME') "
                             "return t[1] * 1000 + math.floor(t[2] / 1000)");
}

/* What a busy machine has cost since the test began. */
static long long late_ms(bool begins)
{
    static long long before;
    const long long cost = (long long)hf_test_now_ms() - (long long)hf_test_fair_ms();
    before = begins ? cost : before;
    return cost - before;
}

/* ---- tests ---- */

static void nothing_runs(void **state)
{
    (void)state;
    hf_try_run("runs @", 0);
    assert_string_equal(fixture->out, "nothing runs\n");
    hf_try_run("runs @ --json", 0);
    assert_string_equal(fixture->out, "");
    hf_try_run("runs a/b @", 65);
}

static void what_runs_is_shown_with_its_place(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue long --id one @", 0);
    hf_try_run("enqueue long --id two @", 0);
    EVENTUALLY(SOON_MS, hf_try_is_in("one", "running") && hf_try_is_in("two", "running"));
    hf_try_run("runs @ --json", 0);
    for (const char *at = fixture->out; *at != '\0'; at = strchr(at, '\n') + 1) {
        json_t *o = json_loadb(at, (size_t)(strchr(at, '\n') - at), 0, NULL);
        assert_string_equal(hf_try_text(o, "outcome"), "runs");
        assert_string_equal(hf_try_text(o, "type"), "long");
        assert_int_equal(hf_try_number(o, "run"), 1);
        assert_int_equal(hf_try_number(o, "attempt"), 1);
        assert_true(hf_try_number(o, "slot") < 2);
        assert_true(hf_try_number(o, "start_ms") <= now_ms() - 2000);
        assert_true(hf_try_number(o, "lease_until_ms") > now_ms() - 1000);
        json_decref(o);
    }
    hf_try_run("runs default @", 0);
    hf_try_has(fixture->out, "QUEUE    JOB  TYPE  RUN");
    hf_try_has(fixture->out, "default  one  long    1");
    hf_try_has(fixture->out, "default  two  long    1");
    hf_try_run("runs other @", 0);
    assert_string_equal(fixture->out, "nothing runs\n");
}

static void programs_and_pools_tell_of_their_runs(void **state)
{
    (void)state;
    (void)late_ms(true);
    follow();
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue some --id program @", 0);
    hf_try_run("enqueue bad --id fails @", 0);
    hf_try_run("enqueue sleep 3000 --id pool @", 0);
    hf_try_run("enqueue quick @", 0);
    EVENTUALLY(SOON_MS, followed("program", "runs") && followed("pool", "runs"));
    EVENTUALLY(SOON_MS, followed("program", "done") && followed("pool", "done"));
    EVENTUALLY(SOON_MS, followed("fails", "dead") && printed("\"short_done\":1"));
    assert_true(number_of("program", "done", "slot") !=
                number_of("pool", "done", "slot"));
    assert_int_equal(number_of("pool", "runs", "slot"),
                     number_of("pool", "done", "slot"));
    const long long took =
        number_of("pool", "done", "end_ms") - number_of("pool", "done", "start_ms");
    assert_true(took >= 3000 && took < 5000 + late_ms(false));
    hf_proc_signal(&follower, SIGINT);
    assert_true(hf_proc_wait(&follower, SOON_MS));
    assert_int_equal(follower.status, 128 + SIGINT);
}

static void a_crash_and_a_cancelled_run_are_told(void **state)
{
    (void)state;
    follow();
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue late-exit 2500 --id crashes @", 0);
    EVENTUALLY(SOON_MS, followed("crashes", "crashed"));
    hf_try_run("enqueue gentle --id ends @", 0);
    EVENTUALLY(SOON_MS, followed("ends", "runs"));
    hf_try_run("job cancel ends @", 0);
    EVENTUALLY(SOON_MS, followed("ends", "cancelled"));
}

/* The ends of its leases are the scores in `running`, and its jobs run again. */
static void a_killed_worker_is_seen(void **state)
{
    long long ends[2];
    static const char *const ids[] = {"one", "two"};
    (void)state;
    (void)late_ms(true);
    follow();
    hf_try_worker("worker @ -c w.yaml");
    for (size_t i = 0; i < 2; i++) {
        char line[MATCH_SIZE];
        (void)snprintf(line, sizeof line, "enqueue long --id %s @", ids[i]);
        hf_try_run(line, 0);
    }
    EVENTUALLY(SOON_MS, followed("one", "runs") && followed("two", "runs"));
    hf_proc_signal(&hf_try_proc, SIGKILL);
    assert_true(hf_proc_wait(&hf_try_proc, SOON_MS));
    const long long killed = now_ms();
    for (size_t i = 0; i < 2; i++)
        ends[i] =
            hf_fixture_number(&fixture->redis, "ZSCORE hf:{default}:running %s", ids[i]);
    hf_cli_fixture_begin(fixture, &second, "worker @ -c w.yaml", "second");
    EVENTUALLY(SILENT_MS, followed("one", "gone") && followed("two", "gone"));
    EVENTUALLY(SILENT_MS, printed("\"gone_ms\":"));
    for (size_t i = 0; i < 2; i++) {
        const long long end = number_of(ids[i], "gone", "end_ms");
        if (end < ends[i] - 100 || end > ends[i] + 100)
            fail_msg("%s: its lease ended at %lld, found %lld", ids[i], ends[i], end);
        assert_int_equal(number_of(ids[i], "gone", "run"), 1);
    }
    const char *gone = strstr(hf_cli_fixture_get(fixture, "followed"), "\"gone_ms\":");
    const long long heard = strtoll(gone + strlen("\"gone_ms\":"), NULL, 10);
    assert_true(heard > killed - 10500 - late_ms(false) && heard <= killed + 100);
    EVENTUALLY(SOON_MS, printed("\"run\":2"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_runs),
        CASE(what_runs_is_shown_with_its_place),
        CASE(programs_and_pools_tell_of_their_runs),
        CASE(a_crash_and_a_cancelled_run_are_told),
        CASE(a_killed_worker_is_seen),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
