/* test_producer_life.c - producers on loops and threads: batches, callbacks, close, fork,
 * signals. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "holdfast/producer.h"
#include "producer/producer.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/redis_fixture.h"

enum { MANY = 2000, THREADS = 16, SOON_MS = 30000, OPENS = 1000 };

static hf_fixture redis;
static char detail[HF_DETAIL_SIZE];

/* What the callbacks of MANY jobs said, by the jobs' places. */
struct heard {
    atomic_uint times[MANY];
    atomic_uint all, ok, unsure, timeout;
    bool inside; /* hf_enqueue() is running */
};

struct place {
    struct heard *heard;
    size_t i;
};

static void on_result(const hf_enqueue_result *result, const char *text, void *arg)
{
    const struct place *place = arg;
    struct heard *heard = place->heard;
    if (heard->inside || text == NULL || strlen(result->id) == 0)
        abort(); /* not a thread in which a test can fail */
    atomic_fetch_add(&heard->times[place->i], 1);
    atomic_fetch_add(&heard->all, 1);
    if (result->err == HF_OK)
        atomic_fetch_add(&heard->ok, 1);
    else if (result->err == HF_UNSURE)
        atomic_fetch_add(&heard->unsure, 1);
    else if (result->err == HF_TIMEOUT)
        atomic_fetch_add(&heard->timeout, 1);
}

static struct heard heard;
static struct place places[MANY];

static void enqueue_many(hf_producer *producer, size_t n, bool own_loop)
{
    memset(&heard, 0, sizeof heard);
    for (size_t i = 0; i < n; i++) {
        const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .payload = "p",
                            .payload_len = 1};
        places[i] = (struct place){&heard, i};
        if (own_loop) /* on another thread the callback may well come now */
            heard.inside = true;
        assert_int_equal(hf_enqueue(producer, &job, on_result, &places[i], NULL), HF_OK);
        if (own_loop)
            heard.inside = false;
    }
}

static void assert_each_heard_once(size_t n)
{
    assert_int_equal(heard.all, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(heard.times[i], 1);
}

/* ---- on the caller's loop ---- */

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void jobs_of_one_turn_leave_as_one_request(void **state)
{
    (void)state;
    uv_loop_t loop;
    bool closed = false;
    assert_int_equal(uv_loop_init(&loop), 0);
    hf_producer *producer = hf_test_producer(
        &redis,
        /* A machine that stands still for a second makes it send none twice. */
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .loop = &loop,
                           .server = HF_SERVER(.request_timeout_ms = SOON_MS),
                           .deadline_ms = 2 * SOON_MS});
    enqueue_many(producer, 1, true); /* the script is loaded, the connection made */
    while (heard.all == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    long long before = hf_fixture_calls(&redis, "evalsha");
    enqueue_many(producer, 500, true);
    while (heard.all < 500)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_each_heard_once(500);
    assert_int_equal(hf_fixture_calls(&redis, "evalsha"), before + 1);
    enqueue_many(producer, MANY, true);
    while (heard.all < MANY)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_each_heard_once(MANY);
    assert_int_equal(hf_fixture_calls(&redis, "evalsha"), before + 3);
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_INVALID);
    hf_producer_close(producer, set_true, &closed);
    assert_false(closed);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

struct closer {
    hf_producer *producer;
    bool told, closed;
};

static void close_now(const hf_enqueue_result *result, const char *text, void *arg)
{
    struct closer *closer = arg;
    (void)text;
    closer->told = result->err == HF_OK;
    hf_producer_close(closer->producer, set_true, &closer->closed);
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    if (hf_enqueue(closer->producer, &job, NULL, NULL, NULL) != HF_CLOSED)
        abort();
}

static void a_producer_may_be_closed_in_its_own_callback(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct closer closer = {
        .producer = hf_test_producer(
            &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .loop = &loop})};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue(closer.producer, &job, close_now, &closer, NULL), HF_OK);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(closer.told);
    assert_true(closer.closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- close ---- */

static void close_answers_what_was_taken(void **state)
{
    (void)state;
    bool closed = false;
    hf_producer *producer =
        hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    enqueue_many(producer, MANY, false);
    hf_producer_close(producer, set_true, &closed);
    assert_true(closed);
    assert_each_heard_once(MANY);
    assert_int_equal(heard.ok, MANY);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), MANY);
}

