/* test_watchdog.c - the watchdog with a simulated renewal: when it renews, what it
 * believes, and which callbacks it calls. There is no Redis.
 * */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "lock/watchdog/lease_heap.h"
#include "lock/watchdog/watchdog.h"

enum {
    CALLS_MAX = 256,
    HELD_MAX = 512,
    LEASES_MAX = 2000,
    KICK_GROUP = 999,
    REQUEST_MS = 1000
};

typedef enum play { ANSWER, HOLD } play;

/* What the played renewal does, and what it has seen. */
static struct {
    pthread_mutex_t lock;
    play how;
    hf_err err, code;
    uint64_t sent_ns;  /* of the answers; 0: now */
    unsigned stall_ms; /* it takes so long, and the whole thread with it */
    hf_lease *leave;   /* its owner leaves it meanwhile; NULL: nobody */
    bool release;      /* what is held is answered by the next call */
    size_t n_calls;    /* without kicks */
    size_t disorder;   /* leases before those that were added before them, in one call */
    struct {
        uint64_t at_ns;
        size_t group, n;
        uint32_t timeout_ms;
    } calls[CALLS_MAX];
    size_t n_held;
    struct {
        hf_renew_batch *batch;
        uint64_t sent_ns;
    } held[HELD_MAX];
} fake;

/* What a lease's owner was told. */
typedef struct owner {
    hf_lease *lease;
    atomic_int renewed, lost, cancelled, suspect, left;
    atomic_bool block, blocked; /* its callback waits while `block` */
    atomic_bool dropped;        /* nothing may come from now on */
} owner;

static hf_watchdog *watchdog;
static atomic_bool deaf; /* a test has failed: what its owners were is gone */

static void answer_all(hf_renew_batch *batch, hf_err err, hf_err code, uint64_t sent_ns)
{
    static hf_err codes[LEASES_MAX];
    HF_ASSERT(batch->n <= LEASES_MAX); /* cmocka's own is for the main thread */
    for (size_t i = 0; i < batch->n; i++)
        codes[i] = code;
    hf_watchdog_answer(batch, err, sent_ns, err == HF_OK ? codes : NULL, NULL);
}

static void renew(hf_renew_batch *batch, void *arg)
{
    (void)arg;
    uint64_t now_ns = hf_boot_ns();
    pthread_mutex_lock(&fake.lock);
    bool is_kick = batch->group == KICK_GROUP;
    if (!is_kick && fake.n_calls < CALLS_MAX) {
        fake.calls[fake.n_calls].at_ns = now_ns;
        fake.calls[fake.n_calls].group = batch->group;
        fake.calls[fake.n_calls].timeout_ms = batch->timeout_ms;
        fake.calls[fake.n_calls++].n = batch->n;
    }
    for (size_t i = 1; i < batch->n; i++)
        fake.disorder += batch->leases[i]->number < batch->leases[i - 1]->number;
    if (is_kick && fake.release) {
        for (size_t i = 0; i < fake.n_held; i++)
            answer_all(fake.held[i].batch, fake.err, fake.code, fake.held[i].sent_ns);
        fake.n_held = 0;
        fake.release = false;
    }
    hf_err err = fake.err, code = fake.code;
    uint64_t sent_ns = fake.sent_ns == 0 ? now_ns : fake.sent_ns;
    unsigned stall_ms = is_kick ? 0 : fake.stall_ms;
    hf_lease *leave = is_kick ? NULL : fake.leave;
    fake.leave = is_kick ? fake.leave : NULL;
    bool hold = !is_kick && fake.how == HOLD;
    if (hold) {
        HF_ASSERT(fake.n_held < HELD_MAX);
        fake.held[fake.n_held].batch = batch;
        fake.held[fake.n_held++].sent_ns = sent_ns;
    }
    pthread_mutex_unlock(&fake.lock);
    if (stall_ms > 0)
        hf_test_pause_ms(stall_ms);
    if (leave != NULL)
        HF_ASSERT(hf_watchdog_leave(watchdog, leave));
    if (is_kick)
        answer_all(batch, HF_CONN, HF_OK, now_ns);
    else if (!hold)
        answer_all(batch, err, code, sent_ns);
}

