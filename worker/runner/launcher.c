/* launcher.c - worker/runner/launcher.h. */
#include "worker/runner/launcher.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "worker/outbox.h"
#include "worker/program/programs.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/pace.h"
#include "worker/run/result.h"
#include "worker/runner/state.h"
#include "worker/runner/threads.h"
#include "worker/worker.h"

enum {
    KILLED_OUTSIDE_MS = 100, /* our own signal may arrive this long after a program's */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_LONGEST_MS = 5000
};

/* The minder asks a program to end before its lease does: that Redis was away is not the
 * program's fault, also when the renewal has come just then. While renewals come in time,
 * no program is ever so near to its deadline. */
static bool is_told_by_minder(const hf_worker *w, const hf_run *run,
                              const hf_program_result *result)
{
    uint64_t deadline = hf_lease_deadline_ns(run->lease);
    return result->asked || deadline <= run->ended_ns + w->opts.kill_grace_ms * HF_MS_NS;
}

/* systemd signals the whole control group: a program that fails after a stop was told to
 * stop. The signal may kill a program before it reaches us, so we cannot know at once
 * whether a signal that is not ours was meant for that program alone. */
static void decide_end(hf_worker *w, hf_run *run, const hf_program_result *result)
{
    bool failed =
        result->verdict == HF_VERDICT_RETRY || result->verdict == HF_VERDICT_DEAD;
    if (result->withheld ||
        (failed && (hf_run_worker_stops(run) || is_told_by_minder(w, run, result))))
        run->released = true;
    if (failed && !run->released && result->by_signal && !result->ended &&
        !result->timed_out)
        hf_run_push(&w->runner->killed_outside, run);
    else
        hf_outbox_finish(run);
}

void hf_launcher_decide(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    for (hf_run *run = w->runner->killed_outside.head, *next; run != NULL; run = next) {
        bool stop = hf_run_worker_stops(run);
        next = run->next;
        if (!stop && run->ended_ns + KILLED_OUTSIDE_MS * HF_MS_NS > now)
            continue;
        run->released = run->released || stop;
        hf_run_remove(&w->runner->killed_outside, run);
        hf_outbox_finish(run);
    }
}

/* The slots that programs leave free. */
static void allow_threads(hf_worker *w)
{
    hf_threads_allow(w->runner->threads,
                     w->opts.concurrency - (uint32_t)w->runner->programs_out);
}

static void on_program_done(const hf_program_result *result, void *arg)
{
    hf_run *run = arg;
    hf_worker *w = run->worker;
    run->ended_ns = hf_boot_ns();
    hf_pace_learn(&w->runner->mean_run_ns, run->ended_ns - run->started_ns, 1);
    run->verdict = result->verdict;
    run->started = !result->withheld;
    if (result->timed_out)
        atomic_store(&run->timed_out, true);
    if (result->error[0] != '\0')
        hf_run_set_text(run, result->error, strlen(result->error));
    if (result->has_retry_in) {
        run->has_retry_in = true;
        run->delay_ms = result->retry_in_ms;
    }
    if (result->result != NULL) /* if memory ran out, the job is done without it */
        (void)!hf_result_set(run, result->result, result->result_len,
                             result->result_is_json);
    hf_run_remove(&w->runner->started, run);
    w->runner->programs_out--;
    allow_threads(w);
    w->runner->isolated_out -= run->isolated ? 1 : 0;
    decide_end(w, run, result);
    w->turn_due = true;
}

/* No program could be started, for want of descriptors or processes. Until the backoff is
 * over this worker claims nothing, not even for C handlers, which would soon need the
 * same resources. Jobs that wait are left to other workers. */
static void back_off(hf_worker *w, int error)
{
    uint64_t now = hf_boot_ns();
    uint32_t ms = w->runner->spawn_backoff_ms == 0 ? BACKOFF_FIRST_MS
                                                   : 2 * w->runner->spawn_backoff_ms;
    if (error != w->runner->spawn_error ||
        now - w->runner->spawn_logged_ns >= HF_REMIND_MS * HF_MS_NS) {
        hf_report_text(w, HF_LOG_ERROR, "a program cannot be started", "error",
                       strerror(error));
        w->runner->spawn_error = error;
        w->runner->spawn_logged_ns = now;
    }
    w->runner->spawn_backoff_ms = ms < BACKOFF_LONGEST_MS ? ms : BACKOFF_LONGEST_MS;
    w->runner->spawn_hold_until_ns = now + w->runner->spawn_backoff_ms * HF_MS_NS;
}

static void note_started(hf_worker *w)
{
    if (w->runner->spawn_error != 0)
        hf_report_text(w, HF_LOG_INFO, "programs are started again", NULL, NULL);
    w->runner->spawn_error = 0;
    w->runner->spawn_backoff_ms = 0;
}

bool hf_launcher_start(hf_worker *w, hf_run *run)
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
        .identity = hf_run_identity(run),
        .ran_before = run->ran_before,
        .payload = run->record.payload.ptr,
        .payload_len = run->record.payload.len,
        .deadline_ns = hf_lease_deadline_ns(run->lease),
        .timeout_ms = run->timeout_ms,
        .scheduled_unix_ms = run->record.scheduled_ms,
        .headers = run->record.headers.ptr,
        .traceparent = run->trace.text,
        .deadline_unix_ms = run->timeout_ms == 0 ? 0 : hf_wall_ms() + run->timeout_ms,
        .checkpoint = run->checkpoint.ptr,
        .checkpoint_len = run->checkpoint.len,
    };
    run->started_ns = hf_boot_ns();
    hf_err err = hf_programs_start(w->runner->programs, &run->handler->program, &job,
                                   on_program_done, run, &process);
    if (err == HF_SYSTEM || err == HF_NOMEM)
        back_off(w, err == HF_NOMEM ? ENOMEM : errno);
    if (err != HF_OK)
        return false;
    note_started(w);
    hf_run_remove(&w->runner->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(&w->runner->started, run);
    w->runner->programs_out++;
    allow_threads(w);
    w->runner->isolated_out += run->isolated ? 1 : 0;
    atomic_store(&run->process, process);
    /* It may have been renewed between the two. */
    hf_program_extend(process, hf_lease_deadline_ns(run->lease));
    if (atomic_load(&run->lost))
        hf_program_end(process, 0);
    return true;
}
