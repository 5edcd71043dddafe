/* `holdfast wrong`: a cause is made and its thing appears, the cause is removed and it
 * goes; the forms of the answer, and its exit codes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"
#include "tests/support/lock_fixture.h"

enum { LINE = 400, MINUTE_MS = 60000, HOUR_MS = 3600000, SOON_MS = 20000 };
enum { HISTORY_MS = 90000 }; /* what ends after the first sample comes with its minute */

#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {concurrency: 2, lease: 6s, shutdown_timeout: 1s}\n"                        \
    "handlers:\n"                                                                        \
    "  - {type: good, exec: ['true']}\n"                                                 \
    "  - {type: bad, exec: [sh, -c, 'echo connection refused by host 7 >&2; exit "       \
    "65']}\n"                                                                            \
    "  - {type: long, exec: [sleep, '600']}\n"                                           \
    "  - {type: fails, exec: ['false']}\n"

static hf_cli_fixture *const fixture = &hf_try_fixture;

/* ---- what is found: "rule level; ..." without the hint that nothing is on disk ---- */

static const char *found_once(void)
{
    static char text[512];
    size_t len = 0;
    int code = hf_cli_fixture_run(fixture, "wrong @ --json", NULL, NULL);
    const char *at = fixture->out;
    text[0] = '\0';
    while (*at != '\0' && len < sizeof text) {
        const char *end = strchr(at, '\n');
        json_t *o = json_loadb(at, (size_t)(end - at), 0, NULL);
        assert_non_null(o);
        if (strcmp(hf_try_text(o, "rule"), "no_aof") != 0)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s %s;",
                                    hf_try_text(o, "rule"), hf_try_text(o, "level"));
        json_decref(o);
        at = end + 1;
    }
    assert_int_equal(code, strstr(text, " bad;") != NULL ? 1 : 0);
    return text;
}

/* A Redis that gets no processor for three seconds counts as away: on a busy machine that
 * is no answer. */
static const char *found(void)
{
    enum { TRIES = 5 };
    const char *things = "";
    for (int i = 0; i < TRIES; i++) {
        const hf_test_span span = hf_test_span_begin();
        things = found_once();
        if (strstr(things, "redis bad;") == NULL || !hf_test_span_is_busy(span))
            break;
    }
    return things;
}

static bool finds(const char *things)
{
    return strcmp(found(), things) == 0;
}

static void assert_found(const char *things)
{
    assert_string_equal(found(), things);
}

static void assert_says(const char *part)
{
    hf_try_has(fixture->out, part);
}

static long long now(void)
{
    hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues default");
    return hf_try_figure("default", "now_ms");
}

/* A job that has been ready for so long. */
static void put_ready(const char *id, const char *type, long long ago_ms)
{
    char line[LINE];
    snprintf(line, sizeof line, "enqueue %s @ --id %s --in 1h", type, id);
    hf_try_run(line, 0);
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:schedule %lld %s",
                             now() - ago_ms, id);
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:wake 0 baton");
}

/* A heartbeat that holds for so long from now; ended long ago: a silent worker. */
static void beat_as(const char *state, const char *id, long long holds_ms,
                    const char *rest)
{
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{/}:workers %lld %s",
                             now() + holds_ms, id);
    if (holds_ms > 0)
        (void)hf_fixture_command(&fixture->redis,
                                 "SET hf:{/}:worker:%s "
                                 "{\"state\":\"%s\",\"queues\":[\"default\"],%s} PX "
                                 "%lld",
                                 id, state, rest, holds_ms);
}

static void beat(const char *id, long long holds_ms, const char *rest)
{
    beat_as("serving", id, holds_ms, rest);
}

static void leave(const char *id)
{
    (void)hf_fixture_command(&fixture->redis, "ZREM hf:{/}:workers %s", id);
    (void)hf_fixture_command(&fixture->redis, "DEL hf:{/}:worker:%s", id);
}

#define WEB1 "web1-11-00000000000000aa"
#define WEB2 "web2-12-00000000000000bb"
#define WEB3 "web3-13-00000000000000cc"

/* ---- well ---- */

