/* test_worker_marks.c - what a run tells while it goes on: its progress rides on the
 * renewals and ends with it, its checkpoint reaches the next run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

/* Long: on a busy machine a short one may expire, and then a run more follows. */
enum { LEASE_MS = 120000, STEPS = 4 };

static hf_queue_fixture queue;
static hf_worker_fixture worker;
static hf_admin *admin;
static hf_proxy proxy;
static atomic_int runs, noted, at_gate;
static atomic_bool gate;
static char checkpoints[STEPS][HF_CHECKPOINT_MAX + 1]; /* what each run found */

static int up(void **state)
{
    (void)state;
    atomic_store(&runs, 0);
    atomic_store(&noted, 0);
    atomic_store(&at_gate, 0);
    atomic_store(&gate, false);
    memset(checkpoints, 0, sizeof checkpoints);
    hf_queue_fixture_start(&queue, NULL);
    hf_proxy_start(&proxy, queue.redis.socket);
    admin = hf_queue_fixture_admin(&queue);
    return 0;
}

static int down(void **state)
{
    (void)state;
    atomic_store(&gate, true);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_admin_close(admin);
    hf_queue_fixture_audit(&queue, true);
    hf_queue_fixture_stop(&queue);
    return 0;
}

static void wait_at_gate(hf_run *run)
{
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate) && !hf_run_stopping(run))
        hf_test_pause_ms(1);
}

static bool is(const char *what, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(what, word, len) == 0;
}

/* "progress": tells it, and waits; "many": tells it as often as it can until the gate
 * opens; others keep a checkpoint, and end at first as their payload says. */
static hf_verdict handle(hf_run *run, void *arg)
{
    size_t len, saved_len;
    const char *what = hf_run_payload(run, &len);
    int n = atomic_fetch_add(&runs, 1);
    const void *saved = hf_run_checkpoint(run, &saved_len);
    char next[32];
    (void)arg;
    if (n < STEPS)
        memcpy(checkpoints[n], saved, saved_len);
    atomic_fetch_add(&noted, 1);
    if (is(what, len, "progress")) {
        hf_run_set_progress(run, 40, "half\nway");
        wait_at_gate(run);
        return HF_VERDICT_DONE;
    }
    if (is(what, len, "many")) {
        atomic_fetch_add(&at_gate, 1);
        for (uint32_t i = 0; !atomic_load(&gate); i++) {
            hf_run_set_progress(run, i % 100, NULL);
            hf_test_pause_ms(1);
        }
        return HF_VERDICT_DONE;
    }
    int size = snprintf(next, sizeof next, "step %d", n + 1);
    assert_int_equal(hf_run_set_checkpoint(run, next, (size_t)size), HF_OK);
    if (is(what, len, "gate"))
        wait_at_gate(run);
    if (n >= STEPS - 1)
        return HF_VERDICT_DONE;
    hf_run_set_retry_in(run, 1);
    return is(what, len, "release") ? HF_VERDICT_RELEASE
           : is(what, len, "dead")  ? HF_VERDICT_DEAD
                                    : HF_VERDICT_RETRY;
}

static void start(const char *url, const char *payload)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS};
    hf_worker_fixture_start_own(&worker, url, &opts, 0, handle, NULL);
    hf_queue_fixture_put(&queue, "a", payload, 0);
}

static bool look(hf_job_info *info)
{
    *info = (hf_job_info){HF_JOB_INFO_INIT};
    return hf_admin_job(admin, "q", "a", info, NULL, NULL) == HF_OK;
}

static void assert_no_marks(void)
{
    assert_int_equal(hf_fixture_number(&queue.redis, "EXISTS hf:{q}:progress "
                                                     "hf:{q}:checkpoint hf:{q}:logs"),
                     0);
    assert_null(strchr(hf_fixture_command(&queue.redis, "HGET hf:{q}:meta uses"), 'm'));
}

