/* producers.c - enqueue/s of threads that call one producer with one job at a time,
 * beside threads with a blocking connection each that send the same script; and the time
 * of such a call in a single thread. Both sides in turns, medians of the rounds.
 *
 *     producers --url unix:///... [--threads 8,64] [--rounds N] [--ms N] [--calls N]
 *               [--payload BYTES]
 *
 *   --ms     how long the threads of a round call
 *   --calls  calls of a round whose time is taken; 0: none */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"

enum {
    THREADS_MAX = 256,
    LISTS_MAX = 8,
    ROUNDS_MAX = 99,
    CALLS_MAX = 100000,
    PAUSE_US = 2000 /* between calls of a producer that has little to do */
};

static const char ns[] = "bench", our_queue[] = "ours", bare_queue[] = "bare";

typedef struct opts {
    const char *url;
    size_t threads[LISTS_MAX], n_threads;
    uint32_t rounds, ms, calls, payload_len;
} opts;

/* One side of the comparison, in one thread: calls until `stop`. */
typedef struct caller {
    pthread_t thread;
    hf_producer *producer; /* shared, or NULL: */
    hf_bare *bare;         /* its own */
    const hf_job *job;
    pthread_barrier_t *start;
    atomic_bool *stop;
    size_t calls;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} caller;

typedef struct bench {
    opts o;
    hf_probe probe;
    hf_producer *producer;
    hf_bare *bare[THREADS_MAX];
    size_t n_bare;
    hf_job job;
    char *payload;
    char detail[HF_DETAIL_SIZE];
} bench;

/* The results of both sides, for each round. */
typedef struct shown {
    double ours[ROUNDS_MAX], bare[ROUNDS_MAX];
} shown;

static hf_err fail(bench *b, hf_err err, const char *why)
{
    if (why != b->detail)
        (void)snprintf(b->detail, sizeof b->detail, "%s", why);
    return err;
}

/* ---- many threads ---- */

static hf_err call_once(caller *c)
{
    if (c->producer != NULL)
        return hf_enqueue_wait(c->producer, c->job, 1, NULL, 0, c->detail);
    hf_err err = hf_bare_enqueue(c->bare, 1, 1);
    if (err != HF_OK)
        (void)snprintf(c->detail, sizeof c->detail, "%s", hf_bare_detail(c->bare));
    return err;
}

static void *call_often(void *arg)
{
    caller *c = arg;
    (void)pthread_barrier_wait(c->start);
    while (c->err == HF_OK && !atomic_load_explicit(c->stop, memory_order_relaxed)) {
        c->err = call_once(c);
        c->calls++;
    }
    return NULL;
}

/* How often Redis was asked to run a script so far. */
static hf_err scripts_run(bench *b, int64_t *n)
{
    redisReply *reply = redisCommand(b->probe.redis, "INFO commandstats");
    hf_err err = hf_probe_check(&b->probe, &reply);
    if (err != HF_OK)
        return fail(b, err, b->probe.detail);
    const char *at = strstr(reply->str, "cmdstat_evalsha:calls=");
    *n = at == NULL ? 0 : strtoll(strchr(at, '=') + 1, NULL, 10);
    freeReplyObject(reply);
    return HF_OK;
}

/* The clock runs until the last thread has its last answer. */
static hf_err run_threads(bench *b, bool ours, size_t n, double *rate, double *batch)
{
    static caller callers[THREADS_MAX];
    pthread_barrier_t start;
    atomic_bool stop = false;
    int64_t before = 0, after = 0;
    size_t made = 0, calls = 0;
    hf_err err = scripts_run(b, &before);
    if (err != HF_OK)
        return err;
    (void)pthread_barrier_init(&start, NULL, (unsigned)n + 1);
    for (; made < n; made++) {
        callers[made] = (caller){.producer = ours ? b->producer : NULL,
                                 .bare = b->bare[made],
                                 .job = &b->job,
                                 .start = &start,
                                 .stop = &stop};
        /* Without its thread the others would wait for ever. */
        HF_ASSERT(
            pthread_create(&callers[made].thread, NULL, call_often, &callers[made]) == 0);
    }
    (void)pthread_barrier_wait(&start);
    uint64_t start_ns = hf_boot_ns();
    hf_bench_pause_us(1000 * b->o.ms);
    atomic_store(&stop, true);
    for (size_t i = 0; i < made; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        calls += callers[i].calls;
        if (callers[i].err != HF_OK)
            err = fail(b, callers[i].err, callers[i].detail);
    }
    *rate = (double)calls * 1e9 / (double)(hf_boot_ns() - start_ns);
    (void)pthread_barrier_destroy(&start);
    if (err == HF_OK)
        err = scripts_run(b, &after);
    *batch = (double)calls / (double)(after - before);
    return err;
}

