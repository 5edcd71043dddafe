/* handover.c - measures how long after a release a waiter has the lock; and the same for
 * a bare hand-over, an RPUSH that wakes a BLPOP, and one script.
 *
 *   handover --url URL --acquire SHA1 --release SHA1 [--blocks N]
 *
 * Ours: two clients. One holds the lock while a thread waits for it with the other. Bare:
 * two blocking connections. One pushes while a thread waits for it with the other and
 * then takes a lock of its own. One clock measures from before the release, or the push,
 * until the thread has the lock. The two take turns, in short blocks, and a lock is
 * released only after its waiter has fallen asleep. The result is one line of JSON. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/programs/tool.h"
#include "holdfast/lock.h"

enum {
    BLOCK = 25,
    WARM_UP = 3, /* of each block, not counted */
    BLOCKS_MAX = 400,
    PAUSE_MIN_US = 500,
    PAUSE_US = 1000, /* and up to this much more */
    WAIT_MS = 20000
};

static const char *const name = "hand-over";

typedef struct bench {
    const char *url, *acquire_sha1, *release_sha1;
    uint32_t blocks;
    hf_lock_client *giver, *taker;
    hf_probe look, bare_giver, bare_taker;
    hf_rng rng;
    sem_t begin, taken;
    _Atomic uint64_t taken_ns;
    bool end, bare; /* the thread's next task */
    double us[2][BLOCKS_MAX * BLOCK];
} bench;

static void pause_us(uint64_t us)
{
    const struct timespec time = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&time, NULL);
}

static void await(sem_t *sem)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    if (sem_timedwait(sem, &until) != 0)
        give_up("a hand-over", "it did not come");
}

/* ---- ours ---- */

static hf_lock *acquire(hf_lock_client *locks)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = WAIT_MS};
    char detail[HF_DETAIL_SIZE] = "";
    hf_lock *lock;
    must(hf_lock_acquire_wait(locks, &opts, &lock, detail), "the lock", detail);
    return lock;
}

static void release(hf_lock *lock)
{
    if (hf_lock_release_wait(lock, NULL) != HF_RELEASE_DONE)
        give_up("the lock", "it was lost");
}

/* ---- bare ---- */

static long long ask(hf_probe *probe, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(probe->redis, format, args);
    va_end(args);
    must(hf_probe_check(probe, &reply), "the bare connection", probe->detail);
    const redisReply *first = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
                                  ? reply->element[0]
                                  : reply;
    long long found = first->type == REDIS_REPLY_INTEGER ? first->integer
                      : first->type == REDIS_REPLY_NIL   ? -1
                                                         : 0;
    freeReplyObject(reply);
    return found;
}

/* As long as a boot id. */
#define MACHINE "01234567-89ab-cdef-0123-456789abcdef"

static void bare_acquire(bench *b, hf_probe *probe)
{
    if (ask(probe,
            "EVALSHA %s 1 hf:lock:{bare}: 0123456789abcdef0123456789abcdef "
            "0123456789abcdef0123456789abcdef bench-host-12345-0123456789abcdef x 1 0 - "
            "30000 0 %s 0 %s bare",
            b->acquire_sha1, MACHINE, "") != 0)
        give_up("the bare lock", "it was not to be had");
}

static void bare_release(bench *b, hf_probe *probe)
{
    if (ask(probe,
            "EVALSHA %s 1 hf:lock:{bare}: 0123456789abcdef0123456789abcdef "
            "0123456789abcdef0123456789abcdef - 0 %s %s bare",
            b->release_sha1, MACHINE, "") != 0)
        give_up("the bare lock", "it could not be given back");
}

/* ---- the waiters ---- */

static void has_taken(bench *b)
{
    atomic_store(&b->taken_ns, hf_boot_ns());
    (void)sem_post(&b->taken);
}

static void *taker_main(void *arg)
{
    bench *b = arg;
    for (;;) {
        await(&b->begin);
        if (b->end)
            return NULL;
        if (b->bare) {
            if (ask(&b->bare_taker, "BLPOP hand-over 20") != 0)
                give_up("the bare hand-over", "it did not come");
            bare_acquire(b, &b->bare_taker);
            has_taken(b);
            bare_release(b, &b->bare_taker);
        } else {
            hf_lock *lock = acquire(b->taker);
            has_taken(b);
            release(lock);
        }
        (void)sem_post(&b->taken); /* and it is done */
    }
}

