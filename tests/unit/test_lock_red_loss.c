/* test_lock_red_loss.c - a RedLock with simulated locks: which of them it releases and
 * acquires again, and that its loss is reported. There is no Redis, and time passes when
 * a test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lock/set/red.h"
#include "lock/set/set.h"
#include "lock/watchdog/watch_loop.h"

enum { N = 5, LOCKS_MAX = 2 * N, HOUR_MS = 3600000 };

/* A lock at one of the servers. */
/* The calls to a member that the test plays: the headers of lock/ have another hf_lock.
 */
void hf_release_patiently(hf_lock *lock, hf_lock_released_cb cb, void *arg);
void hf_hold_renew_now(hf_lock *lock);
bool hf_lock_left_behind(const hf_lock *lock);
bool hf_acquire_was_at_fault(const hf_lock *lock);
bool hf_lock_client_in_cluster(const hf_lock_client *locks);
bool hf_lock_client_is_coming(const hf_lock_client *locks);
hf_err hf_lock_opts_check(const hf_lock_opts *opts, char detail[HF_DETAIL_SIZE]);

struct hf_lock {
    bool held, given_back;
    hf_lock *ends_with; /* while this one is given back, the lease of that one ends */
    hf_lock_event_cb on_event;
    void *member;
    hf_lock_acquired_cb on_acquired;
    hf_lock_released_cb on_released; /* NULL: answered, or not asked for */
    void *arg;
};

static hf_lock locks[LOCKS_MAX];
static size_t n_locks;
static hf_lock_servers servers;
static hf_lock_set *set;
static unsigned acquired, told_lost;

/* ---- what is played ---- */

hf_err hf_lock_acquire(hf_lock_client *client, const hf_lock_opts *opts,
                       hf_lock_acquired_cb cb, void *arg, hf_lock **out,
                       char detail[HF_DETAIL_SIZE])
{
    (void)client, (void)detail;
    assert_true(n_locks < LOCKS_MAX);
    *out = &locks[n_locks++];
    **out = (hf_lock){.on_event = opts->on_event,
                      .member = opts->event_arg,
                      .on_acquired = cb,
                      .arg = arg};
    return HF_OK;
}

void hf_release_patiently(hf_lock *lock, hf_lock_released_cb cb, void *arg)
{
    lock->held = false;
    lock->given_back = true;
    lock->on_released = cb;
    lock->arg = arg;
    if (lock->ends_with != NULL)
        lock->ends_with->held = false;
}

void hf_lock_cancel(hf_lock *lock)
{
    (void)lock; /* each test answers all that it asks for */
}

uint64_t hf_lock_deadline_ns(const hf_lock *lock)
{
    return lock->held ? hf_boot_ns() + HOUR_MS * HF_MS_NS : 0;
}

bool hf_lock_held(const hf_lock *lock)
{
    return lock->held;
}

void hf_hold_renew_now(hf_lock *lock)
{
    lock->on_event(lock, HF_LOCK_EVENT_HELD, lock->member);
}

hf_lock_state hf_lock_get_state(const hf_lock *lock)
{
    return lock->held ? HF_LOCK_HELD : HF_LOCK_GONE;
}

hf_lock_reason hf_lock_why(const hf_lock *lock)
{
    return lock->held ? HF_LOCK_NOT_LOST : HF_LOCK_DEADLINE;
}

uint64_t hf_lock_fence(const hf_lock *lock)
{
    return lock->held;
}

bool hf_lock_left_behind(const hf_lock *lock)
{
    (void)lock;
    return false;
}

bool hf_acquire_was_at_fault(const hf_lock *lock)
{
    (void)lock;
    return false;
}

bool hf_lock_client_in_cluster(const hf_lock_client *client)
{
    (void)client;
    return false;
}

bool hf_lock_client_is_coming(const hf_lock_client *client)
{
    (void)client;
    return false;
}

hf_err hf_lock_opts_check(const hf_lock_opts *opts, char detail[HF_DETAIL_SIZE])
{
    (void)opts, (void)detail;
    return HF_OK;
}

hf_err hf_lock_owner_make(char out[HF_LOCK_OWNER_SIZE])
{
    out[0] = '\0';
    return HF_OK;
}

static void on_turned(void *of)
{
    (void)of; /* there is no timer */
}

