/* test_admin_end.c - a job is cancelled, deleted, or runs now: in each state that it can
 * be in, and while it passes from one to the next. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_rig.h"

enum { SHORT_MS = 40, LATER_MS = 500 /* the waiter has looked by then */ };

static hf_rig rig;
static hf_admin *admin;

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), hf_admin_detail(admin));
}

static void enqueue(const char *id, int64_t due_ms)
{
    assert_int_equal(hf_rig_enqueue(&rig, id, due_ms), HF_OK);
}

static void claim_for(const char *id, uint32_t lease_ms)
{
    assert_int_equal(hf_rig_claim(&rig, "host:1:aa", 1, lease_ms), 1);
    assert_string_equal(rig.jobs[0].id, id);
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
    return hf_rig_verdict(&rig, op, &args, &item);
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

static long long meta(const char *field)
{
    return hf_fixture_number(&rig.redis, "HGET hf:{q}:meta %s", field);
}

static hf_err cancel(const char *id)
{
    return hf_admin_cancel(admin, "q", id, NULL);
}

static void assert_held(const hf_job_info *info, const char *id)
{
    assert_string_equal(info->id, id);
    assert_string_equal(info->queue, "q");
    assert_int_equal(info->state, HF_STATE_RUNNING);
    assert_string_equal(info->holder, "host:1:aa");
    assert_true(info->fence == strtoull(rig.fence, NULL, 10));
    assert_true(info->lease_remaining_ms > 0 &&
                info->lease_remaining_ms <= HF_RIG_LEASE_MS + 1 /* an even ms */);
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
        assert_int_equal(hf_admin_job(admin, "q", ids[i], &info, NULL), HF_GONE);
        assert_int_equal(hf_fixture_number(&rig.redis, "HEXISTS hf:{q}:jobs %s", ids[i]),
                         0);
        assert_int_equal(cancel(ids[i]), HF_GONE);
    }
    assert_int_equal(cancel("dead"), HF_DEAD);
    assert_int_equal(cancel("none"), HF_GONE);
    assert_int_equal(cancel("no id"), HF_INVALID);
    must(hf_admin_stats(admin, "q", &stats));
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
        assert_int_equal(hf_admin_cancel(admin, "q", "runs", &info), HF_RUNNING);
        assert_held(&info, "runs");
    }
    assert_int_equal(hf_rig_renew(&rig, "host:1:aa", "runs", NULL, 60000), HF_CANCEL);
    must(hf_admin_job(admin, "q", "runs", &info, NULL)); /* it still runs */
    assert_int_equal(meta("cancelled"), -1);
}

static void a_cancelled_run_ends_as_cancelled_whatever_its_holder_says(void **state)
{
    static const hf_verdict_op ops[] = {HF_OP_RELEASE, HF_OP_RETRY, HF_OP_BURY};
    char id[8];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ops); i++) {
        (void)snprintf(id, sizeof id, "id-%zu", i % 10);
        enqueue(id, 0);
        claim_for(id, 0);
        (void)hf_fixture_command(&rig.redis, "HSET hf:{q}:crashes %s 1", id);
        assert_int_equal(cancel(id), HF_RUNNING);
        assert_int_equal(verdict(ops[i], id), HF_OK);
        assert_int_equal(meta("cancelled"), (long long)i + 1);
        assert_int_equal(hf_admin_wait(admin, "q", id, 15000), HF_CANCEL);
        assert_int_equal(hf_fixture_number(&rig.redis, "EXISTS hf:{q}:lock:%s", id), 0);
        assert_int_equal(verdict(ops[i], id), HF_GONE); /* and told again: nothing */
        hf_rig_audit(&rig, true);
    }
    assert_int_equal(meta("failed"), -1);
}

static void a_completion_that_was_faster_counts_as_done(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_rig_complete(&rig, "host:1:aa", "one", NULL), HF_OK);
    assert_int_equal(meta("done"), 1);
    assert_int_equal(meta("cancelled"), -1);
    must(hf_admin_wait(admin, "q", "one", 15000));
    hf_rig_audit(&rig, true);
}

