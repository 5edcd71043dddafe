/* test_queue_wake.c - which worker is woken when, limits and pause, and a worker's signs
 * of life.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "redis/plain.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum {
    SHORT_MS = 40,
    ALIVE_MS = 30000,
    BROKEN_MS = 100,
    NEAR_MS = 5000,
    SOON_MS = 15000
};

static hf_queue_fixture fixture;

static void enqueue(const char *id, int64_t due_ms)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
}

static void enqueue_five(void)
{
    static const char *const ids[] = {"id-0", "id-1", "id-2", "id-3", "id-4"};
    for (size_t i = 0; i < HF_COUNT(ids); i++)
        enqueue(ids[i], 0);
}

static const char *meta(const char *field)
{
    return hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta %s", field);
}

static size_t batons(void)
{
    return (size_t)hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:wake");
}

/* ---- the baton ---- */

static void an_idle_queue_lets_the_waiting_time_pass(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_wait(&fixture, 20), HF_OK);
    assert_int_equal(fixture.which, 1);
}

static void a_due_job_wakes_one_waiting_worker_only(void **state)
{
    (void)state;
    enqueue("one", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_int_equal(fixture.which, 0);
    /* Whoever pops it need not know Redis's time to see that it is due. */
    assert_true(fixture.at_ms == 0);
    int64_t next_wake = hf_fixture_number(&fixture.redis, "HGET hf:{%s}:meta next_wake",
                                          fixture.queue.name);
    assert_true(next_wake > 0 && next_wake <= hf_queue_fixture_now(&fixture));
    enqueue("two", 0);
    if (fixture.now_ms <= next_wake + BROKEN_MS) /* later the wake-up counts as broken */
        assert_int_equal(batons(), 0);
}

static void a_delayed_job_puts_the_baton_at_its_time(void **state)
{
    (void)state;
    enqueue("later", -60000);
    int64_t due = fixture.now_ms + 60000;
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_int_equal(fixture.which, 0);
    assert_true(fixture.at_ms == due);
    enqueue("latest", -70000);
    assert_int_equal(batons(), 0);
    enqueue("soon", -30000); /* earlier than the next wake-up */
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_true(fixture.at_ms == fixture.now_ms + 30000);
}

static void a_claim_for_a_baton_leaves_one_for_what_remains(void **state)
{
    (void)state;
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_int_equal(fixture.which, 0);
}

static void a_claim_that_got_nothing_leaves_no_baton_that_is_due(void **state)
{
    (void)state;
    enqueue("one", 0);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:one other:1 PX 60000");
    fixture.broken = true; /* a lock of no running job */
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
    assert_true(hf_fixture_number(&fixture.redis, "ZCOUNT hf:{q}:wake -inf %lld",
                                  (long long)fixture.now_ms) == 0);
}

/* More ids at the head that are locked elsewhere than one claim looks at. */
static void a_claim_that_came_to_no_end_does_not_ask_for_the_next_at_once(void **state)
{
    (void)state;
    fixture.broken = true; /* locks of no running jobs */
    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%02d", i);
        enqueue(id, 0);
        (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:%s other:1 PX 60000",
                                 id);
    }
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
    assert_true(fixture.next_ms > fixture.now_ms &&
                fixture.next_ms < fixture.now_ms + 1000);
}

/* Who has the baton may find that others took what it was for; what comes later is for
 * somebody else. */
static void a_wake_up_is_over_when_nothing_is_due(void **state)
{
    (void)state;
    enqueue("later", -60000);
    int64_t due = fixture.now_ms + 60000;
    enqueue("now", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_true(fixture.at_ms == 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "another", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_true(fixture.at_ms == due);
}

static void a_claim_says_that_there_is_more_than_all_others_take(void **state)
{
    (void)state;
    enqueue_five();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_true(fixture.more); /* no other worker is there */
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "other", false), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "third", false), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_true(fixture.more); /* three are left, and two others */
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_false(fixture.more);
    assert_true(fixture.next_ms <= fixture.now_ms); /* the baton tells */
    assert_int_equal(batons(), 1);
}

static void a_missed_wake_up_is_made_again_by_the_check(void **state)
{
    (void)state;
    enqueue("one", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000),
                     HF_OK); /* and its keeper is dead */
    EVENTUALLY(SOON_MS,
               hf_queue_fixture_check(&fixture, "w", false) == HF_OK && batons() == 1);
    assert_false(fixture.empty);
}