static void on_event(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    owner *o = user;
    (void)lease, (void)arg;
    if (atomic_load(&deaf))
        return;
    HF_ASSERT(!atomic_load(&o->dropped));
    atomic_fetch_add(event == HF_LEASE_RENEWED   ? &o->renewed
                     : event == HF_LEASE_LOST    ? &o->lost
                     : event == HF_LEASE_SUSPECT ? &o->suspect
                     : event == HF_LEASE_LEFT    ? &o->left
                                                 : &o->cancelled,
                     1);
    while (atomic_load(&o->block)) {
        atomic_store(&o->blocked, true);
        hf_test_pause_ms(1);
    }
    atomic_store(&o->blocked, false);
}

static int up(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    atomic_store(&deaf, false);
    pthread_mutex_init(&fake.lock, NULL);
    hf_watchdog_opts opts = {.request_timeout_ms = REQUEST_MS,
                             .renew = renew,
                             .suspects = true,
                             .on_event = on_event};
    assert_int_equal(hf_watchdog_start(&watchdog, &opts), HF_OK);
    return 0;
}

static bool releasing(void)
{
    pthread_mutex_lock(&fake.lock);
    bool is = fake.release;
    pthread_mutex_unlock(&fake.lock);
    return is;
}

/* Makes the watchdog's thread call renew() once, for what is to happen on that thread. */
static void kick(void)
{
    owner o = {.lost = 0};
    o.lease = hf_watchdog_add(watchdog, KICK_GROUP, 60000, hf_boot_ns(), true, &o);
    EVENTUALLY(15000, !releasing());
    hf_watchdog_drop(watchdog, o.lease);
}

/* Answers everything that is held. */
static void release_held(hf_err err, hf_err code)
{
    pthread_mutex_lock(&fake.lock);
    fake.err = err;
    fake.code = code;
    fake.release = true;
    pthread_mutex_unlock(&fake.lock);
    kick();
}

/* A test that failed in the middle has left leases. Its watchdog stays, and does nothing.
 */
static int down(void **state)
{
    (void)state;
    if (hf_watchdog_has_leases(watchdog)) {
        print_message("the test left leases\n");
        atomic_store(&deaf, true);
        return -1;
    }
    release_held(HF_UNSURE, HF_OK); /* as a client does when it is closed */
    hf_watchdog_stop(watchdog);
    pthread_mutex_destroy(&fake.lock);
    return 0;
}

static void set(play how, hf_err err, hf_err code)
{
    pthread_mutex_lock(&fake.lock);
    fake.how = how;
    fake.err = err;
    fake.code = code;
    pthread_mutex_unlock(&fake.lock);
}