static void what_a_dead_holder_was_to_end_is_not_run_again(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 1500);
    assert_int_equal(cancel("one"), HF_RUNNING);
    enqueue("two", -SHORT_MS);
    EVENTUALLY(15000, hf_rig_claim(&rig, "w", 10, 0) == 1);
    assert_string_equal(rig.jobs[0].id, "two");
    EVENTUALLY(15000, hf_rig_claim(&rig, "w", 10, 0) == 0 && meta("cancelled") == 1);
    assert_int_equal(meta("crashed"), -1);
    assert_int_equal(hf_rig_complete(&rig, "host:1:aa", "one", NULL), HF_GONE);
    assert_int_equal(hf_admin_wait(admin, "q", "one", 15000), HF_CANCEL);
}

/* That its lock has ended does not tell that its holder has: the clock may be wrong. */
static void what_runs_without_a_lock_is_removed_when_it_is_taken_over(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_rig_claim(&rig, "host:1:aa", 2, SHORT_MS), 2);
    EVENTUALLY(15000, hf_fixture_number(&rig.redis,
                                        "EXISTS hf:{q}:lock:one hf:{q}:lock:two") == 0);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_admin_delete(admin, "q", "two", &info), HF_RUNNING);
    assert_string_equal(info.holder, "");
    assert_int_equal(cancel("two"), HF_RUNNING);
    assert_int_equal(hf_rig_enqueue(&rig, "one", 0), HF_RUNNING);
    assert_int_equal(hf_rig_claim(&rig, "w", 10, 0), 0);
    assert_int_equal(meta("cancelled"), 2);
    hf_rig_audit(&rig, true);
}

static void a_holder_that_renews_without_a_lock_hears_of_the_cancel(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    (void)hf_fixture_command(&rig.redis, "DEL hf:{q}:lock:one");
    (void)hf_fixture_command(&rig.redis, "ZADD hf:{q}:running 2000 one");
    assert_int_equal(cancel("one"), HF_RUNNING);
    hf_renew_args args = {.worker = "host:1:aa", .lease_ms = 60000};
    args.clock = (hf_clock_view){.least_ms = 1, .at_least_ms = 1};
    assert_int_equal(hf_rig_renew_with(&rig, &args, "one", NULL), HF_CANCEL);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(meta("cancelled"), 1);
    hf_rig_audit(&rig, true);
}

