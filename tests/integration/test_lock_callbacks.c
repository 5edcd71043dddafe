/* test_lock_callbacks.c - the thread that calls callbacks, and calls that wait, made
 * inside a callback: of the same client they are refused at once, because they would wait
 * for themselves; of another they are fine. The callbacks keep their results, and the
 * test's own thread checks them. */
#include <pthread.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/lock_set.h"
#include "tests/support/lock_fixture.h"

enum { LONG_MS = 30000, LEASE_MS = 3000 /* told about an event at a third of it */ };

static const char refused[] = "this call waits: not inside a callback";

static hf_lock_fixture fixture;

/* What the calls gave that were made inside a callback. */
typedef struct seen {
    hf_err acquire, look, fence, force, list, downgrade, extend, other;
    char detail[HF_DETAIL_SIZE];
    hf_lock_release_result release;
    bool held;
    atomic_bool done;
} seen;

static bool never(const char *name, void *arg)
{
    (void)name;
    (void)arg;
    return false;
}

static hf_err acquire_other(hf_lock_client *locks, hf_lock **out, char *detail)
{
    static const char *const name = "other";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = LONG_MS};
    return hf_lock_acquire_wait(locks, &opts, out, detail);
}

static void ask_all(seen *s)
{
    hf_lock *lock = NULL;
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    s->acquire = acquire_other(fixture.a, &lock, s->detail);
    s->look = hf_lock_look_at(fixture.a, "n", 1, &look, NULL);
    s->fence = hf_fence_check(fixture.a, "n", 1, "me", 0, NULL, NULL);
    s->force = hf_lock_force(fixture.a, "n", NULL, NULL, NULL);
    s->list = hf_lock_list(fixture.a, never, NULL, NULL);
}

static void all_were_refused(const seen *s)
{
    assert_int_equal(s->acquire, HF_INVALID);
    assert_string_equal(s->detail, refused);
    assert_int_equal(s->look, HF_INVALID);
    assert_int_equal(s->fence, HF_INVALID);
    assert_int_equal(s->force, HF_INVALID);
    assert_int_equal(s->list, HF_INVALID);
}

static void begin_acquire(hf_lock_acquired_cb cb, seen *s)
{
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = LONG_MS};
    assert_int_equal(hf_lock_acquire(fixture.a, &opts, cb, s, NULL, fixture.detail),
                     HF_OK);
}

static hf_lock *must(hf_lock_client *locks, const char *name)
{
    return hf_lock_must(&fixture, locks, name,
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS});
}

static void is_free(const char *name)
{
    hf_lock_released(must(fixture.b, name));
}

/* ---- when it was acquired ---- */

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    seen *s = arg;
    (void)detail;
    if (err == HF_OK) {
        ask_all(s);
        s->extend = hf_lock_extend_wait(lock, LONG_MS, NULL);
        s->downgrade = hf_lock_downgrade_wait(lock, NULL);
        s->held = hf_lock_held(lock);
        s->release = hf_lock_release_wait(lock, NULL);
    }
    atomic_store(&s->done, true);
}

/* It can be given back there; who does it is not told what happened to that. And once the
 * callback is over the client waits as ever. */
static void in_the_callback_of_a_grant_nothing_waits(void **state)
{
    seen s = {.release = HF_RELEASE_DONE};
    (void)state;
    begin_acquire(on_acquired, &s);
    EVENTUALLY(LONG_MS, s.done);
    all_were_refused(&s);
    assert_int_equal(s.extend, HF_INVALID);
    assert_int_equal(s.downgrade, HF_INVALID);
    assert_true(s.held);
    assert_int_equal(s.release, HF_RELEASE_UNKNOWN);
    is_free("n");
    is_free("other");
    hf_lock_released(must(fixture.a, "n"));
}

/* ---- when it was given back ---- */

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    seen *s = arg;
    (void)lock;
    (void)left;
    s->release = result;
    ask_all(s);
    atomic_store(&s->done, true);
}

static void in_the_callback_of_a_release_nothing_waits(void **state)
{
    seen s = {.release = HF_RELEASE_UNKNOWN};
    (void)state;
    hf_lock_release(must(fixture.a, "n"), on_released, &s);
    EVENTUALLY(LONG_MS, s.done);
    assert_int_equal(s.release, HF_RELEASE_DONE);
    all_were_refused(&s);
    is_free("other");
}

