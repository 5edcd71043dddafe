/* test_admin_end.c - a job is cancelled, deleted, or runs now: in each state that it can
 * be in, and while it passes from one to the next. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"

enum { SHORT_MS = 40, LATER_MS = 500 /* the waiter has looked by then */ };

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static void enqueue(const char *id, int64_t due_ms)
{
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, due_ms), HF_OK);
}

static void claim_for(const char *id, uint32_t lease_ms)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "host:1:aa", 1, lease_ms), 1);
    assert_string_equal(fixture.jobs[0].id, id);
}

static hf_err verdict(hf_verdict_op op, const char *id)
{
    const hf_verdict_args args = {
        .worker = "host:1:aa", .dead_max = 500, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = id,
                                  .counts = true,
                                  .due_ms = 60000,
                                  .error = {"it broke", 8},
                                  .reason = "attempts"};
    return hf_queue_fixture_verdict(&fixture, op, &args, &item);
}

/* `dead`, `again` (after an attempt), `runs`, `ready`, `later`. */
static void fill(void)
{
    enqueue("dead", 0);
    claim_for("dead", 0);
    assert_int_equal(verdict(HF_OP_BURY, "dead"), HF_OK);
    enqueue("again", 0);
    claim_for("again", 0);
    assert_int_equal(verdict(HF_OP_RETRY, "again"), HF_OK);
    enqueue("runs", 0);
    claim_for("runs", 0);
    enqueue("ready", 0);
    enqueue("later", -90000);
}

static hf_err cancel(const char *id)
{
    return hf_admin_cancel(fixture.admin, "q", id, NULL, detail);
}

static void assert_held(const hf_job_info *info, const char *id)
{
    assert_string_equal(info->id, id);
    assert_string_equal(info->queue, "q");
    assert_int_equal(info->state, HF_STATE_RUNNING);
    assert_string_equal(info->holder, "host:1:aa");
    assert_true(info->fence == strtoull(fixture.fence, NULL, 10));
    assert_true(info->lease_remaining_ms > 0 &&
                info->lease_remaining_ms <= HF_FIXTURE_LEASE_MS + 1 /* an even ms */);
}

/* ---- cancel ---- */

static void what_waits_is_removed_by_a_cancel(void **state)
{
    static const char *const ids[] = {"ready", "later", "again"};
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        must(cancel(ids[i]));
        assert_int_equal(hf_admin_job(fixture.admin, "q", ids[i], &info, NULL, detail),
                         HF_GONE);
        assert_int_equal(
            hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs %s", ids[i]), 0);
        assert_int_equal(cancel(ids[i]), HF_GONE);
    }
    assert_int_equal(cancel("dead"), HF_DEAD);
    assert_int_equal(cancel("none"), HF_GONE);
    assert_int_equal(cancel("no id"), HF_INVALID);
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.cancelled, 3);
    assert_int_equal(stats.deleted, 0);
    assert_int_equal(stats.done, 0);
    assert_int_equal(stats.running + stats.dead, 2);
    assert_int_equal(stats.ready + stats.delayed, 0);
}

static void the_holder_of_what_runs_is_asked_to_end_it(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_admin_cancel(fixture.admin, "q", "runs", &info, detail),
                         HF_RUNNING);
        assert_held(&info, "runs");
    }
    assert_int_equal(hf_queue_fixture_renew(&fixture, "host:1:aa", "runs", NULL, 60000),
                     HF_CANCEL);
    must(hf_admin_job(fixture.admin, "q", "runs", &info, NULL,
                      detail)); /* it still runs */
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), -1);
}

static void a_cancelled_run_ends_as_cancelled_after_any_verdict(void **state)
{
    static const hf_verdict_op ops[] = {HF_OP_RELEASE, HF_OP_RETRY, HF_OP_BURY};
    char id[8];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ops); i++) {
        (void)snprintf(id, sizeof id, "id-%zu", i % 10);
        enqueue(id, 0);
        claim_for(id, 0);
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes %s 1", id);
        (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses m");
        assert_int_equal(cancel(id), HF_RUNNING);
        assert_int_equal(verdict(ops[i], id), HF_OK);
        assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), (long long)i + 1);
        assert_int_equal(hf_admin_wait(fixture.admin, "q", id, 0, 15000, detail),
                         HF_CANCEL);
        assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:%s", id),
                         0);
        assert_int_equal(verdict(ops[i], id), HF_GONE); /* and told again: nothing */
        hf_queue_fixture_audit(&fixture, true);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "failed"), -1);
}

