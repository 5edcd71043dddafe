/* test_producer_threads.c - calls of many threads that send, read and wake for each
 * other: each gets its own answer, no caller is forgotten, and callbacks stay on the
 * producer's thread.
 *
 * A call that is forgotten would come back after its deadline, which is longer than any
 * test here may take. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "holdfast/producer.h"
#include "producer/producer.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/seed.h"

enum {
    THREADS = 12,
    CALLS = 300,
    JOBS = 3, /* of one call, at most */
    NUMBERS = 100,
    DEADLINE_MS = 30000,
    PROMPT_MS = DEADLINE_MS / 3,
    SOON_MS = 30000,
    STILL_MS = 500
};

static hf_fixture redis;
static char detail[HF_DETAIL_SIZE];
static uint64_t seed;

static hf_producer *open_with(hf_producer_opts opts)
{
    if (opts.deadline_ms == 0)
        opts.deadline_ms = DEADLINE_MS;
    return hf_test_producer(&redis, opts);
}

/* What callbacks say. */
typedef struct heard {
    pthread_t thread;
    atomic_uint all, elsewhere, faults;
} heard;

/* A thread that calls. What it finds wrong is said by the test's own thread. */
typedef struct caller {
    pthread_t thread;
    hf_producer *producer;
    unsigned index;
    uint32_t deadline_ms;
    hf_rng rng;
    hf_err expected; /* of each call */
    unsigned called, new;
    atomic_bool *stop;
    heard *heard;
    double ran_ms;              /* processor time of its last call */
    char wrong[HF_DETAIL_SIZE]; /* "": nothing */
} caller;

static caller callers[THREADS];

static void start(size_t n, void *(*run)(void *arg), const caller *like)
{
    for (unsigned i = 0; i < n; i++) {
        callers[i] = *like;
        callers[i].index = i;
        callers[i].rng.state = seed + i;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run, &callers[i]), 0);
    }
}

/* The jobs that the callers know to be new. */
static unsigned finish(size_t n)
{
    unsigned new = 0;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        if (callers[i].wrong[0] != '\0')
            fail_msg("caller %zu, seed %llu: %s", i, (unsigned long long)seed,
                     callers[i].wrong);
        new += callers[i].new;
    }
    return new;
}

/* ---- each its own answer ---- */

static bool is_known(unsigned number)
{
    return number % 2 == 0;
}

/* A call of one to three jobs, of which about half exist already. */
static void call_with_known_and_new(caller *c)
{
    char ids[JOBS][HF_ID_SIZE];
    hf_enqueue_result results[JOBS] = {{HF_ENQUEUE_RESULT_INIT}};
    hf_job jobs[JOBS];
    bool known[JOBS];
    size_t n = 1 + hf_rng_next(&c->rng) % JOBS;
    for (size_t k = 0; k < n; k++) {
        unsigned number = (unsigned)(hf_rng_next(&c->rng) % NUMBERS);
        known[k] = is_known(number);
        if (known[k])
            (void)snprintf(ids[k], HF_ID_SIZE, "known-%u", number);
        else
            (void)snprintf(ids[k], HF_ID_SIZE, "new-%u-%u-%zu", c->index, c->called, k);
        jobs[k] = (hf_job){HF_JOB_INIT, .queue = "q", .type = "t", .id = ids[k]};
    }
    memset(results, 0, sizeof results);
    results[0].size = sizeof results[0];
    hf_err err = hf_enqueue_wait(c->producer, jobs, n, results, 0, c->wrong);
    if (err == HF_OK)
        c->wrong[0] = '\0';
    for (size_t k = 0; k < n && err == HF_OK; k++) {
        hf_err expected = known[k] ? HF_EXISTS : HF_OK;
        if (results[k].err != expected || strcmp(results[k].id, ids[k]) != 0)
            (void)snprintf(c->wrong, sizeof c->wrong, "%.60s was answered %s for %.60s",
                           ids[k], hf_err_name(results[k].err), results[k].id);
        c->new += known[k] ? 0 : 1;
    }
}

static void *call_often(void *arg)
{
    caller *c = arg;
    for (; c->called < CALLS && c->wrong[0] == '\0'; c->called++)
        call_with_known_and_new(c);
    return NULL;
}