static void close_with_a_silent_server_answers_by_the_deadline(void **state)
{
    (void)state;
    hf_producer *producer = hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 2000,
                                   .buffer_jobs = MANY});
    enqueue_many(producer, 1, false);
    EVENTUALLY(SOON_MS, heard.ok == 1);
    hf_fixture_signal(&redis, SIGSTOP);
    enqueue_many(producer, MANY, false);
    hf_producer_close(producer, NULL, NULL);
    assert_each_heard_once(MANY);
    assert_int_equal(heard.unsure + heard.timeout, MANY);
    assert_true(heard.unsure >= 1);
    hf_fixture_signal(&redis, SIGCONT);
}

static void close_without_a_server_answers_by_the_deadline(void **state)
{
    (void)state;
    hf_producer *producer = hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = "unix:///nowhere/at/all"),
                                   .deadline_ms = 200});
    enqueue_many(producer, 10, false);
    hf_producer_close(producer, NULL, NULL);
    assert_each_heard_once(10);
    assert_int_equal(heard.timeout, 10);
    hf_producer_close(NULL, NULL, NULL);
}

static unsigned count_entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    (void)closedir(dir);
    return n;
}

static void opening_and_closing_leaves_no_thread_and_no_descriptor(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    unsigned fds = count_entries("/proc/self/fd");
    unsigned threads = count_entries("/proc/self/task");
    for (int i = 0; i < OPENS; i++) {
        hf_producer *producer =
            hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
        hf_producer *other = hf_test_producer(
            &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .loop = &loop});
        if (i % 4 == 0) {
            const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
            assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
            assert_int_equal(hf_enqueue(other, &job, NULL, NULL, NULL), HF_OK);
        }
        hf_producer_close(producer, NULL, NULL);
        hf_producer_close(other, NULL, NULL);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    }
    /* The loop gets descriptors with its first handles, and keeps them. */
    assert_in_range(count_entries("/proc/self/fd"), fds, fds + 3);
    assert_int_equal(count_entries("/proc/self/task"), threads);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), OPENS / 2);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- threads ---- */

struct caller {
    pthread_t thread;
    hf_producer *producer;
    unsigned index, calls, per_call;
    unsigned ok, other;
    hf_err last;
};

static void *call_often(void *arg)
{
    struct caller *caller = arg;
    hf_enqueue_result results[8] = {{HF_ENQUEUE_RESULT_INIT}};
    for (unsigned i = 0; i < caller->calls; i++) {
        char ids[8][HF_ID_SIZE];
        hf_job jobs[8];
        for (unsigned k = 0; k < caller->per_call; k++) {
            (void)snprintf(ids[k], HF_ID_SIZE, "%u-%u-%u", caller->index, i, k);
            jobs[k] = (hf_job){HF_JOB_INIT, .queue = "q", .type = "t", .id = ids[k]};
        }
        caller->last =
            hf_enqueue_wait(caller->producer, jobs, caller->per_call, results, 0, NULL);
        for (unsigned k = 0; k < caller->per_call; k++) {
            bool right = results[k].err == HF_OK && strcmp(results[k].id, ids[k]) == 0;
            *(right ? &caller->ok : &caller->other) += 1;
        }
    }
    return NULL;
}