/* ---- one thread ---- */

static hf_err time_calls(bench *b, bool ours, uint64_t pause_us, double *us)
{
    caller c = {
        .producer = ours ? b->producer : NULL, .bare = b->bare[0], .job = &b->job};
    for (size_t i = 0; i < b->o.calls; i++) {
        if (pause_us > 0)
            hf_bench_pause_us(pause_us);
        uint64_t start_ns = hf_boot_ns();
        hf_err err = call_once(&c);
        us[i] = (double)(hf_boot_ns() - start_ns) / 1e3;
        if (err != HF_OK)
            return fail(b, err, c.detail);
    }
    return HF_OK;
}

/* ---- in turns ---- */

static hf_err wipe(bench *b)
{
    hf_err err = hf_probe_wipe(&b->probe, ns);
    return err == HF_OK ? HF_OK : fail(b, err, b->probe.detail);
}

static hf_err compare_threads(bench *b, size_t n)
{
    shown rate, batch;
    hf_err err = HF_OK;
    for (size_t i = 0; i < 2 * b->o.rounds && err == HF_OK; i++) {
        bool ours = i % 2 == 0;
        err = run_threads(b, ours, n, &(ours ? rate.ours : rate.bare)[i / 2],
                          &(ours ? batch.ours : batch.bare)[i / 2]);
        if (err == HF_OK)
            err = wipe(b);
    }
    if (err == HF_OK)
        printf("{\"threads\": %zu, \"ours_per_s\": %.0f, \"bare_per_s\": %.0f, "
               "\"mean_batch\": %.2f}",
               n, hf_bench_median(rate.ours, b->o.rounds),
               hf_bench_median(rate.bare, b->o.rounds),
               hf_bench_median(batch.ours, b->o.rounds));
    return err;
}

static void print_spreads(const char *name, double *p50, double *p99, size_t n)
{
    printf(", \"%s\": {\"p50\": %.1f, \"p99\": %.1f}", name, hf_bench_median(p50, n),
           hf_bench_median(p99, n));
}

static hf_err compare_calls(bench *b, uint64_t pause_us)
{
    shown p50, p99;
    double *us = calloc(b->o.calls, sizeof *us);
    hf_err err = us == NULL ? fail(b, HF_NOMEM, hf_err_text(HF_NOMEM)) : HF_OK;
    for (size_t i = 0; i < 2 * b->o.rounds && err == HF_OK; i++) {
        bool ours = i % 2 == 0;
        err = time_calls(b, ours, pause_us, us);
        if (err == HF_OK)
            err = wipe(b);
        hf_spread spread = hf_bench_spread(us, b->o.calls);
        (ours ? p50.ours : p50.bare)[i / 2] = spread.p50;
        (ours ? p99.ours : p99.bare)[i / 2] = spread.p99;
    }
    free(us);
    if (err == HF_OK) {
        printf("{\"pause_us\": %llu", (unsigned long long)pause_us);
        print_spreads("ours_us", p50.ours, p99.ours, b->o.rounds);
        print_spreads("bare_us", p50.bare, p99.bare, b->o.rounds);
        printf("}");
    }
    return err;
}

