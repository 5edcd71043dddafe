/* test_lock_life.c - clients of locks from their beginning to their end: on a loop of the
 * caller's, with many threads, with many locks, closed while much is under way, after a
 * fork. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "tests/support/lock_fixture.h"

enum { PATIENCE_MS = 30000, LONG_MS = 60000 };

static hf_lock_fixture fixture;
static int failed; /* its address is what a thread gives that failed */

static hf_lock *must(hf_lock_client *locks, const char *name)
{
    return hf_lock_must(&fixture, locks, name, (hf_lock_opts){HF_LOCK_OPTS_INIT});
}

/* ---- on a loop of the caller's ---- */

static uv_loop_t loop;
static hf_lock_client *on_loop;
static int answers[8], n_answers, closed;
static hf_lock *kept;

static void loop_up(void)
{
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop,
        .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    assert_int_equal(uv_loop_init(&loop), 0);
    n_answers = closed = 0;
    kept = NULL;
    assert_int_equal(hf_lock_client_open(&on_loop, &opts, fixture.detail), HF_OK);
}

static void loop_until(const int *what, int n)
{
    uint64_t until = hf_test_fair_ms() + PATIENCE_MS;
    while (*what < n && hf_test_fair_ms() < until)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(*what, n);
}

static void on_closed(void *arg)
{
    (void)arg;
    closed++;
}

static void loop_down(void)
{
    loop_until(&closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void note(int err)
{
    assert_true(n_answers < (int)HF_COUNT(answers));
    answers[n_answers++] = err;
}

static void on_got(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)arg;
    assert_non_null(detail);
    if (err == HF_OK)
        kept = lock;
    note(err);
}

static void on_given(hf_lock *lock, hf_lock_release_result result, size_t left, void *arg)
{
    (void)lock;
    (void)arg;
    assert_int_equal(left, 0);
    note((int)result);
}

static hf_lock *ask_for(const char *name, int64_t wait_ms, hf_lock_acquired_cb cb)
{
    hf_lock *lock;
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = wait_ms, .lease_ms = LONG_MS};
    int before = n_answers;
    assert_int_equal(hf_lock_acquire(on_loop, &opts, cb, NULL, &lock, fixture.detail),
                     HF_OK);
    assert_int_equal(n_answers, before); /* nothing is called from inside the call */
    return lock;
}

static void on_shared(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    (void)arg;
    note(err);
    hf_lock_release(lock, on_given, NULL); /* from inside a callback */
}

static void on_got_then_downgrade(hf_lock *lock, hf_err err, const char *detail,
                                  void *arg)
{
    on_got(lock, err, detail, arg);
    assert_int_equal(hf_lock_downgrade(lock, on_shared, NULL, NULL), HF_OK);
}

static void all_calls_work_on_a_loop(void **state)
{
    hf_lock *waited;
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    (void)state;
    loop_up();
    (void)ask_for("n", 0, on_got_then_downgrade);
    loop_until(&n_answers, 3);
    assert_int_equal(answers[0], HF_OK);
    assert_int_equal(answers[1], HF_OK);
    assert_int_equal(answers[2], HF_RELEASE_DONE);
    (void)ask_for("n", 0, on_got);
    loop_until(&n_answers, 4);
    hf_lock *lock = kept;
    assert_true(hf_lock_held(lock));
    hf_lock_cancel(ask_for("n", -1, on_got));
    loop_until(&n_answers, 5);
    assert_int_equal(answers[4], HF_CANCEL);
    /* What waits is refused, and does no harm. */
    assert_int_equal(hf_lock_acquire_wait(on_loop, &opts, &waited, fixture.detail),
                     HF_INVALID);
    assert_int_equal(hf_lock_look_at(on_loop, "n", 9, &look, fixture.detail), HF_INVALID);
    assert_int_equal(hf_lock_extend_wait(lock, 1000, NULL), HF_INVALID);
    assert_true(hf_lock_held(lock));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_UNKNOWN);
    (void)ask_for("n", 5000, on_got);
    loop_until(&n_answers, 6);
    assert_int_equal(answers[5], HF_OK);
    hf_lock_client_close(on_loop, on_closed, NULL);
    assert_int_equal(closed, 0);
    loop_down();
    assert_true(hf_lock_is_free(&fixture, "n"));
}