static size_t calls(void)
{
    pthread_mutex_lock(&fake.lock);
    size_t n = fake.n_calls;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static unsigned gap_ms(size_t i)
{
    return (unsigned)((fake.calls[i].at_ns - fake.calls[i - 1].at_ns) / HF_MS_NS);
}

static void add(owner *o, uint32_t ttl_ms, bool renew_now)
{
    *o = (owner){.lease = NULL};
    o->lease = hf_watchdog_add(watchdog, 0, ttl_ms, hf_boot_ns(), renew_now, o);
    assert_non_null(o->lease);
}

static void drop(owner *o)
{
    hf_watchdog_drop(watchdog, o->lease);
    atomic_store(&o->dropped, true);
}

/* ---- deadlines ---- */

static void the_deadline_counts_from_the_sending_less_drift_and_margin(void **state)
{
    (void)state;
    static const struct {
        uint32_t ttl_ms, left_ms;
    } cases[] = {{10000, 10000 - 100 - 2 - 200},
                 {1000, 1000 - 10 - 2 - 50},
                 {3600000, 3600000 - 36000 - 2 - 72000},
                 {40, 0},
                 {1, 0}};
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        assert_int_equal(hf_lease_deadline(7 * HF_MS_NS, cases[i].ttl_ms),
                         (7 + cases[i].left_ms) * HF_MS_NS);
}

static void an_answer_moves_the_deadline_by_when_it_was_asked(void **state)
{
    (void)state;
    owner o;
    fake.sent_ns = hf_boot_ns() + 5 * HF_MS_NS; /* not the time of the answer */
    uint64_t expected = hf_lease_deadline(fake.sent_ns, 5000);
    add(&o, 5000, true);
    EVENTUALLY(15000, atomic_load(&o.renewed) == 1);
    assert_int_equal(hf_lease_deadline_ns(o.lease), expected);
    drop(&o);
}

static void an_older_answer_moves_it_not_back(void **state)
{
    (void)state;
    owner o;
    fake.sent_ns = hf_boot_ns() - 500 * HF_MS_NS;
    add(&o, 5000, true);
    uint64_t before = hf_lease_deadline_ns(o.lease);
    EVENTUALLY(15000, atomic_load(&o.renewed) == 1);
    assert_int_equal(hf_lease_deadline_ns(o.lease), before);
    assert_false(hf_lease_lost(o.lease));
    drop(&o);
}

static void a_lease_without_renewal_is_lost_at_its_deadline_and_for_ever(void **state)
{
    (void)state;
    owner o;
    set(HOLD, HF_OK, HF_OK);
    add(&o, 400, false);
    uint64_t deadline_ns = hf_lease_deadline_ns(o.lease);
    EVENTUALLY(15000, hf_lease_lost(o.lease));
    assert_true(hf_boot_ns() >= deadline_ns);
    EVENTUALLY(15000, atomic_load(&o.lost) == 1);
    assert_int_equal(hf_lease_deadline_ns(o.lease), 0);
    release_held(HF_OK, HF_OK); /* "held", says Redis, too late */
    ALWAYS(100, hf_lease_lost(o.lease) && atomic_load(&o.lost) == 1);
    assert_int_equal(atomic_load(&o.renewed), 0);
    assert_in_range(calls(), 0, 1); /* none, if this thread came too late */
    drop(&o);
}

static void an_answer_that_is_handled_after_the_deadline_is_not_believed(void **state)
{
    (void)state;
    owner o;
    fake.stall_ms = 500; /* the thread is stopped with a good answer in its hands */
    add(&o, 400, true);
    EVENTUALLY(15000, atomic_load(&o.lost) == 1);
    assert_int_equal(atomic_load(&o.renewed), 0);
    drop(&o);
}

static void a_lost_lease_never_comes_back(void **state)
{
    (void)state;
    enum { N = 200 };
    static owner owners[N];
    static bool was_lost[N];
    /* Held answers come at the very moment when the leases end. */
    set(HOLD, HF_OK, HF_OK);
    memset(was_lost, 0, sizeof was_lost);
    for (size_t i = 0; i < N; i++)
        add(&owners[i], 300, true);
    EVENTUALLY(15000, calls() > 0);
    uint64_t deadline_ns = hf_lease_deadline_ns(owners[N / 2].lease);
    while (hf_boot_ns() < deadline_ns)
        for (size_t i = 0; i < N; i++)
            was_lost[i] = hf_lease_lost(owners[i].lease);
    release_held(HF_OK, HF_OK);
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < N; i++) {
            bool lost = hf_lease_lost(owners[i].lease);
            assert_true(lost || !was_lost[i]);
            was_lost[i] = lost;
        }
    }
    for (size_t i = 0; i < N; i++)
        drop(&owners[i]);
}

static void a_lease_that_is_over_when_it_comes_is_told_lost(void **state)
{
    (void)state;
    owner o = {.lease = NULL};
    o.lease = hf_watchdog_add(watchdog, 0, 400, hf_boot_ns() - 500 * HF_MS_NS, false, &o);
    EVENTUALLY(15000, atomic_load(&o.lost) == 1);
    assert_int_equal(calls(), 0);
    drop(&o);
}

static void what_redis_calls_lost_is_lost_at_once(void **state)
{
    (void)state;
    owner o;
    set(ANSWER, HF_OK, HF_LOST);
    add(&o, 60000, true);
    EVENTUALLY(15000, atomic_load(&o.lost) == 1);
    assert_true(hf_lease_lost(o.lease));
    hf_watchdog_verify(watchdog);
    ALWAYS(50, calls() == 1 && atomic_load(&o.lost) == 1);
    drop(&o);
}

