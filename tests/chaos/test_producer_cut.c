/* test_producer_cut.c - connections break under a producer: each job runs exactly once.
 *
 * Lanes work side by side on one server, each with a producer behind a proxy of its own,
 * and queues of its own. A lane plays rounds, in turn of three kinds:
 *
 *   early   the request is cut before all of it is there, so it is not executed
 *   late    it is executed, its answer is lost, and its jobs have run before it comes
 * again flush   as many requests as the window holds are in flight while the server's
 * scripts are flushed and loaded by others, and the answers break off somewhere
 *
 * A job runs when the lane takes it out of the queue, as a worker would. HF_ROUNDS and
 * HF_SEED in the environment say how many rounds and with which random numbers; the seed
 * is printed when something is found. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum {
    LANES = 8,
    QUEUES = 2, /* of a lane; a call with jobs of two is two requests */
    CALLERS = 4,
    CALL_JOBS = 6, /* of one call, so three for each queue */
    ROUND_JOBS = CALLERS * CALL_JOBS,
    ROUNDS = 200,
    PATIENCE_MS = 10000
};

typedef struct lane lane;

/* One thread of a lane that calls when it is told to. */
typedef struct caller {
    pthread_t thread;
    lane *lane;
    unsigned index;
    unsigned called; /* the round for which it called last */
    hf_err err;
    hf_enqueue_result results[CALL_JOBS];
    char detail[HF_DETAIL_SIZE];
} caller;

struct lane {
    pthread_t thread;
    unsigned index, rounds;
    hf_rng rng;
    hf_proxy proxy;
    hf_producer *producer;
    redisContext *redis; /* past the proxy */
    char queues[QUEUES][HF_ID_SIZE];
    unsigned ran[ROUND_JOBS]; /* how often, in this round */
    caller callers[CALLERS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned round;   /* that the callers shall play; 0: none yet */
    unsigned started; /* this many of them may begin */
    unsigned callers_busy;
    bool over;
    char fault[512]; /* "" while nothing was found */
};

static hf_fixture redis;
static const char *sha1, *script;
static size_t script_len;

/* Remembers the first thing that is wrong; a lane is no thread in which a test can fail.
 */
static void __attribute__((format(printf, 2, 3))) fault(lane *l, const char *format, ...)
{
    va_list args;
    if (l->fault[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(l->fault, sizeof l->fault, format, args);
    va_end(args);
}

static unsigned below(lane *l, unsigned n)
{
    return (unsigned)(hf_rng_next(&l->rng) % n);
}

/* ---- running jobs ---- */

/* Runs all jobs that are there; gives how many those were. */
static unsigned run_jobs(lane *l)
{
    static const char take[] = "local out = {} "
                               "for i = 1, #KEYS, 2 do "
                               "  local got = redis.call('ZPOPMIN', KEYS[i], 1000) "
                               "  for k = 1, #got, 2 do "
                               "    redis.call('HDEL', KEYS[i + 1], got[k]) "
                               "    out[#out + 1] = got[k] "
                               "  end "
                               "end "
                               "return out";
    redisReply *reply = redisCommand(
        l->redis, "EVAL %s 4 hf:{%s}:schedule hf:{%s}:jobs hf:{%s}:schedule hf:{%s}:jobs",
        take, l->queues[0], l->queues[0], l->queues[1], l->queues[1]);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        fault(l, "jobs cannot be taken: %s",
              reply == NULL ? l->redis->errstr : reply->str);
        return 0;
    }
    unsigned n = (unsigned)reply->elements;
    for (unsigned i = 0; i < n; i++) {
        unsigned round, place;
        if (sscanf(reply->element[i]->str, "r%u-%u", &round, &place) != 2 ||
            round != l->round || place >= ROUND_JOBS)
            fault(l, "round %u: job %s runs", l->round, reply->element[i]->str);
        else
            l->ran[place]++;
    }
    freeReplyObject(reply);
    return n;
}

/* Loads the script into the server, as another client would, or flushes all scripts. */
static void set_script(lane *l, bool known)
{
    redisReply *reply = known
                            ? redisCommand(l->redis, "SCRIPT LOAD %b", script, script_len)
                            : redisCommand(l->redis, "SCRIPT FLUSH");
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fault(l, "SCRIPT: %s", reply == NULL ? l->redis->errstr : reply->str);
    freeReplyObject(reply);
}

/* ---- calling ---- */

static void call_once(caller *c, unsigned round)
{
    char ids[CALL_JOBS][HF_ID_SIZE];
    hf_job jobs[CALL_JOBS];
    for (unsigned k = 0; k < CALL_JOBS; k++) {
        (void)snprintf(ids[k], HF_ID_SIZE, "r%u-%u", round, c->index * CALL_JOBS + k);
        jobs[k] = (hf_job){HF_JOB_INIT, .queue = c->lane->queues[k % QUEUES], .type = "t",
                           .id = ids[k]};
    }
    c->results[0].size = sizeof c->results[0];
    c->err = hf_enqueue_wait(c->lane->producer, jobs, CALL_JOBS, c->results,
                             2 * PATIENCE_MS, c->detail);
}

static void *be_caller(void *arg)
{
    caller *c = arg;
    lane *l = c->lane;
    (void)pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (!l->over && (c->called == l->round || c->index >= l->started))
            (void)pthread_cond_wait(&l->changed, &l->mutex);
        if (l->over)
            break;
        unsigned round = c->called = l->round;
        (void)pthread_mutex_unlock(&l->mutex);
        call_once(c, round);
        (void)pthread_mutex_lock(&l->mutex);
        l->callers_busy--;
    }
    (void)pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* All callers call at once, or each when it is started. */
static void begin_round(lane *l, unsigned round, unsigned started)
{
    (void)pthread_mutex_lock(&l->mutex);
    memset(l->ran, 0, sizeof l->ran);
    l->round = round;
    l->started = started;
    l->callers_busy = CALLERS;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->mutex);
}

static void start_caller(lane *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    l->started++;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->mutex);
}