/* ---- when it went from alone to shared ---- */

static void on_downgraded(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    seen *s = arg;
    s->downgrade = err;
    ask_all(s);
    s->extend = hf_lock_extend_wait(lock, LONG_MS, NULL);
    atomic_store(&s->done, true);
}

static void in_the_callback_of_a_downgrade_nothing_waits(void **state)
{
    seen s = {.extend = HF_OK};
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    assert_int_equal(hf_lock_downgrade(lock, on_downgraded, &s, NULL), HF_OK);
    EVENTUALLY(LONG_MS, s.done);
    assert_int_equal(s.downgrade, HF_OK);
    all_were_refused(&s);
    assert_int_equal(s.extend, HF_INVALID);
    hf_lock_released(lock);
}

/* ---- when something happens to it ---- */

enum { WAITING, NOT_WAITING, WAYS };

/* What a callback of an event gives back, and how. */
typedef struct giving {
    hf_lock_event when;
    int way;
    atomic_bool back;   /* the callback is about to return */
    atomic_bool called; /* the release was told */
    atomic_bool early;  /* before its callback had ended */
    atomic_uint events; /* after it was given back */
    hf_lock_release_result result;
} giving;

static void on_given(hf_lock *lock, hf_lock_release_result result, size_t left, void *arg)
{
    giving *g = arg;
    (void)lock;
    (void)left;
    g->result = result;
    atomic_store(&g->early, !g->back); /* its callback has ended: all may be freed */
    atomic_store(&g->called, true);
}

static void give_back_on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    giving *g = arg;
    if (event != g->when) {
        atomic_fetch_add(&g->events, 1);
        return;
    }
    if (g->way == WAITING) {
        g->result = hf_lock_release_wait(lock, NULL);
    } else {
        hf_lock_release(lock, on_given, g);
        hf_test_pause_ms(50); /* the release has ended long before */
    }
    atomic_store(&g->back, true);
}

static hf_lock *take_to_give(giving *g, int way, hf_lock_event when)
{
    *g = (giving){.way = way, .when = when, .result = HF_RELEASE_STILL_HELD};
    return hf_lock_must(&fixture, fixture.a, "n",
                        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                       .wait_ms = LONG_MS, .on_event = give_back_on_event,
                                       .event_arg = g});
}

static void was_given_back(giving *g, hf_lock_release_result expected)
{
    EVENTUALLY(LONG_MS, g->back);
    if (g->way == NOT_WAITING) {
        EVENTUALLY(LONG_MS, g->called);
        assert_false(g->early);
        assert_int_equal(g->result, expected);
    } else {
        assert_int_equal(g->result, HF_RELEASE_UNKNOWN);
    }
    is_free("n");
    assert_int_equal(g->events, 0);
}

static void a_lock_that_is_asked_back_is_given_back_in_the_callback(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        giving g;
        (void)take_to_give(&g, way, HF_LOCK_EVENT_REVOKED);
        assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, NULL, fixture.detail),
                         HF_OK);
        was_given_back(&g, HF_RELEASE_DONE);
    }
}

static void a_lock_that_is_lost_is_given_back_in_the_callback(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        giving g;
        (void)take_to_give(&g, way, HF_LOCK_EVENT_LOST);
        assert_int_equal(hf_lock_force(fixture.b, "n", NULL, NULL, fixture.detail),
                         HF_OK);
        was_given_back(&g, HF_RELEASE_EXPIRED);
    }
}

/* ---- a release beside a callback that runs ---- */

typedef struct guarded {
    pthread_mutex_t mutex;
    atomic_bool inside, done, told, early;
} guarded;

static void on_guarded_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    guarded *g = arg;
    (void)lock;
    if (event != HF_LOCK_EVENT_REVOKED)
        return;
    atomic_store(&g->inside, true);
    (void)pthread_mutex_lock(&g->mutex);
    (void)pthread_mutex_unlock(&g->mutex);
    hf_test_pause_ms(20);
    atomic_store(&g->done, true);
}

static void on_guarded_release(hf_lock *lock, hf_lock_release_result result, size_t left,
                               void *arg)
{
    guarded *g = arg;
    (void)lock;
    (void)left;
    atomic_store(&g->early, result != HF_RELEASE_DONE || !g->done);
    atomic_store(&g->told, true);
}