/* How many they are. */
static unsigned enqueue_known(hf_producer *producer)
{
    unsigned n = 0;
    for (unsigned number = 0; number < NUMBERS; number++) {
        char id[HF_ID_SIZE];
        (void)snprintf(id, sizeof id, "known-%u", number);
        const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = id};
        if (!is_known(number))
            continue;
        assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
        n++;
    }
    return n;
}

static void each_call_gets_its_own_answers(void **state)
{
    (void)state;
    hf_producer *producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    unsigned known = enqueue_known(producer);
    uint64_t before = hf_test_fair_ms();
    start(THREADS, call_often, &(caller){.producer = producer});
    unsigned new = finish(THREADS);
    assert_true(hf_test_fair_ms() - before < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), known + new);
}

/* ---- no caller is forgotten ---- */

static void *call_until_told(void *arg)
{
    caller *c = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    while (!atomic_load(c->stop) && c->wrong[0] == '\0') {
        hf_err err = hf_enqueue_wait(c->producer, &job, 1, NULL, 0, NULL);
        if (err != HF_OK)
            (void)snprintf(c->wrong, sizeof c->wrong, "call %u: %s", c->called,
                           hf_err_name(err));
        c->called++;
        c->new ++;
    }
    return NULL;
}

static void calls_continue_while_connections_break(void **state)
{
    (void)state;
    atomic_bool stop = false;
    hf_producer *producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    uint64_t before = hf_test_fair_ms();
    start(THREADS, call_until_told, &(caller){.producer = producer, .stop = &stop});
    for (int i = 0; i < 20; i++) {
        long long already = hf_fixture_number(&redis, "ZCARD hf:{q}:schedule");
        EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") >
                                already + THREADS);
        (void)hf_fixture_command(&redis, "CLIENT KILL TYPE normal SKIPME yes");
    }
    atomic_store(&stop, true);
    unsigned new = finish(THREADS);
    assert_true(hf_test_fair_ms() - before < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), new);
}

static void *call_once(void *arg)
{
    caller *c = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    hf_err err = hf_enqueue_wait(c->producer, &job, 1, NULL, c->deadline_ms, NULL);
    c->new = err == HF_OK;
    if (err != c->expected)
        (void)snprintf(c->wrong, sizeof c->wrong, "%s", hf_err_name(err));
    return NULL;
}

/* Nothing of the public face tells that another thread's call is under way. */
static size_t waiting_calls(hf_producer *producer)
{
    hf_run_loop *run = &producer->run;
    size_t n = 0;
    hf_run_loop_lock(run);
    for (const hf_run_waiter *w = run->waiting.first; w != NULL; w = w->next)
        n++;
    hf_run_loop_unlock(run);
    return n;
}

/* The first call reads for the others, gives up, and leaves that to one of them. */
static void a_call_that_gives_up_leaves_its_work_to_another(void **state)
{
    (void)state;
    hf_producer *producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    static caller first;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    uint64_t before = hf_test_fair_ms();
    first = (caller){.producer = producer, .deadline_ms = 200, .expected = HF_UNSURE};
    assert_int_equal(pthread_create(&first.thread, NULL, call_once, &first), 0);
    EVENTUALLY(SOON_MS, waiting_calls(producer) == 1);
    start(THREADS, call_once, &(caller){.producer = producer});
    assert_int_equal(pthread_join(first.thread, NULL), 0);
    assert_string_equal(first.wrong, "");
    hf_fixture_signal(&redis, SIGCONT);
    assert_int_equal(finish(THREADS), THREADS);
    assert_true(hf_test_fair_ms() - before < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
    /* Its request came too late, or just in time. */
    assert_in_range(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), THREADS + 1,
                    THREADS + 2);
}

/* Some are told by the call of another thread while they look out. */
static void a_lasting_fault_is_told_to_every_call_at_once(void **state)
{
    (void)state;
    hf_fixture locked;
    char url[256];
    hf_fixture_start(&locked, &(hf_fixture_options){.password = "right"});
    (void)snprintf(url, sizeof url, "unix://:wrong@%s", locked.socket);
    hf_producer *producer = open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url)});
    uint64_t before = hf_test_fair_ms();
    for (int i = 0; i < 20; i++) {
        start(THREADS, call_once, &(caller){.producer = producer, .expected = HF_AUTH});
        assert_int_equal(finish(THREADS), 0);
    }
    assert_true(hf_test_fair_ms() - before < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
    hf_fixture_stop(&locked);
}