static void progress_is_seen_and_ends_with_the_run(void **state)
{
    (void)state;
    hf_job_info info;
    start(queue.redis.url, "progress");
    EVENTUALLY(15000, look(&info) && info.has_progress);
    assert_int_equal(info.progress, 40);
    assert_string_equal(info.note, "half way");
    atomic_store(&gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_no_marks();
}

static long long renewals(void)
{
    const char *stats = hf_fixture_command(&queue.redis, "INFO commandstats");
    const char *at = strstr(stats, "cmdstat_evalsha:calls=");
    return at == NULL ? 0 : strtoll(at + strlen("cmdstat_evalsha:calls="), NULL, 10);
}

/* A thousand a second cost no request. */
static void progress_costs_no_request(void **state)
{
    enum { WATCH_MS = 2000 };
    (void)state;
    start(queue.redis.url, "many");
    EVENTUALLY(15000, atomic_load(&at_gate) == 1);
    const uint64_t from_ms = hf_test_now_ms();
    long long before = renewals();
    hf_test_pause_ms(WATCH_MS);
    /* One renewal a second, checks, readings and heartbeats; one each 50 ms is more. */
    const long long more = renewals() - before;
    assert_true(more < (long long)(hf_test_now_ms() - from_ms) / 50);
    hf_job_info info;
    EVENTUALLY(15000, look(&info) && info.has_progress);
    atomic_store(&gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_no_marks();
}

/* Even where it had no time for a renewal. */
static void a_checkpoint_goes_with(const char *payload)
{
    start(queue.redis.url, payload);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(atomic_load(&noted), STEPS);
    assert_string_equal(checkpoints[0], "");
    assert_string_equal(checkpoints[1], "step 1");
    assert_string_equal(checkpoints[2], "step 2");
    assert_string_equal(checkpoints[3], "step 3");
    assert_no_marks();
}

static void a_checkpoint_goes_with_a_retry(void **state)
{
    (void)state;
    a_checkpoint_goes_with("retry");
}

static void a_checkpoint_goes_with_a_release(void **state)
{
    (void)state;
    a_checkpoint_goes_with("release");
}

static void a_checkpoint_stays_with_a_dead_job(void **state)
{
    (void)state;
    hf_job_info info;
    start(queue.redis.url, "dead");
    EVENTUALLY(15000, look(&info) && info.state == HF_STATE_DEAD);
    assert_int_equal(info.checkpoint_len, strlen("step 1"));
    assert_false(info.has_progress);
    assert_int_equal(hf_admin_retry(admin, "q", "a", NULL), HF_OK);
    EVENTUALLY(15000, atomic_load(&noted) == 2);
    assert_string_equal(checkpoints[1], "step 1");
    EVENTUALLY(15000, look(&info) && info.state == HF_STATE_DEAD);
    assert_int_equal(hf_admin_delete(admin, "q", "a", NULL, NULL), HF_OK);
    assert_no_marks();
}

/* Long before a third of the lease. */
static void a_checkpoint_is_told_at_once(void **state)
{
    (void)state;
    hf_job_info info;
    start(queue.redis.url, "gate");
    EVENTUALLY(15000, look(&info) && info.checkpoint_len == strlen("step 1"));
    atomic_store(&gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
}

/* Logs that many runs leave at their ends are more than one request takes. */
enum { MANY = 40, LOG_BYTES = 60000 };

static hf_verdict log_much(hf_run *run, void *arg)
{
    wait_at_gate(run);
    hf_run_log(run, arg);
    hf_run_set_retry_in(run, 3600000);
    return HF_VERDICT_RETRY;
}

static void what_runs_log_at_their_ends_is_kept_of_all(void **state)
{
    (void)state;
    static char text[LOG_BYTES + 1];
    char id[8];
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = 120000,
                                 .concurrency = MANY};
    memset(text, 'x', LOG_BYTES);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "x", 0);
    }
    hf_worker_fixture_start_own(&worker, queue.redis.url, &opts, 0, log_much, text);
    EVENTUALLY(30000, atomic_load(&at_gate) == MANY);
    atomic_store(&gate, true);
    EVENTUALLY(30000, hf_queue_fixture_meta(&queue, "failed") == MANY);
    assert_int_equal(hf_fixture_number(&queue.redis, "HLEN hf:{q}:logs"), MANY);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        assert_int_equal(hf_admin_delete(admin, "q", id, NULL, NULL), HF_OK);
    }
    assert_no_marks();
}