static void nothing_is_wrong_with_an_idle_system(void **state)
{
    (void)state;
    assert_found("");
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue good @ --wait", 0);
    assert_found("");
    hf_try_run("wrong @", 0);
    assert_says("All is well with Redis, 1 queue, 1 worker, 0 schedules and 0 locks.\n");
    assert_says("\nhint  Redis keeps nothing on disk.\n");
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET appendonly yes");
    hf_try_run("wrong @ --json", 0);
    assert_string_equal(fixture->out, "");
    (void)hf_fixture_command(&fixture->redis, "CONFIG SET appendonly no");
}

/* A backlog is young, and its worker has just ended: it is being replaced. */
static void nothing_is_wrong_while_a_worker_is_replaced(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    put_ready("a", "good", 5000);
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == 1);
    hf_proc_signal(&hf_try_proc, SIGTERM);
    assert_true(hf_proc_wait(&hf_try_proc, SOON_MS));
    put_ready("b", "good", 30000);
    assert_found("");
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == 2);
    assert_found("");
}

/* ---- queues ---- */

static void a_queue_without_a_worker_is_unserved_until_one_comes(void **state)
{
    (void)state;
    put_ready("a", "good", 30000);
    assert_found("unserved bad;");
    assert_says("No live worker serves queue default; 1 job waits.");
    assert_says("Job a (no_worker): no live worker takes jobs of queue 'default'");
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(SOON_MS, finds(""));
}

/* A quiet worker takes nothing, whatever it has a handler for. */
static void a_type_without_a_handler_is_unserved_until_one_comes(void **state)
{
    (void)state;
    beat(WEB1, MINUTE_MS, "\"types\":[\"good\",\"long\"]");
    beat_as("quiet", WEB3, MINUTE_MS, "\"types\":[\"strange\"]");
    hf_try_run("enqueue strange @ --id s --in 1h", 0);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:jobs s %s",
                             "{\"type\":\"strange\",\"refused\":1000}\n");
    /* One that was refused before, and has a handler now. */
    hf_try_run("enqueue good @ --id g --in 50m", 0);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:jobs g %s",
                             "{\"type\":\"good\",\"refused\":1000}\n");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:refused 9 s 9 g");
    assert_found("unserved bad;");
    assert_says("No live worker of queue default has a handler for type strange.");
    assert_says("\"why\":\"Job s (no_worker_for_type): no handler for type 'strange' in "
                "the 1 live worker of queue 'default', which takes good, long: deploy a "
                "worker that has one; if the type is mistyped, 'holdfast job delete s -q "
                "default' and enqueue the job again.\"");
    assert_says("\"command\":\"holdfast job show s -q default\"");
    assert_null(strstr(fixture->out, "job retry"));
    json_t *why = hf_try_object("job why s @ --json", 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(why, "reasons"), 0)),
        "no_worker_for_type");
    json_decref(why);
    hf_try_run("job why s @", 0);
    assert_null(strstr(fixture->out, "job retry"));
    beat(WEB2, MINUTE_MS, "\"types\":[\"*\"]");
    assert_found("");
}

static void many_types_end_with_others(void **state)
{
    char types[2048] = "\"types\":[\"good\"", name[101];
    (void)state;
    for (int i = 0; i < 10; i++) {
        const size_t len = strlen(types);
        memset(name, 'a' + i, sizeof name - 1);
        name[sizeof name - 1] = '\0';
        (void)snprintf(types + len, sizeof types - len, ",\"%s\"", name);
    }
    (void)snprintf(types + strlen(types), sizeof types - strlen(types), "]");
    beat(WEB1, MINUTE_MS, types);
    hf_try_run("enqueue strange @ --id s", 0);
    hf_try_run("job why s @", 0);
    assert_says("which takes good, aaaa");
    assert_says("dddd, and others: deploy a worker that has one");
}

/* Another program may have written any id. */
static void an_id_that_is_none_is_no_fault_of_redis(void **state)
{
    (void)state;
    put_ready("a", "good", 30000);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:jobs %s %s", "a;b",
                             "{\"type\":\"good\"}\n");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:schedule %lld %s",
                             now() - MINUTE_MS, "a;b");
    assert_non_null(strstr(found(), "unserved bad;"));
    assert_null(strstr(found(), "redis"));
    (void)hf_fixture_command(&fixture->redis, "ZREM hf:{default}:schedule %s", "a;b");
    (void)hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs %s", "a;b");
}

