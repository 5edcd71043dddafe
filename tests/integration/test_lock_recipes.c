/* test_lock_recipes.c - the kinds of locks that there are: rows R1 to R20 of the
 * checklist in docs/locks.md, each by a test of its name. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock_scripts.h"
#include "queue_scripts.h"
#include "tests/support/dump.h"
#include "tests/support/lock_fixture.h"

enum { LONG_MS = 30000 };

static hf_lock_fixture fixture;

static hf_lock *must(hf_lock_client *locks, hf_lock_opts opts)
{
    if (opts.lease_ms == 0)
        opts.lease_ms = LONG_MS;
    return hf_lock_must(&fixture, locks, "n", opts);
}

/* When the lease of its holder ends, on Redis's clock; 0: nobody holds it. */
static int64_t ends_ms(void)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    int64_t at = look.n > 0 && look.entries[0].granted ? look.entries[0].ends_ms : 0;
    hf_lock_look_done(&look);
    return at;
}

/* ---- R1 ---- */

#define CELL "hf:lock:{n}:cell:n"

static void r1_it_is_the_key_that_others_set_by_set_nx_px(void **state)
{
    const hf_lock_opts spin = {HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .lease_ms = 3000};
    (void)state;
    assert_string_equal(
        hf_fixture_command(&fixture.redis, "SET " CELL " them:1 NX PX 60000"), "OK");
    hf_lock_refused(&fixture, fixture.a, "n", spin, HF_TAKEN);
    hf_lock_refused(&fixture, fixture.a, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    assert_int_equal(hf_fixture_number(&fixture.redis, "DEL " CELL), 1);
    hf_lock *lock = must(fixture.a, spin);
    assert_string_equal(
        hf_fixture_command(&fixture.redis, "SET " CELL " them:2 NX PX 60000"), "(nil)");
    assert_int_equal(hf_fixture_number(&fixture.redis, "DEL " CELL), 1);
    EVENTUALLY(LONG_MS, fixture.lost == 1);
    assert_int_equal(hf_lock_why(lock), HF_LOCK_REFUSED);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_EXPIRED);
}

static void r1_the_owner_is_another_each_time(void **state)
{
    char before[HF_LOCK_OWNER_SIZE] = "";
    (void)state;
    for (int i = 0; i < 20; i++) {
        hf_lock *lock =
            must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
        const char *owner = hf_lock_owner_of(lock);
        assert_int_equal(strlen(owner), 32); /* 128 bits */
        assert_int_equal(strspn(owner, "0123456789abcdef"), 32);
        assert_string_not_equal(owner, before);
        assert_memory_equal(hf_fixture_command(&fixture.redis, "GET " CELL), owner, 32);
        (void)snprintf(before, sizeof before, "%s", owner);
        hf_lock_released(lock);
    }
}

/* ---- R2 ---- */

static void r2_it_is_released_although_the_scripts_were_flushed(void **state)
{
    static const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        hf_lock *lock =
            must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = forms[i]});
        (void)hf_fixture_command(&fixture.redis, "SCRIPT FLUSH");
        assert_int_equal(hf_lock_extend_wait(lock, LONG_MS + 1000, NULL), HF_OK);
        (void)hf_fixture_command(&fixture.redis, "SCRIPT FLUSH");
        hf_lock_released(lock);
        (void)hf_fixture_command(&fixture.redis, "SCRIPT FLUSH");
    }
    hf_lock_released(must(fixture.b, (hf_lock_opts){HF_LOCK_OPTS_INIT}));
}

/* ---- R3 ---- */

/* The same as ends_ms(), by the connection that is not cut. */
static double first_end(void)
{
    return strtod(
        hf_fixture_command(&fixture.redis, "EVAL %s 0",
                           "return redis.call('ZRANGE', 'hf:lock:{n}:x:n', 0, 0, "
                           "'WITHSCORES')[2]"),
        NULL);
}

/* A connection that is cut, scripts that are flushed, a Redis that answers nobody for a
 * while: the guard goes on when it can. */