/* The callback waits for what its releaser holds. */
static hf_lock *enter_guarded(guarded *g)
{
    *g = (guarded){.mutex = PTHREAD_MUTEX_INITIALIZER};
    hf_lock *lock = hf_lock_must(
        &fixture, fixture.a, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS, .wait_ms = LONG_MS,
                       .on_event = on_guarded_event, .event_arg = g});
    (void)pthread_mutex_lock(&g->mutex);
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, NULL, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, g->inside);
    return lock;
}

static void a_release_does_not_wait_for_a_callback(void **state)
{
    guarded g;
    (void)state;
    hf_lock_release(enter_guarded(&g), on_guarded_release, &g);
    is_free("n");
    assert_false(g.told); /* its handle is still in use */
    (void)pthread_mutex_unlock(&g.mutex);
    EVENTUALLY(LONG_MS, g.told);
    assert_false(g.early);
}

/* No longer than for an answer; then its result is known all the same. */
static void a_release_that_waits_ends_although_a_callback_does_not(void **state)
{
    guarded g;
    (void)state;
    assert_int_equal(hf_lock_release_wait(enter_guarded(&g), NULL), HF_RELEASE_DONE);
    assert_false(g.done);
    is_free("n");
    (void)pthread_mutex_unlock(&g.mutex);
    EVENTUALLY(LONG_MS, g.done);
}

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    seen *s = arg;
    if (event != HF_LOCK_EVENT_REVOKED)
        return;
    ask_all(s);
    s->extend = hf_lock_extend_wait(lock, LONG_MS, NULL);
    s->release = hf_lock_release_wait(lock, NULL);
    s->held = hf_lock_held(lock);
    atomic_store(&s->done, true);
}

static void in_the_callback_of_an_event_nothing_waits(void **state)
{
    seen s = {.release = HF_RELEASE_DONE};
    (void)state;
    (void)hf_lock_must(&fixture, fixture.a, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LEASE_MS,
                                      .on_event = on_event, .event_arg = &s});
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, NULL, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, s.done);
    all_were_refused(&s);
    assert_int_equal(s.extend, HF_INVALID);
    assert_int_equal(s.release, HF_RELEASE_UNKNOWN);
    assert_false(s.held);
    is_free("n");
}

/* ---- for each lock ---- */

static bool each(const char *name, void *arg)
{
    seen *s = arg;
    (void)name;
    ask_all(s);
    atomic_store(&s->done, true);
    return true;
}

static void for_each_lock_nothing_waits(void **state)
{
    seen s = {.extend = HF_OK};
    (void)state;
    hf_lock *lock = must(fixture.a, "n");
    assert_int_equal(hf_lock_list(fixture.a, each, &s, fixture.detail), HF_OK);
    assert_true(s.done);
    all_were_refused(&s);
    hf_lock_released(lock);
}

/* ---- another client ---- */

static void use_another(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    seen *s = arg;
    hf_lock *second = NULL;
    (void)detail;
    s->acquire = err;
    s->other = acquire_other(fixture.b, &second, s->detail);
    if (s->other == HF_OK)
        s->release = hf_lock_release_wait(second, NULL);
    if (err == HF_OK)
        hf_lock_release(lock, NULL, NULL);
    atomic_store(&s->done, true);
}

static void another_client_may_be_waited_for(void **state)
{
    seen s = {.release = HF_RELEASE_UNKNOWN};
    (void)state;
    begin_acquire(use_another, &s);
    EVENTUALLY(LONG_MS, s.done);
    assert_int_equal(s.acquire, HF_OK);
    assert_int_equal(s.other, HF_OK);
    assert_int_equal(s.release, HF_RELEASE_DONE);
    is_free("n");
    is_free("other");
}

/* ---- locks of several servers ---- */

typedef struct set_seen {
    hf_lock_servers *servers;
    hf_err first, second;
    char detail[HF_DETAIL_SIZE];
    hf_lock_release_result release, each[1];
    bool held;
    atomic_bool done;
} set_seen;

static hf_lock_opts lock_of(const char *const *name)
{
    return (hf_lock_opts){HF_LOCK_OPTS_INIT, .names = name, .n_names = 1,
                          .lease_ms = LEASE_MS};
}