static void a_completion_that_was_faster_counts_as_done(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    hf_job_info info = {HF_JOB_INFO_INIT};
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "one", &info, detail),
                     HF_RUNNING);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "host:1:aa", "one", NULL),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "done"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), -1);
    must(hf_admin_wait(fixture.admin, "q", "one", info.accepted_ms, 15000, detail));
    hf_queue_fixture_audit(&fixture, true);
}

static void what_a_dead_holder_was_to_end_is_not_run_again(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 1500);
    assert_int_equal(cancel("one"), HF_RUNNING);
    enqueue("two", -SHORT_MS);
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 10, 0) == 1);
    assert_string_equal(fixture.jobs[0].id, "two");
    EVENTUALLY(15000, hf_queue_fixture_claim(&fixture, "w", 10, 0) == 0 &&
                          hf_queue_fixture_meta(&fixture, "cancelled") == 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "crashed"), -1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "host:1:aa", "one", NULL),
                     HF_GONE);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 15000, detail),
                     HF_CANCEL);
}

/* That its lock has ended does not tell that its holder has: the clock may be wrong. */
static void what_runs_without_a_lock_is_removed_when_it_is_taken_over(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "host:1:aa", 2, SHORT_MS), 2);
    EVENTUALLY(15000, hf_fixture_number(&fixture.redis,
                                        "EXISTS hf:{q}:lock:one hf:{q}:lock:two") == 0);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "two", &info, detail),
                     HF_RUNNING);
    assert_string_equal(info.holder, "");
    assert_int_equal(cancel("two"), HF_RUNNING);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_RUNNING);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 2);
    hf_queue_fixture_audit(&fixture, true);
}

static void a_holder_that_renews_without_a_lock_hears_of_the_cancel(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 2000 one");
    assert_int_equal(cancel("one"), HF_RUNNING);
    const hf_renew_args args = {.worker = "host:1:aa", .lease_ms = 60000};
    assert_int_equal(hf_queue_fixture_renew_with(&fixture, &args, "one", NULL),
                     HF_CANCEL);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 1);
    hf_queue_fixture_audit(&fixture, true);
}

static void a_claim_whose_answer_was_lost_gives_back_no_cancelled_job(void **state)
{
    (void)state;
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 1);
}

static void
in_a_paused_queue_a_cancel_of_what_was_left_waits_for_the_end_of_the_pause(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", SHORT_MS);
    must(hf_admin_pause(fixture.admin, "q", true, detail));
    assert_int_equal(cancel("one"), HF_RUNNING);
    EVENTUALLY(15000, hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:lock:one") == 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
    assert_int_equal(cancel("one"), HF_RUNNING);
    must(hf_admin_pause(fixture.admin, "q", false, detail));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 1);
    hf_queue_fixture_audit(&fixture, true);
}

/* The request was for the run that it found; a later one is not touched. */
static void a_request_does_not_reach_the_next_run(void **state)
{
    char old[32];
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    memcpy(old, fixture.fence, sizeof old);
    assert_int_equal(verdict(HF_OP_BURY, "one"), HF_OK);
    must(hf_admin_retry(fixture.admin, "q", "one", detail));
    claim_for("one", 0);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:cancel one %s", old);
    assert_int_equal(hf_queue_fixture_renew(&fixture, "host:1:aa", "one", NULL, 60000),
                     HF_OK);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), -1);
}

/* A slot that a cancelled job leaves is for the next one: somebody is told. */
static void a_cancelled_job_frees_its_slot(void **state)
{
    (void)state;
    must(hf_admin_limit(fixture.admin, "q", 1, -1, -1, detail));
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 5000), HF_OK);
    hf_claim_args args = hf_queue_fixture_claim_args("host:1:aa", 1, 0);
    args.doubted = true;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:wake"), 0);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 5000), HF_OK);
    assert_int_equal(fixture.which, 0);
    assert_true(fixture.at_ms <= hf_queue_fixture_now(&fixture));
}