/* Lines that a handler logs are there soon, and are kept until the job is removed. */
static hf_verdict log_lines(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_log(run, "one");
    wait_at_gate(run);
    hf_run_log(run, "two\n");
    return hf_run_attempt(run) == 1 ? HF_VERDICT_RETRY : HF_VERDICT_DEAD;
}

static void on_part(const hf_log_part *part, void *arg)
{
    char *all = arg;
    size_t len = strlen(all);
    (void)snprintf(all + len, 256 - len, "%u+%llu:%.*s", part->attempt,
                   (unsigned long long)part->from, (int)part->len, part->text);
}

static bool logged(hf_log_place *place, char all[256], const char *text)
{
    return hf_admin_logs(admin, "q", "a", place, on_part, all, NULL) == HF_OK &&
           strcmp(all, text) == 0;
}

static void what_a_run_logs_is_kept_with_its_job(void **state)
{
    (void)state;
    char all[256] = "";
    hf_log_place place = {HF_LOG_PLACE_INIT};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS};
    /* An earlier job of this id was done a moment ago. */
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:log:a 1 %s", "1 4 old\n");
    (void)hf_fixture_command(&queue.redis, "PEXPIRE hf:{q}:log:a 600000");
    hf_worker_fixture_start_own(&worker, queue.redis.url, &opts, 0, log_lines, NULL);
    hf_queue_fixture_put(&queue, "a", "x", 0);
    EVENTUALLY(15000, logged(&place, all, "1+0:one\n"));
    assert_int_equal(hf_fixture_number(&queue.redis, "PTTL hf:{q}:log:a"), -1);
    assert_false(place.ended);
    atomic_store(&gate, true);
    EVENTUALLY(15000,
               hf_admin_logs(admin, "q", "a", &place, on_part, all, NULL) == HF_OK &&
                   place.ended);
    assert_non_null(strstr(all, "1+0:one\n1+4:two\n2+0:one\n"));
    all[0] = '\0';
    assert_true(logged(NULL, all, "1+0:one\ntwo\n2+0:one\ntwo\n"));
    assert_int_equal(hf_admin_delete(admin, "q", "a", NULL, NULL), HF_OK);
    assert_int_equal(hf_fixture_number(&queue.redis, "EXISTS hf:{q}:log:a"), 0);
    assert_no_marks();
}

/* The answer to what was reported last is lost, and so is the connection. */
static void a_checkpoint_outlives_a_lost_answer(void **state)
{
    (void)state;
    (void)hf_fixture_command(&queue.redis, "SCRIPT LOAD %s", hf_lua_queue_renew.text);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_renew.sha1);
    start(proxy.url, "retry");
    EVENTUALLY(15000, hf_proxy_cuts(&proxy) == 1);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(atomic_load(&noted), STEPS);
    assert_string_equal(checkpoints[1], "step 1");
    assert_string_equal(checkpoints[3], "step 3");
}

/* ---- by the scripts: crashes ---- */

static void report(const char *worker_id, const char *checkpoint)
{
    char text[64];
    int len = snprintf(text, sizeof text, "1 %s", checkpoint);
    const hf_renew_note one = {.kind = HF_RENEW_CHECKPOINT, .text = {text, (size_t)len}};
    const hf_renew_args args = {
        .worker = worker_id, .lease_ms = 30000, .notes = &one, .n_notes = 1};
    assert_int_equal(hf_queue_fixture_renew_with(&queue, &args, "a", NULL), HF_OK);
}

/* Its holder is gone. */
static void crash(void)
{
    (void)hf_fixture_command(&queue.redis, "ZADD hf:{q}:running 2 a");
    (void)hf_fixture_command(&queue.redis, "DEL hf:{q}:lock:a");
}