static void r3_the_guard_renews_through_disturbances(void **state)
{
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 6000});
    double at = first_end();
    assert_true(at > 0);
    (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
    (void)hf_fixture_command(&fixture.redis, "SCRIPT FLUSH");
    (void)hf_fixture_command(&fixture.redis, "CLIENT PAUSE 300 ALL");
    EVENTUALLY(LONG_MS, first_end() > at);
    assert_true(hf_lock_held(lock));
    hf_lock_released(lock);
}

/* Released while its renewal is under way, many times: no renewal brings it back. */
static void r3_nothing_is_renewed_once_it_was_released(void **state)
{
    unsigned seed = (unsigned)hf_test_now_ms();
    (void)state;
    printf("seed %u\n", seed);
    for (int i = 0; i < 30; i++) {
        hf_lock *lock;
        const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = 300,
                                   .wait_ms = LONG_MS};
        assert_int_equal(hf_lock_take(&fixture, fixture.a, "n", opts, &lock), HF_OK);
        hf_test_pause_ms(85 + (unsigned)rand_r(&seed) % 20); /* a third of it */
        hf_lock_release_result result = hf_lock_release_wait(lock, NULL);
        assert_true(result == HF_RELEASE_DONE || result == HF_RELEASE_EXPIRED);
        assert_int_equal(ends_ms(), 0);
    }
    ALWAYS(150, ends_ms() == 0);
}

/* ---- R4 ---- */

static void r4_a_try_has_a_time_to_wait_and_a_time_to_hold(void **state)
{
    const hf_lock_opts brief = {HF_LOCK_OPTS_INIT, .lease_ms = 1000, .fixed = true};
    (void)state;
    hf_lock *lock = must(fixture.a, brief);
    int64_t at = ends_ms();
    hf_lock_refused(&fixture, fixture.b, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 20}, HF_TAKEN);
    hf_lock *next =
        must(fixture.b,
             (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS}); /* by time alone */
    assert_true(hf_fixture_number(&fixture.redis, "EVAL %s 0",
                                  "local t = redis.call('TIME') return t[1] * 1000 + "
                                  "math.floor(t[2] / 1000)") >= at);
    assert_false(hf_lock_held(lock));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_NOT_OWNER);
    hf_lock_released(next);
    lock = must(fixture.a, brief);
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_EXPIRED);
    assert_int_equal(ends_ms(), 0);
}

/* ---- R5, R6 ---- */

/* An owner whose lock was lost, and does not know it yet, takes it again: that is a new
 * hold, the first one of it, under a fence of its own. */
static void r5_a_lost_hold_is_not_counted(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me",
                               .lease_ms = LONG_MS};
    (void)state;
    hf_lock *lost = must(fixture.a, opts);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:x:n hf:lock:{n}:e:n");
    hf_lock *lock = must(fixture.a, opts);
    assert_true(hf_lock_fence(lock) > hf_lock_fence(lost));
    hf_lock_released(lock);
    hf_lock_released(must(fixture.b, (hf_lock_opts){HF_LOCK_OPTS_INIT}));
    assert_int_equal(hf_lock_release_wait(lost, NULL), HF_RELEASE_EXPIRED);
}

static void r5_entering_again_does_not_shorten_the_lease(void **state)
{
    hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me",
                         .lease_ms = LONG_MS};
    (void)state;
    hf_lock *outer = must(fixture.a, opts);
    int64_t at = ends_ms();
    opts.lease_ms = 2000;
    hf_lock *inner = must(fixture.a, opts);
    assert_true(ends_ms() >= at);
    assert_int_equal(hf_lock_release_wait(inner, NULL), HF_RELEASE_STILL_HELD);
    assert_true(ends_ms() >= at);
    assert_true(ends_ms() <= at + LONG_MS); /* set, not added */
    hf_lock_released(outer);
}

static int inner_calls;

static void inner_function(const char *owner)
{
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .reentrant = true,
                                                   .owner = owner, .wait_ms = -1});
    inner_calls++;
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_STILL_HELD);
}

static void r6_a_nested_call_does_not_wait_for_itself(void **state)
{
    char owner[HF_LOCK_OWNER_SIZE];
    (void)state;
    assert_int_equal(hf_lock_owner_make(owner), HF_OK);
    hf_lock *lock = must(
        fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .reentrant = true, .owner = owner});
    inner_function(owner);
    assert_int_equal(inner_calls, 1);
    hf_lock_refused(&fixture, fixture.b, "n", (hf_lock_opts){HF_LOCK_OPTS_INIT},
                    HF_TAKEN);
    hf_lock_released(lock);
}