/* ---- delete ---- */

static void what_waits_or_is_dead_is_deleted(void **state)
{
    static const char *const ids[] = {"ready", "later", "again", "dead"};
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        must(hf_admin_delete(fixture.admin, "q", ids[i], &info, detail));
        assert_int_equal(hf_admin_delete(fixture.admin, "q", ids[i], &info, detail),
                         HF_GONE);
    }
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.deleted, 4);
    assert_int_equal(stats.cancelled, 0);
    assert_int_equal(stats.ready + stats.delayed + stats.dead, 0);
    assert_int_equal(stats.running, 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 1);
}

static void what_runs_is_not_deleted(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "runs", &info, detail),
                     HF_RUNNING);
    assert_held(&info, "runs");
    assert_int_equal(hf_queue_fixture_renew(&fixture, "host:1:aa", "runs", NULL, 60000),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "host:1:aa", "runs", NULL),
                     HF_OK);
}

/* ---- retry ---- */

static void what_waits_or_is_dead_runs_now(void **state)
{
    static const char *const ids[] = {"dead", "again", "later", "ready"};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:crashes again 2");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses m");
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        must(hf_admin_retry(fixture.admin, "q", ids[i], detail));
        must(hf_admin_job(fixture.admin, "q", ids[i], &info, NULL, detail));
        assert_int_equal(info.state, HF_STATE_READY);
        assert_int_equal(info.attempts, i == 1 ? 1 : 0); /* the dead one's are gone */
        assert_int_equal(info.crashes, i == 1 ? 2 : 0);
        assert_int_equal(info.payload_len, 7);
    }
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "runs", detail), HF_RUNNING);
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "none", detail), HF_GONE);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 10, 0), 4);
}

static void what_is_due_keeps_its_place(void **state)
{
    (void)state;
    enqueue("first", 1700000000000);
    enqueue("second", 1700000000001);
    must(hf_admin_retry(fixture.admin, "q", "first", detail));
    claim_for("first", 0);
}

static void an_idle_worker_hears_of_a_retry(void **state)
{
    (void)state;
    enqueue("one", -60000);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 5000),
                     HF_OK); /* a worker keeps its timer */
    assert_int_equal(fixture.which, 0);
    must(hf_admin_retry(fixture.admin, "q", "one", detail));
    assert_int_equal(hf_queue_fixture_wait(&fixture, 5000), HF_OK);
    assert_int_equal(fixture.which, 0);
    assert_int_equal(fixture.at_ms, 0);
}

/* ---- all of them ---- */

static void a_job_is_found_in_any_queue(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    (void)hf_fixture_command(&fixture.redis, "SADD hf:{/}:queues a q z");
    assert_int_equal(hf_admin_cancel(fixture.admin, NULL, "runs", &info, detail),
                     HF_RUNNING);
    assert_held(&info, "runs");
    must(hf_admin_cancel(fixture.admin, NULL, "ready", NULL, detail));
    must(hf_admin_delete(fixture.admin, NULL, "dead", NULL, detail));
    must(hf_admin_retry(fixture.admin, NULL, "later", detail));
    assert_int_equal(hf_admin_delete(fixture.admin, NULL, "none", NULL, detail), HF_GONE);
    assert_non_null(strstr(detail, "none"));
}

static hf_err call(int which)
{
    return which == 0   ? hf_admin_cancel(fixture.admin, "q", "one", NULL, detail)
           : which == 1 ? hf_admin_delete(fixture.admin, "q", "one", NULL, detail)
                        : hf_admin_retry(fixture.admin, "q", "one", detail);
}

