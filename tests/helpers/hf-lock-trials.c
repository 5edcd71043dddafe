/* hf-lock-trials.c - what the acceptance script of hostile locks measures with the C API.
 *
 *     hf-lock-trials TRIAL URL [ARG...]
 *
 *   grants URL THREADS ROUNDS
 *     Each thread waits ROUNDS times for a lock of its own tag, all with one client.
 *     Prints how many rounds there were, in how many the grant was heard later than 200
 *     ms, and the longest in ms. The time in which another lock could not be had at once
 *     is left out: Redis did not answer.
 *   event URL lock|set revoked|lost
 *     Releases in the callback of the event. Prints the ms from the request that causes
 *     it until the release is told.
 *   mutex URL lock|set
 *     Releases while it holds a mutex that the callback waits for. Prints how many ms
 *     that took.
 *   crowd URL N TAGS
 *     Holds c-0 to c-(TAGS-1) with one client and has N wait for them with another one.
 *     Prints "ready". Ends by a signal.
 *   bound URL extend|fixed MAX
 *     Prints for how many ms it believed to hold a lock that may be held for MAX ms.
 *   old COMMAND [ARG...]
 *     Runs it as on Linux 5.2, which has neither pidfd_open nor clone3.
 *   refused COMMAND [ARG...]
 *     Runs it so that the kernel refuses all its signals, as those to a program that
 *     became another user.
 *
 * A trial that hangs is ended by its caller. */
#define _GNU_SOURCE /* rand_r */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdfast/lock.h"
#include "holdfast/lock_set.h"

enum {
    THREADS_MAX = 64,
    LATE_MS = 200,
    LATE_MAX = 5, /* rounds that were late are enough to tell */
    LEASE_MS = 30000,
    LONG_LEASE_MS = 600000,
    WAIT_MS = 60000,
    NAP_US = 5000,
    STALL_NS = 10 * HF_MS_NS /* of a lock that is free, and a nap of 1 ms */
};

static const char *url;
static char detail[HF_DETAIL_SIZE];

static _Noreturn void fail(const char *why)
{
    (void)fprintf(stderr, "hf-lock-trials: %s: %s\n", why, detail);
    exit(1);
}

static void must(hf_err err, const char *what)
{
    if (err != HF_OK)
        fail(what);
}

static void rest_us(unsigned us)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000L * us}, NULL);
}

static void await(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static uint64_t ms_since(uint64_t from_ns)
{
    return (hf_boot_ns() - from_ns) / HF_MS_NS;
}

static hf_lock_client *open_client(void)
{
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = HF_SERVER(.url = url)};
    hf_lock_client *locks;
    must(hf_lock_client_open(&locks, &opts, detail), "no client");
    return locks;
}

static hf_lock_opts options(const char *const *name)
{
    return (hf_lock_opts){HF_LOCK_OPTS_INIT, .names = name, .n_names = 1,
                          .wait_ms = WAIT_MS, .lease_ms = LEASE_MS};
}

static hf_lock *take(hf_lock_client *locks, const hf_lock_opts *opts)
{
    hf_lock *lock;
    must(hf_lock_acquire_wait(locks, opts, &lock, detail), "no lock");
    return lock;
}

/* ---- grants ---- */

static hf_lock_client *holders, *waiters;
static long rounds;
static atomic_long done, late;
static _Atomic uint64_t longest_ms, stalled_ns;

typedef struct grant {
    sem_t told;
    hf_lock *lock;
    uint64_t at_ns;
} grant;

/* Takes another lock again and again, and adds up what that took when it took long. */
static void *count_stalls(void *arg)
{
    static const char *const name = "other";
    const hf_lock_opts opts = options(&name);
    hf_lock_client *locks = open_client();
    (void)arg;
    for (;;) {
        uint64_t from_ns = hf_boot_ns();
        (void)hf_lock_release_wait(take(locks, &opts), NULL);
        rest_us(1000);
        uint64_t took_ns = hf_boot_ns() - from_ns;
        if (took_ns > STALL_NS)
            (void)atomic_fetch_add(&stalled_ns, took_ns);
    }
    return NULL;
}

static void on_grant(hf_lock *lock, hf_err err, const char *why, void *arg)
{
    grant *g = arg;
    if (err != HF_OK) {
        (void)snprintf(detail, sizeof detail, "%s", why == NULL ? "" : why);
        fail(hf_err_name(err));
    }
    g->at_ns = hf_boot_ns();
    g->lock = lock;
    (void)sem_post(&g->told);
}

