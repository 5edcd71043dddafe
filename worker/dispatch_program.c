/* dispatch_program.c - a job's program is started, and what its end means: a verdict, or
 * that somebody else ended it. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "worker/core.h"
#include "worker/pool.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LONGEST_MS = 5000 };

/* Even before the loop has come to it. */
static bool is_told_to_stop(const hf_worker *w)
{
    return w->phase != HF_SERVING || atomic_load(&w->stops) > 0;
}

/* The minder asks a program to end before its lease does: that Redis was away is not the
 * program's fault, also when the renewal has come just then. While renewals come in time,
 * no program is ever so near to its deadline. */
static bool is_told_by_minder(const hf_worker *w, const hf_run *run,
                              const hf_program_result *result)
{
    uint64_t deadline = hf_lease_deadline_ns(run->lease);
    return result->asked || deadline <= run->ended_ns + w->opts.kill_grace_ms * HF_MS_NS;
}

/* systemd signals the whole control group: what fails after a stop was told to stop. And
 * it may reach a program, and kill it, before it reaches us: nobody knows at once whether
 * a signal that is not ours was meant for that program alone. */
static void judge_program(hf_worker *w, hf_run *run, const hf_program_result *result)
{
    bool failed = result->verdict != HF_VERDICT_DONE;
    if (result->minder_failed ||
        (failed && (is_told_to_stop(w) || is_told_by_minder(w, run, result))))
        run->released = true;
    if (failed && !run->released && result->by_signal && !result->ended &&
        !result->timed_out)
        hf_run_push(&w->struck, run);
    else
        hf_run_finish(w, run);
}

void hf_dispatch_struck(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    bool stop = is_told_to_stop(w);
    for (hf_run *run = w->struck.head, *next; run != NULL; run = next) {
        next = run->next;
        if (!stop && run->ended_ns + HF_STRUCK_MS * HF_MS_NS > now)
            continue;
        run->released = run->released || stop;
        hf_run_remove(&w->struck, run);
        hf_run_finish(w, run);
    }
}

/* What the programs leave. */
static void allow_threads(hf_worker *w)
{
    hf_pool_allow(w->pool, w->opts.concurrency - (uint32_t)w->programs_out);
}

static void on_program_done(const hf_program_result *result, void *arg)
{
    hf_run *run = arg;
    hf_worker *w = run->worker;
    run->ended_ns = hf_boot_ns();
    hf_dispatch_learn(w, run->ended_ns - run->started_ns, 1);
    run->verdict = result->verdict;
    run->started = !result->minder_failed;
    if (result->timed_out)
        atomic_store(&run->timed_out, true);
    if (result->error[0] != '\0')
        hf_run_set_text(run, result->error, strlen(result->error));
    if (result->has_retry_in) {
        run->has_retry_in = true;
        run->delay_ms = result->retry_in_ms;
    }
    hf_run_remove(&w->started, run);
    w->programs_out--;
    allow_threads(w);
    w->suspects_out -= run->suspect ? 1 : 0;
    judge_program(w, run, result);
    hf_life_turn(w);
}

/* No program could be started, for want of descriptors or processes. Until the backoff is
 * over this worker claims nothing, not for C handlers either: they would soon want the
 * same; and what waits is left to others. */
static void back_off(hf_worker *w, int error)
{
    uint64_t now = hf_boot_ns();
    uint32_t ms = w->spawn_backoff_ms == 0 ? BACKOFF_FIRST_MS : 2 * w->spawn_backoff_ms;
    if (error != w->spawn_error || now - w->spawn_told_ns >= HF_REMIND_MS * HF_MS_NS) {
        hf_report_text(w, HF_LOG_ERROR, "a program cannot be started", "error",
                       strerror(error));
        w->spawn_error = error;
        w->spawn_told_ns = now;
    }
    w->spawn_backoff_ms = ms < BACKOFF_LONGEST_MS ? ms : BACKOFF_LONGEST_MS;
    w->spawn_hold_until_ns = now + w->spawn_backoff_ms * HF_MS_NS;
}

static void note_started(hf_worker *w)
{
    if (w->spawn_error != 0)
        hf_report_text(w, HF_LOG_INFO, "programs are started again", NULL, NULL);
    w->spawn_error = 0;
    w->spawn_backoff_ms = 0;
}

bool hf_dispatch_program(hf_worker *w, hf_run *run)
{
    hf_process *process = NULL;
    if (hf_lease_lost(run->lease))
        return false; /* its note is on the way */
    hf_program_job job = {
        .id = run->id,
        .type = run->record.type,
        .queue = run->served->queue.name,
        .fence = run->fence,
        .attempt = run->record.attempts + 1,
        .payload = run->record.payload.ptr,
        .payload_len = run->record.payload.len,
        .deadline_ns = hf_lease_deadline_ns(run->lease),
        .timeout_ms = run->timeout_ms,
        .deadline_unix_ms = run->timeout_ms == 0 ? 0 : hf_wall_ms() + run->timeout_ms,
    };
    run->started_ns = hf_boot_ns();
    hf_err err = hf_programs_start(w->programs, &run->handler->program, &job,
                                   on_program_done, run, &process);
    if (err == HF_SYSTEM || err == HF_NOMEM)
        back_off(w, err == HF_NOMEM ? ENOMEM : errno);
    if (err != HF_OK)
        return false;
    note_started(w);
    hf_run_remove(&w->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(&w->started, run);
    w->programs_out++;
    allow_threads(w);
    w->suspects_out += run->suspect ? 1 : 0;
    atomic_store(&run->process, process);
    /* It may have been renewed between the two. */
    hf_program_extend(process, hf_lease_deadline_ns(run->lease));
    if (atomic_load(&run->lost))
        hf_program_end(process, 0);
    return true;
}

void hf_dispatch_kill(hf_worker *w)
{
    for (hf_run *run = w->started.head; run != NULL; run = run->next)
        hf_program_end(atomic_load(&run->process), 0);
}