static void start_busy(void)
{
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue long @ --id l1", 0);
    hf_try_run("enqueue long @ --id l2", 0);
    EVENTUALLY(SOON_MS, hf_try_is_in("l1", "running") && hf_try_is_in("l2", "running"));
}

static void a_late_queue_has_the_reason_of_job_why(void **state)
{
    char line[LINE];
    (void)state;
    start_busy();
    hf_try_run("queue limit default @ --max-running 2", 0);
    put_ready("w", "good", 2 * MINUTE_MS);
    assert_found("late warn;");
    assert_says("The oldest job of queue default waits for 2 min");
    assert_says("\"command\":\"holdfast job why w -q default\""); /* no slot is free */
    assert_says("Job w (max_running): 2 jobs of queue 'default' run, of at most 2 (");
    json_t *why = hf_try_object("job why w @ --json", 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(why, "reasons"), 0)),
        "max_running");
    json_decref(why);
    hf_try_run("wrong @ --late 5s", 1);
    assert_says("bad   The oldest job of queue default waits for 2 min");
    hf_try_run("wrong @ --late 1h", 0);
    snprintf(line, sizeof line, "wrong @ --late 10m --json");
    hf_try_run(line, 0);
    assert_null(strstr(fixture->out, "\"late\""));
    hf_try_run("queue limit default @ --max-running 0", 0);
    hf_try_run("job cancel l1 @ --wait", 0);
    EVENTUALLY(SOON_MS, finds(""));
}

static void a_pause_with_jobs_is_a_note_at_once(void **state)
{
    (void)state;
    hf_try_run("queue pause default @", 0);
    assert_found("");
    put_ready("a", "good", HOUR_MS);
    assert_found("paused note;");
    hf_try_run("wrong @", 0);
    assert_says(
        "Nothing is wrong; 1 thing to note.\nnote  Queue default has been paused for ");
    hf_try_run("wrong @ --nagios", 0);
    assert_says(
        "HOLDFAST OK - Nothing is wrong; 1 thing to note: Queue default has been ");
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:meta paused_at %lld",
                             now() - 58 * (long long)MINUTE_MS);
    assert_found("paused note;");
    hf_try_run("wrong @", 0);
    assert_says("note  Queue default has been paused for 58 min; 1 job waits.\n");
    assert_says("      $ holdfast queue resume default\n");
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("queue resume default @", 0);
    EVENTUALLY(SOON_MS, finds(""));
}

static void deaths_are_grouped_by_their_error(void **state)
{
    char line[LINE];
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    for (int i = 0; i < 10; i++) {
        assert_found("");
        snprintf(line, sizeof line, "enqueue bad @ --id d%d --wait", i);
        hf_try_run(line, 1);
    }
    assert_found("deaths bad;");
    assert_says("10 jobs of queue default died in the last hour.");
    assert_says("10 of 10 that were looked at have the type bad and one error: "
                "connection refused by host 7");
    hf_try_run("dead purge d3 @ --yes", 0);
    assert_found("");
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:jobs d4 %s",
                             "{\"type\":\"bad\",\"reason\":\"poison\"}\n");
    assert_found("deaths warn;");
    assert_says("1 job of type bad of queue default died as poison in the last hour.");
    assert_says("while they ran job d4 of type bad.");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:dead 1000 d4");
    assert_found("");
}

/* A takeover has told which silent workers may have held the job. The one that it names
 * alone is told with it; another one may have nothing to do with it. */
static void a_silent_worker_that_no_poison_names_stays_a_thing(void **state)
{
    static const char record[] =
        "{\"type\":\"bad\",\"reason\":\"poison\",\"created\":1000,\"error\":\"its holder "
        "died 3 times; " WEB2 ", lease ended 2026-11-29T03:00:00Z; " WEB1 " or " WEB3
        ", lease ended 2026-11-29T03:01:00Z; " WEB3
        ", its process died 2026-11-29T03:02:00Z\"}\n";
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue bad @ --id d4 --wait", 1);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:jobs d4 %s",
                             (const char *)record);
    assert_found("deaths warn;");
    beat(WEB1, -11000, "");
    beat(WEB3, -11000, "");
    assert_found("worker_silent bad;worker_silent bad;deaths warn;");
    beat(WEB2, -11000, "");
    assert_found("worker_silent bad;worker_silent bad;deaths bad;");
    assert_says("1 worker fell silent meanwhile: web2 pid 12.");
    leave(WEB1);
    leave(WEB2);
    leave(WEB3);
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:dead 1000 d4");
    assert_found("");
}

