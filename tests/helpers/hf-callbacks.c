/* hf-callbacks.c - hf-callbacks URL ROUNDS SERVER: several threads wait for answers at a
 * time, and the first of them that has its own puts one more job in with a callback,
 * while the others are still woken. Prints how many rounds there were, in how many a
 * callback came later than 100 ms, the longest it took in ms; and the same two once more,
 * without the time for which the threads of this process and of the server (a process id)
 * were ready to run and waited for a processor: what is left was waiting for a wake-up.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdfast/producer.h"

enum { THREADS = 4, LATE_MS = 100, LATE_MAX = 20, TASKS_MAX = 64 };

static hf_producer *producer;
static pthread_barrier_t gate;
static atomic_bool over;
static atomic_bool put; /* one of this round's was woken and has put its job in */
static sem_t told;      /* once for each callback */
static _Atomic uint64_t longest_ns;

static _Noreturn void fail(const char *why)
{
    (void)fprintf(stderr, "%s\n", why);
    exit(1);
}

/* ---- how long threads waited for a processor ---- */

static int
    tasks[TASKS_MAX]; /* /proc/PID/task/TID/schedstat: ns on one, ns waited, times */
static size_t n_tasks;

static void watch_tasks(const char *pid)
{
    char path[64 + sizeof(struct dirent)];
    (void)snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *dir = opendir(path);
    if (dir == NULL)
        fail("there is no such server");
    for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        if (d->d_name[0] == '.' || n_tasks == TASKS_MAX)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", pid, d->d_name);
        tasks[n_tasks] = open(path, O_RDONLY | O_CLOEXEC);
        n_tasks += tasks[n_tasks] >= 0 ? 1 : 0;
    }
    (void)closedir(dir);
}

/* Of all of them until now. Where the system does not tell it, 0. */
static uint64_t waited_ns(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n_tasks; i++) {
        char text[80], *waited;
        ssize_t len = pread(tasks[i], text, sizeof text - 1, 0);
        text[len > 0 ? len : 0] = '\0';
        (void)strtoull(text, &waited, 10);
        sum += strtoull(waited, NULL, 10);
    }
    return sum;
}

/* ---- the rounds ---- */

typedef struct lateness {
    long late;
    uint64_t longest_ns;
} lateness;

static void note_took(lateness *l, uint64_t took_ns)
{
    l->late += took_ns > LATE_MS * HF_MS_NS ? 1 : 0;
    l->longest_ns = took_ns > l->longest_ns ? took_ns : l->longest_ns;
}

static void on_told(const hf_enqueue_result *result, const char *detail, void *arg)
{
    uint64_t *from_ns = arg, took = hf_boot_ns() - *from_ns;
    free(from_ns);
    if (result->err != HF_OK)
        fail(detail == NULL ? hf_err_name(result->err) : detail);
    if (took > atomic_load(&longest_ns)) /* callbacks come from one thread */
        atomic_store(&longest_ns, took);
    (void)sem_post(&told);
}

static void put_one(void)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    uint64_t *from_ns = malloc(sizeof *from_ns);
    if (from_ns == NULL)
        fail("no memory");
    *from_ns = hf_boot_ns();
    if (hf_enqueue(producer, &job, on_told, from_ns, NULL) != HF_OK)
        fail("a job was not taken");
}

static void *call_in_rounds(void *arg)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    (void)arg;
    for (;;) {
        (void)pthread_barrier_wait(&gate);
        if (atomic_load(&over))
            return NULL;
        if (hf_enqueue_wait(producer, &job, 1, NULL, 0, NULL) != HF_OK)
            fail("a call failed");
        if (!atomic_exchange(&put, true))
            put_one();
        (void)pthread_barrier_wait(&gate);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    long done = 0;
    lateness all = {0}, own = {0}; /* own: without the waits for a processor */
    if (argc != 4)
        return 64;
    const long rounds = strtol(argv[2], NULL, 10);
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = argv[1])};
    if (hf_producer_open(&producer, &opts, NULL) != HF_OK ||
        pthread_barrier_init(&gate, NULL, THREADS + 1) != 0 || sem_init(&told, 0, 0) != 0)
        fail("it cannot begin");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, call_in_rounds, NULL) != 0)
            fail("no thread");
    watch_tasks("self");
    watch_tasks(argv[3]);
    for (uint64_t since = waited_ns(); done < rounds && own.late < LATE_MAX; done++) {
        atomic_store(&put, false);
        atomic_store(&longest_ns, 0);
        put_one(); /* while its callback is owed, the producer's own thread reads */
        (void)pthread_barrier_wait(&gate);
        (void)pthread_barrier_wait(&gate);
        for (int n = 0; n < 2; n++)
            while (sem_wait(&told) != 0)
                continue;
        uint64_t took = atomic_load(&longest_ns), now = waited_ns(), waited = now - since;
        note_took(&all, took);
        note_took(&own, took > waited ? took - waited : 0);
        since = now;
    }
    atomic_store(&over, true);
    (void)pthread_barrier_wait(&gate);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)printf("%ld %ld %llu %ld %llu\n", done, all.late,
                 (unsigned long long)(all.longest_ns / HF_MS_NS), own.late,
                 (unsigned long long)(own.longest_ns / HF_MS_NS));
    hf_producer_close(producer, NULL, NULL);
    return 0;
}
