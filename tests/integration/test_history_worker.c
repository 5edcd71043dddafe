/* test_history_worker.c - when a worker sends its history, and when it gives up on it.
 * The boot clock of this program can be set forward, and what it writes is looked at. */
#define _GNU_SOURCE /* syscall() */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

/* The lease is long: a run that is lost would run again. */
enum { SOON_MS = 30000, MINUTE_MS = 60000, LEASE_MS = 120000, QUEUES = 16 };

static hf_queue_fixture fixture;
static hf_fixture *const redis = &fixture.redis;
static hf_worker_fixture worker;
static hf_proxy proxy;

/* ---- what stands before libc ---- */

static atomic_llong ahead_ms; /* CLOCK_BOOTTIME, in this program */
static atomic_int pasts, together;

int clock_gettime(clockid_t id, struct timespec *t)
{
    const int result = (int)syscall(SYS_clock_gettime, id, t);
    if (result == 0 && id == CLOCK_BOOTTIME)
        t->tv_sec += atomic_load(&ahead_ms) / 1000;
    return result;
}

static void look_at(const void *bytes, size_t len)
{
    const char *past = hf_lua_queue_past.sha1;
    if (memmem(bytes, len, past, strlen(past)) == NULL)
        return;
    atomic_fetch_add(&pasts, 1);
    if (memmem(bytes, len, hf_lua_queue_claim.sha1, strlen(past)) != NULL)
        atomic_fetch_add(&together, 1);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    look_at(bytes, len);
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    look_at(bytes, len);
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

/* ---- ---- */

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.clock = true});
    hf_proxy_start(&proxy, redis->socket);
    atomic_store(&ahead_ms, 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

static long long counter(const char *name)
{
    return hf_fixture_number(redis, "HGET hf:{q}:meta %s", name);
}

static void put(unsigned from, unsigned n, const char *payload)
{
    for (unsigned i = from; i < from + n; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%u", i);
        hf_queue_fixture_put(&fixture, id, payload, 0);
    }
}

static void start(const char *url)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3,
                                 .lease_ms = LEASE_MS};
    hf_worker_fixture_start(&worker, url, &opts, 0);
}

/* Ended attempts that the history has. */
static long long told(void)
{
    return hf_fixture_number(redis, "EVAL %s 0",
                             "local n = 0 for _, key in ipairs(redis.call('KEYS', "
                             "'hf:{q*}:past:[0-9]*')) do n = n + "
                             "(string.match(redis.call('HGET', key, 't') or '', "
                             "'d=(%d+)') or 0) end return n");
}

/* ---- never in a claim's turn ---- */

static void use_queue(unsigned i)
{
    char name[16];
    (void)snprintf(name, sizeof name, i == 0 ? "q" : "q%u", i);
    assert_int_equal(hf_queue_init(&fixture.queue, "hf", name), HF_OK);
}

static long long done_of_all(void)
{
    return hf_fixture_number(redis, "EVAL %s 0",
                             "local n = 0 for _, key in ipairs(redis.call('KEYS', "
                             "'hf:*:meta')) do n = n + (redis.call('HGET', key, 'done') "
                             "or 0) end return n");
}

/* It runs one job at a time. */
static void start_queues(const char *url)
{
    static char names[QUEUES][16];
    hf_worker_queue queues[QUEUES];
    for (unsigned i = 0; i < QUEUES; i++) {
        (void)snprintf(names[i], sizeof names[i], i == 0 ? "q" : "q%u", i);
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i]};
    }
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues,
                                 .n_queues = QUEUES, .concurrency = 1,
                                 .lease_ms = LEASE_MS};
    atomic_store(&pasts, 0);
    atomic_store(&together, 0);
    hf_worker_fixture_start(&worker, url, &opts, 0);
}

static void put_into_each(unsigned n)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        use_queue(i);
        put(n + i, 1, "ok");
    }
    use_queue(0);
}

/* Most turns have a claim while the queues send. */
static void it_is_never_sent_in_the_turn_of_a_claim(void **state)
{
    (void)state;
    start_queues(redis->url);
    unsigned n = 0;
    const uint64_t until_ms = hf_test_fair_ms() + SOON_MS;
    while (atomic_load(&pasts) < QUEUES) {
        assert_true(hf_test_fair_ms() < until_ms);
        put_into_each(n);
        n += QUEUES;
        EVENTUALLY(SOON_MS, done_of_all() >= (long long)n - 2 * QUEUES);
    }
    EVENTUALLY(SOON_MS, done_of_all() == n);
    assert_int_equal(atomic_load(&together), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    EVENTUALLY(SOON_MS, told() == n);
}

/* ---- at the end ---- */

/* No queue waits for the answer of another one: there is half a second for all. */
static void at_the_end_all_queues_are_sent_at_once(void **state)
{
    (void)state;
    start_queues(proxy.url);
    put_into_each(0);
    EVENTUALLY(SOON_MS, done_of_all() == QUEUES);
    (void)hf_fixture_command(redis, "SCRIPT LOAD %s", hf_lua_queue_past.text);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_past.sha1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    EVENTUALLY(SOON_MS, told() == QUEUES);
    assert_int_equal(hf_worker_fixture_said(&worker, "the history may lack what Redis "
                                                     "did not confirm attempts="),
                     1);
    hf_proxy_let_go(&proxy);
}

/* ---- Redis is away ---- */

static int64_t over_ms; /* the end of the last minute in which jobs ended */

/* Attempts of which the worker knows that they ended: Redis counts them before. */
static long long known(void)
{
    char *text;
    size_t len;
    assert_int_equal(hf_worker_metrics(worker.worker, HF_METRICS_PROMETHEUS, &text, &len),
                     HF_OK);
    const char *count = strstr(text, "\nholdfast_job_run_seconds_count{");
    const long long n = count == NULL ? 0 : strtoll(strstr(count, "} ") + 2, NULL, 10);
    free(text);
    return n;
}

/* The loop of the worker has turned: what was due is done. */
static void let_it_turn(void)
{
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3, .lease_ms = LEASE_MS};
    hf_worker_fixture_fill(&worker, proxy.url, &opts);
    for (int i = 0; i < 2; i++) {
        const uint64_t before = hf_worker_reloads(worker.worker);
        assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                         HF_OK);
        EVENTUALLY(SOON_MS, hf_worker_reloads(worker.worker) > before);
    }
}