/* ---- R7 ---- */

static void r7_a_spinning_waiter_asks_less_and_less(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock =
        must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
    hf_lock_refused(
        &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .wait_ms = 30}, HF_TAKEN);
    long long before = hf_fixture_calls(&fixture.redis, "evalsha");
    uint64_t start_ms = hf_test_now_ms();
    hf_lock_wait_begin(
        &w, &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN, .wait_ms = 2 * LONG_MS});
    ALWAYS(1000, !w.done);
    long long asked = hf_fixture_calls(&fixture.redis, "evalsha") - before;
    uint64_t took_ms = hf_test_now_ms() - start_ms;
    printf("%lld requests in %d ms\n", asked, (int)took_ms);
    assert_in_range(asked, 2, 12 + took_ms / 40); /* 1, 2, ... 128 ms, at least half */
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:lock:{n}:q:n"), 0);
    hf_lock_released(lock);
    hf_lock_wait_released(&w);
}

/* ---- R8 ---- */

typedef struct ticket {
    size_t place;
    hf_lock *lock;
} ticket;

static atomic_size_t served;
static atomic_bool out_of_order;

static void on_served(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    const ticket *t = arg;
    (void)detail;
    if (err != HF_OK || atomic_load(&served) != t->place)
        atomic_store(&out_of_order, true);
    atomic_fetch_add(&served, 1);
    if (err == HF_OK)
        hf_lock_release(lock, NULL, NULL);
}

static void r8_five_hundred_are_served_as_they_came(void **state)
{
    enum { ALL = 500 };
    static const char *const name = "n";
    static ticket tickets[ALL];
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = 10 * LONG_MS};
    (void)state;
    atomic_store(&served, 0);
    hf_lock_released(
        must(fixture.b, (hf_lock_opts){HF_LOCK_OPTS_INIT})); /* Redis knows the scripts */
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
    for (size_t i = 0; i < ALL; i++) {
        tickets[i].place = i;
        assert_int_equal(hf_lock_acquire(i / 10 % 2 ? fixture.a : fixture.b, &opts,
                                         on_served, &tickets[i], NULL, fixture.detail),
                         HF_OK);
        if (i % 10 == 9) /* the next ones come by the other client */
            EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == (long long)i + 1);
    }
    hf_lock_released(lock);
    EVENTUALLY(LONG_MS, served == ALL);
    assert_false(out_of_order);
    EVENTUALLY(LONG_MS, ends_ms() == 0);
}

/* The head of the line is killed, gives up, or is cancelled: the next one is the head. */
static void r8_a_head_that_goes_is_passed(void **state)
{
    hf_locker dead;
    hf_lock_waiter brief, last;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_locker_start(&dead, fixture.redis.dir, fixture.redis.url, "n", "lease=500");
    EVENTUALLY(LONG_MS, hf_lock_queue(&fixture, "n") == 1);
    hf_lock_wait_begin(&brief, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 300});
    hf_lock_wait_begin(&last, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS});
    hf_locker_kill(&dead);
    hf_lock_wait_end(&brief);
    assert_int_equal(brief.err, HF_TAKEN);
    hf_lock_released(lock);
    hf_lock_wait_released(&last);
}

/* ---- R11, R15 ---- */

enum { PEOPLE = 8, STEPS = 250 };

/* One who reads or writes: the model knows its place in the line, and whether it is in.
 */
typedef struct person {
    hf_lock *lock;
    atomic_int told; /* 1: not yet */
    bool here, writes, inside;
    unsigned place;
} person;

static person people[PEOPLE];

static void on_let_in(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    person *p = arg;
    (void)detail;
    p->lock = lock;
    atomic_store(&p->told, err);
}

/* In order of arrival: a reader comes in when nobody before it writes, a writer when
 * nobody is before it. */
static void model_lets_in(void)
{
    for (size_t i = 0; i < PEOPLE; i++) {
        bool fits = people[i].here;
        for (size_t k = 0; k < PEOPLE; k++)
            if (people[k].here && people[k].place < people[i].place)
                fits = fits && !people[i].writes && !people[k].writes;
        people[i].inside = people[i].inside || fits;
    }
}

