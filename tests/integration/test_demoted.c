/* test_demoted.c - a primary becomes a replica while clients are connected to it through
 * an address that from then on, or soon, leads to the new primary. Their connections stay
 * open. Everything that works with Redis works again within 2 s of the address leading to
 * a primary. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/worker_fixture.h"

enum {
    LONG_MS = 30000,
    WITHIN_MS = 2000,
    LATE_MS = 1500,    /* after so long the address moves */
    TRIES_MAX = 40,    /* connections until then, of five clients */
    WORKER_MS = 20000, /* a lease with which no periodic check or renewal comes in time */
    LEASE_MS = 6000
};

static hf_lock_fixture fixture; /* its server is the old primary */
static hf_fixture *const old = &fixture.redis;
static hf_fixture new;
static hf_proxy address;
static hf_producer *producer;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];
static atomic_int accepted;

static bool is_in_step(void)
{
    return strstr(hf_fixture_command(&new, "INFO replication"),
                  "master_link_status:up") != NULL;
}

static int up(void **state)
{
    static char port[8];
    (void)state;
    hf_fixture_start(old, &(hf_fixture_options){
                              .tcp = true, .args = {"--repl-diskless-sync-delay", "0"}});
    (void)snprintf(port, sizeof port, "%u", (unsigned)old->port);
    hf_fixture_start(
        &new, &(hf_fixture_options){.tcp = true,
                                    .args = {"--replicaof", "127.0.0.1", port, NULL}});
    hf_proxy_start(&address, old->socket);
    EVENTUALLY(LONG_MS, is_in_step());
    atomic_store(&accepted, 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    hf_proxy_stop(&address);
    hf_fixture_stop(&new);
    hf_fixture_stop(old);
    return 0;
}

static void open_producer(void)
{
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = address.tcp_url),
                                   .deadline_ms = LONG_MS};
    if (hf_producer_open(&producer, &opts, detail) != HF_OK)
        fail_msg("%s", detail);
}

static void start_worker(uint32_t lease_ms)
{
    hf_worker_fixture_start(&worker, address.tcp_url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = lease_ms},
                            0);
}

static void on_accepted(const hf_enqueue_result *result, const char *why, void *arg)
{
    (void)why, (void)arg;
    if (result->err == HF_OK)
        atomic_fetch_add(&accepted, 1);
}

static void put(const char *id, const char *payload)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q",       .type = "t",
                        .id = id,    .payload = payload, .payload_len = strlen(payload)};
    assert_int_equal(hf_enqueue(producer, &job, on_accepted, NULL, NULL), HF_OK);
}

/* On the server: what both have seen of it may differ. */
static long long done(hf_fixture *server)
{
    long long n = hf_fixture_number(server, "HGET hf:{q}:meta done");
    return n < 0 ? 0 : n;
}

/* All that the old primary has accepted is known to the new one; then they change roles.
 */
static void fail_over(void)
{
    assert_string_equal(hf_fixture_command(old, "SET written last"), "OK");
    assert_int_equal(hf_fixture_number(old, "WAIT 1 %d", LONG_MS), 1);
    assert_string_equal(hf_fixture_command(&new, "REPLICAOF NO ONE"), "OK");
    (void)hf_fixture_command(old, "REPLICAOF 127.0.0.1 %u", (unsigned)new.port);
}

static uint64_t move_address(void)
{
    hf_proxy_move(&address, new.socket);
    return hf_test_fair_ms();
}

static void tell_how_long(const char *what, uint64_t since_ms)
{
    uint64_t took = hf_test_fair_ms() - since_ms;
    print_message("%s after %d ms\n", what, (int)took);
    assert_true(took <= WITHIN_MS);
}

/* Both idle: nothing but this job tells them. */
static void a_worker_and_a_producer_follow_the_address(void **state)
{
    (void)state;
    open_producer();
    start_worker(WORKER_MS);
    put("first", "ok");
    EVENTUALLY(LONG_MS, done(old) == 1);
    fail_over();
    uint64_t moved_ms = move_address();
    put("second", "ok");
    EVENTUALLY(LONG_MS, atomic_load(&accepted) == 2);
    tell_how_long("accepted", moved_ms);
    EVENTUALLY(LONG_MS, done(&new) == 2);
    tell_how_long("run", moved_ms);
}