/* ---- its user ---- */

static void on_acquired(hf_lock_set *of, hf_err err, const char *detail, void *arg)
{
    (void)of, (void)detail, (void)arg;
    assert_int_equal(err, HF_OK);
    acquired++;
}

static void on_event(hf_lock_set *of, hf_lock_event event, size_t member, void *arg)
{
    (void)of, (void)member, (void)arg;
    told_lost += event == HF_LOCK_EVENT_LOST;
}

/* ---- what happens ---- */

static void grant(hf_lock *lock)
{
    lock->held = true;
    lock->on_acquired(lock, HF_OK, "", lock->arg);
}

/* As the watchdog does it: it tells nothing of a lock that was given back. */
static void end_lease(hf_lock *lock)
{
    lock->held = false;
    if (!lock->given_back)
        lock->on_event(lock, HF_LOCK_EVENT_LOST, lock->member);
}

static void turn(void)
{
    if (atomic_exchange(&set->member_lost, false))
        set->kind->lost(set);
}

static void answer_releases(void)
{
    for (size_t i = 0; i < n_locks; i++) {
        hf_lock_released_cb cb = locks[i].on_released;
        locks[i].on_released = NULL;
        if (cb != NULL)
            cb(&locks[i], HF_RELEASE_EXPIRED, 0, locks[i].arg);
    }
}

static void lose(hf_lock *lock)
{
    end_lease(lock);
    turn();
    answer_releases();
}

static void pass_time(void)
{
    set->kind->time(set, hf_boot_ns() + HOUR_MS * HF_MS_NS);
}

static int begin(void **state)
{
    const hf_redlock_opts opts = {HF_REDLOCK_OPTS_INIT, .name = "n",
                                  .on_event = on_event};
    static const hf_tasks_hooks hooks = {{NULL, NULL, NULL}, NULL, on_turned, NULL, NULL};
    (void)state;
    servers = (hf_lock_servers){.n = N};
    n_locks = acquired = told_lost = 0;
    if (hf_tasks_open(&servers.tasks, NULL, &hooks, NULL) != HF_OK ||
        hf_red_make(&servers, &opts, &set, NULL) != HF_OK)
        return -1;
    set->on_acquired = on_acquired;
    hf_set_begin(set);
    for (size_t i = 0; i < N; i++)
        grant(&locks[i]);
    return acquired == 1 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    hf_set_close(set);
    answer_releases(); /* the last answer frees the set */
    hf_run_loop_close(&servers.tasks.run);
    return 0;
}

/* ---- tests ---- */

static void a_lock_that_was_lost_is_given_back_and_asked_for_again(void **state)
{
    (void)state;
    end_lease(&locks[0]);
    turn();
    assert_true(locks[0].given_back);
    pass_time();
    assert_int_equal(n_locks, N); /* not before that is answered */
    answer_releases();
    pass_time();
    assert_int_equal(n_locks, N + 1);
    assert_int_equal(hf_lock_set_standing(set), N - 1);
    grant(&locks[N]);
    assert_int_equal(hf_lock_set_standing(set), N);
    assert_false(locks[N].given_back);
    assert_int_equal(told_lost, 0);
}

static void without_a_majority_none_is_asked_for_again(void **state)
{
    (void)state;
    for (size_t i = 0; i <= N / 2; i++)
        lose(&locks[i]);
    assert_int_equal(told_lost, 1);
    pass_time();
    assert_int_equal(n_locks, N);
    assert_true(set->kind->due_ns(set) == UINT64_MAX);
}

/* The lease that decides ends while another lock is given back, and before the watchdog
 * has come to it. */
static void a_set_that_is_lost_meanwhile_is_told_so(void **state)
{
    (void)state;
    lose(&locks[0]);
    locks[1].ends_with = &locks[2];
    lose(&locks[1]);
    assert_int_equal(told_lost, 0);
    assert_false(hf_lock_set_held(set));
    lose(&locks[2]);
    assert_int_equal(told_lost, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_lock_that_was_lost_is_given_back_and_asked_for_again),
        TEST(without_a_majority_none_is_asked_for_again),
        TEST(a_set_that_is_lost_meanwhile_is_told_so),
    };
    return cmocka_run_group_tests_name("lock_red", tests, NULL, NULL);
}
