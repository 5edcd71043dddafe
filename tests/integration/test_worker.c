/* test_worker.c - a worker against a real Redis: verdicts, lost answers, waking up,
 * stopping. */
#include <string.h>

#include "base/clock.h"
#include "holdfast/admin.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { SLOW_CALLS = 10000 };

static hf_queue_fixture queue; /* jobs go in here, and the audit is made here */
static hf_worker_fixture worker, other;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_queue_fixture_stop(&queue);
    return 0;
}

static void put(const char *id, const char *payload, int64_t due_ms)
{
    char record[128];
    int len = snprintf(record, sizeof record,
                       "{\"v\":1,\"type\":\"t\",\"created\":1}\n%s", payload);
    hf_enqueue_item item = {.id = id, .due_ms = due_ms, .record = {record, (size_t)len}};
    hf_enqueue_args args = {.producer = ""};
    assert_int_equal(hf_queue_fixture_enqueue_items(&queue, &args, &item, 1), HF_OK);
}

static long long card(const char *set)
{
    return hf_fixture_number(&queue.redis, "ZCARD hf:{q}:%s", set);
}

static long long jobs_left(void)
{
    return hf_fixture_number(&queue.redis, "HLEN hf:{q}:jobs");
}

static bool is_idle(void) /* the one worker; it waits for a baton */
{
    return strstr(hf_fixture_command(&queue.redis, "INFO clients"),
                  "blocked_clients:1") != NULL;
}

static const char *record_of(const char *id)
{
    return hf_fixture_command(&queue.redis, "HGET hf:{q}:jobs %s", id);
}

/* ---- verdicts ---- */

/* The arguments of the longest call of a script since the log of slow ones was emptied;
 * Redis keeps 32 of each. */
static long long most_arguments(const hf_script *script)
{
    static const char look[] =
        "local most = 0 for _, call in ipairs(redis.call('SLOWLOG', 'GET', ARGV[2])) do "
        "if call[4][2] == ARGV[1] then most = math.max(most, #call[4]) end end "
        "return most";
    return hf_fixture_number(&queue.redis, "EVAL %s 0 %s %d", look, script->sha1,
                             SLOW_CALLS);
}

/* So that no script keeps Redis for long: about 1 MiB of records. */
static void large_jobs_that_failed_go_back_a_few_at_a_time(void **state)
{
    enum { LARGE = 600 << 10, JOBS = 7, FIXED = 7, EACH = 6, AT_A_TIME = 2 };
    static const char line[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\nlatefail";
    static char record[LARGE];
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = 30000,
                                 .concurrency = JOBS, .backoff_base_ms = 60000};
    (void)state;
    memset(record, 'x', sizeof record);
    memcpy(record, line, sizeof line - 1);
    static const char *const ids[JOBS] = {"a", "b", "c", "d", "e", "f", "g"};
    hf_enqueue_item items[JOBS];
    for (size_t i = 0; i < JOBS; i++)
        items[i] = (hf_enqueue_item){ids[i], 0, {record, sizeof record}};
    assert_string_equal(
        hf_fixture_command(&queue.redis, "CONFIG SET slowlog-log-slower-than 0"), "OK");
    assert_string_equal(
        hf_fixture_command(&queue.redis, "CONFIG SET slowlog-max-len %d", SLOW_CALLS),
        "OK");
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, items, JOBS),
                     HF_OK);
    EVENTUALLY(15000, atomic_load(&worker.started) == JOBS);
    atomic_store(&worker.hold_loop, true); /* the verdicts gather meanwhile */
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, atomic_load(&worker.returned) == JOBS);
    atomic_store(&worker.hold_loop, false);
    EVENTUALLY(15000,
               hf_queue_fixture_meta(&queue, "failed") == JOBS && card("running") == 0);
    assert_int_equal(most_arguments(&hf_lua_queue_retry), FIXED + AT_A_TIME * EACH);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void jobs_run_and_are_removed(void **state)
{
    (void)state;
    char id[16];
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof id, "j%d", i);
        put(id, "ok", 0);
    }
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 300);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 300);
    assert_int_equal(jobs_left(), 0);
    hf_queue_fixture_audit(&queue, true);
}