static void ask_set(set_seen *s, hf_lock_set *set)
{
    static const char *const name = "other";
    const hf_lock_opts lock = lock_of(&name);
    const hf_multilock_member one = {HF_MULTILOCK_MEMBER_INIT, .lock = &lock};
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = &one,
                                    .n_members = 1, .wait_ms = LONG_MS};
    hf_lock_set *second;
    s->second = hf_multilock_acquire_wait(s->servers, &opts, &second, s->detail);
    s->held = hf_lock_set_held(set);
    s->release = hf_lock_set_release_wait(set, s->each);
}

static void on_set(hf_lock_set *set, hf_err err, const char *detail, void *arg)
{
    set_seen *s = arg;
    (void)detail;
    s->first = err;
    if (err == HF_OK)
        ask_set(s, set);
    atomic_store(&s->done, true);
}

static void on_set_event(hf_lock_set *set, hf_lock_event event, size_t place, void *arg)
{
    set_seen *s = arg;
    (void)place;
    if (event != HF_LOCK_EVENT_REVOKED)
        return;
    ask_set(s, set);
    atomic_store(&s->done, true);
}

static void open_servers(set_seen *s)
{
    const char *url = hf_fixture_url(&fixture.redis);
    *s = (set_seen){.release = HF_RELEASE_DONE};
    assert_int_equal(hf_lock_servers_open(&s->servers, &url, 1, NULL, fixture.detail),
                     HF_OK);
}

static void was_refused(const set_seen *s)
{
    assert_int_equal(s->second, HF_INVALID);
    assert_string_equal(s->detail, refused);
    assert_true(s->held);
    assert_int_equal(s->release, HF_RELEASE_UNKNOWN);
    assert_int_equal(s->each[0], HF_RELEASE_UNKNOWN);
}

static void in_the_callback_of_a_set_nothing_waits(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts lock = lock_of(&name);
    const hf_multilock_member one = {HF_MULTILOCK_MEMBER_INIT, .lock = &lock};
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = &one,
                                    .n_members = 1, .wait_ms = LONG_MS};
    set_seen s;
    (void)state;
    open_servers(&s);
    assert_int_equal(
        hf_multilock_acquire(s.servers, &opts, on_set, &s, NULL, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, s.done);
    assert_int_equal(s.first, HF_OK);
    was_refused(&s);
    is_free("n");
    hf_lock_servers_close(s.servers, NULL, NULL);
}

static void in_the_callback_of_a_sets_event_nothing_waits(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts lock = lock_of(&name);
    const hf_multilock_member one = {HF_MULTILOCK_MEMBER_INIT, .lock = &lock};
    set_seen s;
    hf_lock_set *set;
    (void)state;
    open_servers(&s);
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT,   .members = &one,
                                    .n_members = 1,           .wait_ms = LONG_MS,
                                    .on_event = on_set_event, .event_arg = &s};
    assert_int_equal(hf_multilock_acquire_wait(s.servers, &opts, &set, fixture.detail),
                     HF_OK);
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, NULL, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, s.done);
    was_refused(&s);
    is_free("n");
    hf_lock_servers_close(s.servers, NULL, NULL);
}

typedef struct set_guarded {
    pthread_mutex_t mutex;
    atomic_bool inside, done;
} set_guarded;

static void on_guarded_set(hf_lock_set *set, hf_lock_event event, size_t place, void *arg)
{
    set_guarded *g = arg;
    (void)set;
    (void)place;
    if (event != HF_LOCK_EVENT_REVOKED)
        return;
    atomic_store(&g->inside, true);
    (void)pthread_mutex_lock(&g->mutex);
    (void)pthread_mutex_unlock(&g->mutex);
    atomic_store(&g->done, true);
}

static void a_release_of_a_set_ends_although_a_callback_does_not(void **state)
{
    static const char *const name = "n";
    const hf_lock_opts lock = lock_of(&name);
    const hf_multilock_member one = {HF_MULTILOCK_MEMBER_INIT, .lock = &lock};
    set_guarded g = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    set_seen s;
    hf_lock_set *set;
    (void)state;
    open_servers(&s);
    const hf_multilock_opts opts = {
        HF_MULTILOCK_OPTS_INIT,     .members = &one, .n_members = 1, .wait_ms = LONG_MS,
        .on_event = on_guarded_set, .event_arg = &g};
    assert_int_equal(hf_multilock_acquire_wait(s.servers, &opts, &set, fixture.detail),
                     HF_OK);
    (void)pthread_mutex_lock(&g.mutex);
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, NULL, fixture.detail), HF_OK);
    EVENTUALLY(LONG_MS, g.inside);
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_UNKNOWN);
    assert_false(g.done);
    (void)pthread_mutex_unlock(&g.mutex);
    EVENTUALLY(LONG_MS, g.done);
    is_free("n");
    hf_lock_servers_close(s.servers, NULL, NULL);
}

