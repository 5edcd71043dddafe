/* test_queue_exits.c - every way in which a job ends leaves nothing of it behind: no
 * entry, record, lock or mark. A new kind of end needs a row here. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static bool keyed;            /* the job has a unique key */
static const char *rule = ""; /* more fields of its record: how long it holds the key */
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void verdict(hf_verdict_op op, uint32_t dead_max)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = dead_max, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "one",
                                  .due_ms = 60000,
                                  .error = {"x", 1},
                                  .reason = "handler",
                                  .leaving = {"k", keyed}};
    must(hf_queue_fixture_verdict(&fixture, op, &args, &item));
}

/* ---- the states in which a job is, each with a mark of each kind ---- */

static void put(const char *id, const char *line)
{
    char record[256];
    int len = snprintf(record, sizeof record, "{\"type\":\"t\"%s%s}\n",
                       keyed ? ",\"unique\":\"k\"" : "", line);
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {id, 0, {record, (size_t)len}};
    must(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1));
}

static void ready(void)
{
    if (keyed)
        put("one", rule);
    else
        must(hf_queue_fixture_enqueue(&fixture, "one", 0));
}

static void running(void)
{
    ready();
    EVENTUALLY(5000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1); /* debounced */
}

static void dead(void)
{
    running();
    verdict(HF_OP_BURY, 100);
}

/* It runs, and is to be cancelled. */
static void cancelling(void)
{
    running();
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "one", NULL, detail),
                     HF_RUNNING);
}

/* It waits, and has a time from which it may not start. */
static void put_expiring(const char *more)
{
    char line[160];
    (void)snprintf(line, sizeof line, ",\"start_within\":600000%s%s", more,
                   keyed ? rule : "");
    put("one", line);
}

static void expiring(void)
{
    put_expiring("");
}

static void expiring_to_death(void)
{
    put_expiring(",\"expired\":\"dead\"");
}

/* ---- the exits ---- */

static void complete(void)
{
    verdict(HF_OP_COMPLETE, 0);
}

static void keep(void)
{
    const hf_verdict_args args = {.worker = "w", .keep_max = 9, .keep_bytes = 1000};
    const hf_verdict_item item = {.id = "one", .due_ms = 60000, .words = {"{}\n", 3}};
    must(hf_queue_fixture_verdict(&fixture, HF_OP_KEEP, &args, &item));
    must(hf_admin_delete(fixture.admin, "q", "one", NULL, detail));
}

static void bury(void)
{
    verdict(HF_OP_BURY, 100);
}

static void release(void)
{
    verdict(HF_OP_RELEASE, 0);
}

static void retry(void)
{
    verdict(HF_OP_RETRY, 0);
}

static void unclaim(void)
{
    must(hf_queue_fixture_unclaim(&fixture, "w", fixture.number));
}

static void take_over(void)
{
    hf_claim_args args = hf_queue_fixture_claim_args("other", 1, 0);
    args.poison = 1;
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 2 one");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    must(hf_queue_fixture_claim_with(&fixture, &args));
    for (size_t i = 0; i < fixture.n_jobs; i++)
        assert_string_not_equal(fixture.jobs[i].id, "one");
}

static void crash(void)
{
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 100, .dead_age_ms = 1000000, .poison = 1};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}};
    hf_err err = hf_queue_fixture_verdict(&fixture, HF_OP_CRASH, &args, &item);
    must(err == HF_DEAD ? HF_OK : err);
}

static void claim_without_a_record(void)
{
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:jobs one");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
}

static void cancel(void)
{
    must(hf_admin_cancel(fixture.admin, "q", "one", NULL, detail));
}

static void delete_it(void)
{
    must(hf_admin_delete(fixture.admin, "q", "one", NULL, detail));
}

static void purge(void)
{
    size_t n = 0;
    must(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
}

static void purge_dead(void)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT};
    size_t n = 0;
    must(hf_admin_dead_purge(fixture.admin, "q", &filter, NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
}

/* It goes because another one comes; with it, because no room is left at all. */
static void trim(void)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 0, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "two", .reason = "handler"};
    must(hf_queue_fixture_enqueue(&fixture, "two", 0));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    must(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item));
}

/* Its time has come. */
static void be_over(void)
{
    (void)hf_fixture_command(
        &fixture.redis, "EVAL %s 0",
        "local record = redis.call('HGET', 'hf:{q}:jobs', 'one') "
        "record = string.gsub(record, '\"start_by\":%d+', '\"start_by\":5') "
        "redis.call('HSET', 'hf:{q}:jobs', 'one', record) "
        "redis.call('ZADD', 'hf:{q}:expires', 5, 'one')");
}