/* ---- what the history tells ---- */

/* As if this many minutes had passed since its last sample. */
static void age_history(int minutes)
{
    static const char age[] =
        "local minutes, keys = tonumber(ARGV[1]), redis.call('KEYS', "
        "'hf:{default}:past:[0-9]*')"
        " table.sort(keys)"
        " for _, key in ipairs(keys) do"
        "  local sample = redis.call('HGET', key, '')"
        "  if sample then redis.call('HSET', key, '', (string.gsub(sample, 's=(%d+)', "
        "function(ms) return string.format('s=%.0f', ms - minutes * 60000) end))) end"
        "  redis.call('RENAME', key, (string.gsub(key, '%d+$', "
        "function(n) return string.format('%.0f', n - minutes) end)))"
        " end return #keys";
    assert_true(hf_fixture_number(&fixture->redis, "EVAL %s 0 %d", (const char *)age,
                                  minutes) > 0);
}

/* The attempts that failed, in the history. */
static long long failed_in_history(void)
{
    static const char sum[] =
        "local n = 0 for _, key in ipairs(redis.call('KEYS', "
        "'hf:{default}:past:[0-9]*')) do"
        "  n = n + (string.match(redis.call('HGET', key, '') or '', 'F=(%d+)') or 0)"
        " end return n";
    return hf_fixture_number(&fixture->redis, "EVAL %s 0", (const char *)sum);
}

/* Each fails once: none comes to the history after it has been made older. And they may
 * be of two minutes. */
static void attempts_that_fail_are_told_for_five_minutes(void **state)
{
    enum { JOBS = 25 };
    static const char one[] = "{\"type\":\"fails\"}\n";
    char lines[JOBS * sizeof one] = "";
    (void)state;
    hf_cli_fixture_put(fixture, "w.yaml", HANDLERS "retry: {base: 1h}\n");
    hf_try_worker("worker @ -c w.yaml");
    for (int i = 0; i < JOBS; i++)
        memcpy(lines + strlen(lines), one, sizeof one);
    assert_int_equal(hf_cli_fixture_run(fixture, "enqueue --bulk - @", lines, NULL), 0);
    EVENTUALLY(HISTORY_MS, failed_in_history() == JOBS);
    assert_found("failing bad;");
    assert_says("100 % of the attempts of queue default failed in the last 5 min.");
    hf_try_run("queue purge default @ --yes", 0);
    assert_found("failing bad;");
    age_history(3);
    assert_found("failing bad;");
    age_history(3);
    assert_found("");
}

static void attempts_that_are_done_count_as_well(void **state)
{
    char line[LINE];
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "enqueue %s @ --id f%d --max-attempts 1",
                 i % 8 == 0 ? "fails" : "good", i);
        hf_try_run(line, 0);
    }
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == 35 &&
                            hf_try_figure("default", "failed") == 5);
    EVENTUALLY(HISTORY_MS, failed_in_history() == 5);
    assert_found("");
}

/* A sample of a worker, by the script that workers send. */
static void add_sample(unsigned number)
{
    const long long minute = now() / MINUTE_MS;
    const char *answer = hf_fixture_command(
        &fixture->redis, "EVAL %s 1 hf:{default}: w %u %lld 10800000 good d=1",
        (const char *)hf_lua_queue_past.text, number, minute);
    if (strstr(answer, "(error)") != NULL)
        fail_msg("%s", answer);
    age_history(1);
}