/* The second sending finds the job gone; and yet it was this call that ended it. */
static void an_answer_that_was_lost_is_asked_for_again(void **state)
{
    const hf_script *const scripts[] = {&hf_lua_queue_cancel, &hf_lua_queue_delete,
                                        &hf_lua_queue_requeue};
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, fixture.redis.socket);
    hf_admin_close(fixture.admin);
    fixture.admin = hf_test_admin(proxy.url);
    for (int which = 0; which < 3; which++) {
        unsigned cuts = hf_proxy_cuts(&proxy);
        enqueue("one", -60000);
        (void)call(2); /* so that the script is known */
        (void)hf_fixture_command(&fixture.redis, "SCRIPT LOAD %s", scripts[which]->text);
        hf_proxy_lose_answer(&proxy, scripts[which]->sha1);
        must(call(which));
        assert_int_equal(hf_proxy_cuts(&proxy), cuts + 1);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "deleted"), 1);
    assert_int_equal(call(0), HF_OK);
    assert_int_equal(call(0), HF_GONE);
    hf_admin_close(fixture.admin);
    fixture.admin = NULL;
    hf_proxy_stop(&proxy);
}

/* Jobs are claimed and finished while they are cancelled and deleted: each one ends in
 * one way, and is counted so. */
typedef struct race {
    pthread_t thread;
    int ended[2]; /* by cancel, by delete */
} race;

enum { RACERS = 300 };

static void *end_them(void *arg)
{
    race *r = arg;
    hf_admin *other;
    char id[16];
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    if (hf_admin_open(&other, &opts, NULL) != HF_OK)
        return NULL;
    for (unsigned i = RACERS; i-- > 0;) {
        (void)snprintf(id, sizeof id, "id-%03u", i);
        hf_err err = i % 2 == 0 ? hf_admin_cancel(other, "q", id, NULL, NULL)
                                : hf_admin_delete(other, "q", id, NULL, NULL);
        r->ended[i % 2] += err == HF_OK;
    }
    hf_admin_close(other);
    return NULL;
}

static void claims_and_cancels_race_and_each_job_ends_once(void **state)
{
    race r = {.ended = {0, 0}};
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char id[16];
    (void)state;
    for (unsigned i = 0; i < RACERS; i++) {
        (void)snprintf(id, sizeof id, "id-%03u", i);
        enqueue(id, 0);
    }
    assert_int_equal(pthread_create(&r.thread, NULL, end_them, &r), 0);
    int asked = 0;
    while (hf_queue_fixture_claim(&fixture, "host:1:aa", 1, 0) == 1) {
        char one[HF_ID_SIZE];
        memcpy(one, fixture.jobs[0].id, sizeof one);
        asked +=
            hf_queue_fixture_renew(&fixture, "host:1:aa", one, NULL, 60000) == HF_CANCEL;
        assert_int_equal(verdict(asked % 2 == 0 ? HF_OP_COMPLETE : HF_OP_BURY, one),
                         HF_OK);
    }
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    must(hf_admin_stats(fixture.admin, "q", &stats, detail));
    assert_int_equal(stats.ready + stats.delayed + stats.running, 0);
    assert_int_equal(stats.done + stats.dead + stats.cancelled + stats.deleted, RACERS);
    assert_true(stats.cancelled >= r.ended[0]);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), stats.dead);
}

/* ---- waiting ---- */

typedef struct later {
    pthread_t thread;
    const char *commands[4];
} later;

static void *do_later(void *arg)
{
    const later *l = arg;
    hf_test_pause_ms(LATER_MS);
    redisContext *c = hf_fixture_connect(&fixture.redis);
    for (size_t i = 0; c != NULL && i < 4 && l->commands[i] != NULL; i++)
        freeReplyObject(redisCommand(c, l->commands[i]));
    redisFree(c);
    return NULL;
}

static void *cancel_later(void *arg)
{
    hf_admin *other;
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    hf_test_pause_ms(LATER_MS);
    if (hf_admin_open(&other, &opts, NULL) != HF_OK)
        return NULL;
    *(hf_err *)arg = hf_admin_cancel(other, "q", "one", NULL, NULL);
    hf_admin_close(other);
    return NULL;
}

static void *purge_later(void *arg)
{
    hf_admin *other;
    size_t n;
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    hf_test_pause_ms(LATER_MS);
    if (hf_admin_open(&other, &opts, NULL) != HF_OK)
        return NULL;
    *(hf_err *)arg = hf_admin_purge(other, "q", NULL, NULL, &n, NULL);
    hf_admin_close(other);
    return NULL;
}