static void a_cancel_is_told_once_and_the_lease_is_kept(void **state)
{
    (void)state;
    owner o;
    set(ANSWER, HF_OK, HF_CANCEL);
    add(&o, 60000, true);
    for (int n = 1; n <= 4; n++) {
        EVENTUALLY(15000, atomic_load(&o.renewed) >= n);
        hf_watchdog_verify(watchdog);
    }
    assert_int_equal(atomic_load(&o.cancelled), 1);
    assert_false(hf_lease_lost(o.lease));
    drop(&o);
}

/* ---- when it renews ---- */

/* False: it was lost, or renewed too seldom, as on a machine that stood still. No renewal
 * is ever early. */
static bool is_renewed_at_each_third(void)
{
    owner o;
    enum { THIRD_MS = 500, N = 9 };
    size_t before = calls();
    uint64_t from_ns = hf_boot_ns(), least_ms = UINT64_MAX;
    add(&o, 3 * THIRD_MS, false);
    EVENTUALLY(15000, calls() - before >= N || hf_lease_lost(o.lease));
    bool lost = hf_lease_lost(o.lease);
    drop(&o);
    for (size_t i = before; i < calls(); i++) {
        uint64_t since_ns = i == before ? from_ns : fake.calls[i - 1].at_ns;
        uint64_t ms = (fake.calls[i].at_ns - since_ns) / HF_MS_NS;
        assert_true(ms >= THIRD_MS * 9 / 10 - 5); /* thirds, up to a tenth shorter */
        least_ms = ms < least_ms ? ms : least_ms;
    }
    return !lost && least_ms <= THIRD_MS * 6 / 5;
}

static void a_lease_is_renewed_at_each_third_of_its_time(void **state)
{
    (void)state;
    int tries = 5;
    while (!is_renewed_at_each_third())
        assert_true(--tries > 0);
}

static void what_failed_is_tried_again_sooner_then_later_until_the_deadline(void **state)
{
    (void)state;
    owner o;
    set(ANSWER, HF_CONN, HF_OK);
    add(&o, 2000, true);
    EVENTUALLY(15000, atomic_load(&o.lost) == 1);
    /* at 0, 100, 300, 700, 1500 ms; the deadline is at 1928 */
    assert_in_range(calls(), 2, 5);
    for (size_t i = 1; i < calls(); i++)
        assert_true(gap_ms(i) + 1 >= 100U << (i - 1));
    assert_int_equal(atomic_load(&o.renewed), 0);
    drop(&o);
}

static void a_success_forgets_the_failures(void **state)
{
    (void)state;
    owner o;
    set(ANSWER, HF_UNSURE, HF_OK);
    add(&o, 10000, true);
    EVENTUALLY(15000, calls() >= 5);
    set(ANSWER, HF_OK, HF_OK);
    EVENTUALLY(15000, atomic_load(&o.renewed) >= 1);
    unsigned least_ms = UINT_MAX;
    for (int i = 0; i < 5 && least_ms >= 1000;
         i++) { /* a busy machine is slow at times */
        int renewed = atomic_load(&o.renewed);
        set(ANSWER, HF_LOADING, HF_OK);
        size_t n = calls();
        hf_watchdog_verify(watchdog);
        EVENTUALLY(15000, calls() >= n + 2);
        assert_true(gap_ms(n + 1) >= 99);
        least_ms = gap_ms(n + 1) < least_ms ? gap_ms(n + 1) : least_ms;
        set(ANSWER, HF_OK, HF_OK);
        EVENTUALLY(15000, atomic_load(&o.renewed) > renewed);
    }
    assert_true(least_ms < 1000); /* which is the pause after many failures */
    drop(&o);
}

static void a_script_that_redis_did_not_know_is_sent_again_at_once(void **state)
{
    (void)state;
    uint64_t least_ms = UINT64_MAX;
    set(ANSWER, HF_NOSCRIPT, HF_OK);
    for (int i = 0; i < 20 && least_ms > 90; i++) { /* a busy machine is slow at times */
        owner o;
        size_t n = calls();
        add(&o, 60000, true);
        EVENTUALLY(15000, calls() >= n + 2);
        least_ms = gap_ms(n + 1) < least_ms ? gap_ms(n + 1) : least_ms;
        drop(&o);
    }
    assert_in_range(least_ms, 0, 90); /* after any other fault it would be 100 */
}