static void a_queue_that_grows_says_how_fast(void **state)
{
    char line[LINE];
    (void)state;
    start_busy();
    hf_try_run("queue limit default @ --max-running 2", 0);
    put_ready("w", "good", 2 * MINUTE_MS);
    for (unsigned i = 1; i <= 6; i++)
        add_sample(i);
    assert_found("late warn;"); /* it has not grown */
    for (unsigned i = 7; i <= 12; i++) {
        snprintf(line, sizeof line, "enqueue good @ --id g%u", i);
        hf_try_run(line, 0);
        add_sample(i);
    }
    hf_try_run("enqueue good @ --id last", 0);
    assert_found("grows warn;");
    assert_says("Queue default grows by 1 a minute; the oldest job waits for 2 min");
    assert_says("Job w (max_running): 2 jobs of queue 'default' run, of at most 2 (");
    json_t *why = hf_try_object("job why w @ --json", 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(why, "reasons"), 0)),
        "max_running");
    json_decref(why);
    hf_try_run("queue limit default @ --max-running 0", 0);
    hf_try_run("job cancel l1 @ --wait", 0);
    EVENTUALLY(15000, finds(""));
}

static void crashed_runs_are_told_for_ten_minutes(void **state)
{
    (void)state;
    start_busy();
    for (long long n = 0; n < 3; n = hf_try_figure("default", "crashed")) {
        hf_proc_kill(&hf_try_proc);
        hf_try_worker("worker @ -c w.yaml");
        EVENTUALLY(SOON_MS, hf_try_figure("default", "crashed") > n);
    }
    EVENTUALLY(15000, strstr(found(), "crashes warn;") != NULL);
    assert_says("runs of queue default crashed in the last 10 min.");
    age_history(9);
    assert_non_null(strstr(found(), "crashes warn;"));
    age_history(2);
    assert_null(strstr(found(), "crashes"));
}

static void a_late_verdict_is_told_for_ten_minutes(void **state)
{
    char fence[64];
    (void)state;
    hf_cli_fixture_put(fixture, "w.yaml",
                       HF_CLI_PATIENT
                       "worker: {lease: 30s, shutdown_timeout: 1s}\n"
                       "handlers: [{type: gate, exec: [sh, -c, 'until [ -e go ]; do "
                       "sleep 0.05; done'], cwd: .}]\n");
    hf_cli_fixture_remove(fixture, "go");
    beat(WEB2, MINUTE_MS, "\"types\":[\"*\"]");
    hf_try_worker("worker @ -c w.yaml");
    hf_try_run("enqueue gate @ --id g", 0);
    EVENTUALLY(SOON_MS, hf_try_is_in("g", "running"));
    const char *holder = hf_fixture_command(&fixture->redis, "GET hf:{default}:lock:g");
    assert_non_null(strrchr(holder, ':'));
    (void)snprintf(fence, sizeof fence, "%s", strrchr(holder, ':'));
    assert_found("");
    (void)hf_fixture_command(&fixture->redis, "SET hf:{default}:lock:g %s%s KEEPTTL",
                             WEB2, fence); /* another worker holds it now */
    hf_cli_fixture_put(fixture, "go", "");
    EVENTUALLY(SOON_MS, hf_try_figure("default", "lost") == 1);
    EVENTUALLY(15000, finds("lost warn;"));
    assert_says("1 verdict of queue default came too late in the last 10 min.");
    age_history(9);
    assert_found("lost warn;");
    age_history(2);
    assert_found("");
}

static void faults_in_the_data_are_found_and_go_with_their_repair(void **state)
{
    (void)state;
    hf_try_run("enqueue good @ --id lost --in 1h", 0);
    assert_found("");
    (void)hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs lost");
    assert_found("doctor bad;");
    assert_says("The data of queue default has 1 fault.");
    assert_says("lost: is in `schedule` and has no record.");
    hf_try_run("doctor @ --fix", 0);
    hf_try_run("dead purge lost @ --yes", 0);
    assert_found("");
    /* A key of another type does not hide the other queues. */
    (void)hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues q");
    (void)hf_fixture_command(&fixture->redis, "SET hf:{q}:meta x");
    put_ready("a", "good", 30000);
    assert_found("unserved bad;doctor bad;");
    assert_says("The data of queue q has 1 fault.");
}

/* ---- workers ---- */

static void a_silent_worker_is_bad_and_then_a_note(void **state)
{
    (void)state;
    beat(WEB2, -11000, ""); /* heard 41 s ago */
    assert_found("worker_silent bad;");
    assert_says("Worker web2 pid 12 has been silent for 4");
    beat(WEB2, -2 * HOUR_MS, "");
    assert_found("worker_silent note;");
    hf_try_run("doctor @ --fix", 0);
    assert_found("");
}