static void a_claim_whose_answer_was_lost_gives_back_no_cancelled_job(void **state)
{
    (void)state;
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_rig_claim(&rig, "w", 2, 0), 2);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_rig_unclaim(&rig, "w", rig.number), HF_OK);
    assert_int_equal(hf_fixture_number(&rig.redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(meta("cancelled"), 1);
}

static void
in_a_paused_queue_a_cancel_of_what_was_left_waits_for_the_end_of_the_pause(void **state)
{
    (void)state;
    enqueue("one", 0);
    claim_for("one", SHORT_MS);
    must(hf_admin_pause(admin, "q", true));
    assert_int_equal(cancel("one"), HF_RUNNING);
    EVENTUALLY(15000, hf_fixture_number(&rig.redis, "EXISTS hf:{q}:lock:one") == 0);
    assert_int_equal(hf_rig_claim(&rig, "w", 10, 0), 0);
    assert_int_equal(cancel("one"), HF_RUNNING);
    must(hf_admin_pause(admin, "q", false));
    assert_int_equal(hf_rig_claim(&rig, "w", 10, 0), 0);
    assert_int_equal(meta("cancelled"), 1);
    hf_rig_audit(&rig, true);
}

/* The request was for the run that it found; a later one is not touched. */
static void a_request_does_not_reach_the_next_run(void **state)
{
    char old[32];
    (void)state;
    enqueue("one", 0);
    claim_for("one", 0);
    memcpy(old, rig.fence, sizeof old);
    assert_int_equal(verdict(HF_OP_BURY, "one"), HF_OK);
    must(hf_admin_retry(admin, "q", "one"));
    claim_for("one", 0);
    (void)hf_fixture_command(&rig.redis, "HSET hf:{q}:cancel one %s", old);
    assert_int_equal(hf_rig_renew(&rig, "host:1:aa", "one", NULL, 60000), HF_OK);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(hf_fixture_number(&rig.redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(meta("cancelled"), -1);
}

/* A slot that a cancelled job leaves is for the next one: somebody is told. */
static void a_cancelled_job_frees_its_slot(void **state)
{
    (void)state;
    must(hf_admin_limit(admin, "q", 1, -1, -1));
    enqueue("one", 0);
    enqueue("two", 0);
    assert_int_equal(hf_rig_wait(&rig, 5000), HF_OK);
    hf_claim_args args = hf_rig_claim_args("host:1:aa", 1, 0);
    args.baton = true;
    assert_int_equal(hf_rig_claim_with(&rig, &args), HF_OK);
    assert_int_equal(cancel("one"), HF_RUNNING);
    assert_int_equal(hf_fixture_number(&rig.redis, "ZCARD hf:{q}:wake"), 0);
    assert_int_equal(verdict(HF_OP_RELEASE, "one"), HF_OK);
    assert_int_equal(hf_rig_wait(&rig, 5000), HF_OK);
    assert_int_equal(rig.which, 0);
    assert_true(rig.at_ms <= hf_rig_now(&rig));
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
        must(hf_admin_delete(admin, "q", ids[i], &info));
        assert_int_equal(hf_admin_delete(admin, "q", ids[i], &info), HF_GONE);
    }
    must(hf_admin_stats(admin, "q", &stats));
    assert_int_equal(stats.deleted, 4);
    assert_int_equal(stats.cancelled, 0);
    assert_int_equal(stats.ready + stats.delayed + stats.dead, 0);
    assert_int_equal(stats.running, 1);
    assert_int_equal(hf_fixture_number(&rig.redis, "HLEN hf:{q}:jobs"), 1);
}

static void what_runs_is_not_deleted(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    assert_int_equal(hf_admin_delete(admin, "q", "runs", &info), HF_RUNNING);
    assert_held(&info, "runs");
    assert_int_equal(hf_rig_renew(&rig, "host:1:aa", "runs", NULL, 60000), HF_OK);
    assert_int_equal(hf_rig_complete(&rig, "host:1:aa", "runs", NULL), HF_OK);
}

/* ---- retry ---- */

static void what_waits_or_is_dead_runs_now(void **state)
{
    static const char *const ids[] = {"dead", "again", "later", "ready"};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    (void)hf_fixture_command(&rig.redis, "HSET hf:{q}:crashes again 2");
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        must(hf_admin_retry(admin, "q", ids[i]));
        must(hf_admin_job(admin, "q", ids[i], &info, NULL));
        assert_int_equal(info.state, HF_STATE_READY);
        assert_int_equal(info.attempts, i == 1 ? 1 : 0); /* the dead one's are gone */
        assert_int_equal(info.crashes, i == 1 ? 2 : 0);
        assert_int_equal(info.payload_len, 7);
    }
    assert_int_equal(hf_admin_retry(admin, "q", "runs"), HF_RUNNING);
    assert_int_equal(hf_admin_retry(admin, "q", "none"), HF_GONE);
    assert_int_equal(hf_rig_claim(&rig, "w", 10, 0), 4);
}

static void what_is_due_keeps_its_place(void **state)
{
    (void)state;
    enqueue("first", 1700000000000);
    enqueue("second", 1700000000001);
    must(hf_admin_retry(admin, "q", "first"));
    claim_for("first", 0);
}

static void an_idle_worker_hears_of_a_retry(void **state)
{
    (void)state;
    enqueue("one", -60000);
    assert_int_equal(hf_rig_wait(&rig, 5000), HF_OK); /* somebody keeps its timer */
    assert_int_equal(rig.which, 0);
    must(hf_admin_retry(admin, "q", "one"));
    assert_int_equal(hf_rig_wait(&rig, 5000), HF_OK);
    assert_int_equal(rig.which, 0);
    assert_int_equal(rig.at_ms, 0);
}

/* ---- all of them ---- */

static void a_job_is_found_in_whatever_queue_it_is(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fill();
    (void)hf_fixture_command(&rig.redis, "SADD hf:queues a q z");
    assert_int_equal(hf_admin_cancel(admin, NULL, "runs", &info), HF_RUNNING);
    assert_held(&info, "runs");
    must(hf_admin_cancel(admin, NULL, "ready", NULL));
    must(hf_admin_delete(admin, NULL, "dead", NULL));
    must(hf_admin_retry(admin, NULL, "later"));
    assert_int_equal(hf_admin_delete(admin, NULL, "none", NULL), HF_GONE);
    assert_non_null(strstr(hf_admin_detail(admin), "none"));
}

static hf_err call(int which)
{
    return which == 0   ? hf_admin_cancel(admin, "q", "one", NULL)
           : which == 1 ? hf_admin_delete(admin, "q", "one", NULL)
                        : hf_admin_retry(admin, "q", "one");
}

/* The second sending finds the job gone; and yet it was this call that ended it. */
static void an_answer_that_was_lost_is_asked_for_again(void **state)
{
    const hf_script *const scripts[] = {&hf_lua_queue_cancel, &hf_lua_queue_delete,
                                        &hf_lua_queue_requeue};
    char detail[HF_DETAIL_SIZE];
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, rig.redis.socket);
    hf_admin_close(admin);
    assert_int_equal(
        hf_admin_open(
            &admin,
            &(hf_admin_opts){HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)},
            detail),
        HF_OK);
    for (int which = 0; which < 3; which++) {
        unsigned cuts = hf_proxy_cuts(&proxy);
        enqueue("one", -60000);
        (void)call(2); /* so that the script is known */
        (void)hf_fixture_command(&rig.redis, "SCRIPT LOAD %s", scripts[which]->text);
        hf_proxy_lose_answer(&proxy, scripts[which]->sha1);
        must(call(which));
        assert_int_equal(hf_proxy_cuts(&proxy), cuts + 1);
    }
    assert_int_equal(meta("cancelled"), 1);
    assert_int_equal(meta("deleted"), 1);
    assert_int_equal(call(0), HF_OK);
    assert_int_equal(call(0), HF_GONE);
    hf_admin_close(admin);
    admin = NULL;
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
    char detail[HF_DETAIL_SIZE], id[16];
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(&rig.redis))};
    if (hf_admin_open(&other, &opts, detail) != HF_OK)
        return NULL;
    for (unsigned i = RACERS; i-- > 0;) {
        (void)snprintf(id, sizeof id, "id-%03u", i);
        hf_err err = i % 2 == 0 ? hf_admin_cancel(other, "q", id, NULL)
                                : hf_admin_delete(other, "q", id, NULL);
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
    while (hf_rig_claim(&rig, "host:1:aa", 1, 0) == 1) {
        char one[HF_ID_SIZE];
        memcpy(one, rig.jobs[0].id, sizeof one);
        asked += hf_rig_renew(&rig, "host:1:aa", one, NULL, 60000) == HF_CANCEL;
        assert_int_equal(verdict(asked % 2 == 0 ? HF_OP_COMPLETE : HF_OP_BURY, one),
                         HF_OK);
    }
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    must(hf_admin_stats(admin, "q", &stats));
    assert_int_equal(stats.ready + stats.delayed + stats.running, 0);
    assert_int_equal(stats.done + stats.dead + stats.cancelled + stats.deleted, RACERS);
    assert_true(stats.cancelled >= r.ended[0]);
    assert_int_equal(hf_fixture_number(&rig.redis, "HLEN hf:{q}:jobs"), stats.dead);
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
    redisContext *c = hf_fixture_connect(&rig.redis);
    for (size_t i = 0; c != NULL && i < 4 && l->commands[i] != NULL; i++)
        freeReplyObject(redisCommand(c, l->commands[i]));
    redisFree(c);
    return NULL;
}

