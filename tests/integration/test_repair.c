/* test_repair.c - what the audit puts right. Each row breaks a queue by hand; a look
 * without `fix` writes nothing and says what would be done; with it, that is done, once;
 * afterwards the queue is clean. And beside a worker under load nothing is found and
 * nothing touched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/dump.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { BREAKS = 4, JOBS = 1000, TEXT = 256 };

static hf_queue_fixture fixture;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];

#define RUN(...) hf_fixture_command(&fixture.redis, __VA_ARGS__)

typedef struct breakage {
    const char *what;
    const char *breaks[BREAKS]; /* commands; $N: now + 60 s */
    const char *check, *id;     /* of the finding */
    const char *ask, *answer;   /* afterwards; the answer begins so, *: has it in it */
    bool by_hand;               /* it stays as it is */
    bool stays;                 /* it is put right as far as it is safe, and still told */
} breakage;

#define RECORD "{\"type\":\"t\"}\nlost"
#define WITHOUT_RECORD(id) "HDEL hf:{q}:jobs " id
#define LIVES "ZADD hf:{q}:workers $N w", "EXPIRE hf:{q}:workers 100"

static const breakage table[] = {
    {.what = "waits and is dead",
     .breaks = {"ZADD hf:{q}:dead 1 waits"},
     .check = "sets",
     .id = "waits",
     .ask = "ZSCORE hf:{q}:dead waits",
     .answer = "(nil)"},
    {.what = "waits, while its holder has it",
     .breaks = {"ZADD hf:{q}:schedule 1 runs"},
     .check = "sets",
     .id = "runs",
     .ask = "ZSCORE hf:{q}:schedule runs",
     .answer = "(nil)"},
    {.what = "is dead, while its holder has it",
     .breaks = {"ZADD hf:{q}:dead 1 runs"},
     .check = "sets",
     .id = "runs",
     .ask = "ZSCORE hf:{q}:dead runs",
     .answer = "(nil)"},
    {.what = "is everywhere, and its lock is gone",
     .breaks = {"ZADD hf:{q}:dead 1 runs", "ZADD hf:{q}:schedule 1 runs",
                "DEL hf:{q}:lock:runs"},
     .check = "sets",
     .id = "runs",
     .ask = "ZSCORE hf:{q}:schedule runs",
     .answer = "(nil)",
     .stays = true},
    {.what = "waits and runs, and somebody may have it",
     .breaks = {"ZADD hf:{q}:schedule 1 runs", "DEL hf:{q}:lock:runs", LIVES},
     .check = "sets",
     .id = "runs",
     .ask = "ZSCORE hf:{q}:schedule runs",
     .answer = "(nil)",
     .stays = true},
    {.what = "waits without a record",
     .breaks = {WITHOUT_RECORD("waits")},
     .check = "record",
     .id = "waits",
     .ask = "HGET hf:{q}:jobs waits",
     .answer = "*\"reason\":\"record\""},
    {.what = "runs without a record",
     .breaks = {WITHOUT_RECORD("runs")},
     .check = "record",
     .id = "runs",
     .ask = "GET hf:{q}:lock:runs",
     .answer = "w:",
     .by_hand = true},
    {.what = "was running, without a record",
     .breaks = {WITHOUT_RECORD("runs"), "DEL hf:{q}:lock:runs"},
     .check = "record",
     .id = "runs",
     .ask = "ZSCORE hf:{q}:running runs",
     .answer = "(nil)"},
    {.what = "is dead without a record",
     .breaks = {WITHOUT_RECORD("dead")},
     .check = "record",
     .id = "dead",
     .ask = "ZSCORE hf:{q}:dead dead",
     .answer = "(nil)"},
    {.what = "waits with a record that cannot be read",
     .breaks = {"HSET hf:{q}:jobs waits rubbish"},
     .check = "record",
     .id = "waits",
     .ask = "HGET hf:{q}:jobs waits",
     .answer = "*\"reason\":\"record\""},
    {.what = "is dead with a record that cannot be read",
     .breaks = {"HSET hf:{q}:jobs dead rubbish"},
     .check = "record",
     .id = "dead",
     .ask = "HGET hf:{q}:jobs dead",
     .answer = "*\"reason\":\"record\""},
    {.what = "waits with a field that cannot be read",
     .breaks = {"HSET hf:{q}:jobs waits {\"type\":\"t\",\"timeout\":\"30s\"}\n"},
     .check = "record",
     .id = "waits",
     .ask = "HGET hf:{q}:jobs waits",
     .answer = "*\"reason\":\"record\"",
     .stays = true},
    {.what = "is dead with a field that cannot be read",
     .breaks = {"HSET hf:{q}:jobs dead {\"type\":\"t\",\"timeout\":\"30s\"}\n"},
     .check = "record",
     .id = "dead",
     .ask = "HGET hf:{q}:jobs dead",
     .answer = "*\"30s\"",
     .by_hand = true},
    {.what = "runs with a record that cannot be read",
     .breaks = {"HSET hf:{q}:jobs runs rubbish"},
     .check = "record",
     .id = "runs",
     .ask = "HGET hf:{q}:jobs runs",
     .answer = "rubbish",
     .by_hand = true},
    {.what = "runs without a lock",
     .breaks = {"DEL hf:{q}:lock:runs"},
     .check = "lock",
     .id = "runs",
     .ask = "ZCOUNT hf:{q}:running 0 $N",
     .answer = "1",
     .by_hand = true},
    {.what = "has a lock without an end",
     .breaks = {"PERSIST hf:{q}:lock:runs"},
     .check = "lock",
     .id = "runs",
     .ask = "PERSIST hf:{q}:lock:runs",
     .answer = "1"},
    {.what = "has a lock that ends later",
     .breaks = {"PEXPIREAT hf:{q}:lock:runs 9999999999999"},
     .check = "lock",
     .id = "runs",
     .ask = "ZCOUNT hf:{q}:running 9999999999900 +inf",
     .answer = "1"},
    {.what = "has a lock that names nobody",
     .breaks = {"SET hf:{q}:lock:runs w KEEPTTL"},
     .check = "lock",
     .id = "runs",
     .ask = "GET hf:{q}:lock:runs",
     .answer = "w",
     .by_hand = true},
    {.what = "has a set as a lock",
     .breaks = {"DEL hf:{q}:lock:runs", "SADD hf:{q}:lock:runs x"},
     .check = "type",
     .id = "runs",
     .ask = "TYPE hf:{q}:lock:runs",
     .answer = "set",
     .by_hand = true},
    {.what = "has a fence that was never given out",
     .breaks = {"HSET hf:{q}:meta fence 5"},
     .check = "fence",
     .id = "runs",
     .ask = "HGET hf:{q}:meta fence",
     .answer = "1"},
    {.what = "has a fence that no number can follow",
     .breaks = {"SET hf:{q}:lock:runs w:99999999999999999999 KEEPTTL"},
     .check = "fence",
     .id = "runs",
     .ask = "EXISTS hf:{q}:lock:runs",
     .answer = "1",
     .by_hand = true},
    {.what = "a lock of a job that waits, and its holder is gone",
     .breaks = {"SET hf:{q}:lock:waits gone:1 PX 10000"},
     .check = "lock",
     .id = "waits",
     .ask = "EXISTS hf:{q}:lock:waits",
     .answer = "0"},
    {.what = "a lock of no job, and its holder is gone",
     .breaks = {"SET hf:{q}:lock:nobody gone:1"},
     .check = "lock",
     .id = "nobody",
     .ask = "EXISTS hf:{q}:lock:nobody",
     .answer = "0"},
    {.what = "a lock of no job without an end, and its holder lives",
     .breaks = {"SET hf:{q}:lock:nobody w:1", LIVES},
     .check = "lock",
     .id = "nobody",
     .ask = "PERSIST hf:{q}:lock:nobody",
     .answer = "1",
     .stays = true},
    {.what = "marks of jobs that are gone",
     .breaks = {"HSET hf:{q}:crashes nobody 1", "HSET hf:{q}:meta uses m"},
     .check = "mark",
     .id = "nobody",
     .ask = "EXISTS hf:{q}:crashes",
     .answer = "0"},
    {.what = "a pause that `uses` does not report",
     .breaks = {"HSET hf:{q}:meta paused 1"},
     .check = "uses",
     .id = "hf:{q}:meta",
     .ask = "HGET hf:{q}:meta uses",
     .answer = "p"},
    {.what = "a mark to cancel what does not run",
     .breaks = {"HSET hf:{q}:cancel waits 1", "HSET hf:{q}:meta uses m"},
     .check = "mark",
     .id = "waits",
     .ask = "EXISTS hf:{q}:cancel",
     .answer = "0"},
    {.what = "what is remembered of a producer has no end",
     .breaks = {"SET hf:{q}:seen:p 1:1"},
     .check = "key",
     .id = "hf:{q}:seen:p",
     .ask = "PTTL hf:{q}:seen:p",
     .answer = "86"},
    {.what = "what is remembered of a claim has no end",
     .breaks = {"SET hf:{q}:last:w 1"},
     .check = "key",
     .id = "hf:{q}:last:w",
     .ask = "PTTL hf:{q}:last:w",
     .answer = "86"},
    {.what = "the list of workers has no end",
     .breaks = {"ZADD hf:{q}:workers 1 w"},
     .check = "key",
     .id = "hf:{q}:workers",
     .ask = "PTTL hf:{q}:workers",
     .answer = "7"},
    {.what = "a key that no queue has",
     .breaks = {"SET hf:{q}:else 1"},
     .check = "key",
     .id = "hf:{q}:else",
     .ask = "GET hf:{q}:else",
     .answer = "1",
     .by_hand = true},
    {.what = "something beside the baton",
     .breaks = {"ZADD hf:{q}:wake 2 stick"},
     .check = "wake",
     .id = "hf:{q}:wake",
     .ask = "ZRANGE hf:{q}:wake 0 -1",
     .answer = "baton\n"},
    {.what = "a promise that nobody can keep",
     .breaks = {"DEL hf:{q}:wake"},
     .check = "wake",
     .id = "hf:{q}:meta",
     .ask = "ZRANGE hf:{q}:wake 0 -1",
     .answer = "baton\n"},
    {.what = "a set that is a string",
     .breaks = {"DEL hf:{q}:schedule", "SET hf:{q}:schedule x"},
     .check = "type",
     .id = "hf:{q}:schedule",
     .ask = "GET hf:{q}:schedule",
     .answer = "x",
     .by_hand = true},
    {.what = "a fence that is no number",
     .breaks = {"HSET hf:{q}:meta fence x"},
     .check = "type",
     .id = "hf:{q}:meta",
     .ask = "HGET hf:{q}:meta fence",
     .answer = "x",
     .by_hand = true},
};