static void a_pool_that_is_down_is_told(void **state)
{
    (void)state;
    beat(WEB1, MINUTE_MS,
         "\"types\":[],\"pools\":[{\"name\":\"python3 w.py\",\"state\":\"up\"}]");
    assert_found("");
    beat(WEB1, MINUTE_MS,
         "\"types\":[],\"pools\":[{\"name\":\"python3 w.py\",\"state\":\"down\"}]");
    assert_found("pool_down bad;");
    assert_says("The pool 'python3 w.py' of worker web1 pid 11 is down.");
    leave(WEB1);
    assert_found("");
}

static void versions_that_differ_for_an_hour_are_a_note(void **state)
{
    (void)state;
    char rest[128];
    beat(WEB1, MINUTE_MS, "\"version\":\"0.1.0\",\"started_ms\":1000");
    snprintf(rest, sizeof rest, "\"version\":\"0.2.0\",\"started_ms\":%lld",
             now() - MINUTE_MS);
    beat(WEB2, MINUTE_MS, rest);
    assert_found("");
    snprintf(rest, sizeof rest, "\"version\":\"0.2.0\",\"started_ms\":%lld",
             now() - HOUR_MS);
    beat(WEB2, MINUTE_MS, rest);
    assert_found("versions note;");
    assert_says("Workers of different versions run: 0.1.0 and 0.2.0.");
    leave(WEB1);
    assert_found("");
}

/* ---- schedules and locks ---- */

static void a_tick_that_is_late_or_passes_is_told(void **state)
{
    (void)state;
    hf_try_run("cron add nightly good @ --every 15m", 0);
    assert_found("");
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:cron_next %lld nightly",
                             now() - 2 * (long long)MINUTE_MS);
    assert_found("schedule warn;");
    assert_says("Schedule nightly of queue default is 2 min"); /* or some seconds more */
    assert_says("no live worker serves its queue.");
    hf_try_run("cron pause nightly @", 0);
    assert_found("");
    hf_try_run("cron resume nightly @", 0);
    (void)hf_fixture_command(&fixture->redis, "HSET hf:{default}:cron_state nightly "
                                              "{\"gen\":\"1000\",\"tick\":900000,"
                                              "\"from\":2700000,\"skipped\":2,"
                                              "\"job\":\"j9\"}");
    assert_found("schedule warn;");
    assert_says("has made no job at its last 2 ticks.");
    hf_try_run("cron remove nightly @", 0);
    assert_found("");
}

/* As if the one in line had waited for so long. */
static void wait_since(long long ago_ms)
{
    char owner[128];
    (void)snprintf(
        owner, sizeof owner, "%s",
        hf_fixture_command(&fixture->redis, "ZRANGE hf:lock:{shop}:q:shop/deploy 0 0"));
    owner[strcspn(owner, "\n")] = '\0';
    (void)hf_fixture_command(&fixture->redis,
                             "ZADD hf:lock:{shop}:q:shop/deploy %lld000 %s",
                             now() - ago_ms, owner);
}

static void a_lock_that_is_waited_for_is_told(void **state)
{
    (void)state;
    char holds[96];
    hf_proc holder = {.pid = 0}, waiter = {.pid = 0};
    hf_cli_fixture_begin(fixture, &holder, "lock run shop/deploy @ -- sleep 1000",
                         "h.log");
    EVENTUALLY(SOON_MS,
               hf_fixture_number(&fixture->redis, "ZCARD hf:lock:{shop}:x:shop/deploy") ==
                       1 ||
                   hf_fixture_number(&fixture->redis,
                                     "EXISTS hf:lock:{shop}:cell:shop/deploy") == 1);
    hf_cli_fixture_begin(fixture, &waiter, "lock run shop/deploy @ --wait 60 -- true",
                         "w.log");
    EVENTUALLY(SOON_MS, hf_fixture_number(&fixture->redis,
                                          "ZCARD hf:lock:{shop}:q:shop/deploy") == 1);
    assert_found("");
    wait_since(MINUTE_MS);
    assert_found("lock note;");
    assert_says("A client has waited for lock shop/deploy for 1 min");
    wait_since(11 * MINUTE_MS);
    assert_found("lock warn;");
    assert_says("A client has waited for lock shop/deploy for 11 min.");
    snprintf(holds, sizeof holds, " pid %d has held it for ", (int)holder.pid);
    assert_says(holds);
    assert_says("1 client waits.");
    assert_says("\"command\":\"holdfast lock revoke shop/deploy\"");
    hf_proc_kill(&waiter);
    hf_proc_kill(&holder);
}

