/* bench_worker.c - a worker of the library that runs in a thread of its own. */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"

enum { QUEUES_MAX = 64 };

static void *thread_main(void *arg)
{
    hf_bench_worker *runner = arg;
    runner->err = hf_worker_run(runner->worker, runner->detail);
    atomic_store(&runner->over, true);
    return NULL;
}

static bool has_worker(const hf_queue_stats *stats)
{
    return stats->workers > 0;
}

static hf_err wait_until_up(hf_bench *b, hf_bench_worker *runner,
                            const hf_bench_worker_opts *opts)
{
    hf_err err = HF_OK;
    for (size_t i = 0; i < opts->n_queues && err == HF_OK; i++)
        err = hf_bench_await(b, opts->queues[i], has_worker);
    return err == HF_TIMEOUT && atomic_load(&runner->over) ? HF_OK : err;
}

hf_err hf_bench_worker_start(hf_bench *b, hf_bench_worker *runner,
                             const hf_bench_worker_opts *opts)
{
    hf_worker_queue queues[QUEUES_MAX];
    HF_ASSERT(opts->n_queues <= HF_COUNT(queues));
    for (size_t i = 0; i < opts->n_queues; i++)
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = opts->queues[i]};
    const hf_worker_opts worker = {
        HF_WORKER_OPTS_INIT,
        .server =
            HF_SERVER(.url = b->url, .password_file = b->password_file, .ns = b->ns),
        .queues = queues,
        .n_queues = opts->n_queues,
        .concurrency = opts->concurrency,
        .lease_ms = opts->lease_ms};
    *runner = (hf_bench_worker){.worker = NULL};
    hf_err err = hf_worker_new(&runner->worker, &worker, b->detail);
    if (err != HF_OK)
        return err;
    err = hf_worker_handle(runner->worker, "bench", 0, opts->fn, opts->arg, b->detail);
    if (err == HF_OK && pthread_create(&runner->thread, NULL, thread_main, runner) != 0)
        err = HF_SYSTEM;
    if (err != HF_OK) {
        hf_worker_free(runner->worker);
        runner->worker = NULL;
        return hf_bench_fail(b, err, hf_err_text(err));
    }
    err = wait_until_up(b, runner, opts);
    return err == HF_OK ? HF_OK : hf_bench_worker_stop(b, runner, err);
}

hf_err hf_bench_worker_stop(hf_bench *b, hf_bench_worker *runner, hf_err err)
{
    if (runner->worker == NULL)
        return err;
    hf_worker_stop(runner->worker);
    (void)pthread_join(runner->thread, NULL);
    hf_worker_free(runner->worker);
    runner->worker = NULL;
    /* Why the worker ended says more than that a job was missed afterwards. */
    if (runner->err != HF_OK && (err == HF_OK || err == HF_TIMEOUT))
        return hf_bench_fail(b, runner->err, runner->detail);
    return err;
}