static bool busy(lane *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    bool is = l->callers_busy > 0;
    (void)pthread_mutex_unlock(&l->mutex);
    return is;
}

/* Polls, with a deadline, for what is to come in this round. */
#define AWAIT(l, cond)                                                                   \
    do {                                                                                 \
        const uint64_t await_until = hf_test_fair_ms() + PATIENCE_MS;                    \
        while (!(cond) && (l)->fault[0] == '\0') {                                       \
            if (hf_test_fair_ms() >= await_until)                                        \
                fault((l), "round %u: not in time: %s", (l)->round, #cond);              \
            hf_test_pause_ms(1);                                                         \
        }                                                                                \
    } while (0)

/* Runs what comes, until all callers have their answers; then each job must have run. */
static void end_round(lane *l)
{
    AWAIT(l, (run_jobs(l), !busy(l)));
    (void)run_jobs(l);
    for (unsigned i = 0; i < ROUND_JOBS && l->fault[0] == '\0'; i++) {
        const caller *c = &l->callers[i / CALL_JOBS];
        if (c->err != HF_OK || c->results[i % CALL_JOBS].err != HF_OK)
            fault(l, "round %u: job %u: %s: %s", l->round, i,
                  hf_err_name(c->results[i % CALL_JOBS].err), c->detail);
        else if (l->ran[i] != 1)
            fault(l, "round %u: job %u was accepted and ran %u times", l->round, i,
                  l->ran[i]);
    }
}

/* ---- the three kinds ---- */

static void play_early(lane *l, unsigned round)
{
    unsigned cuts = hf_proxy_cuts(&l->proxy);
    hf_proxy_cut_after(&l->proxy, PROXY_REQUESTS, 1 + below(l, 1200));
    begin_round(l, round, CALLERS);
    AWAIT(l, (run_jobs(l), hf_proxy_cuts(&l->proxy) > cuts));
    end_round(l);
}

static void play_late(lane *l, unsigned round)
{
    unsigned cuts = hf_proxy_cuts(&l->proxy);
    hf_proxy_lose_answer(&l->proxy, sha1);
    begin_round(l, round, CALLERS);
    AWAIT(l, hf_proxy_cuts(&l->proxy) > cuts);
    /* Whatever was executed runs now, before anything can be sent again. */
    hf_proxy_set(&l->proxy, PROXY_REQUESTS, PROXY_HOLD);
    (void)run_jobs(l);
    hf_proxy_set(&l->proxy, PROXY_REQUESTS, PROXY_PASS);
    end_round(l);
}

/* A request whose bytes have reached the server is refused or executed, as the scripts
 * are at that moment; which it was, its producer learns too late or not at all. */
static void play_flush(lane *l, unsigned round)
{
    unsigned cuts = hf_proxy_cuts(&l->proxy);
    bool held = below(l, 2) == 0;
    if (held)
        hf_proxy_set(&l->proxy, PROXY_ANSWERS, PROXY_HOLD);
    else
        hf_proxy_cut_after(&l->proxy, PROXY_ANSWERS, 1 + below(l, 800));
    begin_round(l, round, 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        set_script(l, below(l, 2) == 0);
        uint64_t bytes = hf_proxy_bytes(&l->proxy, PROXY_REQUESTS);
        start_caller(l);
        AWAIT(l, !held || hf_proxy_bytes(&l->proxy, PROXY_REQUESTS) > bytes);
        if (below(l, 2) == 0)
            (void)run_jobs(l);
    }
    if (held) {
        hf_proxy_close_all(&l->proxy);
        hf_proxy_set(&l->proxy, PROXY_ANSWERS, PROXY_PASS);
    } else {
        AWAIT(l, (run_jobs(l), hf_proxy_cuts(&l->proxy) > cuts || !busy(l)));
    }
    end_round(l);
}

static void *play(void *arg)
{
    lane *l = arg;
    for (unsigned i = 1; i <= l->rounds && l->fault[0] == '\0'; i++) {
        switch (i % 3) {
        case 0:
            play_early(l, i);
            break;
        case 1:
            play_late(l, i);
            break;
        default:
            play_flush(l, i);
        }
    }
    (void)pthread_mutex_lock(&l->mutex);
    l->over = true;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->mutex);
    for (unsigned i = 0; i < CALLERS; i++)
        (void)pthread_join(l->callers[i].thread, NULL);
    hf_producer_close(l->producer, NULL, NULL);
    return NULL;
}