/* ---- the thread of callbacks ---- */

enum { CALLERS = 4, ASYNC = 300 };

static pthread_t callback_thread;
static atomic_uint asked, told, elsewhere;
static atomic_bool stop_calling;

/* A call that waits may turn the loop, but it calls back for no other call. */
static void note_thread(void)
{
    if (atomic_fetch_add(&told, 1) == 0)
        callback_thread = pthread_self();
    else if (!pthread_equal(callback_thread, pthread_self()))
        atomic_fetch_add(&elsewhere, 1);
}

static void on_given_back(hf_lock *lock, hf_lock_release_result result, size_t left,
                          void *arg)
{
    (void)lock;
    (void)result;
    (void)left;
    (void)arg;
    note_thread();
}

static void give_back(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    (void)arg;
    if (err == HF_OK) {
        atomic_fetch_add(&asked, 1);
        hf_lock_release(lock, on_given_back, NULL);
    }
    note_thread();
}

/* The lock is kept for the thread that asked: it may still cancel. */
static void keep(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)lock;
    (void)detail;
    *(hf_err *)arg = err;
    note_thread();
}

/* Gives how often it failed. */
static void *call_often(void *arg)
{
    const char *name = arg;
    char detail[HF_DETAIL_SIZE];
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    size_t bad = 0;
    while (!atomic_load(&stop_calling)) {
        hf_lock *lock;
        if (hf_lock_acquire_wait(fixture.a, &opts, &lock, detail) != HF_OK ||
            hf_lock_release_wait(lock, NULL) != HF_RELEASE_DONE)
            bad++;
    }
    return (void *)bad;
}

/* A request that is cancelled at once has its answer in the turn that begins it. */
static void callbacks_come_on_one_thread(void **state)
{
    static const char *const names[CALLERS] = {"c0", "c1", "c2", "c3"}, *const own = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &own, .n_names = 1};
    pthread_t callers[CALLERS];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, (void *)names[i]),
                         0);
    for (size_t i = 0; i < ASYNC; i++) {
        hf_lock *lock;
        hf_err err = HF_CANCEL;
        bool cancels = i % 2 == 0;
        atomic_fetch_add(&asked, 1);
        assert_int_equal(hf_lock_acquire(fixture.a, &opts, cancels ? keep : give_back,
                                         &err, &lock, fixture.detail),
                         HF_OK);
        if (cancels)
            hf_lock_cancel(lock);
        EVENTUALLY(LONG_MS, atomic_load(&told) == atomic_load(&asked));
        if (cancels && err == HF_OK) {
            atomic_fetch_add(&asked, 1);
            hf_lock_release(lock, on_given_back, NULL);
            EVENTUALLY(LONG_MS, atomic_load(&told) == atomic_load(&asked));
        }
    }
    atomic_store(&stop_calling, true);
    for (size_t i = 0; i < CALLERS; i++) {
        void *bad;
        assert_int_equal(pthread_join(callers[i], &bad), 0);
        assert_null(bad);
    }
    assert_int_equal(atomic_load(&elsewhere), 0);
}

int main(void)
{
#define TEST(name) HF_LOCK_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(in_the_callback_of_a_grant_nothing_waits),
        TEST(in_the_callback_of_a_release_nothing_waits),
        TEST(in_the_callback_of_a_downgrade_nothing_waits),
        TEST(in_the_callback_of_an_event_nothing_waits),
        TEST(a_lock_that_is_asked_back_is_given_back_in_the_callback),
        TEST(a_lock_that_is_lost_is_given_back_in_the_callback),
        TEST(a_release_does_not_wait_for_a_callback),
        TEST(a_release_that_waits_ends_although_a_callback_does_not),
        TEST(for_each_lock_nothing_waits),
        TEST(another_client_may_be_waited_for),
        TEST(in_the_callback_of_a_set_nothing_waits),
        TEST(in_the_callback_of_a_sets_event_nothing_waits),
        TEST(a_release_of_a_set_ends_although_a_callback_does_not),
        TEST(callbacks_come_on_one_thread),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
