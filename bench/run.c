/* run.c - one run of the bench: where it works, its parts in order, and what they share.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"
#include "bench/private_redis.h"

enum { LOOK_AGAIN_US = 500, STEP_MS = 100 };

/* ---- waiting ---- */

static void signals_of_ours(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGHUP);
}

bool hf_bench_stopped(hf_bench *b)
{
    const struct timespec now = {0};
    sigset_t set;
    signals_of_ours(&set);
    if (b->result->signal == 0) {
        int number = sigtimedwait(&set, NULL, &now);
        b->result->signal = number > 0 ? number : 0;
    }
    return b->result->signal != 0;
}

void hf_bench_pause_us(uint64_t us)
{
    const struct timespec pause = {.tv_sec = (time_t)(us / 1000000),
                                   .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&pause, NULL);
}

hf_err hf_bench_fail(hf_bench *b, hf_err err, const char *why)
{
    if (err != HF_CANCEL)
        (void)snprintf(b->detail, HF_DETAIL_SIZE, "%s", why);
    return err;
}

hf_err hf_bench_await(hf_bench *b, const char *queue,
                      bool (*test)(const hf_queue_stats *stats))
{
    const uint64_t until_ns = hf_boot_ns() + HF_BENCH_WAIT_MS * HF_MS_NS;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    for (;;) {
        hf_err err = hf_admin_stats(b->admin, queue, &stats, b->detail);
        if (err != HF_OK)
            return err;
        if (test(&stats))
            return HF_OK;
        if (hf_bench_stopped(b))
            return HF_CANCEL;
        if (hf_boot_ns() > until_ns)
            return hf_bench_fail(b, HF_TIMEOUT,
                                 "a queue did not reach the expected state in time");
        hf_bench_pause_us(LOOK_AGAIN_US);
    }
}

/* In short steps, to see whether a signal came. */
hf_err hf_bench_await_post(hf_bench *b, sem_t *posted, uint32_t ms)
{
    const uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    for (;;) {
        struct timespec step;
        clock_gettime(CLOCK_REALTIME, &step);
        step.tv_nsec += STEP_MS * (long)HF_MS_NS;
        step.tv_sec += step.tv_nsec / 1000000000;
        step.tv_nsec %= 1000000000;
        if (sem_timedwait(posted, &step) == 0)
            return HF_OK;
        if (hf_bench_stopped(b))
            return HF_CANCEL;
        if (hf_boot_ns() > until_ns)
            return hf_bench_fail(b, HF_TIMEOUT, "a job that should have run did not");
    }
}

/* ---- figures ---- */