static void a_job_that_makes_progress_is_not_poison(void **state)
{
    (void)state;
    hf_queue_fixture_put(&queue, "a", "x", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
    for (int i = 0; i < 10; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "row %d", i);
        report("w", text);
        crash();
        assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
        assert_int_equal(queue.jobs[0].crashes, 1);
    }
    assert_int_equal(hf_queue_fixture_complete(&queue, "w", "a", NULL), HF_OK);
    assert_no_marks();
}

/* It begins anew each time, and comes to the same place. */
static void a_job_that_crashes_at_one_checkpoint_is_poison(void **state)
{
    (void)state;
    hf_job_info info;
    hf_queue_fixture_put(&queue, "a", "x", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
    for (uint32_t crashes = 1; crashes < 3; crashes++) {
        report("w", "row 1");
        report("w", "row 2");
        crash();
        assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
        assert_int_equal(queue.jobs[0].crashes, crashes);
    }
    report("w", "row 2");
    crash();
    assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 0);
    assert_true(look(&info));
    assert_int_equal(info.state, HF_STATE_DEAD);
    assert_int_equal(hf_admin_delete(admin, "q", "a", NULL, NULL), HF_OK);
}

/* Two connections may change their order; and a run that was lost changes nothing. */
static void an_older_checkpoint_changes_nothing(void **state)
{
    (void)state;
    hf_job_info info;
    hf_queue_fixture_put(&queue, "a", "x", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
    const hf_renew_note late[] = {{.kind = HF_RENEW_CHECKPOINT, .text = {"7 newer", 7}},
                                  {.kind = HF_RENEW_CHECKPOINT, .text = {"6 old", 5}}};
    const hf_renew_args args = {
        .worker = "w", .lease_ms = 30000, .notes = late, .n_notes = 2};
    assert_int_equal(hf_queue_fixture_renew_with(&queue, &args, "a", NULL), HF_OK);
    assert_true(look(&info) && info.checkpoint_len == strlen("newer"));
    const hf_renew_note lost = {.kind = HF_RENEW_CHECKPOINT,
                                .text = {"9 of a lost run", 15}};
    const hf_renew_args stale = {
        .worker = "w", .lease_ms = 30000, .notes = &lost, .n_notes = 1};
    assert_int_equal(hf_queue_fixture_renew_with(&queue, &stale, "a", "1"), HF_LOST);
    assert_true(look(&info) && info.checkpoint_len == strlen("newer"));
    assert_int_equal(hf_queue_fixture_complete(&queue, "w", "a", NULL), HF_OK);
    assert_no_marks();
}

/* A renewal that was under way when the verdict came. */
static void what_is_told_behind_the_verdict_leaves_no_mark(void **state)
{
    (void)state;
    const hf_renew_note late[] = {{.kind = HF_RENEW_PROGRESS, .text = {"40 half", 7}},
                                  {.kind = HF_RENEW_CHECKPOINT, .text = {"1 row", 5}},
                                  {.kind = HF_RENEW_LOG, .text = {"1 0 line", 8}}};
    const hf_renew_args args = {
        .worker = "w", .lease_ms = 30000, .notes = late, .n_notes = HF_COUNT(late)};
    hf_queue_fixture_put(&queue, "a", "x", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&queue, "w", "a", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_renew_with(&queue, &args, "a", NULL), HF_LOST);
    assert_no_marks();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(progress_is_seen_and_ends_with_the_run),
        CASE(progress_costs_no_request),
        CASE(a_checkpoint_goes_with_a_retry),
        CASE(a_checkpoint_goes_with_a_release),
        CASE(a_checkpoint_stays_with_a_dead_job),
        CASE(a_checkpoint_is_told_at_once),
        CASE(what_a_run_logs_is_kept_with_its_job),
        CASE(what_runs_log_at_their_ends_is_kept_of_all),
        CASE(a_checkpoint_outlives_a_lost_answer),
        CASE(a_job_that_makes_progress_is_not_poison),
        CASE(a_job_that_crashes_at_one_checkpoint_is_poison),
        CASE(an_older_checkpoint_changes_nothing),
        CASE(what_is_told_behind_the_verdict_leaves_no_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