/* ---- ---- */

static void start_lane(lane *l, unsigned index, unsigned rounds, uint64_t seed)
{
    char detail[HF_DETAIL_SIZE];
    *l = (lane){.index = index, .rounds = rounds, .rng = {seed + index}};
    for (unsigned q = 0; q < QUEUES; q++)
        (void)snprintf(l->queues[q], HF_ID_SIZE, "lane%u-%u", index, q);
    hf_proxy_start(&l->proxy, redis.socket);
    l->redis = hf_fixture_connect(&redis);
    if (hf_producer_open(&l->producer,
                         &(hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                             .server = HF_SERVER(.url = l->proxy.url)},
                         detail) != HF_OK)
        fail_msg("open: %s", detail);
    assert_int_equal(pthread_mutex_init(&l->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&l->changed, NULL), 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        l->callers[i] = (caller){.lane = l, .index = i};
        assert_int_equal(
            pthread_create(&l->callers[i].thread, NULL, be_caller, &l->callers[i]), 0);
    }
    assert_int_equal(pthread_create(&l->thread, NULL, play, l), 0);
}

static void end_lane(lane *l)
{
    assert_int_equal(pthread_join(l->thread, NULL), 0);
    hf_proxy_stop(&l->proxy);
    redisFree(l->redis);
    (void)pthread_mutex_destroy(&l->mutex);
    (void)pthread_cond_destroy(&l->changed);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void i8_each_accepted_job_runs_exactly_once_after_any_cut(void **state)
{
    (void)state;
    static lane lanes[LANES];
    const unsigned rounds = (unsigned)from_environment("HF_ROUNDS", ROUNDS);
    const uint64_t seed =
        from_environment("HF_SEED", (uint64_t)time(NULL) * 1000 + (uint64_t)getpid());
    hf_fixture_start(&redis, NULL);
    script = hf_enqueue_script(&script_len, &sha1);
    for (unsigned i = 0; i < LANES; i++)
        start_lane(&lanes[i], i, (rounds + LANES - 1 - i) / LANES, seed);
    unsigned faults = 0;
    for (unsigned i = 0; i < LANES; i++) {
        end_lane(&lanes[i]);
        if (lanes[i].fault[0] != '\0') {
            faults++;
            (void)fprintf(stderr, "HF_SEED=%llu lane %u: %s\n", (unsigned long long)seed,
                          i, lanes[i].fault);
        }
    }
    assert_int_equal(faults, 0);
    hf_test_audit(&redis, false);
    hf_fixture_stop(&redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i8_each_accepted_job_runs_exactly_once_after_any_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