/* ---- rounds ---- */

/* Until the taker waits, in Redis and in its thread. */
static void await_taker(bench *b)
{
    static const char line[] = "ZCARD hf:lock:{hand-over}:q:hand-over";
    static const char blocked[] = "return tonumber(string.match(redis.call('INFO', "
                                  "'clients'), 'blocked_clients:(%d+)'))";
    uint64_t until_ns = hf_boot_ns() + WAIT_MS * HF_MS_NS;
    while ((b->bare ? 1 : ask(&b->look, line)) < 1 ||
           ask(&b->look, "EVAL %s 0", blocked) < 1) {
        if (hf_boot_ns() > until_ns)
            give_up("a hand-over", "nobody waits for it");
        pause_us(100);
    }
    pause_us(PAUSE_MIN_US + hf_rng_next(&b->rng) % PAUSE_US);
}

static double one(bench *b)
{
    hf_lock *lock = b->bare ? NULL : acquire(b->giver);
    (void)sem_post(&b->begin);
    await_taker(b);
    uint64_t since_ns = hf_boot_ns();
    if (b->bare)
        (void)ask(&b->bare_giver, "RPUSH hand-over 1");
    else
        release(lock);
    await(&b->taken);
    double us = (double)(atomic_load(&b->taken_ns) - since_ns) / 1000;
    await(&b->taken);
    return us;
}

static void compare(bench *b)
{
    size_t n = 0;
    for (uint32_t block = 0; block < b->blocks; block++, n += BLOCK) {
        for (int side = 0; side < 2; side++) {
            b->bare = side == 1;
            for (int i = -WARM_UP; i < BLOCK; i++) {
                double us = one(b);
                if (i >= 0)
                    b->us[side][n + (size_t)i] = us;
            }
        }
    }
    hf_spread ours = hf_bench_spread(b->us[0], n), bare = hf_bench_spread(b->us[1], n);
    printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"bare_p50_us\": %.3f, "
           "\"bare_p99_us\": %.3f, \"n\": %zu}\n",
           ours.p50, ours.p99, bare.p50, bare.p99, n);
}

/* ---- all of it ---- */

static void parse(int argc, char **argv, bench *b)
{
    const option_spec specs[] = {{"url", &b->url, NULL},
                                 {"acquire", &b->acquire_sha1, NULL},
                                 {"release", &b->release_sha1, NULL},
                                 {"blocks", NULL, &b->blocks},
                                 {0}};
    if (read_options(argc, argv, specs) != argc || b->url == NULL ||
        b->acquire_sha1 == NULL || b->release_sha1 == NULL || b->blocks == 0 ||
        b->blocks > BLOCKS_MAX)
        misused("the options of the file's head");
}

int main(int argc, char **argv)
{
    static bench b = {.blocks = 20};
    char detail[HF_DETAIL_SIZE] = "";
    pthread_t taker;
    parse(argc, argv, &b);
    hf_probe *const probes[] = {&b.look, &b.bare_giver, &b.bare_taker};
    hf_lock_client **const clients[] = {&b.giver, &b.taker};
    (void)sem_init(&b.begin, 0, 0);
    (void)sem_init(&b.taken, 0, 0);
    b.rng.state = hf_boot_ns();
    for (size_t i = 0; i < HF_COUNT(probes); i++)
        must(hf_probe_open(probes[i], b.url, NULL), "the connection", probes[i]->detail);
    for (size_t i = 0; i < HF_COUNT(clients); i++)
        must(
            hf_lock_client_open(clients[i],
                                &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                       .server = HF_SERVER(.url = b.url)},
                                detail),
            "the client", detail);
    if (pthread_create(&taker, NULL, taker_main, &b) != 0)
        give_up("the taker", "no thread can be started");
    compare(&b);
    b.end = true;
    (void)sem_post(&b.begin);
    (void)pthread_join(taker, NULL);
    for (size_t i = 0; i < HF_COUNT(clients); i++)
        hf_lock_client_close(*clients[i], NULL, NULL);
    for (size_t i = 0; i < HF_COUNT(probes); i++)
        hf_probe_close(probes[i]);
    return 0;
}