/* One time for each queue, or it is no answer. */
static void a_checks_answer_of_another_shape_is_none(void **state)
{
    static const char *const shapes[] = {
        "return {0, 1700000000000, 1}",
        "return {0, 1700000000000, 1, {0}, 1000, ''}",
        "return {0, 1700000000000, 1, 7, 1000, '', {0}}",
        "return {0, 1700000000000, 1, {}, 1000, '', {0}}",
        "return {0, 1700000000000, 1, {0, 0}, 1000, '', {0}}",
        "return {0, 1700000000000, 1, {0}, 1000, '', {}}",
        "return {0, 1700000000000, 1, {-2}, 1000, '', {0}}",
        "return {0, 1700000000000, 1, {0}, 1000, '', {-1}}",
    };
    (void)state;
    hf_checked checked;
    hf_checked_queue queues[1];
    for (size_t i = 0; i < HF_COUNT(shapes); i++) {
        redisContext *c = hf_fixture_connect(&fixture.redis);
        redisReply *reply = redisCommand(c, "EVAL %s 0", shapes[i]);
        assert_non_null(reply);
        const hf_answer answer = {.err = HF_OK, .reply = reply};
        if (hf_checked_read(&answer, &checked, queues, 1) != HF_PROTO)
            fail_msg("%s was taken", shapes[i]);
        freeReplyObject(reply);
        redisFree(c);
    }
}

static void a_baton_is_given_back(void **state)
{
    (void)state;
    enqueue("later", -60000);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_int_equal(batons(), 0); /* a worker keeps its timer */
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", true), HF_OK);
    assert_int_equal(batons(), 1);
}

static void the_check_tells_when_nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_true(fixture.empty);
    enqueue("later", -60000);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_false(fixture.empty);
}

static void several_queues_are_waited_for_and_checked_at_once(void **state)
{
    enum { MANY = HF_QUEUES_MAX };
    static hf_queue queues[MANY];
    const hf_queue *all[MANY];
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "q%zu", i);
        assert_int_equal(hf_queue_init(&queues[i], "hf", name), HF_OK);
        all[i] = &queues[i];
    }
    hf_queue mine = fixture.queue;
    fixture.queue = queues[MANY - 1];
    enqueue("one", 0);
    assert_int_equal(hf_queue_fixture_wait_for(&fixture, all, MANY, 2000), HF_OK);
    assert_int_equal(fixture.which, MANY - 1);
    assert_int_equal(hf_queue_fixture_check_all(&fixture, all, MANY, "w", false), HF_OK);
    assert_false(fixture.empty);
    assert_int_equal(hf_queue_fixture_check_all(&fixture, all, MANY - 1, "w", false),
                     HF_OK);
    assert_true(fixture.empty);
    hf_queue_fixture_audit(&fixture, false);
    fixture.queue = mine;
}

/* ---- unblocking ---- */

typedef struct waiter {
    bool answered;
    hf_err err;
    size_t which;
} waiter;

static void on_unblocked(const hf_answer *answer, void *arg)
{
    waiter *w = arg;
    const hf_queue *queue = &fixture.queue;
    int64_t at_ms;
    w->answered = true;
    w->err = hf_wait_read(answer, &queue, 1, &w->which, &at_ms);
}

/* A queue with a key of another type is none of the others' business. */
static void a_queue_that_cannot_be_checked_leaves_the_others_theirs(void **state)
{
    (void)state;
    hf_queue bad;
    bool ready[2] = {false};
    assert_int_equal(hf_queue_init(&bad, "hf", "bad"), HF_OK);
    const hf_queue *const queues[] = {&bad, &fixture.queue};
    hf_fixture_command(&fixture.redis, "SET hf:{bad}:schedule text");
    enqueue("a", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 1000),
                     HF_OK); /* its baton is gone with somebody */
    hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta next_wake 1");
    assert_int_equal(hf_queue_fixture_check_all(&fixture, queues, 2, "w", false), HF_OK);
    assert_false(fixture.empty);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:wake"), 1);
    assert_int_equal(hf_queue_fixture_check_all(&fixture, queues, 1, "w", false),
                     HF_REDIS);
    assert_int_equal(hf_queue_fixture_peek(&fixture, queues, ready, 2), HF_OK);
    assert_true(!ready[0] && ready[1]);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_peek(&fixture, queues, ready, 2), HF_OK);
    assert_true(!ready[0] && !ready[1]);
}

/* For EVENTUALLY(): a turn of the loop, which is always true. */
static bool run_loop(void)
{
    (void)uv_run(&fixture.loop, UV_RUN_NOWAIT);
    return true;
}

static bool blocked(const char *clients)
{
    return run_loop() &&
           strstr(hf_fixture_command(&fixture.redis, "INFO clients"), clients) != NULL;
}