static hf_err wait_while(void *(*fn)(void *), hf_err *said)
{
    pthread_t thread;
    *said = HF_INVALID;
    assert_int_equal(pthread_create(&thread, NULL, fn, said), 0);
    hf_err err = hf_admin_wait(fixture.admin, "q", "one", 0, 15000, detail);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return err;
}

static void waiting_tells_that_the_job_was_cancelled(void **state)
{
    hf_err said;
    (void)state;
    enqueue("one", -60000);
    assert_int_equal(wait_while(cancel_later, &said), HF_CANCEL);
    assert_int_equal(said, HF_OK);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 15000, detail),
                     HF_CANCEL);
    long long left = hf_fixture_number(&fixture.redis, "PTTL hf:{q}:ended:one");
    assert_true(left > 0 && left <= 60000);
}

static void waiting_tells_that_the_queue_was_purged_meanwhile(void **state)
{
    hf_err said;
    (void)state;
    enqueue("one", -60000);
    assert_int_equal(wait_while(purge_later, &said), HF_DELETED);
    assert_int_equal(said, HF_OK);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 15000, detail),
                     HF_GONE); /* a later caller is not told */
}

/* It was accepted again after it had been cancelled, and is done before anybody looks:
 * that is another life. */
static void an_id_that_is_used_again_begins_anew(void **state)
{
    (void)state;
    enqueue("other", -60000);
    enqueue("one", -60000);
    must(cancel("other"));
    must(cancel("one"));
    enqueue("one", 0);
    claim_for("one", 0);
    assert_int_equal(verdict(HF_OP_COMPLETE, "one"), HF_OK);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 15000, detail), HF_GONE);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "other", 0, 15000, detail),
                     HF_CANCEL);
}

/* An older word than the job that was seen, which other hands have removed. */
static void an_old_end_does_not_count_for_a_job_that_was_seen_alive(void **state)
{
    fixture.broken = true; /* the note stays */
    later done = {.commands = {"ZREM hf:{q}:schedule one", "HDEL hf:{q}:jobs one"}};
    (void)state;
    enqueue("one", 0);
    must(cancel("one"));
    int64_t at = hf_queue_fixture_now(&fixture);
    EVENTUALLY(15000, hf_queue_fixture_now(&fixture) > at);
    enqueue("one", -60000);
    (void)hf_fixture_command(&fixture.redis, "SET hf:{q}:ended:one %lld PX 60000",
                             (long long)at);
    assert_int_equal(pthread_create(&done.thread, NULL, do_later, &done), 0);
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 5000, detail), HF_GONE);
    assert_int_equal(pthread_join(done.thread, NULL), 0);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_waits_is_removed_by_a_cancel),
        TEST(the_holder_of_what_runs_is_asked_to_end_it),
        TEST(a_cancelled_run_ends_as_cancelled_after_any_verdict),
        TEST(a_completion_that_was_faster_counts_as_done),
        TEST(what_a_dead_holder_was_to_end_is_not_run_again),
        TEST(what_runs_without_a_lock_is_removed_when_it_is_taken_over),
        TEST(a_holder_that_renews_without_a_lock_hears_of_the_cancel),
        TEST(a_claim_whose_answer_was_lost_gives_back_no_cancelled_job),
        TEST(in_a_paused_queue_a_cancel_of_what_was_left_waits_for_the_end_of_the_pause),
        TEST(a_request_does_not_reach_the_next_run),
        TEST(a_cancelled_job_frees_its_slot),
        TEST(what_waits_or_is_dead_is_deleted),
        TEST(what_runs_is_not_deleted),
        TEST(what_waits_or_is_dead_runs_now),
        TEST(what_is_due_keeps_its_place),
        TEST(an_idle_worker_hears_of_a_retry),
        TEST(a_job_is_found_in_any_queue),
        TEST(an_answer_that_was_lost_is_asked_for_again),
        TEST(claims_and_cancels_race_and_each_job_ends_once),
        TEST(waiting_tells_that_the_job_was_cancelled),
        TEST(waiting_tells_that_the_queue_was_purged_meanwhile),
        TEST(an_id_that_is_used_again_begins_anew),
        TEST(an_old_end_does_not_count_for_a_job_that_was_seen_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