/* ms from the release until the next one heard of it */
static uint64_t hand_over(grant *g, const hf_lock_opts *opts, unsigned *seed)
{
    hf_lock *held = take(holders, opts);
    must(hf_lock_acquire(waiters, opts, on_grant, g, NULL, detail), "not asked");
    rest_us((unsigned)rand_r(seed) % NAP_US);
    uint64_t stalls_ns = atomic_load(&stalled_ns), from_ns = hf_boot_ns();
    (void)hf_lock_release_wait(held, NULL);
    await(&g->told);
    uint64_t took_ns = g->at_ns > from_ns ? g->at_ns - from_ns : 0;
    stalls_ns = atomic_load(&stalled_ns) - stalls_ns;
    (void)hf_lock_release_wait(g->lock, NULL);
    return took_ns > stalls_ns ? (took_ns - stalls_ns) / HF_MS_NS : 0;
}

static void *wait_in_rounds(void *arg)
{
    unsigned seed = (unsigned)(size_t)arg;
    char text[16];
    const char *const name = text;
    const hf_lock_opts opts = options(&name);
    grant g = {.lock = NULL};
    (void)snprintf(text, sizeof text, "g-%u", seed);
    (void)sem_init(&g.told, 0, 0);
    for (long i = 0; i < rounds && atomic_load(&late) < LATE_MAX; i++) {
        uint64_t took_ms = hand_over(&g, &opts, &seed);
        uint64_t most_ms = atomic_load(&longest_ms);
        while (took_ms > most_ms &&
               !atomic_compare_exchange_weak(&longest_ms, &most_ms, took_ms))
            continue;
        (void)atomic_fetch_add(&late, took_ms > LATE_MS ? 1 : 0);
        (void)atomic_fetch_add(&done, 1);
    }
    return NULL;
}

static int grants(char **args)
{
    pthread_t threads[THREADS_MAX], stalls;
    size_t n = strtoul(args[0], NULL, 10);
    rounds = strtol(args[1], NULL, 10);
    holders = open_client();
    waiters = open_client();
    if (n > THREADS_MAX || pthread_create(&stalls, NULL, count_stalls, NULL) != 0)
        fail("no thread");
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, wait_in_rounds, (void *)(i + 1)) != 0)
            fail("no thread");
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)printf("%ld %ld %llu\n", atomic_load(&done), atomic_load(&late),
                 (unsigned long long)atomic_load(&longest_ms));
    hf_lock_client_close(waiters, NULL, NULL);
    hf_lock_client_close(holders, NULL, NULL);
    return 0;
}

/* ---- events ---- */

static hf_lock_event wanted;
static bool releases; /* in the callback; else it waits there for the mutex */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t inside, released;

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    (void)lock;
    (void)result;
    (void)left;
    (void)arg;
    (void)sem_post(&released);
}

static void on_set_released(hf_lock_set *set, hf_lock_release_result result,
                            const hf_lock_release_result *each, size_t n, void *arg)
{
    (void)set;
    (void)result;
    (void)each;
    (void)n;
    (void)arg;
    (void)sem_post(&released);
}

static void wait_for_the_mutex(void)
{
    (void)sem_post(&inside);
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_mutex_unlock(&mutex);
}

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    (void)arg;
    if (event != wanted)
        return;
    if (releases)
        hf_lock_release(lock, on_released, NULL);
    else
        wait_for_the_mutex();
}

static void on_set_event(hf_lock_set *set, hf_lock_event event, size_t member, void *arg)
{
    (void)member;
    (void)arg;
    if (event != wanted)
        return;
    if (releases)
        hf_lock_set_release(set, on_set_released, NULL);
    else
        wait_for_the_mutex();
}

static const char *const event_name = "e";

static hf_lock_set *take_set(hf_lock_servers *servers)
{
    const hf_lock_opts lock = {HF_LOCK_OPTS_INIT, .names = &event_name, .n_names = 1,
                               .lease_ms = LEASE_MS};
    const hf_multilock_member one = {HF_MULTILOCK_MEMBER_INIT, .lock = &lock};
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = &one,
                                    .n_members = 1, .wait_ms = WAIT_MS,
                                    .on_event = on_set_event};
    hf_lock_set *set;
    must(hf_multilock_acquire_wait(servers, &opts, &set, detail), "no set");
    return set;
}

static void cause(hf_lock_client *other)
{
    size_t n = 0;
    if (wanted == HF_LOCK_EVENT_LOST)
        must(hf_lock_force(other, event_name, NULL, &n, detail), "not forced");
    else
        must(hf_lock_revoke(other, event_name, NULL, &n, detail), "not asked back");
    if (n != 1)
        fail("there was no holder");
}

typedef struct held {
    hf_lock_client *locks;
    hf_lock *lock;
    hf_lock_servers *servers;
    hf_lock_set *set; /* NULL: it is a lock */
} held;

static held hold(const char *kind)
{
    held h = {.locks = NULL};
    (void)sem_init(&inside, 0, 0);
    (void)sem_init(&released, 0, 0);
    if (strcmp(kind, "set") == 0) {
        must(hf_lock_servers_open(&h.servers, &url, 1, NULL, detail), "no servers");
        h.set = take_set(h.servers);
    } else {
        hf_lock_opts opts = options(&event_name);
        opts.on_event = on_event;
        h.locks = open_client();
        h.lock = take(h.locks, &opts);
    }
    return h;
}