static hf_client *open_other(void)
{
    char detail[HF_DETAIL_SIZE];
    hf_client *other;
    const hf_client_opts opts = {.loop = &fixture.loop, .redis = fixture.server};
    assert_int_equal(hf_client_open(&other, &opts, detail), HF_OK);
    return other;
}

static void one_client_ends_the_others_wait(void **state)
{
    const hf_queue *queue = &fixture.queue;
    waiter w = {.answered = false};
    (void)state;
    hf_client *other = open_other();
    assert_int_equal(
        hf_plain_unblock(fixture.client, other, hf_queue_fixture_on_answer, &fixture),
        HF_CONN);
    hf_queue_fixture_ready_client(&fixture, other);
    assert_int_equal(hf_op_wait(other, &queue, 1, 60000, on_unblocked, &w), HF_OK);
    EVENTUALLY(SOON_MS, blocked("blocked_clients:1\r"));
    hf_queue_fixture_begin(&fixture);
    assert_int_equal(
        hf_queue_fixture_end(&fixture,
                             hf_plain_unblock(fixture.client, other,
                                              hf_queue_fixture_on_answer, &fixture)),
        HF_OK);
    EVENTUALLY(SOON_MS, run_loop() && w.answered);
    assert_int_equal(w.err, HF_OK);
    assert_int_equal(w.which, 1); /* no queue's baton */
    hf_client_close(other, NULL, NULL);
}

/* Redis would crash: what waits then is not blocked by its own command. */
static void in_a_pause_of_writes_no_wait_is_ended(void **state)
{
    const hf_queue *queue = &fixture.queue;
    waiter w = {.answered = false};
    (void)state;
    hf_client *other = open_other();
    hf_queue_fixture_ready_client(&fixture, other);
    (void)hf_fixture_command(&fixture.redis, "CLIENT PAUSE 60000 %s", "WRITE");
    assert_int_equal(hf_op_wait(other, &queue, 1, 60000, on_unblocked, &w), HF_OK);
    EVENTUALLY(SOON_MS, blocked("blocked_clients:1\r"));
    hf_queue_fixture_begin(&fixture);
    hf_err err =
        hf_plain_unblock(fixture.client, other, hf_queue_fixture_on_answer, &fixture);
    assert_int_equal(err, HF_OK);
    EVENTUALLY(SOON_MS, blocked("blocked_clients:2\r"));
    assert_string_equal(hf_fixture_command(&fixture.redis, "CLIENT %s", "UNPAUSE"), "OK");
    assert_int_equal(hf_queue_fixture_end(&fixture, err), HF_OK);
    hf_client_close(other, NULL, NULL);
}

/* ---- limits and pause ---- */

static hf_err file_limits(uint32_t max_running, uint32_t rate_limit, uint32_t rate_per_ms)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_file_limits(fixture.client, &fixture.queue, max_running,
                                           rate_limit, rate_per_ms,
                                           hf_queue_fixture_on_answer, &fixture));
    return err;
}

static hf_admin *admin_open(void)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin;
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("admin: %s", detail);
    return admin;
}

static void max_running_bounds_all_workers_together(void **state)
{
    (void)state;
    assert_int_equal(file_limits(2, 0, 0), HF_OK);
    enqueue_five();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w1", 1, NEAR_MS), 1);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w2", 10, NEAR_MS), 1);
    hf_claim_args args = hf_queue_fixture_claim_args("w3", 10, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
    assert_int_equal(fixture.next_ms, 0); /* no time helps */
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w1", "id-0", NULL),
                     HF_LOST); /* w3's fence */
    assert_int_equal(batons(), 0);
    const char *token = hf_fixture_command(&fixture.redis, "GET hf:{q}:lock:id-0");
    char fence[32];
    (void)snprintf(fence, sizeof fence, "%s", strchr(token, ':') + 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w1", "id-0", fence), HF_OK);
    assert_int_equal(batons(), 1); /* the lifted block wakes one */
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w3", 10, 0), 1);
}

/* `one` runs and holds the only place; `two` waits for it; nobody has the baton. */
static void block(void)
{
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(file_limits(1, 0, 0), HF_OK);
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
    assert_int_equal(fixture.next_ms, 0);
    assert_int_equal(batons(), 0);
}

static void assert_woken(const char *by)
{
    if (batons() != 1)
        fail_msg("%s lifted the block and woke nobody", by);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 2000), HF_OK);
    assert_true(fixture.at_ms <= hf_queue_fixture_now(&fixture));
}