static void close_now(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    on_got(lock, err, detail, arg);
    hf_lock_client_close(on_loop, on_closed, NULL);
}

static void it_can_be_closed_from_inside_a_callback(void **state)
{
    (void)state;
    loop_up();
    (void)ask_for("n", 0, on_got);
    loop_until(&n_answers, 1);
    (void)ask_for("n", -1, on_got);
    (void)ask_for("m", 0, close_now);
    (void)ask_for("l", 0, on_got);
    loop_until(&n_answers, 4);
    loop_down();
    int ok = 0, ended = 0;
    for (int i = 0; i < 4; i++) {
        ok += answers[i] == HF_OK;
        ended += answers[i] == HF_CLOSED;
    }
    assert_true(ok >= 2 && ok + ended == 4);
    assert_true(hf_lock_is_free(&fixture, "n") && hf_lock_is_free(&fixture, "m") &&
                hf_lock_is_free(&fixture, "l"));
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void a_client_that_cannot_be_had_leaves_the_loop_alone(void **state)
{
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop,
                                      .server = HF_SERVER(.url = "redis://[nowhere")};
    uv_timer_t other;
    hf_lock_client *none = NULL;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &other), 0);
    assert_int_equal(uv_timer_start(&other, on_tick, 1, 1), 0); /* for ever */
    assert_int_not_equal(hf_lock_client_open(&none, &opts, fixture.detail), HF_OK);
    assert_null(none);
    uv_close((uv_handle_t *)&other, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- many threads ---- */

enum { THREADS = 64, ROUNDS = 5 };
static int guarded, inside;
static atomic_int worst;

/* NULL, or why it failed, to be freed. */
static void *count(void *arg)
{
    char detail[HF_DETAIL_SIZE] = "not released";
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = LONG_MS};
    for (int i = 0; i < ROUNDS; i++) {
        hf_lock *lock;
        if (hf_lock_acquire_wait(arg, &opts, &lock, detail) != HF_OK)
            return strdup(detail);
        if (++inside > 1)
            atomic_store(&worst, inside);
        guarded++; /* under the lock alone */
        inside--;
        if (hf_lock_release_wait(lock, NULL) != HF_RELEASE_DONE)
            return strdup(detail);
    }
    return NULL;
}

static void threads_of_one_client_come_one_after_the_other(void **state)
{
    pthread_t threads[THREADS];
    hf_lock_client *locks;
    const hf_lock_client_opts patient = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis),
                            .connect_timeout_ms = PATIENCE_MS,
                            .request_timeout_ms = PATIENCE_MS)};
    (void)state;
    assert_int_equal(hf_lock_client_open(&locks, &patient, fixture.detail), HF_OK);
    guarded = inside = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, locks), 0);
    for (int i = 0; i < THREADS; i++) {
        void *why;
        assert_int_equal(pthread_join(threads[i], &why), 0);
        if (why != NULL)
            fail_msg("%s", (char *)why);
    }
    hf_lock_client_close(locks, NULL, NULL);
    assert_int_equal(guarded, THREADS * ROUNDS);
    assert_int_equal(worst, 0);
    assert_true(hf_lock_is_free(&fixture, "n"));
}

static void *wait_for_the_end(void *arg)
{
    char detail[HF_DETAIL_SIZE];
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = LONG_MS};
    hf_lock *lock;
    return hf_lock_acquire_wait(arg, &opts, &lock, detail) == HF_CLOSED ? NULL : &failed;
}

/* The one that runs the loop is among those that are told; closing waits for it. */
static void closing_tells_all_that_wait_and_gives_all_back(void **state)
{
    enum { WAITERS = 16, TIMES = 10 };
    (void)state;
    for (int k = 0; k < TIMES; k++) {
        pthread_t threads[WAITERS];
        hf_lock_client *locks =
            hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
        (void)must(locks, "n");
        (void)hf_lock_must(&fixture, locks, "m",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN});
        for (int i = 0; i < WAITERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_the_end, locks),
                             0);
        EVENTUALLY(PATIENCE_MS, hf_lock_queue(&fixture, "n") == WAITERS);
        hf_lock_client_close(locks, NULL, NULL);
        for (int i = 0; i < WAITERS; i++) {
            void *why;
            assert_int_equal(pthread_join(threads[i], &why), 0);
            assert_null(why);
        }
        assert_true(hf_lock_is_free(&fixture, "n") && hf_lock_is_free(&fixture, "m"));
    }
}