static void as_many_run_at_once_as_there_are_slots(void **state)
{
    (void)state;
    char id[16];
    for (int i = 0; i < 308; i++) { /* after the short ones, jobs are claimed ahead */
        snprintf(id, sizeof id, "j%03d", i);
        put(id, i < 300 ? "ok" : "gate", 0);
    }
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .concurrency = 6}, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 306);
    ALWAYS(200, atomic_load(&worker.started) == 306);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 308);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 308);
    assert_int_equal(atomic_load(&worker.most_at_once), 6);
}

static void a_failing_job_is_retried_after_its_backoff_and_dies(void **state)
{
    (void)state;
    put("a", "fail", 0);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .max_attempts = 3}, 0);
    EVENTUALLY(15000, card("dead") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 3);
    assert_non_null(strstr(record_of("a"), "\"attempts\":3"));
    assert_non_null(strstr(record_of("a"), "it failed"));
    assert_int_equal(hf_queue_fixture_meta(&queue, "failed"), 3);
}

static void a_handler_can_end_a_job_at_once(void **state)
{
    (void)state;
    put("a", "dead", 0);
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, card("dead") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 1);
    assert_non_null(strstr(record_of("a"), "it never will"));
}

static void a_type_without_a_handler_goes_back_without_an_attempt(void **state)
{
    (void)state;
    const char record[] = "{\"v\":1,\"type\":\"stranger\",\"created\":1}\n";
    hf_enqueue_item item = {.id = "a", .record = {record, sizeof record - 1}};
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, &item, 1),
                     HF_OK);
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, strstr(record_of("a"), "no handler for type") != NULL);
    EVENTUALLY(15000, card("schedule") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_null(strstr(record_of("a"), "attempts"));
    long long due = hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule a");
    assert_true(due <= hf_queue_fixture_now(&queue) + 5000);
}

static void a_handler_that_overruns_is_asked_to_stop_and_its_job_retried(void **state)
{
    (void)state;
    put("a", "gate", 0);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .max_attempts = 1},
                            200);
    EVENTUALLY(15000, card("dead") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(atomic_load(&worker.asked_to_stop));
    assert_non_null(strstr(record_of("a"), "time-out"));
}

/* ---- answers that are lost ---- */

static void a_verdict_whose_answer_is_lost_is_sent_again(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_worker_fixture_start(&worker, proxy.url, NULL, 0);
    put("a", "ok", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "b%d", i);
        unsigned cuts = hf_proxy_cuts(&proxy);
        hf_proxy_lose_answer(&proxy, hf_lua_queue_complete.sha1);
        put(id, "ok", 0);
        EVENTUALLY(15000, hf_proxy_cuts(&proxy) == cuts + 1);
        EVENTUALLY(15000, jobs_left() == 0);
    }
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is back") == 5);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 6);
    assert_int_equal(hf_queue_fixture_meta(&queue, "done"), 6);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_audit(&queue, true);
}

static void a_verdict_that_never_arrived_is_sent_again(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_worker_fixture_start(&worker, proxy.url, NULL, 0);
    put("a", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_DROP);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is away") > 0 ||
                          hf_worker_fixture_said(&worker, "outcome=") > 0);
    hf_proxy_close_all(&proxy);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 1);
    hf_proxy_stop(&proxy);
}

static void a_claim_whose_answer_is_lost_is_given_back_and_counts_nothing(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_worker_fixture_start(&worker, proxy.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000}, 0);
    put("a", "ok", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_claim.sha1);
    put("b", "ok", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") ==
                          2); /* long before the lease of the lost claim ends */
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&queue, "crashed"), -1);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_audit(&queue, true);
}

/* The claim lies in a buffer on its way until the worker has given its connection up and
 * come back: it must not lock a job for a worker that does not know. */
static void
a_claim_held_back_until_after_the_reconnect_locks_nothing_for_long(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = 30000,
                           .server = HF_SERVER(.request_timeout_ms = 300)};
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_worker_fixture_start(&worker, proxy.url, &opts, 0);
    put("warm", "ok", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        unsigned connections = hf_proxy_connections(&proxy);
        EVENTUALLY(15000, is_idle());
        hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_HOLD);
        put(id, "ok", 0); /* its baton is popped at once, and the claim is held */
        EVENTUALLY(15000, hf_proxy_connections(&proxy) > connections);
        hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
        EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == i + 2);
        EVENTUALLY(15000, jobs_left() == 0);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&queue, "crashed"), -1);
    assert_int_equal(atomic_load(&worker.started), 4);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_audit(&queue, true);
}

