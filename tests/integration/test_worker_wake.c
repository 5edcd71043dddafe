/* test_worker_wake.c - due jobs are claimed at their time: no baton and no timer is
 * forgotten, and no worker keeps a baton that it cannot use.
 *
 * The leases are long, so a worker that has forgotten a time finds it again only by its
 * check, seconds later; the tests do not wait so long. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 60000, SOON_MS = 3000 };

static const hf_worker_opts patient = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS};

static hf_queue_fixture queue;
static hf_proxy proxy;
static hf_worker_fixture worker, other;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    hf_proxy_start(&proxy, queue.redis.socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_proxy_let_go(&proxy);
    hf_worker_fixture_end(&worker);
    hf_worker_fixture_end(&other);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&queue);
    return 0;
}

static long long batons(void)
{
    return hf_fixture_number(&queue.redis, "ZCARD hf:{q}:wake");
}

/* This many workers have nothing to do, and wait for a baton. */
static bool waiting(int n)
{
    char line[32];
    (void)snprintf(line, sizeof line, "\nblocked_clients:%d\r", n);
    return strstr(hf_fixture_command(&queue.redis, "INFO clients"), line) != NULL;
}

static void start_idle(hf_worker_fixture *fixture, const char *url, int idle_before)
{
    hf_worker_fixture_start(fixture, url, &patient, 0);
    EVENTUALLY(15000, waiting(idle_before + 1));
}

static void stop(hf_worker_fixture *fixture)
{
    assert_int_equal(hf_worker_fixture_stop(fixture), HF_OK);
}

/* ---- what comes while a claim is under way ---- */

/* Both connections answer in any order: here the baton that a claim has put, popped at
 * once, is known before the claim's own answer. */
static void a_time_that_is_heard_of_before_the_claims_answer_is_kept(void **state)
{
    (void)state;
    start_idle(&worker, proxy.url, 0);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    int64_t now = hf_queue_fixture_now(&queue);
    hf_queue_fixture_put(&queue, "second", "ok", now + 700);
    hf_queue_fixture_put(&queue, "first", "ok", now + 300);
    EVENTUALLY(3000, hf_proxy_kept(&proxy) == 1);
    EVENTUALLY(3000, batons() == 0);
    ALWAYS(50, atomic_load(&worker.started) == 0);
    hf_proxy_let_go(&proxy);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    stop(&worker);
}

/* The claim finds nothing, and before that is known here there is something again. */
static void a_baton_that_is_due_during_a_claim_leads_to_one_more(void **state)
{
    (void)state;
    start_idle(&worker, proxy.url, 0);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    hf_queue_fixture_put(&queue, "deleted", "ok", hf_queue_fixture_now(&queue) + 300);
    hf_fixture_command(&queue.redis, "ZREM hf:{q}:schedule deleted");
    hf_fixture_command(&queue.redis, "HDEL hf:{q}:jobs deleted");
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    hf_queue_fixture_put(&queue, "next", "ok", 0);
    EVENTUALLY(3000, batons() == 0);
    ALWAYS(50, atomic_load(&worker.started) == 0);
    hf_proxy_let_go(&proxy);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    stop(&worker);
}

/* A worker of the queues q and other that runs one job at a time. */
static void start_with_one_slot(void)
{
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "other"}};
    const hf_worker_opts one = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                .concurrency = 1, .lease_ms = LONG_MS};
    hf_worker_fixture_start(&worker, queue.redis.url, &one, 0);
    EVENTUALLY(15000, waiting(1));
}

static void put_to_other(const char *id, int64_t due_ms)
{
    const hf_queue q = queue.queue;
    assert_int_equal(hf_queue_init(&queue.queue, q.ns, "other"), HF_OK);
    hf_queue_fixture_put(&queue, id, "gate", due_ms);
    queue.queue = q;
}

/* ---- who cannot use a baton ---- */