/* ---- looking ---- */

typedef struct told {
    const breakage *of;
    size_t mine, by_hand; /* findings of it, and of these */
    size_t all, repaired;
} told;

static void on_finding(const hf_finding *f, void *arg)
{
    told *t = arg;
    t->all++;
    t->repaired += f->repaired;
    if (t->of != NULL && strcmp(f->check, t->of->check) == 0 &&
        strcmp(f->id, t->of->id) == 0) {
        t->mine++;
        t->by_hand += f->by_hand;
    }
}

static told look(const breakage *of, bool fix)
{
    told t = {.of = of};
    size_t found;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .fix = fix, .cb = on_finding,
                                .arg = &t};
    hf_err err = hf_admin_audit(fixture.admin, "q", &opts, &found, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", of == NULL ? "" : of->what, detail);
    assert_int_equal(found, t.all);
    return t;
}

/* A queue with a job in each state: `waits`, `runs` and `dead`. */
static void fill(void)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "dead", .error = {"x", 1}, .reason = "handler"};
    (void)RUN("FLUSHALL");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "dead", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "runs", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "waits", 0), HF_OK);
    assert_int_equal(look(NULL, false).all, 0);
}

static const char *run(const char *command)
{
    char text[TEXT];
    const char *n = strstr(command, "$N");
    if (n == NULL)
        return RUN(command);
    (void)snprintf(text, sizeof text, "%.*s%lld%s", (int)(n - command), command,
                   (long long)hf_queue_fixture_now(&fixture) + 60000, n + 2);
    return RUN(text);
}