static bool is_as_the_model_says(void)
{
    for (size_t i = 0; i < PEOPLE; i++)
        if (people[i].here && (people[i].told == HF_OK) != people[i].inside)
            return false;
    return true;
}

static void come(person *p, hf_lock_client *locks, bool writes, unsigned place)
{
    static const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT,
                               .names = &name,
                               .n_names = 1,
                               .wait_ms = -1,
                               .lease_ms = 10 * LONG_MS,
                               .mode = writes ? HF_LOCK_EXCLUSIVE : HF_LOCK_SHARED};
    long long before = hf_fixture_number(&fixture.redis, "ZCARD hf:lock:{n}:x:n");
    p->here = true;
    p->inside = false;
    p->writes = writes;
    p->place = place;
    atomic_store(&p->told, 1);
    assert_int_equal(hf_lock_acquire(locks, &opts, on_let_in, p, NULL, fixture.detail),
                     HF_OK);
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&fixture.redis, "ZCARD hf:lock:{n}:x:n") == before + 1);
}

static void r11_readers_and_writers_do_as_a_model_of_them(void **state)
{
    unsigned seed = (unsigned)hf_test_now_ms(), place = 0, downgrades = 0;
    (void)state;
    printf("seed %u\n", seed);
    memset(people, 0, sizeof people);
    for (int step = 0; step < STEPS; step++) {
        person *p = &people[(unsigned)rand_r(&seed) % PEOPLE];
        if (!p->here) {
            come(p, rand_r(&seed) % 2 ? fixture.a : fixture.b, rand_r(&seed) % 3 == 0,
                 ++place);
        } else if (p->inside && p->writes && rand_r(&seed) % 2) {
            assert_int_equal(hf_lock_downgrade_wait(p->lock, NULL), HF_OK);
            p->writes = false;
            downgrades++;
        } else if (p->inside) {
            p->here = p->inside = false;
            hf_lock_released(p->lock);
        }
        model_lets_in();
        EVENTUALLY(LONG_MS, is_as_the_model_says());
    }
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < PEOPLE; i++)
            if (people[i].inside) {
                people[i].here = people[i].inside = false;
                hf_lock_released(people[i].lock);
                model_lets_in();
                EVENTUALLY(LONG_MS, is_as_the_model_says());
                any = true;
            }
    }
    assert_int_equal(ends_ms(), 0);
    printf("%u came, %u downgrades\n", place, downgrades);
    assert_true(downgrades > 0);
}

static void r11_a_reader_that_dies_leaves_the_others(void **state)
{
    hf_locker dead;
    hf_lock *readers[9];
    hf_lock_waiter writer;
    (void)state;
    hf_locker_start(&dead, fixture.redis.dir, fixture.redis.url, "n", "lease=500 shared");
    EVENTUALLY(LONG_MS, hf_locker_said(&dead, "held", NULL));
    for (size_t i = 0; i < HF_COUNT(readers); i++)
        readers[i] = must(i % 2 ? fixture.a : fixture.b,
                          (hf_lock_opts){HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED});
    hf_lock_wait_begin(&writer, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS});
    hf_locker_kill(&dead);
    for (size_t i = 0; i < HF_COUNT(readers); i++) {
        assert_true(hf_lock_held(readers[i]));
        assert_false(writer.done);
        hf_lock_released(readers[i]);
    }
    hf_lock_wait_end(&writer); /* when the lease of the dead is over */
    assert_int_equal(writer.err, HF_OK);
    hf_lock_released(writer.lock);
}

static void r15_a_downgrade_lets_in_only_the_next_readers(void **state)
{
    const hf_lock_opts shared = {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED,
                                 .wait_ms = 2 * LONG_MS};
    const hf_lock_opts alone = {HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS};
    hf_lock_waiter reader, writer, late;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
    hf_lock_wait_begin(&reader, &fixture, fixture.b, "n", shared);
    hf_lock_wait_begin(&writer, &fixture, fixture.a, "n", alone);
    hf_lock_wait_begin(&late, &fixture, fixture.b, "n", shared);
    assert_int_equal(hf_lock_downgrade_wait(lock, NULL), HF_OK);
    hf_lock_wait_end(&reader);
    assert_int_equal(reader.err, HF_OK);
    ALWAYS(50, !writer.done && !late.done);
    assert_true(hf_lock_held(lock));
    hf_lock_released(lock);
    ALWAYS(50, !writer.done);
    hf_lock_released(reader.lock);
    hf_lock_wait_released(&writer);
    hf_lock_wait_released(&late);
}

