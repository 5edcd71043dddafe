/* features.c - measures how many jobs a second are enqueued and processed that use a
 * feature of their queue.
 *
 *     features --url unix:///... [--jobs N] [--payload BYTES] FEATURE...
 *
 * FEATURE is `plain` (none), `unique` (a key for each job), `levels` (the three
 * priorities in turn), `expiry` or `keep`. For each in turn the rates are printed as
 * {"rates": [[single, bulk, process], ...]}: of N / 10 jobs that are enqueued one at a
 * time, of N in calls of 10,000 into a paused queue, and of the processing of all of them
 * by one worker with a C handler that does nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"

enum { CALL_JOBS = 10000, SLOTS = 16, FEATURES_MAX = 64, KEEP_MS = 60000, KEY_SIZE = 24 };

typedef enum feature { PLAIN, UNIQUE, LEVELS, EXPIRY, KEEP, FEATURES } feature;
static const char *const words[FEATURES] = {"plain", "unique", "levels", "expiry",
                                            "keep"};

typedef struct rates {
    feature feature;
    double single, bulk, process;
} rates;

typedef struct plan {
    rates list[FEATURES_MAX];
    size_t n;
    hf_job jobs[CALL_JOBS];
    char keys[CALL_JOBS][KEY_SIZE];
    size_t made; /* keys; no key comes again */
} plan;

typedef struct count {
    atomic_size_t left;
    sem_t done;
} count;

static void make_jobs(plan *p, hf_bench *b, feature which, size_t n)
{
    static const hf_priority levels[] = {HF_PRIORITY_HIGH, HF_PRIORITY_NORMAL,
                                         HF_PRIORITY_LOW};
    for (size_t i = 0; i < n; i++) {
        p->jobs[i] =
            (hf_job){HF_JOB_INIT, .queue = words[which], .type = "bench",
                     .payload = b->payload, .payload_len = b->opts->payload_bytes};
        (void)snprintf(p->keys[i], KEY_SIZE, "key-%zu", p->made++);
        if (which == UNIQUE)
            p->jobs[i].unique = p->keys[i];
        else if (which == LEVELS)
            p->jobs[i].priority = levels[i % HF_COUNT(levels)];
        else if (which == EXPIRY)
            p->jobs[i].start_within_ms = 3600000;
        else if (which == KEEP)
            p->jobs[i].keep_ms = KEEP_MS;
    }
}

/* The keys are made before the clock starts. */
static hf_err enqueue(plan *p, hf_bench *b, hf_producer *producer, feature which,
                      size_t jobs, size_t each, double *rate)
{
    hf_err err = HF_OK;
    uint64_t took_ns = 0;
    for (size_t left = jobs; left > 0 && err == HF_OK;) {
        size_t n = left < CALL_JOBS ? left : CALL_JOBS;
        make_jobs(p, b, which, n);
        uint64_t start_ns = hf_boot_ns();
        for (size_t i = 0; i < n && err == HF_OK; i += each)
            err = hf_enqueue_wait(producer, p->jobs + i, n - i < each ? n - i : each,
                                  NULL, 0, b->detail);
        took_ns += hf_boot_ns() - start_ns;
        left -= n;
    }
    *rate = (double)jobs * 1e9 / (double)took_ns;
    return err;
}

static hf_verdict on_job(hf_run *run, void *arg)
{
    count *c = arg;
    (void)run;
    if (atomic_fetch_sub_explicit(&c->left, 1, memory_order_relaxed) == 1)
        (void)sem_post(&c->done);
    return HF_VERDICT_DONE;
}

static bool is_empty(const hf_queue_stats *stats)
{
    return stats->ready == 0 && stats->running == 0;
}

static hf_err process(hf_bench *b, feature which, size_t jobs, double *rate)
{
    const char *queue = words[which];
    count c = {.left = jobs};
    hf_bench_worker runner;
    const hf_bench_worker_opts opts = {.queues = &queue,
                                       .n_queues = 1,
                                       .concurrency = SLOTS,
                                       .lease_ms = HF_BENCH_LEASE_MS,
                                       .fn = on_job,
                                       .arg = &c};
    (void)sem_init(&c.done, 0, 0);
    hf_err err = hf_bench_worker_start(b, &runner, &opts);
    uint64_t start_ns = hf_boot_ns();
    if (err == HF_OK)
        err = hf_admin_pause(b->admin, queue, false, b->detail);
    if (err == HF_OK)
        err = hf_bench_await_post(b, &c.done, 10 * HF_BENCH_WAIT_MS);
    if (err == HF_OK)
        err = hf_bench_await(b, queue, is_empty);
    *rate = (double)jobs * 1e9 / (double)(hf_boot_ns() - start_ns);
    err = hf_bench_worker_stop(b, &runner, err);
    (void)sem_destroy(&c.done);
    return err;
}

static hf_err measure_one(plan *p, hf_bench *b, rates *r)
{
    hf_producer *producer;
    size_t jobs = b->opts->jobs, single = jobs / 10 + 1;
    hf_err err = hf_admin_pause(b->admin, words[r->feature], true, b->detail);
    if (err == HF_OK)
        err = hf_bench_producer(b, &producer);
    if (err != HF_OK)
        return err;
    err = enqueue(p, b, producer, r->feature, single, 1, &r->single);
    if (err == HF_OK)
        err = enqueue(p, b, producer, r->feature, jobs, CALL_JOBS, &r->bulk);
    hf_producer_close(producer, NULL, NULL);
    return err != HF_OK ? err : process(b, r->feature, jobs + single, &r->process);
}

static hf_err measure_all(hf_bench *b, void *arg)
{
    plan *p = arg;
    hf_err err = HF_OK;
    for (size_t i = 0; i < p->n && err == HF_OK; i++)
        err = hf_bench_stopped(b) ? HF_CANCEL : measure_one(p, b, &p->list[i]);
    return err;
}

static bool parse_feature(const char *word, rates *r)
{
    for (int i = 0; i < FEATURES; i++)
        if (strcmp(word, words[i]) == 0) {
            r->feature = (feature)i;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    static plan p;
    char detail[HF_DETAIL_SIZE] = "";
    hf_bench_opts opts = {.jobs = 100000, .payload_bytes = 100};
    hf_bench_result result;
    const option_spec specs[] = {{"url", &opts.url, NULL},
                                 {"jobs", NULL, &opts.jobs},
                                 {"payload", NULL, &opts.payload_bytes},
                                 {0}};
    bool good = true;
    for (int i = read_options(argc, argv, specs); i < argc; i++)
        good = good && p.n < FEATURES_MAX && parse_feature(argv[i], &p.list[p.n++]);
    if (!good || opts.url == NULL || opts.jobs == 0 || p.n == 0)
        misused("--url URL and FEATURE..., as the file's head says");
    must(hf_bench_with(&opts, &result, measure_all, &p, detail), "the bench", detail);
    printf("{\"rates\": [");
    for (size_t i = 0; i < p.n; i++)
        printf("%s[%.0f, %.0f, %.0f]", i == 0 ? "" : ", ", p.list[i].single,
               p.list[i].bulk, p.list[i].process);
    printf("]}\n");
    return 0;
}