static void a_request_sent_again_at_once_alarms_no_holder(void **state)
{
    (void)state;
    static const hf_err quiet[] = {HF_NOSCRIPT, HF_DEADLINE};
    for (size_t i = 0; i < HF_COUNT(quiet); i++) {
        owner o;
        size_t n = calls();
        set(HOLD, HF_OK, HF_OK);
        add(&o, 60000, true);
        EVENTUALLY(15000, calls() == n + 1);
        release_held(quiet[i], HF_OK);
        EVENTUALLY(15000, calls() == n + 2); /* events come before the next call */
        assert_int_equal(atomic_load(&o.suspect), 0);
        release_held(quiet[i], HF_OK);
        EVENTUALLY(15000, atomic_load(&o.suspect) == 1);
        drop(&o);
    }
}

static void any_other_fault_makes_it_suspect(void **state)
{
    (void)state;
    owner o;
    set(HOLD, HF_OK, HF_OK);
    add(&o, 60000, true);
    EVENTUALLY(15000, calls() == 1);
    release_held(HF_UNSURE, HF_OK);
    EVENTUALLY(15000, atomic_load(&o.suspect) == 1);
    assert_int_equal(atomic_load(&o.lost), 0);
    drop(&o);
}

static void a_request_may_take_a_tenth_of_the_shortest_lease(void **state)
{
    (void)state;
    static const struct {
        uint32_t ttl_ms, timeout_ms;
    } cases[] = {{30000, 1000}, {10000, 1000}, {5000, 500}, {1000, 200}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        owner o;
        size_t n = calls();
        add(&o, cases[i].ttl_ms, true);
        EVENTUALLY(15000, calls() >= n + 1);
        assert_int_equal(fake.calls[n].timeout_ms, cases[i].timeout_ms);
        drop(&o);
    }
}

static void many_leases_go_in_batches_by_group_all_at_once(void **state)
{
    (void)state;
    enum { N = 1200, OTHER = 10 };
    static owner owners[N + OTHER];
    void *users[N + OTHER];
    hf_lease *leases[N + OTHER];
    memset(owners, 0, sizeof owners);
    for (size_t i = 0; i < N + OTHER; i++)
        users[i] = &owners[i];
    set(HOLD, HF_OK, HF_OK); /* nobody waits for an answer before sending the next */
    uint64_t now_ns = hf_boot_ns();
    hf_watchdog_add_many(watchdog, 3, 60000, now_ns, false, users, leases, N);
    hf_watchdog_add_many(watchdog, 1, 60000, now_ns, false, users + N, leases + N, OTHER);
    hf_watchdog_verify(watchdog);
    EVENTUALLY(15000, calls() == 4);
    size_t seen[4] = {0};
    for (size_t i = 0; i < 4; i++) {
        assert_true(fake.calls[i].n <= 500);
        seen[fake.calls[i].group] += fake.calls[i].n;
    }
    assert_int_equal(seen[3], N);
    assert_int_equal(seen[1], OTHER);
    release_held(HF_OK, HF_OK);
    EVENTUALLY(15000, atomic_load(&owners[N - 1].renewed) == 1);
    for (size_t i = 0; i < N + OTHER; i++) {
        assert_ptr_equal(hf_lease_user(leases[i]), &owners[i]);
        EVENTUALLY(15000, atomic_load(&owners[i].renewed) == 1);
    }
    hf_watchdog_drop_many(watchdog, leases, N + OTHER);
}

static void leases_that_are_due_soon_go_with_those_that_are_due(void **state)
{
    (void)state;
    enum { N = 20 };
    static owner owners[N];
    uint64_t now_ns = hf_boot_ns();
    memset(owners, 0, sizeof owners);
    for (size_t i = 0; i < N; i++) { /* due within 100 ms of each other; soon is 150 */
        owners[i].lease = hf_watchdog_add(watchdog, 0, 3000, now_ns, false, &owners[i]);
        assert_non_null(owners[i].lease);
    }
    EVENTUALLY(15000, calls() >= 1);
    assert_int_equal(fake.calls[0].n, N);
    for (size_t i = 0; i < N; i++)
        drop(&owners[i]);
}