/* ---- the producer's own thread ---- */

static long long connections(void)
{
    const char *at =
        strstr(hf_fixture_command(&redis, "INFO stats"), "total_connections_received:");
    return at == NULL ? -1 : strtoll(strchr(at, ':') + 1, NULL, 10);
}

/* Right after a call, and when there was none for long. */
static void a_connection_that_breaks_is_made_again_without_a_call(void **state)
{
    (void)state;
    hf_producer *producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    uint64_t began = hf_test_fair_ms();
    for (int i = 0; i < 8; i++) {
        long long before = connections();
        (void)hf_fixture_command(&redis, "CLIENT KILL TYPE normal SKIPME yes");
        EVENTUALLY(SOON_MS, connections() == before + 1);
    }
    /* Some timer of the loop would come across it in the end. */
    assert_true(hf_test_fair_ms() - began < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
}

static void on_result(const hf_enqueue_result *result, const char *text, void *arg)
{
    heard *h = arg;
    (void)text;
    if (atomic_fetch_add(&h->all, 1) == 0)
        h->thread = pthread_self();
    else if (!pthread_equal(h->thread, pthread_self()))
        atomic_fetch_add(&h->elsewhere, 1);
    if (result->err != HF_OK)
        atomic_fetch_add(&h->faults, 1);
}

static void *enqueue_often(void *arg)
{
    caller *c = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    for (; c->called < CALLS && c->wrong[0] == '\0'; c->called++) {
        hf_err err = hf_enqueue(c->producer, &job, on_result, c->heard, NULL);
        if (err != HF_OK)
            (void)snprintf(c->wrong, sizeof c->wrong, "%s", hf_err_name(err));
        c->new ++;
        hf_test_pause_ms(hf_rng_next(&c->rng) % 2);
    }
    return NULL;
}

/* ---- a callback that comes while others are woken ---- */

enum { ROUNDS = 4000, PAUSES_MAX = 300, PAUSES_TO_READ = 100 };

typedef struct rounds {
    hf_producer *producer;
    pthread_barrier_t gate;
    atomic_bool put; /* one of those who were woken has put its job in */
    sem_t told;      /* once for each callback */
    atomic_int faults;
} rounds;

static void on_told(const hf_enqueue_result *result, const char *text, void *arg)
{
    rounds *r = arg;
    (void)text;
    if (result->err != HF_OK)
        atomic_fetch_add(&r->faults, 1);
    (void)sem_post(&r->told);
}

static void put_one(rounds *r)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    if (hf_enqueue(r->producer, &job, on_told, r, NULL) != HF_OK)
        atomic_fetch_add(&r->faults, 1);
}

/* The first of a round that has its answer puts one more job in, while the thread that
 * read the answers still wakes the others. */
static void *call_in_rounds(void *arg)
{
    rounds *r = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    for (int i = 0; i < ROUNDS; i++) {
        (void)pthread_barrier_wait(&r->gate);
        if (hf_enqueue_wait(r->producer, &job, 1, NULL, 0, NULL) != HF_OK)
            atomic_fetch_add(&r->faults, 1);
        if (!atomic_exchange(&r->put, true))
            put_one(r);
        (void)pthread_barrier_wait(&r->gate);
    }
    return NULL;
}

/* How often this thread has slept for a millisecond until then. A machine that is too
 * busy for the producer's thread is too busy for this one as well; and a Redis that
 * stands still, or has no time, answers when it goes on: then the answer of the job is
 * there, and only has to be read. */
static unsigned pauses_until_told(rounds *r)
{
    bool redis_answers = false;
    for (unsigned pauses = 0;; pauses++) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (sem_timedwait(&r->told, &until) == 0)
            return pauses;
        if (pauses == PAUSES_MAX && !redis_answers) {
            (void)hf_fixture_command(&redis, "PING");
            redis_answers = true;
            pauses = PAUSES_MAX - PAUSES_TO_READ;
        }
    }
}

