/* test_queue_hold.c - the holder of a job, the time until which it holds it, and the job
 * of a dead holder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { SHORT_MS = 40, REFUSED_MS = 200 };

static hf_queue_fixture fixture;

static void enqueue(const char *id)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
}

static void claim_one(const char *worker, uint32_t lease_ms, const char *id)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, worker, 1, lease_ms), 1);
    assert_string_equal(fixture.jobs[0].id, id);
}

static long long ends(const char *id)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:running %s", id);
}

/* ---- the lock ---- */

static void i3_a_stale_worker_changes_nothing(void **state)
{
    static const hf_verdict_op ops[] = {HF_OP_COMPLETE, HF_OP_RETRY, HF_OP_RELEASE,
                                        HF_OP_BURY,     HF_OP_KEEP,  HF_OP_REFUSE,
                                        HF_OP_CRASH};
    char stale[32];
    (void)state;
    enqueue("one");
    claim_one("first", SHORT_MS, "one");
    (void)snprintf(stale, sizeof stale, "%s", fixture.fence);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "second", 1, 0) == 1);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "first", "one", stale, 60000),
                     HF_LOST);
    for (size_t i = 0; i < HF_COUNT(ops); i++) {
        const hf_verdict_args args = {
            .worker = "first", .dead_max = 10, .dead_age_ms = 1000};
        const hf_verdict_item item = {
            .id = "one", .fence = stale, .error = {"x", 1}, .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, ops[i], &args, &item),
                         HF_LOST);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "lost"), HF_COUNT(ops));
    assert_int_equal(hf_queue_fixture_complete(&fixture, "second", "one", NULL), HF_OK);
}

static void a_lease_that_ended_is_lost_even_without_another_claim(void **state)
{
    (void)state;
    enqueue("one");
    claim_one("w", SHORT_MS, "one");
    EVENTUALLY(15000, hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one") == 0);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_LOST);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs one"), 1);
    EVENTUALLY(15000, (hf_queue_fixture_judge(&fixture, SHORT_MS), ends("one") == 0));
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", NULL, 60000), HF_LOST);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one"), 0);
}

static void i6_fences_of_one_job_strictly_grow(void **state)
{
    uint64_t last = 0;
    (void)state;
    enqueue("one");
    for (int i = 0; i < 20; i++) {
        claim_one("w", 0, "one");
        uint64_t fence = strtoull(fixture.fence, NULL, 10);
        assert_true(fence > last);
        last = fence;
        const hf_verdict_args args = {.worker = "w"};
        const hf_verdict_item item = {.id = "one", .due_ms = 1};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item),
                         HF_OK);
    }
    /* A failover may lose the last increments, and the clock may go back. */
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta fence 9000000000000000");
    claim_one("w", 0, "one");
    assert_string_equal(fixture.fence, "9000000000000001");
}

/* A thousand locks take a while; each still ends when its score says. */
static void i5_every_lock_ends_exactly_when_its_score_says(void **state)
{
    static char ids[HF_CLAIM_MAX][16];
    (void)state;
    hf_queue_fixture_fill(&fixture, ids, HF_CLAIM_MAX);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", HF_CLAIM_MAX, 0),
                     HF_CLAIM_MAX);
    int64_t end = hf_queue_fixture_lease_end(&fixture, HF_FIXTURE_LEASE_MS);
    for (size_t i = 0; i < HF_CLAIM_MAX; i += 111) {
        assert_true(ends(ids[i]) == end);
        assert_true(hf_fixture_expiry(&fixture.redis, "hf:{q}:lock:%s", ids[i]) == end);
    }
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", ids[0], NULL, 60000), HF_OK);
    assert_true(hf_fixture_expiry(&fixture.redis, "hf:{q}:lock:%s", ids[0]) ==
                hf_queue_fixture_lease_end(&fixture, 60000));
}

static void a_job_that_is_locked_elsewhere_never_blocks_the_head(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "locked", 1700000000000), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "free", 1700000000001), HF_OK);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:locked other:1 PX 2000");
    claim_one("w", 0, "free"); /* though it asked for no more than one */
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_string_equal(fixture.jobs[0].id, "locked");
}

/* ---- renew ---- */

static void a_renewed_lease_lasts_from_the_renewal_on(void **state)
{
    (void)state;
    enqueue("one");
    claim_one("w", 20000, "one");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", NULL, 1000), HF_OK);
    assert_true(ends("one") ==
                hf_queue_fixture_lease_end(&fixture,
                                           1000)); /* also after the clock was set back */
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:lock:one") <= 1001);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", NULL, 60000), HF_OK);
    assert_true(ends("one") == hf_queue_fixture_lease_end(&fixture, 60000));
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:lock:one") > 55000);
}

