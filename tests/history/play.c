/* play.c - see play.h. */
#include "tests/history/play.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/history/guarded.h"
#include "tests/history/line.h"
#include "tests/history/record.h"
#include "tests/support/eventually.h"
#include "tests/support/unix_socket.h"

enum {
    THREADS = 4,
    LIMIT = 3,
    PATH_SIZE = 160,
    REMEMBER_MS = 600000,
    PULSE_MS = 5,
    LATE_MS = 10,
    ANSWER_MS = 1000
};

const char *const hf_play_names[HF_PLAY_NAMES] = {
    HF_PLAY_GUARD, "rw", "permits", "again", "t/a", "t/b", "cell"};

typedef struct play {
    hf_recorder *recorder;
    hf_lock_client *locks;
    const char *dir;
    const char *url;
    unsigned player;
    uint64_t seed, until_ns;
    bool long_leases;
    bool lines_only;
    atomic_bool over;
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
    static const uint32_t leases[] = {200, 400, 800}, long_leases[] = {20000, 40000};
    static const int64_t waits[] = {0, 50, 300, 2000, 2000}, long_waits[] = {0, 60000};
    bool is_long = h->play->long_leases;
    return (hf_lock_opts){HF_LOCK_OPTS_INIT,
                          .names = names,
                          .n_names = n,
                          .lease_ms = is_long ? long_leases[below(h, 2)]
                                              : leases[below(h, HF_COUNT(leases))],
                          .wait_ms = is_long ? long_waits[below(h, 2)]
                                             : waits[below(h, HF_COUNT(waits))],
                          .fixed = one_in(h, 8)};
}

static hf_taken *take(hand *h, hf_lock_opts opts)
{
    int cancel_ms = one_in(h, 10) ? (int)below(h, 40) : -1;
    return hf_record_acquire(h->play->recorder, h->play->locks, opts, cancel_ms, NULL);
}

/* Mostly short; now and then for longer than a lease, if that is short. */
static void stay(hand *h, uint32_t lease_ms)
{
    bool too_long = !h->play->long_leases && one_in(h, 25);
    hf_test_pause_ms(too_long ? lease_ms + below(h, lease_ms) : below(h, 12));
}

/* One of its own, or where only lines are played, one that other processes have, too:
 * some of its holds are then of clients that are dead. */
static const char *any_owner(hand *h)
{
    static const char *const common[] = {"common-1", "common-2"};
    if (!h->play->lines_only || one_in(h, 2))
        return h->owner;
    return common[below(h, HF_COUNT(common))];
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
    opts.owner = one_in(h, 2) ? any_owner(h) : NULL;
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
    opts.owner = any_owner(h);
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

/* ---- what disturbs it ---- */

/* False: there was no answer. */
static bool ping(int fd)
{
    char answer[16];
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return fd >= 0 && hf_socket_send(fd, "PING\r\n", 6) &&
           poll(&one, 1, ANSWER_MS) == 1 && read(fd, answer, sizeof answer) > 0;
}

/* Asks Redis again and again, and notes when its answer was late, or did not come. */
static void *pulse(void *arg)
{
    play *p = arg;
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/players", p->dir);
    int out = hf_lines_open(path), fd = -1;
    uint64_t before_ns = hf_boot_ns(), now_ns;
    for (; !atomic_load(&p->over); before_ns = now_ns) {
        if (fd < 0)
            fd = hf_socket_connect(p->url + strlen("unix://"));
        bool answered = ping(fd);
        if (!answered && fd >= 0) {
            (void)close(fd);
            fd = -1;
        }
        hf_test_pause_ms(PULSE_MS);
        now_ns = hf_boot_ns();
        if (answered && now_ns - before_ns > LATE_MS * HF_MS_NS)
            hf_record_late(p->recorder, 1, before_ns, now_ns);
        if (!answered)
            hf_line_write(out,
                          "{\"ev\":\"disturbed\",\"player\":%u,\"from\":%" PRIu64
                          ",\"to\":%" PRIu64 "}",
                          p->player, before_ns, now_ns);
    }
    if (fd >= 0)
        (void)close(fd);
    (void)close(out);
    return NULL;
}

/* ---- the process ---- */

static void *play_on(void *arg)
{
    static void (*const games[])(hand * h) = {play_guarded, play_shared,  play_permits,
                                              play_again,   play_several, play_cell};
    hand *h = arg;
    const unsigned n = HF_COUNT(games) - h->play->lines_only; /* the cell is the last */
    while (hf_boot_ns() < h->play->until_ns)
        games[below(h, n)](h);
    return NULL;
}

/* What wakes a player by its messages is then only what the others let go. */
static void *wait_all_the_time(void *arg)
{
    static const char *const name = HF_PLAY_HELD;
    hand *h = arg;
    uint64_t now_ns = hf_boot_ns();
    hf_lock_opts opts = any(h, &name, 1);
    if (now_ns >= h->play->until_ns)
        return NULL;
    opts.wait_ms = (int64_t)((h->play->until_ns - now_ns) / HF_MS_NS);
    hf_taken *t = hf_record_acquire(h->play->recorder, h->play->locks, opts, -1, NULL);
    if (t != NULL)
        (void)hf_record_release(t);
    return NULL;
}

int hf_play_main(char **argv)
{
    char path[PATH_SIZE], detail[HF_DETAIL_SIZE];
    hand hands[THREADS + 1];
    unsigned n_hands = 0;
    pthread_t pulses;
    play p = {.url = argv[1],
              .dir = argv[2],
              .long_leases = strcmp(argv[6], "long") == 0,
              .lines_only = strcmp(argv[6], "lines") == 0,
              .player = (unsigned)strtoul(argv[3], NULL, 10),
              .seed = strtoull(argv[4], NULL, 10),
              .until_ns = hf_boot_ns() + strtoull(argv[5], NULL, 10) * HF_MS_NS};
    (void)snprintf(path, sizeof path, "%s/players", p.dir);
    if (hf_lock_client_open(&p.locks,
                            &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                   .server = HF_SERVER(.url = argv[1])},
                            detail) != HF_OK) {
        (void)fprintf(stderr, "player %u: %s\n", p.player, detail);
        return 1;
    }
    p.recorder = hf_recorder_open(path, p.player);
    HF_ASSERT(pthread_create(&pulses, NULL, pulse, &p) == 0);
    for (unsigned i = 0; i < THREADS + (unsigned)p.long_leases; i++, n_hands++) {
        hands[i] = (hand){.play = &p, .rng = {p.seed * THREADS + i}};
        (void)snprintf(hands[i].owner, sizeof hands[i].owner, "player-%u-%u", p.player,
                       i);
        HF_ASSERT(pthread_create(&hands[i].thread, NULL,
                                 i == THREADS ? wait_all_the_time : play_on,
                                 &hands[i]) == 0);
    }
    for (unsigned i = 0; i < n_hands; i++)
        (void)pthread_join(hands[i].thread, NULL);
    atomic_store(&p.over, true);
    (void)pthread_join(pulses, NULL);
    hf_recorder_rest(p.recorder);
    hf_lock_client_close(p.locks, NULL, NULL);
    hf_recorder_close(p.recorder);
    return 0;
}