static void a_job_put_in_while_calls_are_woken_is_sent_at_once(void **state)
{
    (void)state;
    rounds r = {.producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT})};
    pthread_t threads[THREADS];
    unsigned late = 0, longest = 0;
    assert_int_equal(pthread_barrier_init(&r.gate, NULL, THREADS + 1), 0);
    assert_int_equal(sem_init(&r.told, 0, 0), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_in_rounds, &r), 0);
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&r.put, false);
        put_one(&r); /* while its callback is owed, the producer's own thread reads */
        (void)pthread_barrier_wait(&r.gate);
        (void)pthread_barrier_wait(&r.gate);
        unsigned first = pauses_until_told(&r), second = pauses_until_told(&r);
        unsigned pauses = first > second ? first : second;
        late += pauses > PAUSES_MAX ? 1 : 0;
        longest = pauses > longest ? pauses : longest;
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    print_message("%u of %d rounds late, at most %u ms\n", late, ROUNDS, longest);
    hf_producer_close(r.producer, NULL, NULL);
    (void)sem_destroy(&r.told);
    (void)pthread_barrier_destroy(&r.gate);
    assert_int_equal(r.faults, 0);
    assert_int_equal(late, 0);
}

/* ---- sleep ---- */

static double thread_ms(void)
{
    struct timespec ran;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    return (double)ran.tv_sec * 1e3 + (double)ran.tv_nsec / 1e6;
}

/* Without a pause in between, so that it looks for answers before it sleeps. */
static void *call_until_none_comes(void *arg)
{
    caller *c = arg;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    hf_err err = HF_OK;
    while (err == HF_OK) {
        double before_ms = thread_ms();
        err = hf_enqueue_wait(c->producer, &job, 1, NULL, STILL_MS, NULL);
        c->ran_ms = thread_ms() - before_ms;
    }
    return NULL;
}

static void a_call_sleeps_while_redis_hangs(void **state)
{
    (void)state;
    hf_producer *producer = open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    start(1, call_until_none_comes, &(caller){.producer = producer});
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") > NUMBERS);
    hf_fixture_signal(&redis, SIGSTOP);
    (void)finish(1);
    hf_fixture_signal(&redis, SIGCONT);
    assert_true(callers[0].ran_ms < STILL_MS / 2.0);
    hf_producer_close(producer, NULL, NULL);
}

static void *either(void *arg)
{
    caller *c = arg;
    return c->index % 3 == 0 ? enqueue_often(arg) : call_often(arg);
}

static void callbacks_stay_on_one_thread_beside_calls(void **state)
{
    (void)state;
    static heard all_heard;
    hf_producer *producer =
        open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .buffer_jobs = 100000});
    memset(&all_heard, 0, sizeof all_heard);
    unsigned known = enqueue_known(producer);
    uint64_t before = hf_test_fair_ms();
    start(THREADS, either, &(caller){.producer = producer, .heard = &all_heard});
    unsigned new = finish(THREADS);
    EVENTUALLY(SOON_MS, atomic_load(&all_heard.all) == THREADS / 3 * CALLS);
    assert_true(hf_test_fair_ms() - before < PROMPT_MS);
    hf_producer_close(producer, NULL, NULL);
    assert_int_equal(all_heard.all, THREADS / 3 * CALLS);
    assert_int_equal(all_heard.elsewhere, 0);
    assert_int_equal(all_heard.faults, 0);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), known + new);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_fixture_up, hf_test_audit_down,    \
                                             &redis)

int main(void)
{
    seed = hf_test_seed();
    const struct CMUnitTest tests[] = {
        TEST(each_call_gets_its_own_answers),
        TEST(calls_continue_while_connections_break),
        TEST(a_call_that_gives_up_leaves_its_work_to_another),
        TEST(a_lasting_fault_is_told_to_every_call_at_once),
        TEST(a_connection_that_breaks_is_made_again_without_a_call),
        TEST(callbacks_stay_on_one_thread_beside_calls),
        TEST(a_job_put_in_while_calls_are_woken_is_sent_at_once),
        TEST(a_call_sleeps_while_redis_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