static void renewal_creates_nothing(void **state)
{
    (void)state;
    enqueue("waits");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "waits", "1", 1000), HF_LOST);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "none", "1", 1000), HF_LOST);
    assert_int_equal(hf_fixture_number(&fixture.redis,
                                       "EXISTS hf:{q}:running hf:{q}:lock:waits "
                                       "hf:{q}:lock:none"),
                     0);
    /* The token alone is not enough: the job must be running. */
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:lock:waits w:7 PX 5000");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "waits", "7", 60000), HF_LOST);
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:lock:waits") <= 5000);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:waits");
}

static void renewal_carries_a_request_to_cancel(void **state)
{
    (void)state;
    enqueue("one");
    claim_one("w", 0, "one");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses m");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:cancel one %s", fixture.fence);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", NULL, 60000),
                     HF_CANCEL);
    assert_true(ends("one") ==
                hf_queue_fixture_lease_end(&fixture, 60000)); /* it is still held */
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:cancel one 1");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", NULL, 60000), HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    hf_queue_fixture_audit(&fixture, true); /* and the request went with it */
}

static void every_exit_clears_a_request_to_cancel(void **state)
{
    static const hf_verdict_op ops[] = {HF_OP_COMPLETE, HF_OP_RETRY, HF_OP_RELEASE,
                                        HF_OP_BURY};
    static const char *const ids[] = {"a", "b", "c", "d"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ops); i++) {
        enqueue(ids[i]);
        claim_one("w", 0, ids[i]);
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses m");
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:cancel %s 1", ids[i]);
        const hf_verdict_args args = {
            .worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
        const hf_verdict_item item = {
            .id = ids[i], .due_ms = 60000, .error = {"x", 1}, .reason = "handler"};
        assert_int_equal(hf_queue_fixture_verdict(&fixture, ops[i], &args, &item), HF_OK);
        assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:cancel"), 0);
    }
    /* It was for another run: they are where they were sent. */
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), 2);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1);
}

static void renewal_raises_the_fence_after_a_failover(void **state)
{
    char shown[32];
    (void)state;
    enqueue("one");
    enqueue("two");
    claim_one("w", 0, "one");
    (void)snprintf(shown, sizeof shown, "%s", fixture.fence);
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta fence");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "w", "one", shown, 60000), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta fence"),
                        shown);
}

/* ---- lost answers ---- */

static void unclaim_gives_back_what_a_lost_claim_took(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 1700000000000), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", 1700000000001), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 2);
    uint64_t lost = fixture.number;
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", lost + 1), HF_OK);
    assert_int_equal(fixture.n_jobs, 0); /* not that one */
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", lost), HF_OK);
    assert_int_equal(fixture.n_jobs, 2);
    claim_one("other", 0, "one");
    assert_true(fixture.jobs[0].due_ms == 1700000000000);
    assert_int_equal(fixture.jobs[0].crashes, 0);
    assert_int_equal(fixture.jobs[0].attempts, 0);
}

static void unclaim_leaves_alone_what_was_settled_or_taken_since(void **state)
{
    (void)state;
    enqueue("done");
    enqueue("taken");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 2);
    uint64_t number = fixture.number;
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "taken", .due_ms = 1};
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "done", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RELEASE, &args, &item),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "other", 10, 0), 1);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", number), HF_OK);
    assert_int_equal(fixture.n_jobs, 0);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "other", "taken", NULL), HF_OK);
}

/* ---- dead holders ---- */

static void i10_the_job_of_a_dead_holder_is_taken_over_at_its_leases_end(void **state)
{
    (void)state;
    enqueue("one");
    claim_one("dead", 1500, "one");
    long long end = ends("one");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 1, 0) == 1);
    assert_true(fixture.now_ms >= end);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    hf_queue_fixture_audit(&fixture, true);
}

static void takeovers_come_before_due_jobs(void **state)
{
    (void)state;
    enqueue("held");
    claim_one("dead", SHORT_MS, "held");
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "older", 1700000000000), HF_OK);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > ends("held"));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
    assert_string_equal(fixture.jobs[0].id, "held");
}

static void a_claim_takes_over_two_hundred_at_a_time(void **state)
{
    enum { MANY = 300, AT_A_TIME = 200 };
    static char ids[MANY][16];
    (void)state;
    hf_queue_fixture_fill(&fixture, ids, MANY);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "dead", MANY, SHORT_MS), MANY);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > ends("id-0000"));
    enqueue("due");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", MANY, 0), AT_A_TIME + 1);
    assert_true(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton") <=
                fixture.now_ms);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", MANY, 0), MANY - AT_A_TIME);
}

