/* soak.c - a producer and a worker at half of their top rate, for a long time.
 *
 *     soak --url unix:///... [--parts N] [--part SECONDS] [--top SECONDS]
 *
 * First the top rate: jobs are enqueued as fast as the worker takes them. Then half of
 * it: the jobs that are due are enqueued every few milliseconds. For each part one line
 * of JSON gives the time of jobs from just before the enqueue to the handler's start, the
 * lateness of the enqueueing timer (caused by the machine), and the median memory of this
 * process and of Redis. The last line is a list of all. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"
#include "holdfast/producer.h"
#include "holdfast/worker.h"

enum {
    PARTS_MAX = 60,
    PART_MAX = 600,
    BUCKET_US = 10,
    BUCKETS = 200000, /* two seconds; longer times are in the last */
    TICK_MS = 5,
    PAYLOAD = 100,
    BACKLOG = 5000, /* jobs that wait, while the top rate is looked for */
    END_S = 20
};

static const char ns[] = "soak";

typedef struct spread {
    _Atomic uint32_t counts[BUCKETS];
} spread;

static spread pickup, timer;
static _Atomic uint64_t done;
static hf_worker *worker;
static hf_producer *producer;
static hf_probe probe;
static uint64_t sent;

/* ---- samples ---- */

static void note(spread *s, uint64_t ns_taken)
{
    uint64_t i = ns_taken / (BUCKET_US * 1000);
    atomic_fetch_add_explicit(&s->counts[i < BUCKETS ? i : BUCKETS - 1], 1,
                              memory_order_relaxed);
}

/* Empties it. */
static double p99_us(spread *s)
{
    uint64_t total = 0, seen = 0;
    size_t at = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        total += atomic_load(&s->counts[i]);
    while (at < BUCKETS && (seen += atomic_load(&s->counts[at])) * 100 < total * 99)
        at++;
    for (size_t i = 0; i < BUCKETS; i++)
        atomic_store(&s->counts[i], 0);
    return (double)(at + 1) * BUCKET_US;
}

static double resident_bytes(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &resident) != 2)
        give_up("memory", "/proc/self/statm cannot be read");
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* ---- both sides ---- */

static hf_verdict on_job(hf_run *run, void *arg)
{
    uint64_t now_ns = hf_boot_ns(), since_ns;
    size_t len;
    (void)arg;
    memcpy(&since_ns, hf_run_payload(run, &len), sizeof since_ns);
    note(&pickup, now_ns - since_ns);
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    return HF_VERDICT_DONE;
}

static void *run_worker(void *arg)
{
    char detail[HF_DETAIL_SIZE] = "";
    (void)arg;
    if (hf_worker_run(worker, detail) != HF_OK)
        give_up("the worker", detail);
    return NULL;
}

static void put(uint64_t n)
{
    char payload[PAYLOAD] = {0};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t now_ns = hf_boot_ns();
        memcpy(payload, &now_ns, sizeof now_ns);
        const hf_job job = {HF_JOB_INIT, .queue = "default", .type = "bench",
                            .payload = payload, .payload_len = PAYLOAD};
        hf_err err = hf_enqueue(producer, &job, NULL, NULL, NULL);
        if (err != HF_OK)
            give_up("an enqueue", hf_err_text(err));
        sent++;
    }
}