static void the_waiters_of_a_lock_with_many_holders_are_counted(void **state)
{
    (void)state;
    (void)hf_fixture_command(
        &fixture->redis, "EVAL %s 0 %lld",
        "local p, at, fence = 'hf:lock:{gpu}:', ARGV[1], ARGV[1] * 1000 "
        "redis.call('HSET', p .. 'e:gpu', '#', '0 120 0 0 5000 1 0') "
        "for i = 1, 122 do local o, waits = 'o' .. i, i > 120 "
        "redis.call('ZADD', p .. 'x:gpu', at, o) "
        "if waits then redis.call('ZADD', p .. 'q:gpu', fence, o) end "
        "redis.call('HSET', p .. 'e:gpu', o, string.format('%s 1 %.0f web1-1-x gpu h=s "
        "600000', waits and 'x 0' or 's 1', waits and 0 or fence)) "
        "end",
        now() - MINUTE_MS);
    assert_found("lock note;");
    assert_says("A client has waited for lock gpu for 1 min");
    assert_says(", with 119 other holds: ");
    assert_says(" 2 clients wait.");
    (void)hf_fixture_command(
        &fixture->redis,
        "DEL hf:lock:{gpu}:x:gpu hf:lock:{gpu}:q:gpu hf:lock:{gpu}:e:gpu");
    assert_found("");
}

/* ---- Redis ---- */

static void config(const char *name, const char *value)
{
    assert_string_equal(
        hf_fixture_command(&fixture->redis, "CONFIG SET %s %s", name, value), "OK");
}

static void a_redis_that_refuses_evicts_or_fills_up_is_told(void **state)
{
    (void)state;
    char bytes[32];
    config("maxmemory-policy", "allkeys-lru");
    assert_found("redis bad;");
    assert_says("Redis may evict keys.");
    config("maxmemory-policy", "noeviction");
    assert_found("");
    config("min-replicas-to-write", "1");
    assert_found("redis bad;");
    assert_says("Redis refuses every write.");
    config("min-replicas-to-write", "0");
    assert_found("");
    const char *used =
        strstr(hf_fixture_command(&fixture->redis, "INFO memory"), "used_memory:");
    assert_non_null(used);
    snprintf(bytes, sizeof bytes, "%lld", atoll(used + 12) * 100 / 87);
    config("maxmemory", bytes);
    assert_found("memory warn;");
    config("maxmemory", "0");
    assert_found("");
    (void)hf_fixture_command(&fixture->redis, "REPLICAOF 127.0.0.1 1");
    assert_found("redis bad;");
    assert_says("Redis is a replica.");
    (void)hf_fixture_command(&fixture->redis, "REPLICAOF NO ONE");
    EVENTUALLY(SOON_MS, finds(""));
}

static void a_redis_that_is_away_is_told(void **state)
{
    (void)state;
    hf_fixture_kill(&fixture->redis, SIGTERM);
    assert_found("redis bad;");
    assert_says("\"what\":\"Redis does not answer.\"");
    hf_try_run("wrong @", 1);
    assert_says("1 thing is wrong.\nbad   Redis does not answer.\n");
    hf_try_run("wrong @ --nagios", 2);
    assert_says("HOLDFAST CRITICAL - 1 thing is wrong: Redis does not answer. | bad=1");
    hf_fixture_restart(&fixture->redis);
    assert_found("");
    hf_fixture_signal(&fixture->redis, SIGSTOP);
    const char *things = found();
    hf_fixture_signal(&fixture->redis, SIGCONT);
    assert_string_equal(things, "redis bad;");
    assert_found("");
}

/* ---- forms ---- */