static void calls_of_many_threads_share_requests(void **state)
{
    (void)state;
    static struct caller callers[THREADS];
    const char *calls = getenv("HF_CALLS");
    hf_producer *producer =
        hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    unsigned all = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){
            .producer = producer,
            .index = i,
            .calls = calls == NULL ? 300 : (unsigned)strtoul(calls, NULL, 10),
            .per_call = 1 + i % 3};
        all += callers[i].calls * callers[i].per_call;
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    unsigned ok = 0, total = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].last, HF_OK);
        assert_int_equal(callers[i].other, 0);
        ok += callers[i].ok;
        total += callers[i].calls;
    }
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(ok, all);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), all);
    assert_true(hf_fixture_calls(&redis, "evalsha") <
                total); /* so some have shared one */
}

/* Nothing of the public face tells that another thread's call is under way. */
static size_t jobs_in(hf_producer *producer)
{
    hf_submit_queue *queue = &producer->requests.queue;
    hf_run_loop_lock(queue->run);
    size_t jobs = queue->jobs;
    hf_run_loop_unlock(queue->run);
    return jobs;
}

/* Threads wait while another one closes: each gets its answer, and the producer is not
 * freed under their feet. */
static void waiting_threads_are_answered_before_close_returns(void **state)
{
    (void)state;
    static struct caller callers[THREADS];
    hf_producer *producer = hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 3000});
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){
            .producer = producer, .index = i, .calls = 1, .per_call = 1 + i % 8};
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    EVENTUALLY(SOON_MS, jobs_in(producer) == 2 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8));
    hf_producer_close(producer, NULL, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_true(callers[i].last == HF_UNSURE || callers[i].last == HF_TIMEOUT);
    }
    hf_fixture_signal(&redis, SIGCONT);
}

static void *call_numbered(void *arg)
{
    struct caller *caller = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    caller->last = hf_enqueue_numbered(caller->producer, &job, 1, 1, 0, NULL, NULL);
    return NULL;
}

static void numbered_calls_come_one_at_a_time(void **state)
{
    (void)state;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    struct caller caller = {
        .producer = hf_test_producer(
            &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 20000})};
    assert_int_equal(hf_enqueue_numbered(caller.producer, &job, 1, 1, 0, NULL, detail),
                     HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    assert_int_equal(pthread_create(&caller.thread, NULL, call_numbered, &caller), 0);
    EVENTUALLY(SOON_MS, jobs_in(caller.producer) == 1);
    const hf_job other = {HF_JOB_INIT, .queue = "other", .type = "t"};
    assert_int_equal(hf_enqueue_numbered(caller.producer, &other, 1, 1, 0, NULL, detail),
                     HF_BUSY);
    hf_fixture_signal(&redis, SIGCONT);
    assert_int_equal(pthread_join(caller.thread, NULL), 0);
    assert_int_equal(caller.last, HF_OK);
    hf_producer_close(caller.producer, NULL, NULL);
}

struct held_up {
    hf_producer *producer;
    atomic_bool entered, leave;
    hf_err inside; /* what a waiting call says in a callback */
};

static void hold_up(const hf_enqueue_result *result, const char *text, void *arg)
{
    struct held_up *held_up = arg;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    (void)result;
    (void)text;
    held_up->inside = hf_enqueue_wait(held_up->producer, &job, 1, NULL, 0, NULL);
    atomic_store(&held_up->entered, true);
    while (!atomic_load(&held_up->leave))
        hf_test_pause_ms(1);
}

static void a_callback_that_does_not_return_cannot_hold_up_a_call_for_ever(void **state)
{
    (void)state;
    static struct held_up held_up;
    hf_enqueue_result results[40] = {{HF_ENQUEUE_RESULT_INIT}};
    hf_job jobs[40];
    held_up.producer = hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 2000});
    for (size_t i = 0; i < 40; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = i % 2 == 0 ? "a" : "b", .type = "t"};
    assert_int_equal(hf_enqueue(held_up.producer, jobs, hold_up, &held_up, NULL), HF_OK);
    EVENTUALLY(SOON_MS, atomic_load(&held_up.entered));
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(hf_enqueue_wait(held_up.producer, jobs, 40, results, 0, detail),
                     HF_UNSURE);
    assert_int_equal(hf_enqueue_wait(held_up.producer, jobs, 1, results, 20, detail),
                     HF_UNSURE);
    assert_true(hf_test_fair_ms() - before < 15000);
    assert_int_equal(results[39].err, HF_UNSURE);
    assert_int_equal(held_up.inside, HF_INVALID);
    atomic_store(&held_up.leave, true);
    hf_producer_close(held_up.producer, NULL, NULL);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{a}:schedule"), 1);
}