static void break_it(const breakage *b)
{
    fill();
    for (size_t i = 0; i < BREAKS && b->breaks[i] != NULL; i++)
        (void)run(b->breaks[i]);
}

/* ---- the table ---- */

static void a_look_writes_nothing_and_says_what_would_be_done(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(table); i++) {
        const breakage *b = &table[i];
        char difference[TEXT];
        hf_dump before, after;
        break_it(b);
        hf_dump_take(&before, fixture.redis.connection);
        long long writes = hf_queue_fixture_writes(&fixture);
        told t = look(b, false);
        if (hf_queue_fixture_writes(&fixture) != writes)
            fail_msg("%s: the look wrote", b->what);
        hf_dump_take(&after, fixture.redis.connection);
        if (!hf_dump_same(&before, &after, difference, sizeof difference))
            fail_msg("%s: the look changed %s", b->what, difference);
        if (t.mine != 1 || t.repaired != 0 || (t.by_hand > 0) != b->by_hand)
            fail_msg("%s: told %zu times of %zu, %zu repaired, %zu by hand", b->what,
                     t.mine, t.all, t.repaired, t.by_hand);
        hf_dump_done(&before);
        hf_dump_done(&after);
    }
}

static void a_repair_is_made_once_and_leaves_the_queue_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(table); i++) {
        const breakage *b = &table[i];
        break_it(b);
        told first = look(b, true), again = look(b, true), after = look(b, false);
        if ((first.repaired > 0) == b->by_hand || again.repaired > 0)
            fail_msg("%s: repaired %zu, then %zu", b->what, first.repaired,
                     again.repaired);
        if ((after.all > 0) != (b->by_hand || b->stays))
            fail_msg("%s: %zu findings are left", b->what, after.all);
        const char *answer = run(b->ask);
        bool good = b->answer[0] == '*'
                        ? strstr(answer, b->answer + 1) != NULL
                        : strncmp(answer, b->answer, strlen(b->answer)) == 0;
        if (!good)
            fail_msg("%s: %s is %s, not %s", b->what, b->ask, answer, b->answer);
    }
}