static void sleep_until(uint64_t at_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
                                .tv_nsec = (long)(at_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        continue;
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void await_all(void)
{
    uint64_t until_ns = hf_boot_ns() + END_S * 1000 * HF_MS_NS;
    while (atomic_load(&done) < sent) {
        if (hf_boot_ns() > until_ns)
            give_up("the end", "jobs that were enqueued did not run");
        sleep_until(monotonic_ns() + HF_MS_NS);
    }
}

/* Jobs a second, with both sides at work. */
static double find_top(uint32_t seconds)
{
    uint64_t start_ns = hf_boot_ns(), end_ns = start_ns + seconds * 1000 * HF_MS_NS;
    uint64_t before = atomic_load(&done);
    while (hf_boot_ns() < end_ns) {
        uint64_t waiting = sent - atomic_load(&done);
        if (waiting < BACKLOG)
            put(BACKLOG - waiting < 1000 ? BACKLOG - waiting : 1000);
        else
            sleep_until(monotonic_ns() + HF_MS_NS / 5);
    }
    double rate =
        (double)(atomic_load(&done) - before) * 1e9 / (double)(hf_boot_ns() - start_ns);
    await_all();
    (void)p99_us(&pickup);
    return rate;
}

/* One part; `first`: no comma before it. */
static void one_part(double rate, uint32_t seconds, bool first)
{
    static double rss[PART_MAX], used[PART_MAX];
    size_t samples = 0;
    uint64_t start_ns = monotonic_ns(), put_already = 0, before = atomic_load(&done);
    uint64_t ticks = (uint64_t)seconds * 1000 / TICK_MS;
    for (uint64_t tick = 1; tick <= ticks; tick++) {
        uint64_t due_ns = start_ns + tick * TICK_MS * HF_MS_NS;
        sleep_until(due_ns);
        note(&timer, monotonic_ns() - due_ns);
        uint64_t due = (uint64_t)(rate * (double)tick * TICK_MS / 1000);
        put(due - put_already);
        put_already = due;
        if (tick % (1000 / TICK_MS) == 0 && samples < PART_MAX) {
            int64_t bytes = 0;
            if (hf_probe_memory(&probe, &bytes) != HF_OK)
                give_up("Redis's memory", probe.detail);
            used[samples] = (double)bytes;
            rss[samples++] = resident_bytes();
        }
    }
    printf("%s{\"per_s\": %.0f, \"p99_us\": %.0f, \"timer_p99_us\": %.0f, "
           "\"resident\": %.0f, \"redis\": %.0f}",
           first ? "" : ", ", (double)(atomic_load(&done) - before) / seconds,
           p99_us(&pickup), p99_us(&timer), hf_bench_median(rss, samples),
           hf_bench_median(used, samples));
}

/* ---- all of it ---- */

static const char *parse(int argc, char **argv, uint32_t numbers[3])
{
    const char *url = NULL;
    const option_spec specs[] = {{"url", &url, NULL},
                                 {"parts", NULL, &numbers[0]},
                                 {"part", NULL, &numbers[1]},
                                 {"top", NULL, &numbers[2]},
                                 {0}};
    if (read_options(argc, argv, specs) != argc || url == NULL || numbers[0] < 1 ||
        numbers[0] > PARTS_MAX || numbers[1] < 1 || numbers[1] > PART_MAX ||
        numbers[2] < 1)
        misused("--url URL and the options of the file's head");
    return url;
}

int main(int argc, char **argv)
{
    uint32_t numbers[3] = {10, 60, 5};
    const char *url = parse(argc, argv, numbers);
    char detail[HF_DETAIL_SIZE] = "";
    pthread_t thread;
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1); /* as the command does */
#endif
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "default"};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                                 .server = HF_SERVER(.url = url, .ns = ns),
                                 .queues = &queue, .n_queues = 1, .concurrency = 16};
    const hf_producer_opts from = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = url, .ns = ns),
                                   .buffer_jobs = 200000};
    if (hf_probe_open(&probe, url, NULL) != HF_OK)
        give_up("the connection", probe.detail);
    if (hf_worker_new(&worker, &opts, detail) != HF_OK ||
        hf_worker_handle(worker, "bench", 0, on_job, NULL, NULL) != HF_OK ||
        pthread_create(&thread, NULL, run_worker, NULL) != 0)
        give_up("the worker", detail);
    if (hf_producer_open(&producer, &from, detail) != HF_OK)
        give_up("the producer", detail);
    (void)p99_us(&pickup); /* their own memory is all there from now on */
    (void)p99_us(&timer);
    double top = find_top(numbers[2]);
    printf("{\"top_per_s\": %.0f, \"parts\": [", top);
    for (uint32_t i = 0; i < numbers[0]; i++)
        one_part(top / 2, numbers[1], i == 0);
    printf("]}\n");
    await_all();
    hf_producer_close(producer, NULL, NULL);
    hf_worker_stop(worker);
    (void)pthread_join(thread, NULL);
    hf_worker_free(worker);
    hf_probe_close(&probe);
    return 0;
}