/* ---- processes and signals ---- */

static void after_a_fork_the_child_is_refused_and_the_parent_continues(void **state)
{
    (void)state;
    hf_producer *producer =
        hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) {
        bool right =
            hf_enqueue(producer, &job, NULL, NULL, NULL) == HF_FORKED &&
            hf_enqueue_wait(producer, &job, 1, NULL, 0, detail) == HF_FORKED &&
            hf_enqueue_numbered(producer, &job, 1, 1, 0, NULL, detail) == HF_FORKED;
        hf_producer_close(producer, NULL, NULL);
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 2);
}

static void a_host_with_the_default_sigpipe_survives_broken_connections(void **state)
{
    (void)state;
    struct sigaction now, before;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    uv_loop_t loop;
    assert_int_equal(sigaction(SIGPIPE, &by_default, &before), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    hf_producer *threaded =
        hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    hf_producer *on_loop = hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .loop = &loop});
    for (int i = 0; i < 20; i++) {
        const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
        enqueue_many(on_loop, 50, true);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)hf_fixture_command(&redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(hf_enqueue_wait(threaded, &job, 1, NULL, 0, detail), HF_OK);
        while (heard.all < 50)
            (void)uv_run(&loop, UV_RUN_ONCE);
        assert_each_heard_once(50);
        assert_int_equal(heard.ok, 50);
    }
    hf_producer_close(threaded, NULL, NULL);
    hf_producer_close(on_loop, NULL, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 20 * 51);
    assert_int_equal(sigaction(SIGPIPE, &before, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
}

static void the_thread_of_a_producer_blocks_every_signal(void **state)
{
    (void)state;
    hf_producer *producer =
        hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    /* While a thread is being made every signal is blocked: this one has done something.
     */
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    DIR *dir = opendir("/proc/self/task");
    char path[300], text[4096], own[16];
    unsigned others = 0;
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, own) == 0)
            continue;
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        const char *blocked = strstr(hf_read_file(path, text, sizeof text), "SigBlk:\t");
        if (blocked == NULL || strstr(text, "Name:\tlibuv-worker") != NULL)
            continue;
        unsigned long long mask = strtoull(blocked + 8, NULL, 16);
        if ((mask & (1ull << (SIGTERM - 1))) != 0 &&
            (mask & (1ull << (SIGPIPE - 1))) != 0 &&
            (mask & (1ull << (SIGCHLD - 1))) != 0)
            others++;
    }
    (void)closedir(dir);
    assert_true(others >= 1);
    sigset_t mine;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mine), 0);
    assert_false(sigismember(&mine, SIGTERM));
    hf_producer_close(producer, NULL, NULL);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_fixture_up, hf_test_audit_down,    \
                                             &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(jobs_of_one_turn_leave_as_one_request),
        TEST(a_producer_may_be_closed_in_its_own_callback),
        TEST(close_answers_what_was_taken),
        TEST(close_with_a_silent_server_answers_by_the_deadline),
        TEST(close_without_a_server_answers_by_the_deadline),
        TEST(opening_and_closing_leaves_no_thread_and_no_descriptor),
        TEST(calls_of_many_threads_share_requests),
        TEST(waiting_threads_are_answered_before_close_returns),
        TEST(numbered_calls_come_one_at_a_time),
        TEST(a_callback_that_does_not_return_cannot_hold_up_a_call_for_ever),
        TEST(after_a_fork_the_child_is_refused_and_the_parent_continues),
        TEST(a_host_with_the_default_sigpipe_survives_broken_connections),
        TEST(the_thread_of_a_producer_blocks_every_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
