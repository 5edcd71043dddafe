/* hf-locker.c - a process that takes a lock and writes down when it believed to have it.
 *
 *     hf-locker URL LOG NAME [WORD...]
 *
 *   lease=MS  owner=TEXT  reentrant  shared  fixed   as hf_lock_opts has them
 *   replicas=N         wait_replicas
 *   rounds=N seed=N    take it N times, each time for a moment; else once, until it is
 *                      lost or TERM comes
 *   hold=MS            with rounds: hold it for up to so long, instead of 3 ms
 *   counter=FILE       with rounds: read a number and write it one higher, while it holds
 *   apart              with rounds: another name in each, NAME.0, NAME.1, ...; one that
 *                      cannot be taken is passed over
 *   patient            with rounds: one that cannot be taken is tried again
 *   overstay           every fourth round is held past its lease, and does not count
 *
 * Lines of LOG: KIND ns VALUE, ns on CLOCK_BOOTTIME. "asks"; "held" with the fence;
 * "believed": the last moment at which it looked and held it; "lost" with the reason;
 * "released" with the result; "counted" with how often; "failed" with the error. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/lock.h"

enum { POLL_US = 1000, HOLD_US = 3000, TEXT = 256 };

static int out = -1;
static volatile sig_atomic_t ended;

static void on_term(int number)
{
    (void)number;
    ended = 1;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void say(const char *kind, uint64_t ns, uint64_t value)
{
    char line[TEXT];
    int n = snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu64 "\n", kind, ns, value);
    if (write(out, line, (size_t)n) != n)
        exit(1);
}

static const char *value_of(int argc, char **argv, const char *word)
{
    size_t len = strlen(word);
    for (int i = 4; i < argc; i++)
        if (strncmp(argv[i], word, len) == 0)
            return argv[i] + len;
    return NULL;
}

static void rest_us(unsigned us)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000L * us}, NULL);
}

static uint64_t number_of(int argc, char **argv, const char *word)
{
    const char *text = value_of(argc, argv, word);
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static void count(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pread(fd, text, sizeof text - 1, 0) < 0)
        exit(1);
    rest_us(200); /* so that two at a time would be seen */
    int n = snprintf(text, sizeof text, "%llu\n", strtoull(text, NULL, 10) + 1);
    if (pwrite(fd, text, (size_t)n, 0) != n || close(fd) != 0)
        exit(1);
}

/* Until when it looked and held it. */
static uint64_t believe(const hf_lock *lock, uint64_t until_ns)
{
    uint64_t last = 0;
    for (uint64_t t = now_ns(); t < hf_lock_deadline_ns(lock); t = now_ns()) {
        last = t;
        if (ended || t >= until_ns)
            break;
        rest_us(POLL_US);
    }
    return last;
}

/* NULL: it could not be taken, and that is no reason to end. */
static hf_lock *take(hf_lock_client *locks, const hf_lock_opts *opts, bool must)
{
    char detail[HF_DETAIL_SIZE];
    hf_lock *lock = NULL;
    say("asks", now_ns(), 0);
    hf_err err = hf_lock_acquire_wait(locks, opts, &lock, detail);
    if (err != HF_OK) {
        say("failed", now_ns(), (uint64_t)-err);
        if (must)
            exit(1);
        return NULL;
    }
    say("held", now_ns(), hf_lock_fence(lock));
    return lock;
}

static void hold_once(hf_lock_client *locks, const hf_lock_opts *opts)
{
    hf_lock *lock = take(locks, opts, true);
    say("believed", believe(lock, UINT64_MAX), 0);
    if (!hf_lock_held(lock))
        say("lost", now_ns(), hf_lock_why(lock));
    say("released", now_ns(), hf_lock_release_wait(lock, NULL));
}

static void hold_often(hf_lock_client *locks, hf_lock_opts opts, int argc, char **argv)
{
    uint64_t rounds = number_of(argc, argv, "rounds="), counted = 0;
    uint64_t most_us = number_of(argc, argv, "hold=") * 1000;
    unsigned seed = (unsigned)number_of(argc, argv, "seed=");
    const char *counter = value_of(argc, argv, "counter=");
    bool overstay = value_of(argc, argv, "overstay") != NULL;
    bool apart = value_of(argc, argv, "apart") != NULL;
    bool must = !apart && value_of(argc, argv, "patient") == NULL;
    const uint32_t lease_ms = opts.lease_ms == 0 ? 30000 : opts.lease_ms;
    char name[TEXT];
    const char *const own = name;
    for (uint64_t i = 0; i < rounds && !ended; i++) {
        (void)snprintf(name, sizeof name, "%s.%" PRIu64, argv[3], i);
        if (apart)
            opts.names = &own;
        bool late = overstay && i % 4 == 3;
        uint64_t hold_ns = (uint64_t)rand_r(&seed) % (most_us ? most_us : HOLD_US) * 1000;
        opts.fixed = late;
        opts.lease_ms = late ? HF_LOCK_LEASE_MIN_MS : lease_ms;
        hf_lock *lock = take(locks, &opts, must);
        if (lock == NULL)
            continue;
        if (!late && counter != NULL) {
            count(counter);
            counted++;
        }
        say("believed", believe(lock, late ? UINT64_MAX : now_ns() + hold_ns), 0);
        say("released", now_ns(), hf_lock_release_wait(lock, NULL));
        rest_us((unsigned)rand_r(&seed) % HOLD_US);
    }
    say("counted", now_ns(), counted);
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE];
    hf_lock_client *locks;
    if (argc < 4)
        return 64;
    const char *const name = argv[3];
    const hf_lock_client_opts client = {HF_LOCK_CLIENT_OPTS_INIT,
                                        .server = HF_SERVER(.url = argv[1])};
    const hf_lock_opts opts = {
        HF_LOCK_OPTS_INIT,
        .names = &name,
        .n_names = 1,
        .wait_ms = -1,
        .owner = value_of(argc, argv, "owner="),
        .reentrant = value_of(argc, argv, "reentrant") != NULL,
        .mode = value_of(argc, argv, "shared") ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE,
        .fixed = value_of(argc, argv, "fixed") != NULL,
        .lease_ms = (uint32_t)number_of(argc, argv, "lease="),
        .wait_replicas = (uint32_t)number_of(argc, argv, "replicas=")};
    out = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0 || signal(SIGTERM, on_term) == SIG_ERR)
        return 1;
    if (hf_lock_client_open(&locks, &client, detail) != HF_OK) {
        (void)fprintf(stderr, "hf-locker: %s\n", detail);
        return 1;
    }
    if (value_of(argc, argv, "rounds=") != NULL)
        hold_often(locks, opts, argc, argv);
    else
        hold_once(locks, &opts);
    hf_lock_client_close(locks, NULL, NULL);
    return 0;
}