static void *cancel_later(void *arg)
{
    hf_admin *other;
    char detail[HF_DETAIL_SIZE];
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(&rig.redis))};
    hf_test_pause_ms(LATER_MS);
    if (hf_admin_open(&other, &opts, detail) != HF_OK)
        return NULL;
    *(hf_err *)arg = hf_admin_cancel(other, "q", "one", NULL);
    hf_admin_close(other);
    return NULL;
}

static void *purge_later(void *arg)
{
    hf_admin *other;
    char detail[HF_DETAIL_SIZE];
    size_t n;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(&rig.redis))};
    hf_test_pause_ms(LATER_MS);
    if (hf_admin_open(&other, &opts, detail) != HF_OK)
        return NULL;
    *(hf_err *)arg = hf_admin_purge(other, "q", NULL, NULL, &n);
    hf_admin_close(other);
    return NULL;
}

static hf_err wait_while(void *(*fn)(void *), hf_err *said)
{
    pthread_t thread;
    *said = HF_INVALID;
    assert_int_equal(pthread_create(&thread, NULL, fn, said), 0);
    hf_err err = hf_admin_wait(admin, "q", "one", 15000);
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
    assert_int_equal(hf_admin_wait(admin, "q", "one", 15000), HF_CANCEL);
    long long left = hf_fixture_number(&rig.redis, "PTTL hf:{q}:ended:one");
    assert_true(left > 0 && left <= 60000);
}

