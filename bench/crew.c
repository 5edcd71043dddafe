/* crew.c - a worker of the library that runs in a thread of its own. */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/parts.h"

enum { QUEUES_MAX = 64 };

static void *thread_main(void *arg)
{
    hf_crew *crew = arg;
    crew->err = hf_worker_run(crew->worker, crew->detail);
    atomic_store(&crew->over, true);
    return NULL;
}

static bool has_worker(const hf_queue_stats *stats)
{
    return stats->workers > 0;
}

static hf_err wait_until_up(hf_bench *b, hf_crew *crew, const hf_crew_opts *opts)
{
    hf_err err = HF_OK;
    for (size_t i = 0; i < opts->n_queues && err == HF_OK; i++)
        err = hf_bench_await(b, opts->queues[i], has_worker);
    return err == HF_TIMEOUT && atomic_load(&crew->over) ? HF_OK : err;
}

hf_err hf_crew_start(hf_bench *b, hf_crew *crew, const hf_crew_opts *opts)
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
    *crew = (hf_crew){.worker = NULL};
    hf_err err = hf_worker_new(&crew->worker, &worker, b->detail);
    if (err != HF_OK)
        return err;
    err = hf_worker_handle(crew->worker, "bench", 0, opts->fn, opts->arg);
    if (err == HF_OK && pthread_create(&crew->thread, NULL, thread_main, crew) != 0)
        err = HF_SYSTEM;
    if (err != HF_OK) {
        hf_worker_free(crew->worker);
        crew->worker = NULL;
        return hf_bench_fail(b, err, hf_err_text(err));
    }
    err = wait_until_up(b, crew, opts);
    return err == HF_OK ? HF_OK : hf_crew_stop(b, crew, err);
}

hf_err hf_crew_stop(hf_bench *b, hf_crew *crew, hf_err err)
{
    if (crew->worker == NULL)
        return err;
    hf_worker_stop(crew->worker);
    (void)pthread_join(crew->thread, NULL);
    hf_worker_free(crew->worker);
    crew->worker = NULL;
    /* Why the worker ended says more than that a job was missed afterwards. */
    if (crew->err != HF_OK && (err == HF_OK || err == HF_TIMEOUT))
        return hf_bench_fail(b, crew->err, crew->detail);
    return err;
}