static void every_end_of_a_job_that_blocked_others_wakes_one(void **state)
{
    static const struct {
        hf_verdict_op op;
        const char *name;
    } ends[] = {{HF_OP_COMPLETE, "complete"},
                {HF_OP_RETRY, "retry"},
                {HF_OP_RELEASE, "release"},
                {HF_OP_BURY, "bury"}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ends); i++) {
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        block();
        const hf_verdict_args args = {
            .worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
        const hf_verdict_item item = {
            .id = "one", .due_ms = 60000, .error = {"x", 1}, .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, ends[i].op, &args, &item),
                         HF_OK);
        assert_woken(ends[i].name);
    }
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    block();
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_woken("unclaim");
}

static void orders_that_make_work_wake_one(void **state)
{
    (void)state;
    hf_admin *admin = admin_open();
    block();
    assert_int_equal(hf_admin_limit(admin, "q", 2, -1, -1, NULL), HF_OK);
    assert_woken("a higher limit");
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    enqueue("one", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_int_equal(batons(), 0);
    assert_int_equal(hf_admin_retry(admin, "q", "one", NULL), HF_OK);
    assert_woken("retry");
    hf_admin_close(admin);
}

static void no_worker_claims_ahead_from_a_limited_queue(void **state)
{
    (void)state;
    assert_int_equal(file_limits(100, 0, 0), HF_OK);
    enqueue_five();
    hf_claim_args args = hf_queue_fixture_claim_args("w", 5, 0);
    args.slots = 2;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 2);
    assert_int_equal(file_limits(0, 0, 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 3);
}

static void a_takeover_is_free_under_max_running(void **state)
{
    (void)state;
    assert_int_equal(file_limits(1, 0, 0), HF_OK);
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "dead", 10, SHORT_MS), 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_claim(&fixture, "w", 10, 0) == 1);
    assert_string_equal(fixture.jobs[0].id, "one");
    assert_int_equal(fixture.jobs[0].crashes, 1);
}

/* There is one token a minute. */
static void a_takeover_takes_no_token(void **state)
{
    (void)state;
    enqueue("held", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "dead", 1, SHORT_MS), 1);
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(file_limits(0, 1, 60000), HF_OK);
    EVENTUALLY(SOON_MS,
               hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:held") == 0);
    EVENTUALLY(SOON_MS, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_string_equal(fixture.jobs[0].id, "held");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "one");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
}

static void a_rate_is_kept(void **state)
{
    (void)state;
    assert_int_equal(file_limits(0, 10, 1000), HF_OK);
    enqueue_five();
    int64_t from = hf_queue_fixture_now(&fixture);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    int64_t first = fixture.now_ms;
    size_t second = hf_queue_fixture_claim(&fixture, "w", 10, 0);
    if (fixture.now_ms < first + 100) {
        assert_int_equal(second, 0);
        assert_true(fixture.next_ms > fixture.now_ms &&
                    fixture.next_ms <= fixture.now_ms + 101);
    }
    size_t taken = 1 + second;
    for (; taken < 4; taken++)
        EVENTUALLY(SOON_MS, hf_queue_fixture_claim(&fixture, "w", 10, 0) == 1);
    assert_true(fixture.now_ms - from >= 295); /* three more tokens at 100 ms each */
}

/* Redis's clock was set back by an hour since the last job started. */
static void a_rate_outlives_a_clock_that_is_set_back(void **state)
{
    (void)state;
    assert_int_equal(file_limits(0, 10, 1000), HF_OK);
    enqueue_five();
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    hf_fixture_command(&fixture.redis, "HINCRBY hf:{q}:meta tokens_at 3600000");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_claim(&fixture, "w", 10, 0) == 1);
}

static void a_paused_queue_gives_and_takes_over_nothing(void **state)
{
    (void)state;
    hf_admin *admin = admin_open();
    enqueue("held", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "dead", 1, SHORT_MS), 1);
    enqueue("one", 0);
    assert_int_equal(hf_admin_pause(admin, "q", true, NULL), HF_OK);
    EVENTUALLY(SOON_MS,
               hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:held") == 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
    assert_true(fixture.next_ms == 0);
    assert_int_equal(batons(), 0);
    assert_int_equal(hf_admin_pause(admin, "q", false, NULL), HF_OK);
    assert_int_equal(batons(), 1);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 2);
    hf_admin_close(admin);
}