/* ---- R12 ---- */

static void r12_places_and_fences_rise_in_order_of_arrival(void **state)
{
    hf_lock_waiter w[6];
    double places[HF_COUNT(w)];
    uint64_t fence;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
    fence = hf_lock_fence(lock);
    for (size_t i = 0; i < HF_COUNT(w); i++) {
        hf_lock_wait_begin(&w[i], &fixture, i % 2 ? fixture.a : fixture.b, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS});
        const char *last =
            hf_fixture_command(&fixture.redis, "EVAL %s 0",
                               "return redis.call('ZRANGE', "
                               "'hf:lock:{n}:q:n', -1, -1, 'WITHSCORES')[2]");
        places[i] = strtod(last, NULL);
        assert_true(places[i] > (i == 0 ? (double)fence : places[i - 1]));
    }
    for (size_t i = 0; i < HF_COUNT(w); i++) {
        hf_lock_released(lock);
        hf_lock_wait_end(&w[i]);
        lock = w[i].lock;
        assert_true(hf_lock_fence(lock) > fence);
        fence = hf_lock_fence(lock);
    }
    hf_lock_released(lock);
}

/* ---- R13 ---- */

static void r13_a_holder_that_is_asked_gives_it_back(void **state)
{
    hf_lock_waiter w;
    size_t n = 9;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 3000});
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n",
                       (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS});
    assert_int_equal(hf_lock_revoke(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    assert_int_equal(n, 1);
    EVENTUALLY(LONG_MS, fixture.revoked == 1);
    assert_true(hf_lock_held(lock)); /* it was asked, no more */
    assert_false(w.done);
    hf_lock_released(lock);
    hf_lock_wait_released(&w);
}

static void *take_and_give_back(void *arg)
{
    hf_lock *lock;
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = arg,
                               .wait_ms = 2 * LONG_MS, .lease_ms = LONG_MS};
    for (int i = 0; i < 20; i++) {
        char detail[HF_DETAIL_SIZE];
        static const char *const name = "n";
        hf_lock_opts o = opts;
        o.names = &name;
        o.n_names = 1;
        if (hf_lock_acquire_wait(fixture.a, &o, &lock, detail) != HF_OK ||
            hf_lock_release_wait(lock, NULL) != HF_RELEASE_DONE)
            return NULL;
    }
    return arg;
}

static void r13_two_threads_are_two_owners(void **state)
{
    pthread_t threads[2];
    static char owners[2][8] = {"one", "two"};
    void *answer;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, owners[i]),
                         0);
    for (size_t i = 0; i < HF_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], &answer), 0);
        assert_ptr_equal(answer, owners[i]);
    }
}

/* A Redis that comes back empty knows neither the holder nor the line: the holder is told
 * so, and who waited stands in line anew. */
static void r13_a_restart_of_redis_loses_the_lock_and_not_the_waiter(void **state)
{
    hf_lock_waiter w;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 2000});
    hf_lock_wait_begin(
        &w, &fixture, fixture.b, "n",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = 2 * LONG_MS, .lease_ms = 2000});
    hf_fixture_kill(&fixture.redis, SIGKILL);
    hf_fixture_restart(&fixture.redis);
    EVENTUALLY(LONG_MS, !hf_lock_held(lock));
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_true(hf_lock_fence(w.lock) > hf_lock_fence(lock));
    hf_lock_release_result result = hf_lock_release_wait(lock, NULL);
    assert_true(result == HF_RELEASE_NOT_OWNER || result == HF_RELEASE_EXPIRED);
    hf_lock_released(w.lock);
}

/* ---- R14 ---- */

static void *give_back(void *arg)
{
    return hf_lock_release_wait(arg, NULL) == HF_RELEASE_DONE ? arg : NULL;
}