uint64_t hf_bench_random(hf_bench *b, uint64_t below)
{
    return (uint64_t)(hf_rng_unit(&b->rng) * (double)below);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest sample that so large a part of all does not exceed. */
static double percentile(const double *sorted, size_t n, double part)
{
    size_t rank = (size_t)ceil(part * (double)n);
    return sorted[rank == 0 ? 0 : rank - 1];
}

hf_spread hf_bench_spread(double *samples, size_t n)
{
    HF_ASSERT(n > 0);
    qsort(samples, n, sizeof *samples, by_value);
    return (hf_spread){.p50 = percentile(samples, n, 0.50),
                       .p99 = percentile(samples, n, 0.99)};
}

double hf_bench_median(double *samples, size_t n)
{
    return hf_bench_spread(samples, n).p50;
}

/* ---- the run ---- */

hf_err hf_bench_producer(hf_bench *b, hf_producer **out)
{
    const hf_producer_opts opts = {
        HF_PRODUCER_OPTS_INIT,
        .server =
            HF_SERVER(.url = b->url, .password_file = b->password_file, .ns = b->ns),
        .deadline_ms = HF_BENCH_WAIT_MS};
    const hf_job job = {HF_JOB_INIT, .queue = "warm-up", .type = "bench"};
    hf_err err = hf_producer_open(out, &opts, b->detail);
    if (err != HF_OK)
        return err;
    /* So that it is connected, and Redis knows the scripts, before anything is timed. */
    err = hf_enqueue_wait(*out, &job, 1, NULL, 0, b->detail);
    if (err != HF_OK)
        hf_producer_close(*out, NULL, NULL);
    return err;
}

static hf_err measure_parts(hf_bench *b, void *arg)
{
    static const struct {
        unsigned part;
        const char *what;
        hf_err (*run)(hf_bench *b);
    } parts[] = {
        {HF_BENCH_RATES, "enqueue and process", hf_bench_rates},
        {HF_BENCH_PICKUP, "pick-up", hf_bench_pickup},
        {HF_BENCH_LATENESS, "lateness of delayed jobs", hf_bench_lateness},
        {HF_BENCH_RECOVERY, "recovery after SIGKILL", hf_bench_recovery},
    };
    hf_err err = HF_OK;
    (void)arg;
    for (size_t i = 0; i < HF_COUNT(parts) && err == HF_OK; i++) {
        if (b->opts->parts != 0 && (b->opts->parts & parts[i].part) == 0)
            continue;
        if (b->opts->on_part != NULL)
            b->opts->on_part(parts[i].what, b->opts->arg);
        err = hf_bench_stopped(b) ? HF_CANCEL : parts[i].run(b);
    }
    return err;
}

static hf_err prepare(hf_bench *b)
{
    uint64_t seed;
    hf_err err = hf_random_bytes(&seed, sizeof seed);
    if (err != HF_OK)
        return hf_bench_fail(b, err, hf_err_text(err));
    b->rng.state = seed;
    (void)snprintf(b->ns, sizeof b->ns, "hf-bench-%08x", (unsigned)(seed & 0xFFFFFFFF));
    b->payload = malloc((size_t)b->opts->payload_bytes + 1);
    if (b->payload == NULL)
        return hf_bench_fail(b, HF_NOMEM, hf_err_text(HF_NOMEM));
    memset(b->payload, 'x', b->opts->payload_bytes);
    return HF_OK;
}

static hf_err connect_and_measure(hf_bench *b, hf_bench_fn measure, void *arg)
{
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT,
        .server =
            HF_SERVER(.url = b->url, .password_file = b->password_file, .ns = b->ns),
        .deadline_ms = HF_BENCH_WAIT_MS};
    hf_err err = hf_admin_open(&b->admin, &opts, b->detail);
    if (err != HF_OK)
        return err;
    b->result->server = *hf_admin_server(b->admin);
    err = hf_probe_open(&b->probe, b->bare_url, b->password_file);
    if (err != HF_OK) {
        (void)hf_bench_fail(b, err, b->probe.detail);
    } else {
        err = measure(b, arg);
        /* Leave the user's Redis as it was; a private one ends anyway. */
        hf_err wiped = b->opts->url == NULL ? HF_OK : hf_probe_wipe(&b->probe, b->ns);
        if (err == HF_OK && wiped != HF_OK)
            err = hf_bench_fail(b, wiped, b->probe.detail);
        hf_probe_close(&b->probe);
    }
    hf_admin_close(b->admin);
    return err;
}

hf_err hf_bench_with(const hf_bench_opts *opts, hf_bench_result *out, hf_bench_fn measure,
                     void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_private_redis redis = {.pid = 0};
    hf_bench b = {.opts = opts,
                  .result = out,
                  .url = opts->url,
                  .bare_url = opts->bare_url != NULL ? opts->bare_url : opts->url,
                  .password_file = opts->password_file,
                  .detail = detail};
    sigset_t ours, before;
    *out = (hf_bench_result){.signal = 0};
    signals_of_ours(&ours);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &before);
    hf_err err = prepare(&b);
    if (err == HF_OK && b.url == NULL) {
        err = hf_private_redis_start(&redis, false, detail);
        b.url = b.bare_url = redis.url;
        b.password_file = NULL;
    }
    if (err == HF_OK)
        err = connect_and_measure(&b, measure, arg);
    hf_private_redis_stop(&redis);
    free(b.payload);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

hf_err hf_bench_run(const hf_bench_opts *opts, hf_bench_result *out,
                    char detail[HF_DETAIL_SIZE])
{
    return hf_bench_with(opts, out, measure_parts, NULL, detail);
}