/* Of many that are gone, those that went last are named. */
static void the_story_names_the_workers_that_went_last(void **state)
{
    (void)state;
    enqueue("bad");
    hf_claim_args args = hf_queue_fixture_claim_args("its-holder", 1, SHORT_MS);
    args.alive_ms = SHORT_MS;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    for (int i = 0; i < 100; i++)
        (void)hf_fixture_command(&fixture.redis,
                                 "ZADD hf:{q}:workers %lld went-before-%02d",
                                 (long long)fixture.now_ms - 60000 - i, i);
    args.worker = "w";
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          fixture.n_jobs == 1);
    assert_non_null(strstr(hf_fixture_command(&fixture.redis, "HGET hf:{q}:crashes bad"),
                           "its-holder or went-before-00 or went-before-01"));
}

static void a_job_that_kills_its_holders_is_buried_as_poison(void **state)
{
    (void)state;
    enqueue("bad");
    claim_one("first", SHORT_MS, "bad");
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "second", 1, SHORT_MS) == 1);
    assert_int_equal(fixture.jobs[0].crashes, 1);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "third", 1, SHORT_MS) == 1);
    assert_int_equal(fixture.jobs[0].crashes, 2);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "fourth", 1, SHORT_MS) == 0 &&
                          hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead") == 1);
    const char *record = hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs bad");
    assert_non_null(strstr(record, "\"reason\":\"poison\""));
    assert_non_null(strstr(record, "payload"));
    assert_int_equal(
        hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:crashes hf:{q}:running"), 0);
}

static void the_story_of_a_poisonous_job_names_its_holders(void **state)
{
    (void)state;
    enqueue("bad");
    hf_claim_args args = hf_queue_fixture_claim_args("host-1-aa", 1, SHORT_MS);
    args.alive_ms = SHORT_MS;
    args.poison = 2;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    args.worker = "host-2-bb";
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          fixture.n_jobs == 1);
    args.worker = "host-3-cc";
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead") == 1);
    const char *record = hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs bad");
    assert_non_null(strstr(record, "host-1-aa"));
    assert_non_null(strstr(record, "host-2-bb"));
    assert_null(strstr(record, "host-3-cc"));
}

static void a_forgiven_takeover_counts_nothing(void **state)
{
    (void)state;
    enqueue("one");
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, SHORT_MS);
    args.forgive = true;
    args.poison = 1;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    for (int i = 0; i < 3; i++) {
        EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                              fixture.n_jobs == 1);
        assert_int_equal(fixture.jobs[0].crashes, 0);
        assert_true(fixture.jobs[0].ran_before);
    }
}

static void a_takeover_that_is_given_back_is_known_to_the_next_claim(void **state)
{
    hf_claim_args args = hf_queue_fixture_claim_args("w", 1, SHORT_MS);
    (void)state;
    enqueue("one");
    args.forgive = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    EVENTUALLY(15000, hf_queue_fixture_claim_with(&fixture, &args) == HF_OK &&
                          fixture.n_jobs == 1);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "other", 1, 0), 1);
    assert_true(fixture.jobs[0].ran_before);
    assert_int_equal(fixture.jobs[0].crashes, 0);
}

/* ---- what a claim takes ---- */

static void a_job_without_a_record_goes_to_the_dead_with_that_reason(void **state)
{
    (void)state;
    enqueue("broken");
    enqueue("whole");
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:jobs broken");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 1);
    assert_string_equal(fixture.jobs[0].id, "whole");
    assert_non_null(strstr(hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs broken"),
                           "\"reason\":\"record\""));
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), 0);
}

static void a_claim_takes_at_most_eight_mebibytes_but_at_least_one_job(void **state)
{
    enum { BIG = 3 << 20 };
    static const char head[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    char ids[5][8];
    (void)state;
    char *record = calloc(1, 9 << 20);
    assert_non_null(record);
    memcpy(record, head, sizeof head - 1);
    const hf_enqueue_args args = {.producer = ""};
    hf_enqueue_item items[5];
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%zu", i);
        items[i] = (hf_enqueue_item){ids[i], 0, {record, i == 4 ? 9 << 20 : BIG}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, 5), HF_OK);
    free(record);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 100, 0), 2);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 100, 0), 2);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 100, 0), 1);
    assert_int_equal(fixture.jobs[0].payload_len, (9 << 20) - (sizeof head - 1));
}

/* ---- a worker without its handler ---- */

static void refuse(const char *worker, const char *id)
{
    const hf_verdict_args args = {
        .worker = worker, .dead_max = 10, .dead_age_ms = 1000, .patience_ms = 60000};
    const hf_verdict_item item = {
        .id = id, .fence = fixture.fence, .error = {"no handler", 10}};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_REFUSE, &args, &item),
                     HF_OK);
}

static bool waits_at(const char *id, long long score)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id) == score;
}