static void r14_any_thread_may_release(void **state)
{
    pthread_t thread;
    void *answer;
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "me"});
    hf_lock_refused(&fixture, fixture.a, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "me"}, HF_DEADLOCK);
    assert_int_equal(pthread_create(&thread, NULL, give_back, lock), 0);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ptr_equal(answer, lock);
    hf_lock_released(must(fixture.b, (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "me"}));
}

/* ---- R17 and R19: all or nothing ---- */

static redisContext *connection;

static redisReply *send(const hf_script *script, const char *prefix,
                        const char *const *args)
{
    const char *argv[20] = {"EVAL", (const char *)script->text, "1", prefix};
    size_t lens[20] = {4, script->len, 1, strlen(prefix)};
    int n = 4;
    for (size_t i = 0; args[i] != NULL; i++, n++) {
        argv[n] = args[i];
        lens[n] = strlen(args[i]);
    }
    redisReply *reply = redisCommandArgv(connection, n, argv, lens);
    assert_non_null(reply);
    return reply;
}

static void r17_several_members_are_added_or_none(void **state)
{
    (void)state;
    assert_string_equal(hf_fixture_command(&fixture.redis, "ZADD z 1 a nonsense b 3 c"),
                        "(error) ERR value is not a valid float");
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS z"), 0);
    assert_memory_equal(hf_fixture_command(&fixture.redis, "ZADD z NX XX 1 a"), "(error)",
                        7);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS z"), 0);
    /* So the queue's: two jobs, of which the second has no delay that is a number. */
    static const char *const args[] = {"",  "0",    "0",   "0",        "0",    "one",
                                       "0", "{}\n", "two", "nonsense", "{}\n", NULL};
    connection = hf_fixture_connect(&fixture.redis);
    redisReply *reply = send(&hf_lua_queue_enqueue, "hf:{q}:", args);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    assert_int_equal(
        hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:schedule hf:{q}:job:one"), 0);
    redisFree(connection);
}

#define PREFIX "hf:lock:{n}:"

/* What each script wants is in its head. */
#define ACQUIRE(owner, mode, limit, flags, ...)                                          \
    {                                                                                    \
        &hf_lua_lock_acquire,                                                            \
        {                                                                                \
            owner, "h4", "c4", mode, "1", limit, flags, "30000", "0", "m", "0", "",      \
                __VA_ARGS__                                                              \
        }                                                                                \
    }
#define RELEASE(owner, hold, how)                                                        \
    {                                                                                    \
        &hf_lua_lock_release,                                                            \
        {                                                                                \
            owner, hold, how, "0", "m", "", "n"                                          \
        }                                                                                \
    }

static const struct attempt {
    const hf_script *script;
    const char *args[16];
} attempts[] = {
    ACQUIRE("o4", "x", "0", "wait", "n"),
    ACQUIRE("o1", "x", "0", "reentrant", "n"),
    ACQUIRE("o4", "s", "0", "-", "m", "n"),
    ACQUIRE("o4", "p", "2", "wait", "n"),
    ACQUIRE("o4", "x", "0", "cell", "n"),
    RELEASE("o1", "h1", "-"),
    RELEASE("o1", "h1", "downgrade"),
    RELEASE("o2", "h2", "-"),
    RELEASE("o1", "h1", "cell"),
    {&hf_lua_lock_force, {"n", "", "0", "0", ""}},
    {&hf_lua_lock_force, {"n", "o1", "1", "0", ""}},
    {&hf_lua_lock_fence_check, {"n", "7", "o1", "60000"}},
    {&hf_lua_lock_look, {"n", "10"}},
};

/* One holds, two wait; then one of the keys is of another type. */
static void prepare_broken(const char *key)
{
    static const char *const owners[] = {"o1", "o2", "o3"};
    static const char *const holds[] = {"h1", "h2", "h3"};
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    for (size_t i = 0; i < HF_COUNT(owners); i++) {
        const char *const args[] = {owners[i], holds[i], "c1", "x", "1", "0", "wait",
                                    "30000",   "0",      "m",  "0", "",  "n", NULL};
        redisReply *reply = send(&hf_lua_lock_acquire, PREFIX, args);
        assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
        freeReplyObject(reply);
    }
    const char *type = hf_fixture_command(&fixture.redis, "TYPE " PREFIX "%s", key);
    bool string = strcmp(type, "string") == 0 || strcmp(type, "none") == 0;
    (void)hf_fixture_command(&fixture.redis, "DEL " PREFIX "%s", key);
    (void)hf_fixture_command(&fixture.redis,
                             string ? "SADD " PREFIX "%s 1" : "SET " PREFIX "%s 1", key);
}

/* Scripts do not roll back: so each looks at all that it needs before it writes. */
static void r19_a_script_that_fails_has_changed_nothing(void **state)
{
    static const char *const keys[] = {"fence", "x:n", "q:n", "e:n", "cell:n", "guard:n"};
    unsigned failed = 0;
    char difference[256];
    (void)state;
    connection = hf_fixture_connect(&fixture.redis);
    for (size_t k = 0; k < HF_COUNT(keys); k++) {
        for (size_t i = 0; i < HF_COUNT(attempts); i++) {
            hf_dump before, after;
            prepare_broken(keys[k]);
            hf_dump_take(&before, connection);
            redisReply *reply = send(attempts[i].script, PREFIX, attempts[i].args);
            hf_dump_take(&after, connection);
            if (reply->type == REDIS_REPLY_ERROR) {
                failed++;
                if (!hf_dump_same(&before, &after, difference, sizeof difference))
                    fail_msg("%s (%zu) with a broken %s: %s: %s",
                             attempts[i].script->name, i, keys[k], reply->str,
                             difference);
            }
            freeReplyObject(reply);
            hf_dump_done(&before);
            hf_dump_done(&after);
        }
    }
    printf("%u of %zu failed\n", failed, HF_COUNT(keys) * HF_COUNT(attempts));
    assert_true(failed > 30);
    redisFree(connection);
}

/* ---- R20 ---- */

static hf_err check(uint64_t fence, const char *owner)
{
    return hf_fence_check(fixture.a, "n", fence, owner, 60000, NULL, fixture.detail);
}

static void r20_a_stale_fence_may_not_write(void **state)
{
    (void)state;
    hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "one"});
    uint64_t first = hf_lock_fence(lock);
    hf_lock_released(lock);
    lock = must(fixture.b, (hf_lock_opts){HF_LOCK_OPTS_INIT, .owner = "two"});
    uint64_t second = hf_lock_fence(lock);
    assert_int_equal(check(first, "one"), HF_OK);
    assert_int_equal(check(first, "two"), HF_LOST); /* the same one of another */
    assert_int_equal(check(second, "two"), HF_OK);
    assert_int_equal(check(second, "two"), HF_OK);
    assert_int_equal(check(first, "one"), HF_LOST);
    hf_lock_released(lock);
}