static atomic_int acquired_told, shared_told;

static void on_end_of_wait(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)lock;
    (void)detail;
    (void)arg;
    atomic_store(&acquired_told, err);
}

static void on_end_of_change(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    (void)lock;
    (void)arg;
    atomic_store(&shared_told, err);
}

/* Nothing is answered: it ends all the same, and so does all that is under way. */
static void closing_ends_although_redis_hangs(void **state)
{
    const char *const name = "m";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1};
    (void)state;
    hf_lock_client *locks =
        hf_lock_fixture_open(&fixture, hf_fixture_url(&fixture.redis));
    hf_lock *lock = must(locks, "n");
    atomic_store(&acquired_told, HF_OK);
    atomic_store(&shared_told, HF_OK);
    hf_fixture_signal(&fixture.redis, SIGSTOP);
    assert_int_equal(
        hf_lock_acquire(locks, &opts, on_end_of_wait, NULL, NULL, fixture.detail), HF_OK);
    assert_int_equal(hf_lock_downgrade(lock, on_end_of_change, NULL, NULL), HF_OK);
    hf_lock_client_close(locks, NULL, NULL);
    hf_fixture_signal(&fixture.redis, SIGCONT);
    assert_int_equal(acquired_told, HF_CLOSED);
    assert_true(shared_told == HF_UNSURE || shared_told == HF_CLOSED);
}

/* ---- many locks ---- */

static atomic_int got, gone;
static hf_lock *many[300];

static void on_one_got(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)detail;
    if (err == HF_OK)
        *(hf_lock **)arg = lock;
    atomic_fetch_add(&got, err == HF_OK);
}

static void on_one_gone(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    (void)lock;
    (void)left;
    (void)arg;
    atomic_fetch_add(&gone, result == HF_RELEASE_DONE);
}

static void hundreds_are_held_and_renewed(void **state)
{
    (void)state;
    atomic_store(&got, 0);
    atomic_store(&gone, 0);
    for (size_t i = 0; i < HF_COUNT(many); i++) {
        char text[32];
        const char *const name = text;
        const hf_lock_opts opts = {
            HF_LOCK_OPTS_INIT, .names = &name,
            .n_names = 1,      .form = i % 2 ? HF_LOCK_SPIN : HF_LOCK_LINE,
            .wait_ms = 5000,   .lease_ms = 3000};
        (void)snprintf(text, sizeof text, "%s/%zu", i % 3 ? "t" : "u", i);
        assert_int_equal(
            hf_lock_acquire(fixture.a, &opts, on_one_got, &many[i], NULL, fixture.detail),
            HF_OK);
    }
    EVENTUALLY(PATIENCE_MS, got == (int)HF_COUNT(many));
    hf_test_pause_ms(3500); /* longer than a lease */
    for (size_t i = 0; i < HF_COUNT(many); i++)
        assert_true(hf_lock_held(many[i]));
    for (size_t i = 0; i < HF_COUNT(many); i++)
        hf_lock_release(many[i], on_one_gone, NULL);
    EVENTUALLY(PATIENCE_MS, gone == (int)HF_COUNT(many));
    assert_int_equal(hf_fixture_number(&fixture.redis, "DBSIZE"), 2); /* the fences */
}

enum { N_TAGS = 300, TAG_LEASE_MS = 6000 };

/* A client listens for 256 tags. Of the others it hears by renewals, each at a third of a
 * lease, and it listens for them when those that it hears are granted. */
