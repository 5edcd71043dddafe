/* reasons.c - see reasons.h. */
#include "seen/reasons.h"

enum { US_OF_MS = 1000 };

typedef struct list {
    hf_reason *at;
    size_t n;
} list;

const char *hf_reason_word(hf_reason reason)
{
#define WORD(name, word) word,
    static const char *const words[] = {HF_REASON_MAP(WORD)};
#undef WORD
    return words[reason];
}

static void add(list *l, bool holds, hf_reason reason)
{
    if (holds)
        l->at[l->n++] = reason;
}

bool hf_why_lease_is_over(const hf_job_why *why)
{
    return why->job->state == HF_STATE_RUNNING && why->job->due_ms <= why->now_ms;
}

static bool has_no_handler(const hf_job_why *why)
{
    return why->workers > 0 && why->workers_for_type == 0;
}

static bool is_busy(const hf_job_why *why)
{
    return why->workers_for_type > 0 && why->busy >= why->slots;
}

/* A full Redis refuses new jobs alone: those that it has start and end. */
static bool is_refused(const hf_job_why *why)
{
    return why->refuses != HF_OK && why->refuses != HF_OOM;
}

/* Neither a limit nor a rate keeps a takeover. */
static void add_running(list *l, const hf_job_why *why)
{
    add(l, why->cancelling, HF_REASON_CANCELLING);
    add(l, is_refused(why), HF_REASON_REFUSED);
    add(l, true, HF_REASON_RUNNING);
    if (!hf_why_lease_is_over(why))
        return;
    add(l, why->paused, HF_REASON_PAUSED);
    add(l, why->workers == 0, HF_REASON_NO_WORKER);
    add(l, has_no_handler(why), HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, is_busy(why), HF_REASON_BUSY);
}

/* A limit that is reached now says nothing about the time when a delayed job is due: only
 * a due job has such reasons. */
static void add_waiting(list *l, const hf_job_why *why)
{
    bool due = why->job->due_ms <= why->now_ms;
    /* It was put back for want of a handler: the time at which it is due again says
     * nothing. */
    const bool refused = why->job->refused_ms != 0 && has_no_handler(why);
    add(l, refused, HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, !due && why->job->attempts > 0, HF_REASON_RETRY);
    add(l, !due && why->job->attempts == 0, HF_REASON_DELAYED);
    add(l, is_refused(why), HF_REASON_REFUSED);
    add(l, why->paused, HF_REASON_PAUSED);
    add(l, why->workers == 0, HF_REASON_NO_WORKER);
    add(l, !refused && has_no_handler(why), HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, why->locked_until_ms > why->now_ms, HF_REASON_LOCKED);
    add(l, due && why->max_running > 0 && why->running >= why->max_running,
        HF_REASON_MAX_RUNNING);
    add(l, due && why->next_token_ms > why->now_ms, HF_REASON_RATE);
    add(l, due && is_busy(why), HF_REASON_BUSY);
    add(l, due && why->before > 0, HF_REASON_BEHIND);
    add(l, l->n > 0 && why->job->start_by_ms > 0, HF_REASON_EXPIRES);
}

size_t hf_why_reasons(const hf_job_why *why, int64_t poison, hf_reason out[HF_REASONS])
{
    list l = {.at = out};
    hf_job_state state = why->job->state;
    if (state == HF_STATE_DEAD)
        add(&l, true, HF_REASON_DEAD);
    else if (state == HF_STATE_DONE)
        add(&l, true, HF_REASON_DONE);
    else if (state == HF_STATE_PARKED)
        add(&l, true, HF_REASON_PARKED);
    else if (state == HF_STATE_RUNNING)
        add_running(&l, why);
    else
        add_waiting(&l, why);
    add(&l, l.n == 0, HF_REASON_NONE);
    if (state != HF_STATE_DEAD && why->job->crashes > 0)
        add(&l, true,
            (int64_t)why->job->crashes >= poison - 1 ? HF_REASON_SUSPECT
                                                     : HF_REASON_CRASHED);
    return l.n;
}

/* The fence is minted when a job is claimed, as the time then in microseconds; one that
 * is ahead was pushed there by a clock that went back, and tells nothing. */
int64_t hf_why_held_since(const hf_job_why *why)
{
    int64_t ms = (int64_t)(why->job->fence / US_OF_MS);
    return why->job->state == HF_STATE_RUNNING && ms <= why->now_ms ? ms : 0;
}