int main(void)
{
#define TEST(name) HF_LOCK_TEST(name, &fixture)
    const struct CMUnitTest tests[] = {
        TEST(r1_it_is_the_key_that_others_set_by_set_nx_px),
        TEST(r1_the_owner_is_another_each_time),
        TEST(r2_it_is_released_although_the_scripts_were_flushed),
        TEST(r3_the_guard_renews_through_disturbances),
        TEST(r3_nothing_is_renewed_once_it_was_released),
        TEST(r4_a_try_has_a_time_to_wait_and_a_time_to_hold),
        TEST(r5_a_lost_hold_is_not_counted),
        TEST(r5_entering_again_does_not_shorten_the_lease),
        TEST(r6_a_nested_call_does_not_wait_for_itself),
        TEST(r7_a_spinning_waiter_asks_less_and_less),
        TEST(r8_five_hundred_are_served_as_they_came),
        TEST(r8_a_head_that_goes_is_passed),
        TEST(r11_readers_and_writers_do_as_a_model_of_them),
        TEST(r11_a_reader_that_dies_leaves_the_others),
        TEST(r12_places_and_fences_rise_in_order_of_arrival),
        TEST(r13_a_holder_that_is_asked_gives_it_back),
        TEST(r13_two_threads_are_two_owners),
        TEST(r13_a_restart_of_redis_loses_the_lock_and_not_the_waiter),
        TEST(r14_any_thread_may_release),
        TEST(r15_a_downgrade_lets_in_only_the_next_readers),
        TEST(r17_several_members_are_added_or_none),
        TEST(r19_a_script_that_fails_has_changed_nothing),
        TEST(r20_a_stale_fence_may_not_write),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