/* Runs jobs, and loses Redis before their minute is over, so the history lacks them. If
 * the machine is too slow for that the history gets them, and others are run. Returns how
 * many attempts the history has. */
static unsigned lose_redis(unsigned jobs)
{
    unsigned n = 1;
    start(proxy.url);
    put(1000, 1, "ok");
    EVENTUALLY(SOON_MS, told() == n);
    for (;; n += jobs) {
        const int64_t in_minute_ms = hf_queue_fixture_now(&fixture) % MINUTE_MS;
        hf_fixture_clock_jump(redis, (2 * MINUTE_MS - 10000 - in_minute_ms) % MINUTE_MS);
        over_ms = (hf_queue_fixture_now(&fixture) / MINUTE_MS + 1) * MINUTE_MS;
        put(n, jobs, "ok");
        EVENTUALLY(SOON_MS, known() == n + jobs);
        hf_proxy_refuse(&proxy, true);
        hf_proxy_close_all(&proxy);
        if (hf_queue_fixture_now(&fixture) < over_ms)
            break;
        hf_proxy_refuse(&proxy, false);
        EVENTUALLY(SOON_MS, told() == n + jobs);
    }
    EVENTUALLY(SOON_MS, hf_worker_fixture_said(&worker, "Redis is away") > 0);
    return n;
}

static void what_is_older_than_ten_minutes_is_dropped_and_counted(void **state)
{
    (void)state;
    const unsigned before = lose_redis(5);
    EVENTUALLY(SOON_MS, hf_queue_fixture_now(&fixture) > over_ms + 6000);
    let_it_turn(); /* the minute is closed */
    atomic_fetch_add(&ahead_ms, 9 * MINUTE_MS);
    EVENTUALLY(SOON_MS, hf_queue_fixture_now(&fixture) > over_ms + 9000);
    assert_int_equal(hf_worker_fixture_said(&worker, "the history lacks"), 0);
    atomic_fetch_add(&ahead_ms, MINUTE_MS);
    EVENTUALLY(SOON_MS,
               hf_worker_fixture_said(&worker, "the history lacks what Redis did not "
                                               "take attempts=5") == 1);
    hf_proxy_refuse(&proxy, false);
    EVENTUALLY(SOON_MS, hf_worker_fixture_said(&worker, "Redis is back") > 0);
    put(100, 3, "ok");
    EVENTUALLY(SOON_MS, counter("done") == before + 5 + 3);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(told(), before + 3); /* and no counter lost anything */
}

static void of_a_removed_queue_it_waits_for_seconds(void **state)
{
    const hf_worker_queue other = {HF_WORKER_QUEUE_INIT, .name = "other"};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3, .lease_ms = LEASE_MS,
                           .queues = &other, .n_queues = 1};
    (void)state;
    (void)lose_redis(5);
    const uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, proxy.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(SOON_MS, hf_worker_reloads(worker.worker) > before);
    EVENTUALLY(SOON_MS,
               hf_worker_fixture_said(&worker, "the history lacks what Redis did not "
                                               "take attempts=5") == 1);
    hf_proxy_refuse(&proxy, false);
}

/* A job of it ends long after the reload: it is sent. */
static void of_a_removed_queue_what_ends_later_is_sent(void **state)
{
    const hf_worker_queue other = {HF_WORKER_QUEUE_INIT, .name = "other"};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3, .lease_ms = LEASE_MS,
                           .queues = &other, .n_queues = 1};
    (void)state;
    start(redis->url);
    put(0, 1, "gate");
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == 1);
    const uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, redis->url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(SOON_MS, hf_worker_reloads(worker.worker) > before);
    const int64_t reloaded_ms = hf_queue_fixture_now(&fixture);
    EVENTUALLY(SOON_MS, hf_queue_fixture_now(&fixture) > reloaded_ms + 6000);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, told() == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "the history lacks"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_is_never_sent_in_the_turn_of_a_claim),
        CASE(at_the_end_all_queues_are_sent_at_once),
        CASE(what_is_older_than_ten_minutes_is_dropped_and_counted),
        CASE(of_a_removed_queue_it_waits_for_seconds),
        CASE(of_a_removed_queue_what_ends_later_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