/* ---- jobs afterwards ---- */

static void a_record_without_a_set_is_dead_until_a_person_decides(void **state)
{
    (void)state;
    fill();
    (void)RUN("HSET hf:{q}:jobs lost %s", RECORD);
    assert_int_equal(look(NULL, true).repaired, 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 2);
    assert_non_null(strstr(RUN("HGET hf:{q}:jobs lost"), "\"reason\":\"orphan\""));
    assert_non_null(strstr(RUN("HGET hf:{q}:jobs lost"), "\"type\":\"t\""));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0),
                     1); /* `waits`, not `lost` */
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "lost", detail), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "lost");
    assert_string_equal(fixture.jobs[0].payload, "lost");
}

static void what_cannot_be_read_is_kept_as_the_payload(void **state)
{
    (void)state;
    fill();
    (void)RUN("HSET hf:{q}:jobs waits %s", "{\"type\":\nrubbish");
    assert_int_equal(look(NULL, true).repaired, 1);
    const char *record = RUN("HGET hf:{q}:jobs waits");
    assert_string_equal(strchr(record, '\n') + 1, "{\"type\":\nrubbish");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
}

/* Its holder may believe in it until then, so a repair ends no lease. */
static void a_job_whose_lock_was_removed_is_taken_over_at_its_lease_s_end(void **state)
{
    (void)state;
    fill();
    (void)RUN("DEL hf:{q}:lock:runs");
    assert_int_equal(look(NULL, true).repaired, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "v", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "waits");
    (void)RUN("ZADD hf:{q}:running 1000 runs");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "v", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "runs");
}

static void what_runs_stays_with_its_holder(void **state)
{
    (void)state;
    fill();
    (void)RUN("ZADD hf:{q}:schedule 1 runs");
    (void)RUN("ZADD hf:{q}:dead 1 runs");
    (void)RUN("HSET hf:{q}:meta fence 5");
    (void)RUN("PEXPIRE hf:{q}:lock:runs 20000");
    char fence[32];
    (void)snprintf(fence, sizeof fence, "%s",
                   strchr(RUN("GET hf:{q}:lock:runs"), ':') + 1);
    while (look(NULL, true).repaired > 0)
        ;
    assert_int_equal(look(NULL, false).all, 0);
    assert_string_equal(RUN("HGET hf:{q}:meta fence"), fence);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "v", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "waits");
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "runs", fence), HF_OK);
}

/* More than one slice, with something to repair in each, and large records among them. */
static void a_long_queue_is_put_right_to_its_end(void **state)
{
    static char big[20000];
    char id[16];
    (void)state;
    (void)RUN("FLUSHALL");
    memset(big, 'x', sizeof big - 1);
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "id-%04d", i);
        hf_queue_fixture_put(&fixture, id, "ok", 0);
        if (i % 3 == 0)
            (void)RUN("HDEL hf:{q}:jobs %s", id);
        else if (i % 3 == 1)
            (void)RUN("ZREM hf:{q}:schedule %s", id);
    }
    (void)RUN("HSET hf:{q}:jobs id-0008 %s%s", RECORD, big);
    (void)RUN("HSET hf:{q}:meta uses b");
    told t = look(NULL, true);
    assert_int_equal(t.repaired, JOBS * 2 / 3 + 1);
    assert_int_equal(look(NULL, false).all, 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), t.repaired);
}

/* ---- what is outside of a queue ---- */