/* Until then they find a replica, and do not ask it again and again. */
static void they_follow_an_address_that_moves_later(void **state)
{
    (void)state;
    open_producer();
    start_worker(WORKER_MS);
    put("first", "ok");
    EVENTUALLY(LONG_MS, done(old) == 1 && atomic_load(&accepted) == 1);
    fail_over();
    unsigned before = hf_proxy_connections(&address);
    put("second", "ok");
    ALWAYS(LATE_MS, atomic_load(&accepted) == 1);
    unsigned tries = hf_proxy_connections(&address) - before;
    print_message("%u connections in %d ms\n", tries, LATE_MS);
    assert_in_range(tries, 4, TRIES_MAX);
    uint64_t moved_ms = move_address();
    EVENTUALLY(LONG_MS, atomic_load(&accepted) == 2);
    tell_how_long("accepted", moved_ms);
    EVENTUALLY(LONG_MS, done(&new) == 2);
    tell_how_long("run", moved_ms);
    assert_int_equal(hf_worker_fixture_said(&worker, "error Redis is away"), 1);
}

/* Its verdict is the first thing that it sends after the failover. */
static void a_job_that_ran_meanwhile_is_renewed_and_finished(void **state)
{
    (void)state;
    open_producer();
    start_worker(LEASE_MS);
    put("a", "gate");
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    fail_over();
    (void)move_address();
    ALWAYS(LEASE_MS * 3 / 2, hf_worker_fixture_said(&worker, "outcome=lost") == 0);
    assert_int_equal(hf_fixture_number(&new, "EXISTS hf:{q}:lock:a"), 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, done(&new) == 1);
    assert_int_equal(atomic_load(&worker.started), 1);
}

/* ---- locks ---- */

static void a_client_of_locks_follows_the_address(void **state)
{
    (void)state;
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, address.tcp_url);
    hf_lock *held = hf_lock_must(&fixture, locks, "kept",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS});
    fail_over();
    uint64_t moved_ms = move_address();
    hf_lock *lock = hf_lock_must(&fixture, locks, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
    tell_how_long("taken", moved_ms);
    ALWAYS(LEASE_MS * 3 / 2, hf_lock_held(held));
    hf_lock_released(lock);
    hf_lock_released(held);
    hf_lock_client_close(locks, NULL, NULL);
}

static void a_lock_that_waits_hears_of_its_grant_there(void **state)
{
    (void)state;
    hf_lock_waiter waiter;
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, address.tcp_url);
    hf_lock_client *others = hf_lock_fixture_open(&fixture, address.tcp_url);
    hf_lock *lock = hf_lock_must(
        &fixture, locks, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = WORKER_MS});
    hf_lock_wait_begin(&waiter, &fixture, others, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = WORKER_MS});
    /* that of the holder, and that of the waiter */
    EVENTUALLY(LONG_MS, strstr(hf_fixture_command(old, "INFO clients"),
                               "blocked_clients:2") != NULL);
    fail_over();
    uint64_t moved_ms = move_address();
    hf_lock_released(lock);
    EVENTUALLY(LONG_MS, atomic_load(&waiter.done));
    tell_how_long("granted", moved_ms);
    hf_lock_wait_end(&waiter);
    assert_int_equal(waiter.err, HF_OK);
    hf_lock_released(waiter.lock);
    hf_lock_client_close(locks, NULL, NULL);
    hf_lock_client_close(others, NULL, NULL);
}

/* ---- commands ---- */

/* What only reads is answered by a replica; what writes is refused, and then finds the
 * primary. */
static void an_administrator_reads_there_and_is_refused_once(void **state)
{
    (void)state;
    hf_admin *admin;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = address.tcp_url)};
    open_producer();
    put("a", "ok");
    EVENTUALLY(LONG_MS, atomic_load(&accepted) == 1);
    fail_over();
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    assert_string_equal(hf_admin_server(admin)->role, "slave");
    assert_int_equal(hf_admin_pause(admin, "q", true, detail), HF_READONLY);
    assert_non_null(strstr(detail, "READONLY"));
    (void)move_address();
    assert_int_equal(hf_admin_pause(admin, "q", true, detail), HF_OK);
    assert_string_equal(hf_admin_server(admin)->role, "master");
    hf_admin_close(admin);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_worker_and_a_producer_follow_the_address),
        CASE(they_follow_an_address_that_moves_later),
        CASE(a_job_that_ran_meanwhile_is_renewed_and_finished),
        CASE(a_client_of_locks_follows_the_address),
        CASE(a_lock_that_waits_hears_of_its_grant_there),
        CASE(an_administrator_reads_there_and_is_refused_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