static void a_full_worker_gives_back_the_baton_whose_time_has_come(void **state)
{
    enum { DUE_MS = 5000 }; /* by then it is full, also on a busy machine */
    (void)state;
    start_with_one_slot();
    const int64_t due = hf_queue_fixture_now(&queue) + DUE_MS;
    hf_queue_fixture_put(&queue, "late", "ok", due);
    EVENTUALLY(15000, batons() == 0);
    put_to_other("long", 0);
    EVENTUALLY(3000, atomic_load(&worker.started) == 1);
    EVENTUALLY(15000, hf_queue_fixture_now(&queue) >= due);
    EVENTUALLY(SOON_MS, batons() == 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    stop(&worker);
}

/* Of a worker that does not wait now. */
static void break_waiting_connection(void)
{
    const char *cmd =
        strstr(hf_fixture_command(&queue.redis, "CLIENT LIST"), "cmd=bzpopmin");
    const char *at = cmd;
    assert_non_null(cmd);
    while (strncmp(at, " addr=", 6) != 0)
        at--;
    while (strncmp(at, "id=", 3) != 0)
        at--;
    hf_fixture_command(&queue.redis, "CLIENT KILL ID %lld", strtoll(at + 3, NULL, 10));
}

/* It has a time, is full, and then may have lost another baton, too. */
static void a_full_worker_in_doubt_gives_back_the_baton_whose_time_has_come(void **state)
{
    enum { DUE_MS = 5000 };
    (void)state;
    start_with_one_slot();
    int64_t due = hf_queue_fixture_now(&queue) + DUE_MS;
    hf_queue_fixture_put(&queue, "late", "ok", due);
    EVENTUALLY(15000, batons() == 0);
    put_to_other("long", 0);
    EVENTUALLY(3000, atomic_load(&worker.started) == 1 && waiting(0));
    break_waiting_connection();
    EVENTUALLY(SOON_MS, hf_worker_fixture_said(&worker, "the waiting connection") == 1);
    EVENTUALLY(15000, hf_queue_fixture_now(&queue) >= due);
    EVENTUALLY(1000, batons() == 1); /* its next check comes later */
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    stop(&worker);
}

/* It keeps the times of both queues, and the job of one takes the only slot. */
static void a_worker_with_two_due_queues_and_one_slot_gives_one_back(void **state)
{
    enum { DUE_MS = 1000 };
    (void)state;
    start_with_one_slot();
    const int64_t due_ms = hf_queue_fixture_now(&queue) + DUE_MS;
    hf_queue_fixture_put(&queue, "a", "gate", due_ms);
    put_to_other("b", due_ms);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    EVENTUALLY(SOON_MS,
               batons() + hf_fixture_number(&queue.redis, "ZCARD hf:{other}:wake") == 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    stop(&worker);
}

static void a_quiet_worker_leaves_what_comes_to_others(void **state)
{
    (void)state;
    start_idle(&worker, queue.redis.url, 0); /* it waits longest, so it would be served */
    start_idle(&other, queue.redis.url, 1);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "quiet") == 1);
    for (int i = 0; i < 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(SOON_MS, atomic_load(&other.returned) == i + 1);
    }
    stop(&worker);
    stop(&other);
}

static void a_worker_that_becomes_quiet_gives_back_its_baton(void **state)
{
    (void)state;
    start_idle(&worker, queue.redis.url, 0);
    hf_queue_fixture_put(&queue, "late", "ok", hf_queue_fixture_now(&queue) + LONG_MS);
    EVENTUALLY(15000, batons() == 0);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(SOON_MS, batons() == 1);
    stop(&worker);
}

static void a_worker_that_stops_gives_back_its_baton(void **state)
{
    (void)state;
    start_idle(&worker, queue.redis.url, 0);
    hf_queue_fixture_put(&queue, "late", "ok", hf_queue_fixture_now(&queue) + LONG_MS);
    EVENTUALLY(15000,
               batons() == 0 && waiting(1)); /* it has its timer, and waits again */
    stop(&worker);
    assert_int_equal(batons(), 1);
}

/* ---- what is lost ---- */

static void after_its_waiting_connection_broke_a_worker_claims_once(void **state)
{
    (void)state;
    start_idle(&worker, proxy.url, 0);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{/}:workers") == 1);
    /* Its baton is popped, and does not arrive; unless something else was answered in
     * this very moment, and was cut instead. */
    for (unsigned i = 1; hf_worker_fixture_said(&worker, "the waiting connection") == 0;
         i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%u", i);
        EVENTUALLY(15000, waiting(1));
        hf_proxy_cut_after(&proxy, PROXY_ANSWERS, 1);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(15000, hf_proxy_cuts(&proxy) == i);
        EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == (int)i);
    }
    stop(&worker);
}

/* The promise is there, and whoever gave it is dead. */
static void the_check_finds_a_missed_wake_up(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, waiting(1));
    long long now = (long long)hf_queue_fixture_now(&queue);
    hf_fixture_command(&queue.redis, "HSET hf:{q}:jobs a %s",
                       "{\"v\":1,\"type\":\"t\",\"created\":1}\nok");
    hf_fixture_command(&queue.redis, "HSET hf:{q}:meta next_wake %lld", now);
    hf_fixture_command(&queue.redis, "ZADD hf:{q}:schedule %lld a", now);
    EVENTUALLY(15000, atomic_load(&worker.returned) == 1);
    stop(&worker);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_time_that_is_heard_of_before_the_claims_answer_is_kept),
        CASE(a_baton_that_is_due_during_a_claim_leads_to_one_more),
        CASE(a_full_worker_gives_back_the_baton_whose_time_has_come),
        CASE(a_full_worker_in_doubt_gives_back_the_baton_whose_time_has_come),
        CASE(a_worker_with_two_due_queues_and_one_slot_gives_one_back),
        CASE(a_quiet_worker_leaves_what_comes_to_others),
        CASE(a_worker_that_becomes_quiet_gives_back_its_baton),
        CASE(a_worker_that_stops_gives_back_its_baton),
        CASE(after_its_waiting_connection_broke_a_worker_claims_once),
        CASE(the_check_finds_a_missed_wake_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