/* Three that are due for hours; the first is refused. */
static void put_backlog(void)
{
    for (int i = 0; i < 3; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        enqueue(id);
        hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %d %s", 1000 + i, id);
    }
    claim_one("w", 60000, "a");
    refuse("w", "a");
    assert_false(waits_at("a", 1000));
}

/* Behind the backlog it would wait for all of it. */
static void a_refused_job_comes_back_to_the_front(void **state)
{
    (void)state;
    put_backlog();
    EVENTUALLY(15000, (hf_queue_fixture_check(&fixture, "w", false) == HF_OK &&
                       waits_at("a", 1001)));
    claim_one("w", 60000, "a");
}

static void another_refusal_brings_it_back_as_well(void **state)
{
    (void)state;
    put_backlog();
    hf_test_pause_ms(REFUSED_MS);
    claim_one("w", 60000, "b");
    refuse("w", "b");
    assert_true(waits_at("a", 1002));
}

static void present(const char *worker, const char *said)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_present(fixture.client, &fixture.queue, worker, 60000,
                                       said, hf_queue_fixture_on_answer, &fixture));
    assert_int_equal(err, HF_OK);
}

/* A worker without a handler may always claim a moment before the one that has it. */
static void a_worker_with_a_handler_takes_a_refused_job_first(void **state)
{
    (void)state;
    put_backlog();
    present("other", " u ");
    present("own", " t ");
    claim_one("other", 60000, "b");
    claim_one("own", 60000, "a");
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:refused"), 0);
}

static void it_takes_one_though_nothing_is_due(void **state)
{
    (void)state;
    put_backlog();
    hf_fixture_command(&fixture.redis, "ZADD hf:{q}:refused 9999999999998 a");
    hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule 9999999999998 a "
                                       "9999999999997 b 9999999999999 c");
    present("own", " * ");
    claim_one("own", 60000, "a");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "own", 1, 60000), 0);
}

/* Two workers that take the job of each other would else do so again, for ever. */
static void refused_jobs_wait_for_times_of_chance(void **state)
{
    long long least = 150, most = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        enqueue(id);
        claim_one("w", 60000, id);
        refuse("w", id);
        const char *since =
            strstr(hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs %s", id),
                   "\"refused\":");
        assert_non_null(since);
        long long at = strtoll(since + strlen("\"refused\":"), NULL, 10);
        long long wait =
            hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id) - at;
        assert_true(wait >= 50 && wait <= 150);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
        hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule 9999999999999 %s", id);
    }
    assert_true(least < most);
}

/* A retry of a person, an edit: it has another score. */
static void one_that_was_moved_meanwhile_stays_there(void **state)
{
    (void)state;
    put_backlog();
    hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule 2000 a");
    hf_test_pause_ms(REFUSED_MS);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_true(waits_at("a", 2000));
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:refused"), 0);
}

#define TEST(name) HF_QUEUE_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(i3_a_stale_worker_changes_nothing),
        TEST(a_lease_that_ended_is_lost_even_without_another_claim),
        TEST(i6_fences_of_one_job_strictly_grow),
        TEST(i5_every_lock_ends_exactly_when_its_score_says),
        TEST(a_job_that_is_locked_elsewhere_never_blocks_the_head),
        TEST(a_renewed_lease_lasts_from_the_renewal_on),
        TEST(renewal_creates_nothing),
        TEST(renewal_carries_a_request_to_cancel),
        TEST(every_exit_clears_a_request_to_cancel),
        TEST(renewal_raises_the_fence_after_a_failover),
        TEST(unclaim_gives_back_what_a_lost_claim_took),
        TEST(unclaim_leaves_alone_what_was_settled_or_taken_since),
        TEST(i10_the_job_of_a_dead_holder_is_taken_over_at_its_leases_end),
        TEST(takeovers_come_before_due_jobs),
        TEST(a_claim_takes_over_two_hundred_at_a_time),
        TEST(the_story_names_the_workers_that_went_last),
        TEST(a_job_that_kills_its_holders_is_buried_as_poison),
        TEST(the_story_of_a_poisonous_job_names_its_holders),
        TEST(a_forgiven_takeover_counts_nothing),
        TEST(a_takeover_that_is_given_back_is_known_to_the_next_claim),
        TEST(a_job_without_a_record_goes_to_the_dead_with_that_reason),
        TEST(a_claim_takes_at_most_eight_mebibytes_but_at_least_one_job),
        TEST(refused_jobs_wait_for_times_of_chance),
        TEST(a_refused_job_comes_back_to_the_front),
        TEST(another_refusal_brings_it_back_as_well),
        TEST(a_worker_with_a_handler_takes_a_refused_job_first),
        TEST(it_takes_one_though_nothing_is_due),
        TEST(one_that_was_moved_meanwhile_stays_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
