/* plan.c - what follows from the plan of the demo and from the runs that were seen. It
 * reads nothing else but the clock. */
#include "base/clock.h"
#include "cli/demo/demo.h"

const char *const hf_demo_queue_names[HF_DEMO_QUEUES] = {"default", "long"};

int64_t hf_demo_now_ms(void)
{
    return (int64_t)(hf_boot_ns() / HF_MS_NS);
}

const char *hf_demo_queue_of(const hf_demo_job *job)
{
    return hf_demo_queue_names[job->kind == HF_DEMO_LONG ? 1 : 0];
}

size_t hf_demo_slots_of(size_t i)
{
    return i == 0 ? HF_DEMO_SLOTS : HF_DEMO_SLOTS_OTHERS;
}

size_t hf_demo_runs_of(const hf_demo_job *job)
{
    return job->n_runs < HF_DEMO_RUNS_MAX ? job->n_runs : HF_DEMO_RUNS_MAX;
}

size_t hf_demo_count_runs(const hf_demo *d)
{
    size_t n = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++)
        n += d->jobs[i].n_runs;
    return n;
}

size_t hf_demo_worker_of(const hf_demo *d, const hf_demo_run *run)
{
    size_t i = 0;
    while (i < HF_DEMO_WORKERS && d->workers[i].pid != run->worker)
        i++;
    return i;
}

bool hf_demo_was_killed(const hf_demo *d, const hf_demo_run *run)
{
    for (size_t i = 0; i < d->n_victims; i++) {
        if (run->worker == d->workers[0].pid && run->pid == d->victims[i])
            return true;
    }
    return false;
}

const hf_demo_run *hf_demo_rerun(const hf_demo *d, const hf_demo_job *job)
{
    return job->n_runs > 1 && hf_demo_was_killed(d, &job->runs[0]) ? &job->runs[1] : NULL;
}

void hf_demo_take_over(const hf_demo *d, hf_demo_takeover *out)
{
    *out = (hf_demo_takeover){.hit = d->n_victims};
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_run *run = hf_demo_rerun(d, &d->jobs[i]);
        if (run == NULL)
            continue;
        int64_t after_ms = run->start_ms - d->killed_ms;
        size_t worker = hf_demo_worker_of(d, run);
        if (worker < HF_DEMO_WORKERS)
            out->by[worker]++;
        if (out->again == 0 || after_ms < out->first_ms)
            out->first_ms = after_ms;
        if (out->again == 0 || after_ms > out->last_ms)
            out->last_ms = after_ms;
        out->again++;
    }
}