/* ---- waking up ---- */

/* At each time, and long before its next check. */
static void a_delayed_job_wakes_an_idle_worker_in_time_and_not_before(void **state)
{
    enum { DELAYED = 5, DELAY_MS = 300, SOON_MS = 3000 };
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 60000}, 0);
    for (int i = 0; i < DELAYED; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        EVENTUALLY(15000, is_idle());
        uint64_t due_ns = hf_boot_ns() + (DELAY_MS - 1) * HF_MS_NS;
        put(id, "ok", hf_queue_fixture_now(&queue) + DELAY_MS);
        EVENTUALLY(SOON_MS, atomic_load(&worker.started) == i + 1);
        assert_true(atomic_load(&worker.started_ns) >= due_ns);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_full_worker_leaves_a_due_job_to_another(void **state)
{
    (void)state;
    hf_worker_opts one = {HF_WORKER_OPTS_INIT, .concurrency = 1, .lease_ms = 60000};
    put("a", "gate", 0);
    hf_worker_fixture_start(&worker, queue.redis.url, &one, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_worker_fixture_start(&other, queue.redis.url, &one, 0);
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "b%d", i);
        put(id, "ok", i % 2 == 0 ? 0 : -20);
        EVENTUALLY(15000, atomic_load(&other.returned) == i + 1);
    }
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 21);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
    hf_queue_fixture_audit(&queue, true);
}

/* Between two blocks a worker looks into all of its queues. What it finds there must not
 * make it forget the time that it owns. */
static void work_in_one_queue_does_not_delay_what_is_due_in_another(void **state)
{
    (void)state;
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "other"}};
    const hf_queue q = queue.queue;
    hf_queue elsewhere;
    assert_int_equal(hf_queue_init(&elsewhere, q.ns, both[1].name), HF_OK);
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                           .lease_ms = 60000};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    put("late", "ok",
        hf_queue_fixture_now(&queue) + 1500); /* its baton is popped, a timer kept */
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:wake") == 0);
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "b%d", i);
        queue.queue = elsewhere;
        put(id, "ok", i % 2 == 0 ? 0 : -20);
        queue.queue = q;
        EVENTUALLY(15000, atomic_load(&worker.returned) >= i + 1);
    }
    EVENTUALLY(15000, atomic_load(&worker.returned) == 6);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void resuming_and_raising_a_limit_wake_a_worker(void **state)
{
    (void)state;
    hf_admin *admin;
    char detail[HF_DETAIL_SIZE];
    hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                          .server = HF_SERVER(.url = queue.redis.url)};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 60000}, 0);
    assert_int_equal(hf_admin_pause(admin, "q", true, NULL), HF_OK);
    put("a", "gate", 0);
    put("b", "gate", 0);
    ALWAYS(200, atomic_load(&worker.started) == 0);
    assert_int_equal(hf_admin_limit(admin, "q", 1, -1, -1, NULL), HF_OK);
    assert_int_equal(hf_admin_pause(admin, "q", false, NULL), HF_OK);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    ALWAYS(200, atomic_load(&worker.started) == 1);
    assert_int_equal(hf_admin_limit(admin, "q", 2, -1, -1, NULL), HF_OK);
    EVENTUALLY(15000, atomic_load(&worker.started) == 2);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 2);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_admin_close(admin);
}

/* ---- stopping ---- */

/* By the claim itself, so nobody here ever holds it. */
static void jobs_that_a_claim_buries_are_told(void **state)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .poison = 1, .lease_ms = 1000};
    (void)state;
    put("bad", "ok", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "its-holder", 1, 100), 1);
    hf_fixture_command(&queue.redis, "ZADD hf:{q}:schedule 1 ghost");
    queue.broken = true;
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(15000,
               hf_worker_fixture_said(&worker, "job job=bad queue=q outcome=dead "
                                               "error=its holder died 1 times; ") == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, ", lease ended 20"), 1);
    EVENTUALLY(15000,
               hf_worker_fixture_said(&worker, "job=ghost queue=q outcome=dead "
                                               "error=its record was missing") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(card("dead"), 2);
    assert_int_equal(atomic_load(&worker.started), 0);
}