static void tell(uint64_t ms, const held *h)
{
    (void)printf("%llu\n", (unsigned long long)ms);
    hf_lock_servers_close(h->servers, NULL, NULL);
    hf_lock_client_close(h->locks, NULL, NULL);
}

static int event(char **args)
{
    wanted = strcmp(args[1], "lost") == 0 ? HF_LOCK_EVENT_LOST : HF_LOCK_EVENT_REVOKED;
    releases = true;
    held h = hold(args[0]);
    hf_lock_client *other = open_client();
    uint64_t from_ns = hf_boot_ns();
    cause(other);
    await(&released);
    tell(ms_since(from_ns), &h);
    hf_lock_client_close(other, NULL, NULL);
    return 0;
}

static int with_mutex(char **args)
{
    wanted = HF_LOCK_EVENT_REVOKED;
    held h = hold(args[0]);
    hf_lock_client *other = open_client();
    (void)pthread_mutex_lock(&mutex);
    cause(other);
    await(&inside);
    uint64_t from_ns = hf_boot_ns();
    if (h.set != NULL)
        (void)hf_lock_set_release_wait(h.set, NULL);
    else
        (void)hf_lock_release_wait(h.lock, NULL);
    uint64_t took_ms = ms_since(from_ns);
    (void)pthread_mutex_unlock(&mutex);
    tell(took_ms, &h);
    hf_lock_client_close(other, NULL, NULL);
    return 0;
}

/* ---- a crowd ---- */

static void on_end(hf_lock *lock, hf_err err, const char *why, void *arg)
{
    (void)lock; /* of one that was granted: kept to the end of the program */
    (void)err;
    (void)why;
    (void)arg;
}

static int crowd(char **args)
{
    size_t n = strtoul(args[0], NULL, 10), tags = strtoul(args[1], NULL, 10);
    char text[32];
    const char *const name = text;
    hf_lock_opts opts = options(&name);
    hf_lock **lock = calloc(n, sizeof *lock);
    opts.lease_ms = LONG_LEASE_MS;
    opts.wait_ms = -1;
    holders = open_client();
    waiters = open_client();
    if (lock == NULL || tags == 0)
        fail("no memory, or no tag");
    for (size_t i = 0; i < tags; i++) {
        (void)snprintf(text, sizeof text, "c-%zu", i);
        (void)take(holders, &opts);
    }
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "c-%zu", i % tags);
        must(hf_lock_acquire(waiters, &opts, on_end, NULL, &lock[i], detail),
             "not asked");
    }
    for (size_t i = 0; i < n; i++)
        while (hf_lock_get_state(lock[i]) != HF_LOCK_WAITING)
            rest_us(1000);
    (void)puts("ready");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

/* ---- the longest hold ---- */

static int bound(char **args)
{
    static const char *const name = "b";
    bool fixed = strcmp(args[0], "fixed") == 0;
    hf_lock_opts opts = options(&name);
    hf_lock_client *locks = open_client();
    opts.max_hold_ms = (uint32_t)strtoul(args[1], NULL, 10);
    opts.fixed = fixed;
    hf_lock *lock = take(locks, &opts);
    uint64_t from_ns = hf_boot_ns(), last_ns = from_ns;
    if (!fixed)
        must(hf_lock_extend_wait(lock, LONG_LEASE_MS, NULL), "not extended");
    for (uint64_t now_ns = hf_boot_ns(); hf_lock_held(lock); now_ns = hf_boot_ns()) {
        last_ns = now_ns;
        rest_us(1000);
    }
    (void)printf("%llu\n", (unsigned long long)((last_ns - from_ns) / HF_MS_NS));
    (void)hf_lock_release_wait(lock, NULL);
    hf_lock_client_close(locks, NULL, NULL);
    return 0;
}

/* ---- calls that are refused ---- */

/* Runs a command, for which the kernel refuses two calls with an error. */
static int without(unsigned one, unsigned other, unsigned error, char **words)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0],
                                       .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        (void)execv(words[0], words);
    return 127;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int n;
        int (*run)(char **args);
    } trials[] = {{"grants", 2, grants},
                  {"event", 2, event},
                  {"crowd", 2, crowd},
                  {"mutex", 1, with_mutex},
                  {"bound", 2, bound}};
    if (argc > 2 && strcmp(argv[1], "refused") == 0)
        return without(SYS_pidfd_send_signal, SYS_kill, EPERM, argv + 2);
    if (argc > 2 && strcmp(argv[1], "old") == 0)
        return without(SYS_pidfd_open, SYS_clone3, ENOSYS, argv + 2);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        if (argc == trials[i].n + 3 && strcmp(argv[1], trials[i].name) == 0) {
            url = argv[2];
            return trials[i].run(argv + 3);
        }
    return 64;
}
