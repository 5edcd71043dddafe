/* play.c - see play.h. */
#include "tests/history/play.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/history/guarded.h"
#include "tests/history/record.h"
#include "tests/support/eventually.h"

enum { THREADS = 3, LIMIT = 3, PATH_SIZE = 160, REMEMBER_MS = 600000 };

const char *const hf_play_names[HF_PLAY_NAMES] = {
    HF_PLAY_GUARD, "rw", "permits", "again", "t/a", "t/b", "cell"};

typedef struct play {
    hf_recorder *recorder;
    hf_locks *locks;
    const char *dir;
    unsigned player;
    uint64_t seed, until_ns;
} play;

/* One thread of it. */
typedef struct hand {
    play *play;
    hf_rng rng;
    char owner[HF_LOCK_OWNER_SIZE];
    pthread_t thread;
} hand;

static unsigned below(hand *h, unsigned n)
{
    return (unsigned)(hf_rng_next(&h->rng) % n);
}

static bool one_in(hand *h, unsigned n)
{
    return below(h, n) == 0;
}

static hf_lock_opts any(hand *h, const char *const *names, size_t n)
{
    static const uint32_t leases[] = {200, 400, 800};
    static const int64_t waits[] = {0, 50, 300, 2000, 2000};
    return (hf_lock_opts){.names = names,
                          .n_names = n,
                          .lease_ms = leases[below(h, HF_COUNT(leases))],
                          .wait_ms = waits[below(h, HF_COUNT(waits))],
                          .fixed = one_in(h, 8)};
}

static hf_taken *take(hand *h, hf_lock_opts opts)
{
    int cancel_ms = one_in(h, 10) ? (int)below(h, 40) : -1;
    return hf_record_acquire(h->play->recorder, h->play->locks, opts, cancel_ms, NULL);
}

/* Mostly short; now and then for longer than a lease. */
static void stay(hand *h, uint32_t lease_ms)
{
    hf_test_pause_ms(one_in(h, 25) ? lease_ms + below(h, lease_ms) : below(h, 12));
}

/* ---- the games ---- */

/* What stands behind the lock is written only by its fence, in Redis and in a file. */
static void play_guarded(hand *h)
{
    static const char *const name = HF_PLAY_GUARD;
    char path[PATH_SIZE];
    hf_lock_opts opts = any(h, &name, 1);
    hf_taken *t = take(h, opts);
    if (t == NULL)
        return;
    const hf_lock *lock = hf_taken_lock(t);
    uint64_t fence = hf_lock_fence(lock);
    const char *owner = hf_lock_owner_of(lock);
    stay(h, opts.lease_ms);
    (void)snprintf(path, sizeof path, "%s/file", h->play->dir);
    if (!one_in(h, 3) || hf_fence_check(h->play->locks, "resource", fence, owner,
                                        REMEMBER_MS, NULL, NULL) == HF_OK)
        (void)hf_guarded_write(path, fence, owner, below(h, 4));
    (void)hf_record_release(t);
}

static void play_shared(hand *h)
{
    static const char *const name = "rw";
    hf_lock_opts opts = any(h, &name, 1);
    opts.mode = one_in(h, 3) ? HF_LOCK_EXCLUSIVE : HF_LOCK_SHARED;
    opts.owner = one_in(h, 2) ? h->owner : NULL;
    hf_taken *t = take(h, opts);
    if (t == NULL)
        return;
    stay(h, opts.lease_ms);
    if (opts.mode == HF_LOCK_EXCLUSIVE && one_in(h, 2)) {
        (void)hf_record_downgrade(t);
        stay(h, opts.lease_ms);
    } else if (opts.mode == HF_LOCK_SHARED && opts.owner != NULL && one_in(h, 2)) {
        opts.mode = HF_LOCK_EXCLUSIVE; /* an upgrade, which is to be refused */
        opts.reentrant = true;
        hf_taken *more = take(h, opts);
        if (more != NULL)
            (void)hf_record_release(more);
    }
    (void)hf_record_release(t);
}

static void play_permits(hand *h)
{
    static const char *const name = "permits";
    hf_lock_opts opts = any(h, &name, 1);
    opts.mode = HF_LOCK_PERMITS;
    opts.permits = 1 + below(h, LIMIT);
    opts.limit = LIMIT;
    hf_taken *t = take(h, opts);
    if (t == NULL)
        return;
    stay(h, opts.lease_ms);
    (void)hf_record_release(t);
}

static void play_again(hand *h)
{
    static const char *const name = "again";
    hf_lock_opts opts = any(h, &name, 1);
    opts.owner = h->owner;
    opts.reentrant = true;
    hf_taken *outer = take(h, opts);
    if (outer == NULL)
        return;
    hf_taken *inner = take(h, opts);
    stay(h, opts.lease_ms);
    if (one_in(h, 2)) { /* in either order */
        hf_taken *first = outer;
        outer = inner;
        inner = first;
    }
    if (inner != NULL)
        (void)hf_record_release(inner);
    if (outer != NULL)
        (void)hf_record_release(outer);
}

static void play_several(hand *h)
{
    static const char *const names[] = {"t/a", "t/b"};
    size_t n = one_in(h, 2) ? 2 : 1;
    hf_lock_opts opts = any(h, n == 2 ? names : &names[below(h, 2)], n);
    hf_taken *t = take(h, opts);
    if (t == NULL)
        return;
    stay(h, opts.lease_ms);
    (void)hf_record_release(t);
}

static void play_cell(hand *h)
{
    static const char *const name = "cell";
    hf_lock_opts opts = any(h, &name, 1);
    opts.form = one_in(h, 4) ? HF_LOCK_LINE : HF_LOCK_SPIN;
    hf_taken *t = take(h, opts);
    if (t == NULL)
        return;
    stay(h, opts.lease_ms);
    (void)hf_record_release(t);
}

/* ---- the process ---- */

static void *play_on(void *arg)
{
    static void (*const games[])(hand * h) = {play_guarded, play_shared,  play_permits,
                                              play_again,   play_several, play_cell};
    hand *h = arg;
    while (hf_boot_ns() < h->play->until_ns)
        games[below(h, HF_COUNT(games))](h);
    return NULL;
}

int hf_play_main(char **argv)
{
    char path[PATH_SIZE], detail[HF_DETAIL_SIZE];
    hand hands[THREADS];
    play p = {.dir = argv[2],
              .player = (unsigned)strtoul(argv[3], NULL, 10),
              .seed = strtoull(argv[4], NULL, 10),
              .until_ns = hf_boot_ns() + strtoull(argv[5], NULL, 10) * HF_MS_NS};
    (void)snprintf(path, sizeof path, "%s/players", p.dir);
    if (hf_locks_open(&p.locks, &(hf_locks_opts){.url = argv[1]}, detail) != HF_OK) {
        (void)fprintf(stderr, "player %u: %s\n", p.player, detail);
        return 1;
    }
    p.recorder = hf_recorder_open(path, p.player);
    for (unsigned i = 0; i < THREADS; i++) {
        hands[i] = (hand){.play = &p, .rng = {p.seed * THREADS + i}};
        (void)snprintf(hands[i].owner, sizeof hands[i].owner, "player-%u-%u", p.player,
                       i);
        HF_ASSERT(pthread_create(&hands[i].thread, NULL, play_on, &hands[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(hands[i].thread, NULL);
    hf_recorder_rest(p.recorder);
    hf_locks_close(p.locks, NULL, NULL);
    hf_recorder_close(p.recorder);
    return 0;
}