static void more_tags_than_it_listens_for_are_granted_within_a_third(void **state)
{
    static hf_lock *held[N_TAGS], *waiting[N_TAGS];
    (void)state;
    atomic_store(&got, 0);
    for (size_t i = 0; i < N_TAGS; i++) {
        char text[32];
        const char *const name = text;
        const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                                   .wait_ms = -1, .lease_ms = TAG_LEASE_MS};
        (void)snprintf(text, sizeof text, "tag%zu", i);
        held[i] = hf_lock_must(&fixture, fixture.b, text,
                               (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
        assert_int_equal(hf_lock_acquire(fixture.a, &opts, on_one_got, &many[i],
                                         &waiting[i], fixture.detail),
                         HF_OK);
        EVENTUALLY(PATIENCE_MS, hf_lock_get_state(waiting[i]) == HF_LOCK_WAITING);
    }
    uint64_t from_ms = hf_test_fair_ms();
    for (size_t i = 0; i < N_TAGS; i++)
        hf_lock_release(held[i], NULL, NULL);
    EVENTUALLY(PATIENCE_MS, got == N_TAGS);
    assert_in_range(hf_test_fair_ms() - from_ms, 0, TAG_LEASE_MS);
}

/* ---- a lock's time ---- */

static void a_lease_can_be_set_anew(void **state)
{
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 20000});
    assert_int_equal(hf_lock_extend_wait(lock, 99, NULL), HF_INVALID);
    assert_int_equal(hf_lock_extend_wait(lock, HF_LOCK_LEASE_MAX_MS + 1, NULL),
                     HF_INVALID);
    assert_int_equal(hf_lock_extend_wait(lock, LONG_MS, NULL), HF_OK);
    assert_true(hf_lock_remaining_ms(lock) > 40000);
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    assert_int_equal(hf_lock_look_at(fixture.b, "n", 1, &look, fixture.detail), HF_OK);
    assert_true(look.entries[0].ends_ms - look.now_ms > 40000);
    hf_lock_look_done(&look);
    assert_int_equal(hf_lock_extend_wait(lock, 1000, NULL), HF_OK); /* never shortens */
    assert_true(hf_lock_remaining_ms(lock) > 40000);
    assert_true(hf_lock_held(lock));
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);

    lock =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 4000, .fixed = true});
    assert_int_equal(hf_lock_extend_wait(lock, 8000, NULL), HF_OK);
    assert_true(hf_lock_remaining_ms(lock) > 4000);
    EVENTUALLY(PATIENCE_MS, !hf_lock_held(lock)); /* it is not renewed all the same */
    assert_int_equal(hf_lock_extend_wait(lock, 3000, NULL), HF_LOST);
    (void)hf_lock_release_wait(lock, NULL);

    lock = must(fixture.a, "n");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:lock:{n}:x:n");
    assert_int_equal(hf_lock_extend_wait(lock, 3000, NULL), HF_LOST);
    (void)hf_lock_release_wait(lock, NULL);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void a_descriptor_tells_of_the_loss(void **state)
{
    size_t n;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 6000});
    int fd = hf_lock_fd(lock);
    assert_true(fd >= 0 && hf_lock_fd(lock) == fd);
    assert_false(is_readable(fd));
    assert_int_equal(hf_lock_force(fixture.b, "n", NULL, &n, fixture.detail), HF_OK);
    EVENTUALLY(PATIENCE_MS, is_readable(fd));
    assert_false(hf_lock_held(lock));
    assert_int_equal(hf_lock_why(lock), HF_LOCK_FORCED);
    (void)hf_lock_release_wait(lock, NULL);

    lock =
        hf_lock_must(&fixture, fixture.a, "n",
                     (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 300, .fixed = true});
    EVENTUALLY(PATIENCE_MS, !hf_lock_held(lock));
    assert_true(is_readable(hf_lock_fd(lock))); /* also one that is made after it */
    (void)hf_lock_release_wait(lock, NULL);
}

/* ---- a full Redis, a fork ---- */

static void a_full_redis_refuses_no_lock(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .lease_ms = 1200};
    (void)state;
    hf_lock *line = hf_lock_must(&fixture, fixture.a, "n", opts);
    hf_lock *cell = hf_lock_must(
        &fixture, fixture.a, "m",
        (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 1200, .form = HF_LOCK_SPIN});
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 1");
    assert_non_null(strstr(hf_fixture_command(&fixture.redis, "SET other value"), "OOM"));
    ALWAYS(2500, hf_lock_held(line) && hf_lock_held(cell));
    hf_lock_waiter w;
    hf_lock_wait_begin(&w, &fixture, fixture.b, "n", opts);
    assert_int_equal(hf_lock_release_wait(line, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_release_wait(cell, NULL), HF_RELEASE_DONE);
    hf_lock_wait_end(&w);
    assert_int_equal(w.err, HF_OK);
    assert_int_equal(hf_lock_release_wait(w.lock, NULL), HF_RELEASE_DONE);
    (void)hf_fixture_command(&fixture.redis, "CONFIG SET maxmemory 0");
}