static void an_unregistered_queue_is_found_and_registered(void **state)
{
    char **names;
    size_t n;
    (void)state;
    (void)RUN("FLUSHALL");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    (void)RUN("SET {bad name} 1");
    (void)RUN("SET hf:{bad*name}:jobs 1");
    (void)RUN("SADD hf:{/}:queues empty %s", "my queue");
    long long writes = hf_queue_fixture_writes(&fixture);
    for (int fix = 0; fix < 2; fix++) {
        assert_int_equal(
            hf_admin_unregistered(fixture.admin, fix == 1, &names, &n, detail), HF_OK);
        assert_int_equal(n, 3);
        assert_string_equal(names[0], "bad*name");
        assert_string_equal(names[1], "my queue"); /* registered, but no name */
        assert_string_equal(names[2], "q");
        free(names);
        assert_int_equal(hf_queue_fixture_writes(&fixture) == writes, fix == 0);
    }
    assert_int_equal(hf_admin_unregistered(fixture.admin, false, &names, &n, detail),
                     HF_OK);
    assert_int_equal(n, 2);
    free(names);
    assert_int_equal(hf_fixture_number(&fixture.redis, "SISMEMBER hf:{/}:queues q"), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "SCARD hf:{/}:queues"), 3);
}

static void only_a_silent_worker_is_forgotten(void **state)
{
    (void)state;
    (void)RUN("FLUSHALL");
    (void)RUN("ZADD hf:{/}:workers 1 gone");
    (void)run("ZADD hf:{/}:workers $N alive");
    (void)RUN("ZADD hf:{/}:workers 1 beats");
    (void)RUN("SET hf:{/}:worker:beats {}");
    assert_int_equal(hf_admin_forget(fixture.admin, "alive", detail), HF_GONE);
    assert_int_equal(hf_admin_forget(fixture.admin, "beats", detail), HF_GONE);
    assert_int_equal(hf_admin_forget(fixture.admin, "gone", detail), HF_OK);
    assert_int_equal(hf_admin_forget(fixture.admin, "gone", detail), HF_GONE);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{/}:workers"), 2);
}

static void a_round_trip_is_measured(void **state)
{
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    (void)state;
    assert_int_equal(hf_admin_round_trip(fixture.admin, &trip, detail), HF_OK);
    assert_true(trip.took_us > 0 && trip.took_us < 1000000);
    assert_true(trip.unsure_us <= trip.took_us / 2 + 1);
    assert_true(llabs(trip.ahead_us) <= trip.unsure_us + 2000); /* the same host */
}

/* ---- beside a worker ---- */

static void beside_a_busy_worker_nothing_is_found_and_nothing_touched(void **state)
{
    static char ids[JOBS][16];
    size_t looks = 0;
    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        static const char *const payloads[] = {"ok", "ok", "fail", "ok"};
        (void)snprintf(ids[i], sizeof ids[i], "id-%04zu", i);
        hf_queue_fixture_put(&fixture, ids[i], payloads[i % 4], i % 5 == 0 ? -200 : 0);
    }
    hf_worker_fixture_start(&worker, hf_fixture_url(&fixture.redis),
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 1000,
                                              .concurrency = 4, .max_attempts = 3},
                            0);
    hf_queue_fixture_put(&fixture, "last", "gate", 0); /* it runs until enough was seen */
    while (hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:schedule hf:{q}:running") >
           0) {
        told t = look(NULL, looks++ % 2 == 1);
        assert_int_equal(t.all, 0);
        if (looks > 3)
            atomic_store(&worker.gate, true);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "done"), JOBS * 3 / 4 + 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), JOBS / 4);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:meta lost"), 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:meta crashed"), 0);
}

static int up(void **state)
{
    int failed = hf_queue_fixture_up_admin(state);
    fixture.broken = true;
    return failed;
}

static int worker_down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, up, hf_queue_fixture_down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_look_writes_nothing_and_says_what_would_be_done),
        TEST(a_repair_is_made_once_and_leaves_the_queue_clean),
        TEST(a_record_without_a_set_is_dead_until_a_person_decides),
        TEST(what_cannot_be_read_is_kept_as_the_payload),
        TEST(a_job_whose_lock_was_removed_is_taken_over_at_its_lease_s_end),
        TEST(what_runs_stays_with_its_holder),
        TEST(a_long_queue_is_put_right_to_its_end),
        TEST(an_unregistered_queue_is_found_and_registered),
        TEST(only_a_silent_worker_is_forgotten),
        TEST(a_round_trip_is_measured),
        cmocka_unit_test_prestate_setup_teardown(
            beside_a_busy_worker_nothing_is_found_and_nothing_touched,
            hf_queue_fixture_up_admin, worker_down, &fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