static void expire_in_a_claim(void)
{
    be_over();
    assert_int_equal(hf_admin_pause(fixture.admin, "q", true, detail),
                     HF_OK); /* none follows */
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    assert_int_equal(hf_admin_pause(fixture.admin, "q", false, detail), HF_OK);
}

static void expire_in_a_command(void)
{
    be_over();
    hf_err err = hf_admin_cancel(fixture.admin, "q", "one", NULL, detail);
    assert_true(err == HF_GONE || err == HF_DEAD);
}

static void expire_in_a_purge(void)
{
    size_t n = 0;
    must(hf_queue_fixture_enqueue(&fixture, "two", 0));
    be_over();
    must(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail));
    assert_int_equal(n, 1);
}

typedef struct way {
    const char *what;
    void (*prepare)(void);
    void (*end)(void);
    const char *counted; /* the counter of meta that is 1 then */
    bool dies;           /* its record stays, in `dead` */
} way;

static const way ways[] = {
    {"done", running, complete, "done", false},
    {"done and kept, and then deleted", running, keep, "done", false},
    {"dead by its handler", running, bury, NULL, true},
    {"dead as poison", running, take_over, "crashed", true},
    {"dead as poison, its holder alive", running, crash, "crashed", true},
    {"cancelled, and crashed", cancelling, crash, "cancelled", false},
    {"dead without a record", ready, claim_without_a_record, NULL, true},
    {"cancelled before it runs", ready, cancel, "cancelled", false},
    {"cancelled, and released", cancelling, release, "cancelled", false},
    {"cancelled, and failed", cancelling, retry, "cancelled", false},
    {"cancelled, and buried", cancelling, bury, "cancelled", false},
    {"cancelled, its claim without an answer", cancelling, unclaim, "cancelled", false},
    {"cancelled, its holder dead", cancelling, take_over, "cancelled", false},
    {"cancelled, and done", cancelling, complete, "done", false},
    {"deleted before it runs", ready, delete_it, "deleted", false},
    {"deleted when it is dead", dead, delete_it, "deleted", false},
    {"purged before it runs", ready, purge, "deleted", false},
    {"purged when it is dead", dead, purge, "deleted", false},
    {"picked from the dead and purged", dead, purge_dead, "deleted", false},
    {"trimmed from the dead", dead, trim, NULL, false},
    {"expired in a claim", expiring, expire_in_a_claim, "expired", false},
    {"expired in a command", expiring, expire_in_a_command, "expired", false},
    {"expired in a purge", expiring, expire_in_a_purge, "expired", false},
    {"dead by expiry in a claim", expiring_to_death, expire_in_a_claim, "expired", true},
    {"dead by expiry in a command", expiring_to_death, expire_in_a_command, "expired",
     true},
    {"dead by expiry in a purge", expiring_to_death, expire_in_a_purge, "expired", true},
};

/* What runs leave beside a job: its progress ends with the run, and the rest with the
 * job. */
static void leave_marks(void)
{
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:progress one %s", "1 40 ");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:checkpoint one %s", "1 1 - x");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:logs one 1");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:log:one 1 %s", "1 2 x");
}

/* The keys without an end, in order, but those that a queue keeps. */
static const char *left(void)
{
    return hf_fixture_command(
        &fixture.redis, "EVAL %s 0",
        "local left = {} "
        "for _, key in ipairs(redis.call('KEYS', 'hf:{q}:*')) do "
        "  local name = string.sub(key, 8) "
        "  if redis.call('PTTL', key) == -1 and name ~= 'meta' and name ~= 'leases' or "
        "    string.find(name, '^lock:') then left[#left + 1] = name end "
        "end "
        "table.sort(left) return table.concat(left, ' ')");
}

static void try_every_exit(void)
{
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        const way *w = &ways[i];
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        if (keyed &&
            w->end == claim_without_a_record) /* nothing tells its key: it is healed */
            continue;
        w->prepare();
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes one 1");
        leave_marks();
        bool expires = w->prepare == expiring || w->prepare == expiring_to_death;
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses %s%s%s",
                                 keyed ? "u" : "", expires ? "x" : "", "m");
        w->end();
        const char *keys = left();
        if (strcmp(keys, w->dies ? "checkpoint dead jobs log:one logs" : "") != 0)
            fail_msg("%s: left behind: %s", w->what, keys);
        if ((strchr(hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses"), 'm') !=
             NULL) != w->dies)
            fail_msg("%s: `uses` still reports a mark", w->what);
        if (w->counted != NULL &&
            hf_fixture_number(&fixture.redis, "HGET hf:{q}:meta %s", w->counted) != 1)
            fail_msg("%s: not counted as %s", w->what, w->counted);
    }
}

static void every_exit_leaves_nothing_of_the_job_behind(void **state)
{
    (void)state;
    keyed = false;
    try_every_exit();
}