static void an_order_stays_until_the_file_says_something_else(void **state)
{
    (void)state;
    hf_admin *admin = admin_open();
    assert_int_equal(hf_admin_limit(admin, "q", 7, -1, -1, NULL), HF_OK);
    assert_int_equal(file_limits(0, 0, 0), HF_OK); /* a file without limits */
    assert_string_equal(meta("max_running"), "7");
    assert_int_equal(file_limits(5, 0, 0), HF_OK);
    assert_string_equal(meta("max_running"), "5");
    assert_int_equal(hf_admin_limit(admin, "q", 9, -1, -1, NULL), HF_OK);
    assert_int_equal(file_limits(5, 0, 0), HF_OK);
    assert_string_equal(meta("max_running"), "9");
    assert_int_equal(file_limits(0, 0, 0), HF_OK); /* now it lifts what it named */
    assert_string_equal(meta("max_running"), "(nil)");
    hf_admin_close(admin);
}

/* ---- signs of life ---- */

static hf_err heartbeat(const char *json)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_heartbeat(fixture.client, "hf", "host-1-aa", json,
                                         ALIVE_MS, hf_queue_fixture_on_answer, &fixture));
    return err;
}

static void a_heartbeat_is_written_and_taken_away(void **state)
{
    (void)state;
    int64_t now = hf_queue_fixture_now(&fixture);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{/}:workers %lld old %lld young",
                             (long long)now - 86400000 - 1000,
                             (long long)now - 86400000 + 60000);
    assert_int_equal(heartbeat("{\"a\": 1}"), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "GET hf:{/}:worker:host-1-aa"),
                        "{\"a\": 1}");
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{/}:worker:host-1-aa") >
                ALIVE_MS - 5000);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{/}:workers 0 -1"),
                        "young\nhost-1-aa\n");
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{/}:workers host-1-aa") >=
                now + ALIVE_MS);
    assert_int_equal(heartbeat(NULL), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{/}:worker:host-1-aa"),
                     0);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{/}:workers 0 -1"),
                        "young\n");
}

static void a_fault_of_any_part_of_a_heartbeat_is_told(void **state)
{
    (void)state;
    (void)hf_fixture_command(&fixture.redis, "SET hf:{/}:workers wrong");
    assert_int_equal(heartbeat("{}"), HF_REDIS);
    assert_non_null(strstr(fixture.detail, "WRONGTYPE"));
}

static void claims_and_checks_keep_the_queues_list_of_workers(void **state)
{
    (void)state;
    hf_claim_args args = hf_queue_fixture_claim_args("w1", 1, 0);
    args.alive_ms = ALIVE_MS;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w2", false), HF_OK);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:workers %lld old",
                             (long long)fixture.now_ms - 3600000 - 1000);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w2", false), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZRANGE hf:{q}:workers 0 -1"),
                        "w1\nw2\n");
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:workers") > 0);
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_idle_queue_lets_the_waiting_time_pass),
        TEST(a_due_job_wakes_one_waiting_worker_only),
        TEST(a_delayed_job_puts_the_baton_at_its_time),
        TEST(a_claim_for_a_baton_leaves_one_for_what_remains),
        TEST(a_claim_that_got_nothing_leaves_no_baton_that_is_due),
        TEST(a_claim_that_came_to_no_end_does_not_ask_for_the_next_at_once),
        TEST(a_wake_up_is_over_when_nothing_is_due),
        TEST(a_claim_says_that_there_is_more_than_all_others_take),
        TEST(a_missed_wake_up_is_made_again_by_the_check),
        TEST(a_checks_answer_of_another_shape_is_none),
        TEST(a_baton_is_given_back),
        TEST(the_check_tells_when_nothing_is_left),
        TEST(several_queues_are_waited_for_and_checked_at_once),
        TEST(a_queue_that_cannot_be_checked_leaves_the_others_theirs),
        TEST(one_client_ends_the_others_wait),
        TEST(in_a_pause_of_writes_no_wait_is_ended),
        TEST(max_running_bounds_all_workers_together),
        TEST(every_end_of_a_job_that_blocked_others_wakes_one),
        TEST(orders_that_make_work_wake_one),
        TEST(no_worker_claims_ahead_from_a_limited_queue),
        TEST(a_takeover_is_free_under_max_running),
        TEST(a_takeover_takes_no_token),
        TEST(a_rate_is_kept),
        TEST(a_rate_outlives_a_clock_that_is_set_back),
        TEST(a_paused_queue_gives_and_takes_over_nothing),
        TEST(an_order_stays_until_the_file_says_something_else),
        TEST(a_heartbeat_is_written_and_taken_away),
        TEST(a_fault_of_any_part_of_a_heartbeat_is_told),
        TEST(claims_and_checks_keep_the_queues_list_of_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