static hf_err compare(bench *b)
{
    static const uint64_t pauses_us[] = {0, PAUSE_US};
    hf_err err = HF_OK;
    printf("{\"payload_bytes\": %u, \"rounds\": %u, \"round_ms\": %u, \"threads\": [",
           b->o.payload_len, b->o.rounds, b->o.ms);
    for (size_t i = 0; i < b->o.n_threads && err == HF_OK; i++) {
        printf("%s", i == 0 ? "" : ", ");
        err = compare_threads(b, b->o.threads[i]);
    }
    printf("], \"calls\": [");
    for (size_t i = 0; i < HF_COUNT(pauses_us) && b->o.calls > 0 && err == HF_OK; i++) {
        printf("%s", i == 0 ? "" : ", ");
        err = compare_calls(b, pauses_us[i]);
    }
    printf("]}\n");
    return err;
}

/* ---- around it ---- */

static hf_err open_all(bench *b)
{
    const hf_producer_opts producer = {HF_PRODUCER_OPTS_INIT,
                                       .server = HF_SERVER(.url = b->o.url, .ns = ns)};
    size_t most = 1;
    for (size_t i = 0; i < b->o.n_threads; i++)
        most = b->o.threads[i] > most ? b->o.threads[i] : most;
    hf_err err = hf_probe_open(&b->probe, b->o.url, NULL);
    if (err != HF_OK)
        return fail(b, err, b->probe.detail);
    b->payload = malloc(b->o.payload_len + 1);
    if (b->payload == NULL)
        return fail(b, HF_NOMEM, hf_err_text(HF_NOMEM));
    memset(b->payload, 'x', b->o.payload_len);
    b->job = (hf_job){HF_JOB_INIT, .queue = our_queue, .type = "bench",
                      .payload = b->payload, .payload_len = b->o.payload_len};
    err = hf_producer_open(&b->producer, &producer, b->detail);
    if (err == HF_OK)
        err = hf_enqueue_wait(b->producer, &b->job, 1, NULL, 0, b->detail);
    for (; b->n_bare < most && err == HF_OK; b->n_bare++)
        err = hf_bare_open(&b->bare[b->n_bare], b->o.url, NULL, ns, bare_queue,
                           b->payload, b->o.payload_len, b->detail);
    return err;
}

static void close_all(bench *b)
{
    hf_producer_close(b->producer, NULL, NULL);
    for (size_t i = 0; i < b->n_bare; i++)
        hf_bare_close(b->bare[i]);
    hf_probe_close(&b->probe);
    free(b->payload);
}

static bool parse_threads(opts *o, const char *list)
{
    o->n_threads = 0;
    for (char *end; *list != '\0'; list = *end == ',' ? end + 1 : end) {
        size_t n = strtoul(list, &end, 10);
        if (end == list || n < 1 || n > THREADS_MAX || o->n_threads == LISTS_MAX)
            return false;
        o->threads[o->n_threads++] = n;
    }
    return true;
}

static void parse(int argc, char **argv, opts *o)
{
    const char *threads = NULL;
    const option_spec specs[] = {{"url", &o->url, NULL},
                                 {"threads", &threads, NULL},
                                 {"rounds", NULL, &o->rounds},
                                 {"ms", NULL, &o->ms},
                                 {"calls", NULL, &o->calls},
                                 {"payload", NULL, &o->payload_len},
                                 {0}};
    bool good = read_options(argc, argv, specs) == argc;
    if (threads != NULL)
        good = parse_threads(o, threads) && good;
    if (!good || o->url == NULL || o->rounds < 1 || o->rounds > ROUNDS_MAX || o->ms < 1 ||
        o->calls > CALLS_MAX || o->payload_len > HF_PAYLOAD_DEFAULT)
        misused("--url URL and the options of the file's head");
}

int main(int argc, char **argv)
{
    static bench b = {.o = {.threads = {8, 64},
                            .n_threads = 2,
                            .rounds = 5,
                            .ms = 1000,
                            .calls = 1000,
                            .payload_len = 100}};
    parse(argc, argv, &b.o);
    hf_err err = open_all(&b);
    if (err == HF_OK)
        err = compare(&b);
    close_all(&b);
    if (err != HF_OK)
        fprintf(stderr, "producers: %s\n", b.detail);
    return err == HF_OK ? 0 : 1;
}
