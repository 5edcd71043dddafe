/* pool_job.c - worker/pool/pool_job.h. */
#include "worker/pool/pool_job.h"

#include "base/clock.h"
#include "worker/queues/queues.h"

hf_child_job hf_pool_job(hf_run *run)
{
    return (hf_child_job){
        .job = run,
        .frame = {.id = run->id,
                  .type = run->record.type,
                  .queue = run->served->queue.name,
                  .attempt = run->record.attempts + 1,
                  .max_attempts = hf_run_max_attempts(run),
                  .fence = hf_run_fence(run),
                  .timeout_ms = run->timeout_ms,
                  .created_ms = hf_run_created_ms(run),
                  .scheduled_ms = run->record.scheduled_ms,
                  .trace = run->trace.text[0] == '\0' ? NULL : run->trace.text,
                  .headers = run->record.headers.len > 0 ? run->record.headers.ptr : NULL,
                  .headers_len = run->record.headers.len},
        .payload = run->record.payload.ptr,
        .payload_len = run->record.payload.len,
        .checkpoint = run->checkpoint.ptr,
        .checkpoint_len = run->checkpoint.len};
}

uint64_t hf_pool_job_deadline(const hf_run_list *started, const hf_child *child,
                              uint64_t most_ns)
{
    uint64_t first = most_ns;
    for (const hf_run *run = started->head; run != NULL; run = run->next)
        if (run->child == child && hf_lease_deadline_ns(run->lease) < first)
            first = hf_lease_deadline_ns(run->lease);
    return first;
}

void hf_pool_job_warn(const hf_run_list *started, uint32_t grace_ms, uint64_t now_ns)
{
    for (hf_run *run = started->head; run != NULL; run = run->next) {
        uint64_t deadline = hf_lease_deadline_ns(run->lease);
        if (deadline <= now_ns + grace_ms * HF_MS_NS)
            hf_child_cancel(
                run->child, run, HF_FRAME_WHY_LOST,
                deadline <= now_ns ? 0 : (uint32_t)((deadline - now_ns) / HF_MS_NS));
    }
}
