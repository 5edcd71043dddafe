/* redis_clock.c - Redis's clock, as this worker knows it (base/remote_clock.h).
 *
 * Each answer with a TIME is a sample, on whichever connection. What was learned belongs
 * to the machine: each check leaves it in Redis for the other workers here, and a worker
 * that has just started goes on with it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/machine.h"
#include "worker/redis_clock.h"
#include "worker/report.h"
#include "worker/shared.h"
#include "worker/waking.h"

enum { STEP_TOLD_MS = 1000 };

struct hf_redis_clock {
    pthread_mutex_t lock; /* of `redis`; held for a few instructions, nothing inside */
    hf_remote_clock redis;
    _Atomic int64_t stepped_ms; /* it was set by so much: to be logged; 0: it was not */
    char machine[HF_MACHINE_SIZE];
};

hf_err hf_clock_init(hf_worker *w)
{
    w->clock = calloc(1, sizeof *w->clock);
    if (w->clock == NULL)
        return HF_NOMEM;
    pthread_mutex_init(&w->clock->lock, NULL);
    hf_remote_clock_init(&w->clock->redis, w->opts.lease_ms);
    hf_machine_id(w->clock->machine);
    return HF_OK;
}

void hf_clock_done(hf_worker *w)
{
    if (w->clock != NULL)
        pthread_mutex_destroy(&w->clock->lock);
    free(w->clock);
    w->clock = NULL;
}

static void lock(const hf_worker *w)
{
    pthread_mutex_lock(&w->clock->lock);
}

static void unlock(const hf_worker *w)
{
    pthread_mutex_unlock(&w->clock->lock);
}

/* Smaller ones are seen in the samples, and nothing is to be done about them. */
static bool is_worth_logging(const hf_worker *w, int64_t step_ms)
{
    int64_t least = w->opts.lease_ms / 10;
    return llabs(step_ms) > (least < STEP_TOLD_MS ? least : STEP_TOLD_MS);
}

bool hf_clock_sample(hf_worker *w, int64_t now_ms, uint64_t sent_ns)
{
    lock(w);
    int64_t step_ms =
        hf_remote_clock_read(&w->clock->redis, sent_ns, hf_boot_ns(), now_ms);
    unlock(w);
    if (!is_worth_logging(w, step_ms))
        return false;
    atomic_store(&w->clock->stepped_ms, step_ms);
    return true;
}

/* Leases may have lost their locks by a step forward. After a step back leases may seem
 * to last too long: a check shortens them, once all others have seen the step as well. */
void hf_clock_tell(hf_worker *w)
{
    int64_t by_ms = atomic_exchange(&w->clock->stepped_ms, 0);
    if (by_ms == 0)
        return;
    hf_log_field field = {.key = "by_ms", .number = by_ms};
    hf_report(w, HF_LOG_ERROR, "the clock of Redis jumped", &field, 1);
    hf_watchdog_verify(w->watchdog);
    lock(w);
    uint64_t all_saw_ns = w->clock->redis.stepped_ns +
                          (hf_remote_gap_ms(w->clock->redis.lease_ms) + 1) * HF_MS_NS;
    unlock(w);
    hf_check_at(w, by_ms < 0 ? all_saw_ns : 0);
}

void hf_clock_read(hf_worker *w, int64_t now_ms, uint64_t sent_ns)
{
    if (hf_clock_sample(w, now_ms, sent_ns))
        hf_clock_tell(w);
}

int64_t hf_clock_now(const hf_worker *w)
{
    lock(w);
    int64_t now = hf_remote_clock_known(&w->clock->redis)
                      ? hf_remote_clock_now(&w->clock->redis, hf_boot_ns())
                      : 0;
    unlock(w);
    return now;
}

int64_t hf_clock_not_after(const hf_worker *w)
{
    uint32_t room = w->server.request_timeout_ms;
    int64_t now = hf_clock_now(w);
    return now == 0 ? 0 : now + (room < HF_NOT_AFTER_MS ? room : HF_NOT_AFTER_MS);
}

hf_clock_view hf_clock_shown(const hf_worker *w, uint32_t *judged_ms)
{
    uint64_t boot_ns = hf_boot_ns();
    lock(w);
    hf_clock_view view = {
        .vouched_ms = hf_remote_clock_vouched(&w->clock->redis, boot_ns),
        .least_ms = hf_remote_clock_least(&w->clock->redis, boot_ns),
        .at_least_ms = hf_remote_clock_at_least(&w->clock->redis, boot_ns),
    };
    *judged_ms = w->clock->redis.lease_ms;
    unlock(w);
    return view;
}

void hf_clock_share(const hf_worker *w, hf_check_args *args,
                    char learned[HF_REMOTE_STATE_SIZE])
{
    uint32_t judged_ms;
    args->at_least_ms = hf_clock_shown(w, &judged_ms).at_least_ms;
    args->lease_ms = w->opts.lease_ms;
    args->machine = w->clock->machine;
    args->keep_ms = 2 * hf_remote_gap_ms(judged_ms);
    lock(w);
    hf_remote_clock_save(&w->clock->redis, learned);
    unlock(w);
    args->learned = learned;
}

void hf_clock_adopt(hf_worker *w, const hf_checked *checked)
{
    uint32_t longest = checked->longest_lease_ms;
    lock(w);
    hf_remote_clock_judge(&w->clock->redis,
                          longest > w->opts.lease_ms ? longest : w->opts.lease_ms);
    if (checked->learned.len > 0)
        hf_remote_clock_adopt(&w->clock->redis, checked->learned.ptr,
                              checked->learned.len);
    unlock(w);
}