static void a_stop_releases_what_has_not_returned_and_counts_nothing(void **state)
{
    (void)state;
    put("a", "deaf", 0);
    put("b", "ok", hf_queue_fixture_now(&queue) + 60000);
    double due = (double)hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule a");
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .shutdown_timeout_ms = 100,
                           .lease_ms = 30000};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_worker_stop(worker.worker);
    EVENTUALLY(15000, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_unreturned(worker.worker), 1);
    assert_int_equal(card("running"), 0);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=released"), 1);
    assert_true((double)hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule a") ==
                due);
    assert_null(strstr(record_of("a"), "attempts"));
    atomic_store(&worker.gate, true);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(atomic_load(&worker.asked_to_stop));
}

static void a_burst_ends_when_nothing_is_left(void **state)
{
    (void)state;
    put("a", "ok", 0);
    put("b", "ok", -300);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .burst = true}, 0);
    EVENTUALLY(15000, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 2);
    assert_int_equal(jobs_left(), 0);
}

/* ---- leases ---- */

static void a_long_job_keeps_its_lock(void **state)
{
    (void)state;
    put("a", "gate", 0);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 3000}, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    ALWAYS(6500, hf_fixture_number(&queue.redis, "PTTL hf:{q}:lock:a") > 0);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_lock_that_is_taken_away_is_told_once_and_finishes_nothing(void **state)
{
    (void)state;
    put("a", "deaf", 0);
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 4000}, 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_fixture_command(&queue.redis, "SET hf:{q}:lock:a other:1 PX 60000");
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=lost") == 1);
    EVENTUALLY(15000,
               atomic_load(&worker.asked_to_stop)); /* the handler looks by itself */
    assert_int_equal(jobs_left(), 1);
    atomic_store(&worker.gate, true); /* its verdict is refused; then it is taken over */
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 1);
    assert_int_equal(atomic_load(&worker.started), 2);
}

static void an_isolated_job_runs_alone(void **state)
{
    (void)state;
    char id[16];
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "g%d", i);
        put(id, "ok", 0);
    }
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000}, 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 8);
    hf_fixture_command(&queue.redis, "HSET hf:{q}:crashes s 2");
    hf_fixture_command(&queue.redis, "HSET hf:{q}:meta uses m");
    put("s", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.inside) == 1);
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "h%d", i);
        put(id, "ok", 0);
    }
    ALWAYS(300, atomic_load(&worker.started) == 9);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, hf_queue_fixture_meta(&queue, "done") == 17);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_queue_fixture_audit(&queue, true);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(large_jobs_that_failed_go_back_a_few_at_a_time),
        CASE(jobs_run_and_are_removed),
        CASE(as_many_run_at_once_as_there_are_slots),
        CASE(a_failing_job_is_retried_after_its_backoff_and_dies),
        CASE(a_handler_can_end_a_job_at_once),
        CASE(a_type_without_a_handler_goes_back_without_an_attempt),
        CASE(a_handler_that_overruns_is_asked_to_stop_and_its_job_retried),
        CASE(a_verdict_whose_answer_is_lost_is_sent_again),
        CASE(a_verdict_that_never_arrived_is_sent_again),
        CASE(a_claim_whose_answer_is_lost_is_given_back_and_counts_nothing),
        CASE(a_claim_held_back_until_after_the_reconnect_locks_nothing_for_long),
        CASE(a_delayed_job_wakes_an_idle_worker_in_time_and_not_before),
        CASE(a_full_worker_leaves_a_due_job_to_another),
        CASE(work_in_one_queue_does_not_delay_what_is_due_in_another),
        CASE(resuming_and_raising_a_limit_wake_a_worker),
        CASE(jobs_that_a_claim_buries_are_told),
        CASE(a_stop_releases_what_has_not_returned_and_counts_nothing),
        CASE(a_burst_ends_when_nothing_is_left),
        CASE(a_long_job_keeps_its_lock),
        CASE(a_lock_that_is_taken_away_is_told_once_and_finishes_nothing),
        CASE(an_isolated_job_runs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