static int as_the_child(hf_lock *lock)
{
    char detail[HF_DETAIL_SIZE];
    const char *const name = "m";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    hf_lock *other;
    size_t n;
    while (hf_lock_held(lock)) /* the lease ends here: only the parent renews it */
        hf_test_pause_ms(10);
    if (hf_lock_acquire_wait(fixture.a, &opts, &other, detail) != HF_FORKED)
        return 1;
    if (hf_lock_acquire(fixture.a, &opts, on_one_got, NULL, &other, detail) != HF_FORKED)
        return 2;
    if (hf_lock_extend_wait(lock, 1000, NULL) != HF_FORKED)
        return 3;
    if (hf_lock_downgrade_wait(lock, NULL) != HF_FORKED)
        return 4;
    if (hf_lock_force(fixture.a, "n", NULL, &n, detail) != HF_FORKED)
        return 5;
    if (hf_lock_release_wait(lock, NULL) != HF_RELEASE_UNKNOWN)
        return 6;
    hf_lock_release(lock, NULL, NULL);
    hf_lock_cancel(lock);
    hf_lock_client_close(fixture.a, NULL, NULL);
    return 0;
}

static void a_child_has_no_part_in_it(void **state)
{
    int status = -1;
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 900});
    pid_t child = fork();
    if (child == 0)
        _exit(as_the_child(lock));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ALWAYS(1500, hf_lock_held(lock)); /* renewed by the parent */
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
}

/* ---- its order ---- */

static int numbers[] = {0, 1, 2, 3, 4};

static void on_turn_come(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    const int *number = arg;
    (void)detail;
    assert_int_equal(err, HF_OK);
    note(*number);
    hf_lock_release(lock, NULL, NULL);
}

/* They are all sent when the connection is there. */
static void calls_before_a_connection_keep_their_order(void **state)
{
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = LONG_MS};
    (void)state;
    loop_up();
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        assert_int_equal(hf_lock_acquire(on_loop, &opts, on_turn_come, &numbers[i], NULL,
                                         fixture.detail),
                         HF_OK);
    loop_until(&n_answers, HF_COUNT(numbers));
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        assert_int_equal(answers[i], numbers[i]);
    hf_lock_client_close(on_loop, on_closed, NULL);
    loop_down();
}

/* ---- its keys ---- */

/* An end is by Redis's clock, which may be set forward while the lock is held. */
static void a_line_ends_long_after_its_leases(void **state)
{
    static const long long DAY_MS = 86400000;
    /* A renewal looks at the second one: it may come between the two. */
    static const char *const keys[] = {"hf:lock:{n}:e:n", "hf:lock:{n}:x:n"};
    (void)state;
    hf_lock *lock = hf_lock_must(&fixture, fixture.a, "n",
                                 (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = 9000});
    for (size_t i = 0; i < HF_COUNT(keys); i++) /* as if it had been held for long */
        assert_int_equal(hf_fixture_number(&fixture.redis, "PEXPIRE %s 3600000", keys[i]),
                         1);
    for (size_t i = 0; i < HF_COUNT(keys); i++)
        EVENTUALLY(PATIENCE_MS,
                   hf_fixture_number(&fixture.redis, "PTTL %s", keys[i]) > 29 * DAY_MS);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_fixture_number(&fixture.redis, "DBSIZE"), 1); /* the fence */
}

#define TEST(name) HF_LOCK_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_calls_work_on_a_loop),
        TEST(it_can_be_closed_from_inside_a_callback),
        TEST(a_client_that_cannot_be_had_leaves_the_loop_alone),
        TEST(threads_of_one_client_come_one_after_the_other),
        TEST(closing_tells_all_that_wait_and_gives_all_back),
        TEST(closing_ends_although_redis_hangs),
        TEST(hundreds_are_held_and_renewed),
        TEST(more_tags_than_it_listens_for_are_granted_within_a_third),
        TEST(a_lease_can_be_set_anew),
        TEST(a_descriptor_tells_of_the_loss),
        TEST(a_full_redis_refuses_no_lock),
        TEST(a_child_has_no_part_in_it),
        TEST(calls_before_a_connection_keep_their_order),
        TEST(a_line_ends_long_after_its_leases),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