static void each_thing_is_an_object_with_the_fields_of_the_overview(void **state)
{
    (void)state;
    static const char *const texts[] = {"level", "rule",    "what",
                                        "why",   "command", "page"};
    put_ready("a", "good", 30000);
    hf_try_run("wrong @ --json", 1);
    char *end = strchr(fixture->out, '\n');
    assert_non_null(end);
    json_t *o = json_loadb(fixture->out, (size_t)(end - fixture->out), 0, NULL);
    assert_non_null(o);
    assert_int_equal(json_object_size(o), HF_COUNT(texts) + 1);
    for (size_t i = 0; i < HF_COUNT(texts); i++)
        assert_non_null(hf_try_text(o, texts[i]));
    assert_string_equal(hf_try_text(o, "page"), "queue/default");
    assert_string_equal(hf_try_text(o, "command"), "holdfast worker list");
    assert_says("\"rule\":\"no_aof\",\"since_ms\":null");
    assert_in_range(now() - hf_try_number(o, "since_ms"), 29000, 50000);
    json_decref(o);
}

static void a_plugin_of_nagios_ends_with_0_to_3(void **state)
{
    (void)state;
    hf_try_run("wrong @ --nagios", 0);
    assert_says(
        "HOLDFAST OK - All is well | bad=0;;0;0 warn=0;0;;0 note=0;;;0 hint=1;;;0\n"
        "hint: ");
    hf_try_run("cron add nightly good @ --every 15m", 0);
    (void)hf_fixture_command(&fixture->redis, "ZADD hf:{default}:cron_next %lld nightly",
                             now() - 2 * (long long)MINUTE_MS);
    hf_try_run("wrong @ --nagios", 1);
    assert_says("HOLDFAST WARNING - 1 thing is wrong: Schedule nightly of queue default "
                "is 2 min");
    assert_says(" late. | bad=0;;0;0 warn=1;0;;0 note=0;;;0 hint=1;;;0\n"
                "warn: Schedule ");
    put_ready("a", "good", 30000);
    hf_try_run("wrong @ --nagios", 2);
    assert_says("HOLDFAST CRITICAL - 2 things are wrong: No live worker serves queue");
    static const char *const unknown[] = {
        "wrong @ --nagios --late x", "wrong @ --nagios --json", "wrong @ --nagios more",
        "wrong --nagios --redis ftp://x", "wrong --nagios -c none.yaml"};
    for (size_t i = 0; i < HF_COUNT(unknown); i++) {
        hf_try_run(unknown[i], 3);
        hf_try_has(fixture->out, "HOLDFAST UNKNOWN - ");
        assert_true(fixture->err[0] != '\0');
    }
}

static void bad_input_ends_with_its_code(void **state)
{
    (void)state;
    hf_try_run("wrong @ --late 0", 64);
    hf_try_run("wrong q @", 64);
    hf_try_run("wrong -c none.yaml", 78);
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_wrong_with_an_idle_system),
        TEST(nothing_is_wrong_while_a_worker_is_replaced),
        TEST(a_queue_without_a_worker_is_unserved_until_one_comes),
        TEST(a_type_without_a_handler_is_unserved_until_one_comes),
        TEST(many_types_end_with_others),
        TEST(an_id_that_is_none_is_no_fault_of_redis),
        TEST(a_late_queue_has_the_reason_of_job_why),
        TEST(a_pause_with_jobs_is_a_note_at_once),
        TEST(deaths_are_grouped_by_their_error),
        TEST(a_silent_worker_that_no_poison_names_stays_a_thing),
        TEST(attempts_that_fail_are_told_for_five_minutes),
        TEST(attempts_that_are_done_count_as_well),
        TEST(a_queue_that_grows_says_how_fast),
        TEST(crashed_runs_are_told_for_ten_minutes),
        TEST(a_late_verdict_is_told_for_ten_minutes),
        TEST(faults_in_the_data_are_found_and_go_with_their_repair),
        TEST(a_silent_worker_is_bad_and_then_a_note),
        TEST(a_pool_that_is_down_is_told),
        TEST(versions_that_differ_for_an_hour_are_a_note),
        TEST(a_tick_that_is_late_or_passes_is_told),
        TEST(a_lock_that_is_waited_for_is_told),
        TEST(the_waiters_of_a_lock_with_many_holders_are_counted),
        TEST(a_redis_that_refuses_evicts_or_fills_up_is_told),
        TEST(a_redis_that_is_away_is_told),
        TEST(each_thing_is_an_object_with_the_fields_of_the_overview),
        TEST(a_plugin_of_nagios_ends_with_0_to_3),
        TEST(bad_input_ends_with_its_code),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
