/* process.c - measures how many jobs a second are processed while a given number waits,
 * by one worker with a C handler that does nothing, and by the bare loop.
 *
 *     process --url unix:///... [--jobs N] [--payload BYTES] HOW:DEPTH:AT_ONCE...
 *
 * HOW is `ours`, and then AT_ONCE is the worker's concurrency, or `bare`, and then it is
 * the batch. Each is measured over N jobs, one after the other, and before each the queue
 * of its depth is filled: DEPTH jobs wait when its N are done. The rates are printed in
 * their order as {"rates": [...]}.
 *
 * Ours begins when a paused queue is resumed. The queue is paused again when N jobs were
 * started, and the measurement ends when Redis counts no running job. Jobs claimed ahead
 * count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"

enum { FILL_BATCH = 10000, MEASURES_MAX = 64 };

typedef struct measure {
    bool bare;
    uint32_t depth, at_once;
    double rate;
} measure;

typedef struct plan {
    measure list[MEASURES_MAX];
    size_t n;
} plan;

typedef struct count {
    size_t jobs;
    atomic_size_t started;
    sem_t enough;
} count;

static hf_verdict on_job(hf_run *run, void *arg)
{
    count *c = arg;
    (void)run;
    if (atomic_fetch_add_explicit(&c->started, 1, memory_order_relaxed) + 1 == c->jobs)
        (void)sem_post(&c->enough);
    return HF_VERDICT_DONE;
}

static bool none_runs(const hf_queue_stats *stats)
{
    return stats->running == 0;
}

static hf_err set_paused(hf_bench *b, const char *queue, bool paused)
{
    return hf_admin_pause(b->admin, queue, paused, b->detail);
}

static hf_err measure_ours(hf_bench *b, const char *queue, measure *m)
{
    count c = {.jobs = b->opts->jobs};
    hf_bench_worker runner;
    const hf_bench_worker_opts opts = {.queues = &queue,
                                       .n_queues = 1,
                                       .concurrency = m->at_once,
                                       .lease_ms = HF_BENCH_LEASE_MS,
                                       .fn = on_job,
                                       .arg = &c};
    (void)sem_init(&c.enough, 0, 0);
    hf_err err = hf_bench_worker_start(b, &runner, &opts);
    uint64_t start_ns = hf_boot_ns();
    if (err == HF_OK)
        err = set_paused(b, queue, false);
    if (err == HF_OK)
        err = hf_bench_await_post(b, &c.enough, 10 * HF_BENCH_WAIT_MS);
    if (err == HF_OK)
        err = set_paused(b, queue, true);
    if (err == HF_OK)
        err = hf_bench_await(b, queue, none_runs);
    m->rate = (double)atomic_load(&c.started) * 1e9 / (double)(hf_boot_ns() - start_ns);
    err = hf_bench_worker_stop(b, &runner, err);
    (void)sem_destroy(&c.enough);
    return err;
}

static hf_err measure_bare(hf_bench *b, const char *queue, hf_bare *bare, measure *m)
{
    hf_err err = set_paused(b, queue, false);
    uint64_t start_ns = hf_boot_ns();
    if (err == HF_OK && hf_bare_process(bare, b->opts->jobs, m->at_once) != HF_OK)
        err = hf_bench_fail(b, HF_PROTO, hf_bare_detail(bare));
    m->rate = b->opts->jobs * 1e9 / (double)(hf_boot_ns() - start_ns);
    return err == HF_OK ? set_paused(b, queue, true) : err;
}

/* Paused, and with the jobs of this measurement above its depth. */
static hf_err fill(hf_bench *b, const char *queue, hf_bare *bare, uint32_t depth)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_err err = set_paused(b, queue, true);
    if (err == HF_OK)
        err = hf_admin_stats(b->admin, queue, &stats, b->detail);
    uint64_t wanted = (uint64_t)depth + b->opts->jobs;
    if (err == HF_OK && (uint64_t)stats.ready < wanted &&
        hf_bare_enqueue(bare, wanted - (uint64_t)stats.ready, FILL_BATCH) != HF_OK)
        err = hf_bench_fail(b, HF_PROTO, hf_bare_detail(bare));
    return err;
}

static hf_err measure_one(hf_bench *b, measure *m)
{
    char queue[32];
    hf_bare *bare;
    (void)snprintf(queue, sizeof queue, "depth-%u", (unsigned)m->depth);
    hf_err err = hf_bare_open(&bare, b->url, b->password_file, b->ns, queue, b->payload,
                              b->opts->payload_bytes, b->detail);
    if (err != HF_OK)
        return err;
    err = fill(b, queue, bare, m->depth);
    if (err == HF_OK)
        err = m->bare ? measure_bare(b, queue, bare, m) : measure_ours(b, queue, m);
    hf_bare_close(bare);
    return err;
}

static hf_err measure_all(hf_bench *b, void *arg)
{
    plan *p = arg;
    hf_err err = HF_OK;
    for (size_t i = 0; i < p->n && err == HF_OK; i++)
        err = hf_bench_stopped(b) ? HF_CANCEL : measure_one(b, &p->list[i]);
    return err;
}

/* ---- the command line ---- */

static bool parse_measure(const char *word, measure *m)
{
    char how[8] = "", end;
    unsigned depth = 0, at_once = 0;
    if (sscanf(word, "%7[a-z]:%u:%u%c", how, &depth, &at_once, &end) != 3)
        return false;
    *m = (measure){.bare = strcmp(how, "bare") == 0, .depth = depth, .at_once = at_once};
    return (m->bare || strcmp(how, "ours") == 0) && at_once >= 1;
}

static void parse(int argc, char **argv, hf_bench_opts *opts, plan *p)
{
    const option_spec specs[] = {{"url", &opts->url, NULL},
                                 {"jobs", NULL, &opts->jobs},
                                 {"payload", NULL, &opts->payload_bytes},
                                 {0}};
    bool good = true;
    for (int i = read_options(argc, argv, specs); i < argc; i++)
        good = good && p->n < MEASURES_MAX && parse_measure(argv[i], &p->list[p->n++]);
    if (!good || opts->url == NULL || opts->jobs == 0 || p->n == 0)
        misused("--url URL and HOW:DEPTH:AT_ONCE..., as the file's head says");
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_bench_opts opts = {.jobs = 100000, .payload_bytes = 100};
    hf_bench_result result;
    plan p = {.n = 0};
    parse(argc, argv, &opts, &p);
    hf_err err = hf_bench_with(&opts, &result, measure_all, &p, detail);
    must(err, "the bench", detail);
    for (size_t i = 0; i < p.n; i++)
        printf("%s%.0f", i == 0 ? "{\"rates\": [" : ", ", p.list[i].rate);
    printf("]}\n");
    return 0;
}