static void waiting_tells_that_the_queue_was_purged_meanwhile(void **state)
{
    hf_err said;
    (void)state;
    enqueue("one", -60000);
    assert_int_equal(wait_while(purge_later, &said), HF_CANCEL);
    assert_int_equal(said, HF_OK);
    must(hf_admin_wait(admin, "q", "one", 15000)); /* a later caller is not told */
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
    must(hf_admin_wait(admin, "q", "one", 15000));
    assert_int_equal(hf_admin_wait(admin, "q", "other", 15000), HF_CANCEL);
}

/* An older word than the job that was seen. */
static void an_old_end_does_not_count_for_a_job_that_was_seen_alive(void **state)
{
    later done = {.commands = {"ZREM hf:{q}:schedule one", "HDEL hf:{q}:jobs one"}};
    (void)state;
    enqueue("one", 0);
    must(cancel("one"));
    int64_t at = hf_rig_now(&rig);
    EVENTUALLY(15000, hf_rig_now(&rig) > at);
    enqueue("one", -60000);
    (void)hf_fixture_command(&rig.redis, "SET hf:{q}:ended:one %lld PX 60000",
                             (long long)at);
    assert_int_equal(pthread_create(&done.thread, NULL, do_later, &done), 0);
    must(hf_admin_wait(admin, "q", "one", 5000));
    assert_int_equal(pthread_join(done.thread, NULL), 0);
}

static int up(void **state)
{
    (void)state;
    hf_rig_start(&rig, NULL);
    admin = hf_rig_admin(&rig);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_admin_close(admin);
    hf_rig_stop(&rig);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_waits_is_removed_by_a_cancel),
        TEST(the_holder_of_what_runs_is_asked_to_end_it),
        TEST(a_cancelled_run_ends_as_cancelled_whatever_its_holder_says),
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
        TEST(a_job_is_found_in_whatever_queue_it_is),
        TEST(an_answer_that_was_lost_is_asked_for_again),
        TEST(claims_and_cancels_race_and_each_job_ends_once),
        TEST(waiting_tells_that_the_job_was_cancelled),
        TEST(waiting_tells_that_the_queue_was_purged_meanwhile),
        TEST(an_id_that_is_used_again_begins_anew),
        TEST(an_old_end_does_not_count_for_a_job_that_was_seen_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