/* As they were taken, they lie in Redis. */
static void leases_are_renewed_in_the_order_in_which_they_were_added(void **state)
{
    (void)state;
    static owner owners[LEASES_MAX];
    static hf_lease *leases[LEASES_MAX];
    static void *users[LEASES_MAX];
    for (size_t i = 0; i < LEASES_MAX; i++)
        users[i] = &owners[i];
    hf_watchdog_add_many(watchdog, 1, 60000, hf_boot_ns(), false, users, leases,
                         LEASES_MAX);
    for (int round = 1; round <= 5; round++) {
        hf_watchdog_verify(watchdog);
        for (size_t i = 0; i < LEASES_MAX; i++)
            EVENTUALLY(15000, atomic_load(&owners[i].renewed) >= round);
    }
    hf_watchdog_drop_many(watchdog, leases, LEASES_MAX);
    assert_int_equal(fake.disorder, 0);
}

static void verify_renews_everything_also_what_is_under_way(void **state)
{
    (void)state;
    owner a, b;
    set(HOLD, HF_OK, HF_OK);
    add(&a, 60000, true);
    EVENTUALLY(15000, calls() == 1);
    add(&b, 60000, false);
    hf_watchdog_verify(watchdog);
    EVENTUALLY(15000, calls() == 2); /* b at once; a is under way */
    release_held(HF_OK, HF_OK);
    EVENTUALLY(15000, calls() == 3); /* a once more */
    ALWAYS(50, calls() == 3);
    drop(&a);
    drop(&b);
}

/* ---- dropping ---- */

static void *drop_in_thread(void *arg)
{
    drop(arg);
    return NULL;
}

static void drop_waits_for_a_callback_that_runs(void **state)
{
    (void)state;
    owner o = {.lease = NULL}, other;
    pthread_t thread;
    atomic_store(&o.block, true);
    o.lease = hf_watchdog_add(watchdog, 0, 60000, hf_boot_ns(), true, &o);
    EVENTUALLY(15000, atomic_load(&o.blocked));
    add(&other, 60000, false);
    drop(&other); /* does not wait for another's */
    assert_int_equal(pthread_create(&thread, NULL, drop_in_thread, &o), 0);
    ALWAYS(50, !atomic_load(&o.dropped));
    atomic_store(&o.block, false);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&o.dropped));
}

static void an_answer_for_a_dropped_lease_is_nothing(void **state)
{
    (void)state;
    owner o, kept;
    set(HOLD, HF_OK, HF_OK);
    add(&o, 60000, false);
    add(&kept, 60000, false);
    hf_watchdog_verify(watchdog);
    EVENTUALLY(15000, calls() == 1);
    drop(&o);
    release_held(HF_OK, HF_OK);
    EVENTUALLY(15000, atomic_load(&kept.renewed) == 1);
    assert_int_equal(atomic_load(&o.renewed), 0);
    drop(&kept);
}

/* As when there is no connection. */
static void a_lease_that_is_left_while_its_renewal_fails_at_once_is_told(void **state)
{
    enum { N = 20 };
    static owner owners[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        owner *o = &owners[i];
        add(o, 60000, false);
        pthread_mutex_lock(&fake.lock);
        fake.leave = o->lease;
        pthread_mutex_unlock(&fake.lock);
        hf_watchdog_verify(watchdog);
        EVENTUALLY(15000, atomic_load(&o->left) == 1);
    }
}

typedef struct churner {
    pthread_t thread;
    uint64_t seed;
} churner;

/* Leases of 1 ms and more come and go while they are renewed, lost and verified; each
 * owner's memory is gone as soon as drop returned, as the sanitizers check. */
static void *churn(void *arg)
{
    hf_rng rng = {.state = ((churner *)arg)->seed};
    enum { N = 50 };
    for (int round = 0; round < 60; round++) {
        hf_lease *leases[N];
        void *owners[N];
        for (size_t i = 0; i < N; i++)
            owners[i] = calloc(1, sizeof(owner));
        uint32_t ttl_ms = (uint32_t)(1 + hf_rng_next(&rng) % 200);
        hf_watchdog_add_many(watchdog, (size_t)hf_rng_next(&rng) % 3, ttl_ms,
                             hf_boot_ns(), hf_rng_next(&rng) % 2, owners, leases, N);
        if (round % 8 == 0)
            hf_watchdog_verify(watchdog);
        hf_test_pause_ms((unsigned)(hf_rng_next(&rng) % 8));
        hf_watchdog_drop_many(watchdog, leases, N);
        for (size_t i = 0; i < N; i++)
            free(owners[i]);
    }
    return NULL;
}

