/* handler_api.c - what a C handler may ask and say of its job (holdfast/worker.h). Runs
 * on the pool's threads; what other threads change meanwhile is atomic. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "holdfast/admin.h"
#include "worker/core.h"

const char *hf_run_id(const hf_run *run)
{
    return run->id;
}

const char *hf_run_type(const hf_run *run)
{
    return run->record.type;
}

const char *hf_run_queue(const hf_run *run)
{
    return run->served->queue.name;
}

const void *hf_run_payload(const hf_run *run, size_t *len)
{
    if (len != NULL)
        *len = run->record.payload.len;
    return run->record.payload.len == 0 ? "" : run->record.payload.ptr;
}

uint32_t hf_run_attempt(const hf_run *run)
{
    return run->record.attempts + 1;
}

uint64_t hf_run_fence(const hf_run *run)
{
    return strtoull(run->fence, NULL, 10);
}

int64_t hf_run_remaining_ms(const hf_run *run)
{
    if (hf_run_lost(run))
        return 0;
    uint64_t deadline = hf_lease_deadline_ns(run->lease), now = hf_boot_ns();
    return deadline > now ? (int64_t)((deadline - now) / HF_MS_NS) : 0;
}

bool hf_run_lost(const hf_run *run)
{
    return atomic_load(&run->lost) || hf_lease_lost(run->lease);
}

bool hf_run_cancelled(const hf_run *run)
{
    return atomic_load(&run->cancelled);
}

bool hf_run_timed_out(const hf_run *run)
{
    return atomic_load(&run->timed_out);
}

bool hf_run_stopping(const hf_run *run)
{
    return atomic_load(&run->stopping) || hf_lease_lost(run->lease);
}

void hf_run_on_stop(hf_run *run, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_t *lock = &run->worker->stop_lock;
    pthread_mutex_lock(lock);
    bool now = atomic_load(&run->stopping);
    run->stop_fn = now ? NULL : fn;
    run->stop_arg = arg;
    pthread_mutex_unlock(lock);
    if (now && fn != NULL)
        fn(arg);
}

/* Under the lock, so that it is never called after its handler returned:
 * hf_dispatch_work() takes the lock before it forgets the function. The watchdog's thread
 * has set `stopping` already where the lease said so. */
void hf_run_ask_to_stop(hf_run *run)
{
    pthread_mutex_t *lock = &run->worker->stop_lock;
    pthread_mutex_lock(lock);
    atomic_store(&run->stopping, true);
    if (run->stop_fn != NULL)
        run->stop_fn(run->stop_arg);
    run->stop_fn = NULL;
    pthread_mutex_unlock(lock);
}

void hf_run_set_text(hf_run *run, const char *text, size_t len)
{
    if (len > HF_ERROR_MAX)
        len = HF_ERROR_MAX;
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return; /* the verdict counts, not its words */
    memcpy(copy, text, len);
    copy[len] = '\0';
    free(run->error);
    run->error = copy;
}

void hf_run_set_error(hf_run *run, const char *text)
{
    hf_run_set_text(run, text, strlen(text));
}

void hf_run_set_retry_in(hf_run *run, int64_t delay_ms)
{
    run->has_retry_in = true;
    run->delay_ms = delay_ms < 0                 ? 0
                    : delay_ms > HF_DELAY_MAX_MS ? HF_DELAY_MAX_MS
                                                 : delay_ms;
}
