/* test_lock_red_random.c - servers of a RedLock are killed, started again with their
 * data, and stopped for a while, by chance: two clients never believe at one time that
 * they hold it, and both get it again when that is over.
 *
 * Each client notes the time in which it believed that it held the lock: from the return
 * of the acquisition to the last moment at which a call confirmed it. HF_SEED repeats a
 * run. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/support/seed.h"
#include "tests/support/set_fixture.h"

enum { N = 3, CLIENTS = 3, RUN_MS = 5000, LEASE_MS = 700, BELIEFS_MAX = 4096 };

typedef struct belief {
    uint64_t from_ns, to_ns;
    size_t client;
} belief;

typedef struct client {
    size_t number;
    hf_rng rng;
    pthread_t thread;
} client;

static hf_set_fixture fixture;
static uint64_t seed;
static atomic_bool over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static belief beliefs[BELIEFS_MAX];
static size_t n_beliefs;
static atomic_uint lost;

static int up(void **state)
{
    (void)state;
    seed = hf_test_seed();
    hf_set_fixture_up(&fixture, N, true);
    hf_set_fixture_begin(&fixture);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_set_fixture_down(&fixture);
    return 0;
}

static hf_err take(hf_lock_servers *servers, int64_t wait_ms, hf_lock_set **out)
{
    char detail[HF_DETAIL_SIZE];
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .name = "n", .wait_ms = wait_ms,
                                  .lease_ms = LEASE_MS, .node_timeout_ms = LEASE_MS / 4};
    return hf_redlock_acquire_wait(servers, &opts, out, detail);
}

static void believe(const hf_lock_set *set, size_t number, uint32_t ms)
{
    belief b = {.from_ns = hf_boot_ns(), .client = number};
    for (uint64_t now_ns = b.from_ns; now_ns < b.from_ns + ms * HF_MS_NS && !over;
         now_ns = hf_boot_ns()) {
        if (!hf_lock_set_held(set)) {
            atomic_fetch_add(&lost, 1);
            break;
        }
        b.to_ns = now_ns; /* it was asked after that, and lost is for ever */
        hf_test_pause_ms(1);
    }
    pthread_mutex_lock(&lock);
    if (b.to_ns != 0 && n_beliefs < BELIEFS_MAX)
        beliefs[n_beliefs++] = b;
    pthread_mutex_unlock(&lock);
}

static size_t count(void)
{
    pthread_mutex_lock(&lock);
    size_t n = n_beliefs;
    pthread_mutex_unlock(&lock);
    return n;
}

static void *run_client(void *arg)
{
    client *c = arg;
    hf_lock_servers *servers;
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.request_timeout_ms = 300)};
    if (hf_lock_servers_open(&servers, fixture.urls, N, &opts, NULL) != HF_OK)
        return (void *)"no client";
    while (!over) {
        hf_lock_set *set;
        if (take(servers, 300, &set) != HF_OK)
            continue;
        believe(set, c->number, 1 + (uint32_t)(hf_rng_next(&c->rng) % 1500));
        (void)hf_lock_set_release_wait(set, NULL);
    }
    hf_lock_servers_close(servers, NULL, NULL);
    return NULL;
}

/* One server or two stand still, or one dies and comes back with what it had. */
static void disturb(hf_rng *rng)
{
    uint64_t end_ms = hf_test_now_ms() + RUN_MS;
    while (hf_test_now_ms() < end_ms) {
        size_t one = hf_rng_next(rng) % N, other = (one + hf_rng_next(rng) % N) % N;
        unsigned ms = 1 + (unsigned)(hf_rng_next(rng) % (LEASE_MS * 3 / 2));
        if (hf_rng_next(rng) % 3 != 0) {
            hf_fixture_signal(&fixture.redis[one], SIGSTOP);
            hf_fixture_signal(&fixture.redis[other], SIGSTOP);
            hf_test_pause_ms(ms);
            hf_fixture_signal(&fixture.redis[other], SIGCONT);
            hf_fixture_signal(&fixture.redis[one], SIGCONT);
        } else {
            hf_fixture_kill(&fixture.redis[one], SIGKILL);
            hf_test_pause_ms(ms / 2);
            hf_fixture_restart(&fixture.redis[one]);
        }
        hf_test_pause_ms((unsigned)(hf_rng_next(rng) % 300));
    }
}

static int by_beginning(const void *a, const void *b)
{
    const belief *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static void p1_two_never_hold_together(void **state)
{
    client clients[CLIENTS];
    hf_rng rng = {.state = seed};
    (void)state;
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.number = i, .rng = {.state = seed + 1 + i}};
        assert_int_equal(
            pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    disturb(&rng);
    size_t before = count();
    EVENTUALLY(60000, count() >= before + CLIENTS); /* it goes on */
    atomic_store(&over, true);
    for (size_t i = 0; i < CLIENTS; i++) {
        void *why;
        assert_int_equal(pthread_join(clients[i].thread, &why), 0);
        assert_null(why);
    }
    qsort(beliefs, n_beliefs, sizeof beliefs[0], by_beginning);
    for (size_t i = 1; i < n_beliefs; i++)
        if (beliefs[i].from_ns <= beliefs[i - 1].to_ns)
            fail_msg("%zu held it until %" PRIu64 ", and %zu from %" PRIu64,
                     beliefs[i - 1].client, beliefs[i - 1].to_ns, beliefs[i].client,
                     beliefs[i].from_ns);
    print_message("held %zu times, lost %u times\n", n_beliefs, lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(p1_two_never_hold_together)};
    return cmocka_run_group_tests(tests, up, down);
}