static void leases_may_come_and_go_from_many_threads(void **state)
{
    (void)state;
    churner churners[4] = {{.seed = 1}, {.seed = 2}, {.seed = 3}, {.seed = 4}};
    for (size_t i = 0; i < HF_COUNT(churners); i++)
        pthread_create(&churners[i].thread, NULL, churn, &churners[i]);
    for (size_t i = 0; i < HF_COUNT(churners); i++)
        pthread_join(churners[i].thread, NULL);
}

static void half_a_million_leases_come_and_go_in_a_few_seconds(void **state)
{
    (void)state;
    enum { ROUNDS = 5000, N = 100 };
    static owner o;
    void *users[N];
    hf_lease *leases[N];
    for (size_t i = 0; i < N; i++)
        users[i] = &o;
    uint64_t from_ns = hf_boot_ns();
    for (int round = 0; round < ROUNDS; round++) {
        hf_watchdog_add_many(watchdog, 0, 10000, hf_boot_ns(), false, users, leases, N);
        hf_watchdog_drop_many(watchdog, leases, N);
    }
    uint64_t each_ns = (hf_boot_ns() - from_ns) / ((uint64_t)ROUNDS * N);
    print_message("           %u ns for each\n", (unsigned)each_ns);
    assert_true(each_ns < 50000); /* wide, for slow machines and sanitizers */
    assert_int_equal(calls(), 0);
}

/* ---- its thread ---- */

static atomic_int blocked_signals;

static void count_signals(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    (void)user, (void)lease, (void)event, (void)arg;
    sigset_t mask;
    int n = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    n += sigismember(&mask, SIGPIPE) + sigismember(&mask, SIGTERM);
    n += sigismember(&mask, SIGINT) + sigismember(&mask, SIGHUP);
    atomic_store(&blocked_signals, n);
}

static void its_thread_takes_no_signals_of_its_host(void **state)
{
    (void)state;
    hf_watchdog *other;
    sigset_t mask;
    atomic_store(&blocked_signals, -1);
    hf_watchdog_opts opts = {
        .request_timeout_ms = REQUEST_MS, .renew = renew, .on_event = count_signals};
    assert_int_equal(hf_watchdog_start(&other, &opts), HF_OK);
    hf_lease *lease = hf_watchdog_add(other, 0, 60000, hf_boot_ns(), true, NULL);
    EVENTUALLY(15000, atomic_load(&blocked_signals) >= 0);
    assert_int_equal(atomic_load(&blocked_signals), 4);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0); /* the host's own are as before */
    hf_watchdog_drop(other, lease);
    hf_watchdog_stop(other);
}

/* ---- several on one thread ---- */

static hf_watchdog *start_on(hf_watch_loop *loop)
{
    hf_watchdog *w;
    hf_watchdog_opts opts = {.request_timeout_ms = REQUEST_MS,
                             .loop = loop,
                             .renew = renew,
                             .on_event = on_event};
    assert_int_equal(hf_watchdog_start(&w, &opts), HF_OK);
    return w;
}

static void those_on_one_thread_end_one_by_one(void **state)
{
    (void)state;
    hf_watch_loop *loop;
    owner one = {0}, two = {0};
    assert_int_equal(hf_watch_loop_open(&loop), HF_OK);
    hf_watchdog *a = start_on(loop), *b = start_on(loop);
    assert_int_equal(hf_watch_loop_start(loop), HF_OK);
    hf_watch_loop_unref(loop); /* they have it */
    hf_lease *first = hf_watchdog_add(a, 0, 60000, hf_boot_ns(), true, &one);
    hf_lease *second = hf_watchdog_add(b, 0, 60000, hf_boot_ns(), true, &two);
    EVENTUALLY(15000, atomic_load(&one.renewed) == 1 && atomic_load(&two.renewed) == 1);
    hf_watchdog_drop(a, first);
    hf_watchdog_stop(a);
    hf_watchdog_hurry(b, second, hf_boot_ns());
    EVENTUALLY(15000, atomic_load(&two.renewed) == 2);
    hf_watchdog_drop(b, second);
    hf_watchdog_stop(b);
    assert_int_equal(atomic_load(&one.renewed), 1);
}