static void every_exit_frees_its_unique_key(void **state)
{
    (void)state;
    keyed = true;
    try_every_exit();
}

/* Whatever ends the holder: the parked job has its key then, and waits. */
static void every_exit_lets_the_parked_job_follow(void **state)
{
    (void)state;
    keyed = true;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        const way *w = &ways[i];
        if (w->end == claim_without_a_record || w->prepare == dead || w->end == purge ||
            w->end == expire_in_a_purge)
            continue; /* its key is not known; it is free; the parked job is purged, too
                       */
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        w->prepare();
        put("two", ",\"on_conflict\":\"next\"");
        assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:parked"), 1);
        w->end();
        const char *holder = hf_fixture_command(&fixture.redis, "HGET hf:{q}:unique k");
        if (strcmp(holder, "two") != 0 ||
            hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:parked") != 0 ||
            hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule") +
                    hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:running") !=
                1)
            fail_msg("%s: the key is held by %s", w->what, holder);
    }
}

/* ---- how long a unique key is taken ---- */

enum { UNTIL_END, UNTIL_START, UNTIL_DONE, WINDOW, UNTIL_DONE_WITH_WINDOW };

typedef struct key_rule {
    const char *fields;
    int kind;
} key_rule;

static const key_rule rules[] = {
    {"", UNTIL_END},
    {",\"unique_until\":\"start\"", UNTIL_START},
    {",\"unique_until\":\"done\"", UNTIL_DONE},
    {",\"unique_for\":600000", WINDOW},
    {",\"throttle\":600000", WINDOW},
    {",\"unique_until\":\"start\",\"unique_for\":600000", WINDOW},
    {",\"unique_until\":\"done\",\"unique_for\":600000", UNTIL_DONE_WITH_WINDOW},
    {",\"debounce\":1,\"max_wait\":1", UNTIL_START},
};

/* A person asked for this end: whatever holds the key, it is free. */
static bool is_asked_for(const way *w)
{
    return w->counted != NULL &&
           (strcmp(w->counted, "cancelled") == 0 || strcmp(w->counted, "deleted") == 0);
}

static bool stays_taken(const way *w, int kind)
{
    bool window = kind == WINDOW || kind == UNTIL_DONE_WITH_WINDOW;
    bool until_done = kind == UNTIL_DONE || kind == UNTIL_DONE_WITH_WINDOW;
    return (window && !is_asked_for(w)) || (until_done && w->dies);
}

static void try_key_rule(const way *w, const key_rule *r)
{
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    rule = r->fields;
    w->prepare();
    w->end();
    const char *entry = hf_fixture_command(&fixture.redis, "HGET hf:{q}:unique k");
    bool taken = strcmp(entry, "(nil)") != 0;
    if (taken != stays_taken(w, r->kind))
        fail_msg("%s, with %s: the key is %s: %s", w->what, rule,
                 taken ? "taken" : "free", entry);
    rule = "";
}

/* Each exit with each rule of a key. */
static void only_the_right_exits_free_a_unique_key(void **state)
{
    (void)state;
    keyed = true;
    for (size_t i = 0; i < HF_COUNT(ways); i++)
        for (size_t k = 0; k < HF_COUNT(rules); k++)
            if (ways[i].end != claim_without_a_record) /* nothing tells its key */
                try_key_rule(&ways[i], &rules[k]);
}

/* An enqueue of a job with the same key lets the holder expire first. */
static void an_enqueue_frees_no_more_of_a_key_that_expires(void **state)
{
    const way drops = {"expired in an enqueue", expiring, NULL, "expired", false};
    const way dies = {"dead by expiry in an enqueue", expiring_to_death, NULL, NULL,
                      true};
    const way *each[] = {&drops, &dies};
    (void)state;
    keyed = true;
    for (size_t i = 0; i < HF_COUNT(each); i++) {
        for (size_t k = 0; k < HF_COUNT(rules); k++) {
            (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
            rule = rules[k].fields;
            each[i]->prepare();
            be_over();
            put("two", rule);
            bool accepted =
                hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs two") == 1;
            if (accepted == stays_taken(each[i], rules[k].kind))
                fail_msg("%s, with %s: the next job is %s", each[i]->what, rule,
                         accepted ? "accepted" : "skipped");
            rule = "";
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_ADMIN_TEST(every_exit_leaves_nothing_of_the_job_behind, &fixture),
        HF_ADMIN_TEST(every_exit_frees_its_unique_key, &fixture),
        HF_ADMIN_TEST(every_exit_lets_the_parked_job_follow, &fixture),
        HF_ADMIN_TEST(only_the_right_exits_free_a_unique_key, &fixture),
        HF_ADMIN_TEST(an_enqueue_frees_no_more_of_a_key_that_expires, &fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