static void those_whose_thread_never_started_end_too(void **state)
{
    (void)state;
    hf_watch_loop *loop;
    assert_int_equal(hf_watch_loop_open(&loop), HF_OK);
    hf_watchdog *a = start_on(loop), *b = start_on(loop);
    hf_watch_loop_unref(loop);
    hf_watchdog_stop(b);
    hf_watchdog_stop(a);
}

/* ---- the heap ---- */

static void the_heap_always_has_the_earliest_first(void **state)
{
    (void)state;
    enum { N = 300, STEPS = 20000 };
    static hf_lease leases[N];
    static uint64_t due[N];
    hf_lease_heap heap = {.n = 0};
    hf_rng rng = {.state = 11};
    memset(due, 0xff, sizeof due);
    for (size_t i = 0; i < N; i++)
        leases[i].at = HF_NOT_IN_HEAP;
    assert_true(hf_lease_heap_reserve(&heap, N));
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)(hf_rng_next(&rng) % N);
        if (hf_rng_next(&rng) % 3 == 0) {
            hf_lease_heap_take(&heap, &leases[i]);
            due[i] = UINT64_MAX;
        } else {
            due[i] = hf_rng_next(&rng) % 1000;
            hf_lease_heap_put(&heap, &leases[i], due[i]);
        }
        uint64_t first = UINT64_MAX;
        size_t n = 0;
        for (size_t k = 0; k < N; k++) {
            first = due[k] < first ? due[k] : first;
            n += due[k] != UINT64_MAX;
            if (leases[k].at != HF_NOT_IN_HEAP)
                assert_ptr_equal(heap.slots[leases[k].at].lease, &leases[k]);
        }
        assert_int_equal(heap.n, n);
        if (n > 0)
            assert_int_equal(heap.slots[0].due_ns, first);
    }
    free(heap.slots);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_deadline_counts_from_the_sending_less_drift_and_margin),
        cmocka_unit_test(the_heap_always_has_the_earliest_first),
        TEST(an_answer_moves_the_deadline_by_when_it_was_asked),
        TEST(an_older_answer_moves_it_not_back),
        TEST(a_lease_without_renewal_is_lost_at_its_deadline_and_for_ever),
        TEST(an_answer_that_is_handled_after_the_deadline_is_not_believed),
        TEST(a_lost_lease_never_comes_back),
        TEST(a_lease_that_is_over_when_it_comes_is_told_lost),
        TEST(what_redis_calls_lost_is_lost_at_once),
        TEST(a_cancel_is_told_once_and_the_lease_is_kept),
        TEST(a_lease_is_renewed_at_each_third_of_its_time),
        TEST(what_failed_is_tried_again_sooner_then_later_until_the_deadline),
        TEST(a_success_forgets_the_failures),
        TEST(a_script_that_redis_did_not_know_is_sent_again_at_once),
        TEST(a_request_sent_again_at_once_alarms_no_holder),
        TEST(any_other_fault_makes_it_suspect),
        TEST(a_request_may_take_a_tenth_of_the_shortest_lease),
        TEST(many_leases_go_in_batches_by_group_all_at_once),
        TEST(leases_that_are_due_soon_go_with_those_that_are_due),
        TEST(leases_are_renewed_in_the_order_in_which_they_were_added),
        TEST(verify_renews_everything_also_what_is_under_way),
        TEST(drop_waits_for_a_callback_that_runs),
        TEST(an_answer_for_a_dropped_lease_is_nothing),
        TEST(a_lease_that_is_left_while_its_renewal_fails_at_once_is_told),
        TEST(leases_may_come_and_go_from_many_threads),
        TEST(half_a_million_leases_come_and_go_in_a_few_seconds),
        TEST(those_on_one_thread_end_one_by_one),
        TEST(those_whose_thread_never_started_end_too),
        TEST(its_thread_takes_no_signals_of_its_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
