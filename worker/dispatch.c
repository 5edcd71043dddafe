/* dispatch.c - decides which job starts when.
 *
 * `concurrency` slots are shared by C handlers and programs. C jobs go to the pool as
 * they come, also those claimed ahead: a thread finds its next job without a turn of the
 * loop. They do not overtake a program that waits for a slot.
 *
 * An isolated job (one crash short of being dead) that a C handler takes is started when
 * this worker holds nothing else but programs that are not isolated, and nothing is
 * started beside it: if it ends the process, the crash is its own, and it alone is
 * buried. While it waits nothing else is started, so it waits only for a while and is
 * then put back for a less busy worker. Each wait lasts at most an eighth of the time
 * since it was first put back, and it stays away for four times as long. So it takes at
 * most a fifth of a worker's time, and it runs in the end, however long the other jobs
 * take.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/parent.h"
#include "worker/leader.h"
#include "worker/marks.h"
#include "worker/pool.h"
#include "worker/programs.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/result.h"
#include "worker/running.h"
#include "worker/running_state.h"
#include "worker/shared.h"
#include "worker/site.h"
#include "worker/verdicts.h"

enum {
    AHEAD_MAX = 800,     /* jobs claimed ahead */
    AHEAD_MS = 3,        /* so much work is claimed ahead for each slot */
    AHEAD_KEEP_MS = 100, /* then a job claimed ahead that has not started is released */
    ISOLATED_AWAY_MS = 1000, /* an isolated job that could not run alone stays away */
    ISOLATED_AWAY_MAX_MS = 3600000,
    STRUCK_MS = 100, /* our own signal may arrive this long after a program's */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_LONGEST_MS = 5000
};

static bool is_c(const hf_run *run)
{
    return run->handler->fn != NULL;
}

/* How many more could be started now. */
static size_t free_slots(const hf_worker *w)
{
    size_t busy = w->running->c_out + w->running->programs_out;
    return busy < w->opts.concurrency ? w->opts.concurrency - busy : 0;
}

static bool isolated_waits(const hf_worker *w)
{
    for (const hf_run *run = w->running->waiting.head; run != NULL; run = run->next)
        if (run->isolated && is_c(run))
            return true;
    return false;
}

/* Programs alone, and the minder is away; or the last program could not be started. */
static bool cannot_start(const hf_worker *w)
{
    return w->running->spawn_hold_until_ns != 0 ||
           (w->only_programs &&
            (w->running->programs == NULL || !hf_programs_ready(w->running->programs)));
}

/* None beside an isolated job: its baton goes to a worker that can claim. */
uint32_t hf_running_slots(const hf_worker *w)
{
    size_t busy = w->running->c_out + w->running->programs_out + w->running->waiting.n +
                  w->running->held_back.n;
    if (w->running->exclusive || isolated_waits(w) || cannot_start(w))
        return 0;
    return busy < w->opts.concurrency ? w->opts.concurrency - (uint32_t)busy : 0;
}

/* So much is claimed ahead that no slot waits for a round trip: a few milliseconds of
 * work. */
static size_t ahead(const hf_worker *w)
{
    if (w->running->mean_run_ns <= 0)
        return 0;
    double n = w->opts.concurrency * (AHEAD_MS * 1e6) / w->running->mean_run_ns;
    return n > AHEAD_MAX ? AHEAD_MAX : (size_t)n;
}

/* Not one by one while many are held: a request should fetch a quarter of what can be
 * held.
 */
uint32_t hf_running_wanted(const hf_worker *w)
{
    size_t target = w->opts.concurrency + ahead(w);
    size_t have = w->held + w->arriving - w->decided - w->running->struck.n;
    if (w->running->exclusive || have >= target || isolated_waits(w) || cannot_start(w))
        return 0;
    size_t want = target - have;
    if (have > w->opts.concurrency && want * 4 < target)
        return 0;
    return (uint32_t)want;
}

/* ---- programs ---- */

static void learn(hf_worker *w, uint64_t total_ns, size_t n)
{
    double mean = (double)total_ns / (double)n;
    double share = n >= 16 ? 0.5 : (double)n / 32;
    w->running->mean_run_ns = w->running->mean_run_ns <= 0
                                  ? mean
                                  : w->running->mean_run_ns * (1 - share) + mean * share;
}

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

/* systemd signals the whole control group: a program that fails after a stop was told to
 * stop. The signal may kill a program before it reaches us, so we cannot know at once
 * whether a signal that is not ours was meant for that program alone. */
static void judge_program(hf_worker *w, hf_run *run, const hf_program_result *result)
{
    bool failed =
        result->verdict == HF_VERDICT_RETRY || result->verdict == HF_VERDICT_DEAD;
    if (result->withheld ||
        (failed && (is_told_to_stop(w) || is_told_by_minder(w, run, result))))
        run->released = true;
    if (failed && !run->released && result->by_signal && !result->ended &&
        !result->timed_out)
        hf_run_push(&w->running->struck, run);
    else
        hf_verdict_finish(run);
}

static void judge_struck(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    bool stop = is_told_to_stop(w);
    for (hf_run *run = w->running->struck.head, *next; run != NULL; run = next) {
        next = run->next;
        if (!stop && run->ended_ns + STRUCK_MS * HF_MS_NS > now)
            continue;
        run->released = run->released || stop;
        hf_run_remove(&w->running->struck, run);
        hf_verdict_finish(run);
    }
}

/* The slots that programs leave free. */
static void allow_threads(hf_worker *w)
{
    hf_pool_allow(w->running->pool,
                  w->opts.concurrency - (uint32_t)w->running->programs_out);
}

static void on_program_done(const hf_program_result *result, void *arg)
{
    hf_run *run = arg;
    hf_worker *w = run->worker;
    run->ended_ns = hf_boot_ns();
    learn(w, run->ended_ns - run->started_ns, 1);
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
    hf_run_remove(&w->running->started, run);
    w->running->programs_out--;
    allow_threads(w);
    w->running->isolated_out -= run->isolated ? 1 : 0;
    judge_program(w, run, result);
    hf_life_turn(w);
}

/* No program could be started, for want of descriptors or processes. Until the backoff is
 * over this worker claims nothing, not even for C handlers, which would soon need the
 * same resources. Jobs that wait are left to other workers. */
static void back_off(hf_worker *w, int error)
{
    uint64_t now = hf_boot_ns();
    uint32_t ms = w->running->spawn_backoff_ms == 0 ? BACKOFF_FIRST_MS
                                                    : 2 * w->running->spawn_backoff_ms;
    if (error != w->running->spawn_error ||
        now - w->running->spawn_logged_ns >= HF_REMIND_MS * HF_MS_NS) {
        hf_report_text(w, HF_LOG_ERROR, "a program cannot be started", "error",
                       strerror(error));
        w->running->spawn_error = error;
        w->running->spawn_logged_ns = now;
    }
    w->running->spawn_backoff_ms = ms < BACKOFF_LONGEST_MS ? ms : BACKOFF_LONGEST_MS;
    w->running->spawn_hold_until_ns = now + w->running->spawn_backoff_ms * HF_MS_NS;
}

static void note_started(hf_worker *w)
{
    if (w->running->spawn_error != 0)
        hf_report_text(w, HF_LOG_INFO, "programs are started again", NULL, NULL);
    w->running->spawn_error = 0;
    w->running->spawn_backoff_ms = 0;
}

static bool start_program(hf_worker *w, hf_run *run)
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
        .deadline_unix_ms = run->timeout_ms == 0 ? 0 : hf_wall_ms() + run->timeout_ms,
        .checkpoint = run->checkpoint.ptr,
        .checkpoint_len = run->checkpoint.len,
    };
    run->started_ns = hf_boot_ns();
    hf_err err = hf_programs_start(w->running->programs, &run->handler->program, &job,
                                   on_program_done, run, &process);
    if (err == HF_SYSTEM || err == HF_NOMEM)
        back_off(w, err == HF_NOMEM ? ENOMEM : errno);
    if (err != HF_OK)
        return false;
    note_started(w);
    hf_run_remove(&w->running->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(&w->running->started, run);
    w->running->programs_out++;
    allow_threads(w);
    w->running->isolated_out += run->isolated ? 1 : 0;
    atomic_store(&run->process, process);
    /* It may have been renewed between the two. */
    hf_program_extend(process, hf_lease_deadline_ns(run->lease));
    if (atomic_load(&run->lost))
        hf_program_end(process, 0);
    return true;
}

void hf_running_kill(hf_worker *w)
{
    for (hf_run *run = w->running->started.head; run != NULL; run = run->next)
        hf_program_end(atomic_load(&run->process), 0);
}

/* ---- C handlers ---- */

static void hand_over(hf_worker *w, hf_run *run, hf_run_list *batch)
{
    hf_run_remove(&w->running->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(batch, run);
    w->running->c_out++;
}

/* It was claimed for nothing. */
static void release_unstarted(hf_run *run)
{
    hf_queue_refund(run->served, 1);
    hf_verdict_release(run);
}

/* Every other job must leave first. Waiting jobs are released, because a crash would
 * count against them; verdicts of finished jobs must be answered. */
static void try_isolated(hf_worker *w, hf_run *isolated)
{
    hf_run_list batch = {.n = 0};
    for (hf_run *run = w->running->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (run != isolated) {
            hf_run_remove(&w->running->waiting, run);
            release_unstarted(run);
        }
    }
    if (w->running->c_out > 0 || w->running->isolated_out > 0 ||
        w->held != w->running->programs_out + 1 || free_slots(w) == 0)
        return;
    w->running->exclusive = true;
    hand_over(w, isolated, &batch);
    hf_pool_push(w->running->pool, &batch);
}

/* In their order. A program waits for a slot, and the jobs behind it wait as well, or C
 * jobs would take every free slot. */
static void start_all(hf_worker *w)
{
    hf_run_list batch = {.n = 0};
    bool program_waits = false;
    for (hf_run *run = w->running->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (is_c(run)) {
            if (!program_waits)
                hand_over(w, run, &batch);
        } else if (w->running->spawn_hold_until_ns == 0 &&
                   hf_programs_ready(w->running->programs)) {
            if (free_slots(w) == 0)
                program_waits = true;
            else if (!start_program(w, run))
                break;
        }
    }
    if (!hf_leader_take(w, &batch))
        hf_pool_push(w->running->pool, &batch);
}

void hf_running_dispatch(hf_worker *w)
{
    hf_run *isolated = NULL;
    for (hf_run *run = w->running->waiting.head; run != NULL && isolated == NULL;
         run = run->next)
        if (run->isolated && is_c(run))
            isolated = run;
    if (w->running->exclusive || w->phase != HF_SERVING)
        return;
    if (isolated != NULL)
        try_isolated(w, isolated);
    else
        start_all(w);
}

void hf_running_returned(hf_worker *w)
{
    hf_run_list done;
    hf_run *run;
    uint64_t total_ns = 0;
    hf_pool_collect(w->running->pool, &done);
    if (done.n == 0)
        return;
    size_t n = done.n;
    while ((run = hf_run_pop(&done)) != NULL) {
        total_ns += run->ended_ns - run->started_ns;
        w->running->c_out--;
        if (run->isolated)
            w->running->exclusive = false;
        if (atomic_load(&run->begun_ns) != 0)
            hf_verdict_finish(run);
        else if (atomic_load(&run->cancelled))
            hf_verdict_cancel(run);
        else
            hf_verdict_release(run);
    }
    learn(w, total_ns, n);
}

/* On a pool thread. A job that was lost or cancelled while it waited for a thread is
 * never started. */
static void work_on(hf_run *run)
{
    run->started_ns = run->ended_ns = hf_boot_ns();
    if (hf_lease_lost(run->lease) || atomic_load(&run->cancelled))
        return;
    atomic_store(&run->begun_ns, run->started_ns);
    run->verdict = run->handler->fn(run, run->handler->arg);
    run->ended_ns = hf_boot_ns();
    pthread_mutex_lock(&run->worker->stop_lock);
    run->stop_fn = NULL;
    pthread_mutex_unlock(&run->worker->stop_lock);
}

/* ---- the end ---- */

static void ask_one(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_ask_to_stop(run);
}

static void ask_all(hf_worker *w)
{
    hf_pool_running(w->running->pool, ask_one, NULL);
}

static void add_shadow(hf_run *run, void *arg)
{
    hf_run *shadow = hf_run_shadow(run);
    if (shadow != NULL)
        hf_run_push(arg, shadow);
}

/* The handler stops believing before its job can start elsewhere. */
void hf_running_abandon(hf_worker *w)
{
    hf_run_list shadows = {.n = 0};
    hf_run *shadow;
    hf_pool_running(w->running->pool, add_shadow, &shadows);
    while ((shadow = hf_run_pop(&shadows)) != NULL) {
        hf_run *run = shadow->shadow_of;
        hf_watchdog_end(w->watchdog, run->lease);
        if (!run->lost_logged)
            hf_report_run(w, run, "released");
        run->lost_logged = true; /* that is what was told of it */
        w->held++;
        hf_verdict_release(shadow);
    }
}

/* ---- timers ---- */

/* How long an isolated job may keep others from being started here. */
static int64_t patience_ms(const hf_run *run)
{
    int64_t since = run->record.refused_ms;
    int64_t passed = since > 0 ? hf_server_now(run->served->site->redis) - since : 0;
    return AHEAD_KEEP_MS + (passed > 0 ? passed / 8 : 0);
}

static void release_waiting(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    while ((run = hf_run_pop(&w->running->waiting)) != NULL)
        hf_verdict_release(run);
    while ((run = hf_run_pop(&w->running->held_back)) != NULL)
        hf_verdict_release(run);
    hf_pool_take_back(w->running->pool, UINT64_MAX, &back);
    w->running->c_out -= back.n;
    while ((run = hf_run_pop(&back)) != NULL)
        hf_verdict_release(run);
}

static void on_running(hf_run *run, void *arg)
{
    uint64_t begun = atomic_load(&run->begun_ns), now = *(uint64_t *)arg;
    if (begun != 0 && run->timeout_ms != 0 && begun + run->timeout_ms * HF_MS_NS <= now &&
        !atomic_exchange(&run->timed_out, true))
        hf_run_ask_to_stop(run);
}

/* An isolated job that cannot run alone here. */
static void put_isolated_back(hf_worker *w, hf_run *run)
{
    static const char text[] = "it waits for a worker to run alone: one crash more and "
                               "it is dead";
    int64_t delay = 4 * patience_ms(run);
    delay = delay > ISOLATED_AWAY_MAX_MS ? ISOLATED_AWAY_MAX_MS : delay;
    hf_run_set_text(run, text, sizeof text - 1);
    hf_queue_refund(run->served, 1);
    hf_verdict_put_back(run, delay < ISOLATED_AWAY_MS ? ISOLATED_AWAY_MS : delay);
    hf_report_run(w, run, "put_back");
}

/* A job claimed ahead is not kept from other workers for long. If no more jobs were
 * claimed than there are slots, they only wait for a program's start or an isolated job's
 * end.
 */
static void release_stale(hf_worker *w, uint64_t now)
{
    for (hf_run *run = w->running->waiting.head, *next; run != NULL; run = next) {
        bool isolated = run->isolated && is_c(run);
        uint64_t keep_ms = isolated ? (uint64_t)patience_ms(run) : AHEAD_KEEP_MS;
        next = run->next;
        if (run->claimed_ns + keep_ms * HF_MS_NS >= now)
            continue;
        hf_run_remove(&w->running->waiting, run);
        if (!is_c(run))
            w->running->mean_run_ns =
                AHEAD_KEEP_MS * (double)HF_MS_NS; /* none ahead for now */
        if (isolated)
            put_isolated_back(w, run);
        else
            release_unstarted(run);
    }
}

void hf_running_tick(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    uint64_t now = hf_boot_ns(), keep = AHEAD_KEEP_MS * HF_MS_NS;
    hf_pool_take_back(w->running->pool, now - keep, &back);
    w->running->c_out -= back.n;
    if (back.n > 0)
        w->running->mean_run_ns =
            (double)keep; /* they are not short: claim none ahead for now */
    while ((run = hf_run_pop(&back)) != NULL) {
        if (run->isolated)
            w->running->exclusive = false;
        release_unstarted(run);
    }
    release_stale(w, now);
    hf_pool_running(w->running->pool, on_running, &now);
    judge_struck(w);
}

void hf_running_hold_over(hf_worker *w, uint64_t now_ns)
{
    if (w->running->spawn_hold_until_ns <= now_ns)
        w->running->spawn_hold_until_ns = 0;
}

/* ---- new jobs ---- */

void hf_running_take(hf_run *run)
{
    hf_worker *w = run->worker;
    if (run->reason != NULL) {
        hf_verdict_unreadable(run);
    } else if (hf_lease_lost(run->lease) || w->phase != HF_SERVING ||
               hf_queue_is(run->served->state, HF_Q_GONE)) {
        hf_verdict_release(run);
    } else if (atomic_load(&run->cancelled)) {
        hf_verdict_cancel(run);
    } else if (run->handler == NULL) {
        hf_verdict_no_handler(run);
    } else {
        run->state = HF_WAITING;
        hf_run_push(&w->running->waiting, run);
    }
}

void hf_running_hold_back(hf_run *run)
{
    run->state = HF_HELD_BACK;
    hf_run_push(&run->worker->running->held_back, run);
}

bool hf_running_withdraw(hf_run *run)
{
    hf_running *r = run->worker->running;
    if (run->state != HF_HELD_BACK && run->state != HF_WAITING)
        return false;
    hf_run_remove(run->state == HF_HELD_BACK ? &r->held_back : &r->waiting, run);
    return true;
}

void hf_running_renewed(hf_run *run)
{
    if (run->state != HF_HELD_BACK)
        return;
    (void)hf_running_withdraw(run);
    hf_running_take(run);
}

void hf_running_confirmed(const hf_served *served, const char *fence, bool confirmed)
{
    hf_run *next, *run = served->worker->running->held_back.head;
    for (; run != NULL; run = next) {
        next = run->next;
        if (run->served != served || strcmp(run->fence, fence) != 0)
            continue;
        (void)hf_running_withdraw(run);
        if (confirmed)
            hf_running_take(run);
        else
            hf_verdict_release(run);
    }
}

/* ---- a reload ---- */

void hf_running_recall(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    hf_pool_take_back(w->running->pool, UINT64_MAX, &back);
    w->running->c_out -= back.n;
    while ((run = hf_run_pop(&back)) != NULL) {
        if (run->isolated)
            w->running->exclusive = false;
        run->state = HF_WAITING;
        hf_run_push(&w->running->waiting, run);
    }
}

/* In their order; those whose lease is being renewed first are taken when it is. */
void hf_running_choose_anew(hf_worker *w)
{
    hf_run_list waiting = w->running->waiting;
    hf_run *run;
    w->running->waiting = (hf_run_list){.n = 0};
    for (run = w->running->held_back.head; run != NULL; run = run->next)
        hf_run_choose(run);
    while ((run = hf_run_pop(&waiting)) != NULL) {
        hf_run_choose(run);
        hf_running_take(run);
    }
}

/* ---- for the other parts ---- */

bool hf_running_all_busy(const hf_worker *w)
{
    return w->running->c_out > w->opts.concurrency;
}

/* C jobs that were claimed ahead wait in the pool while every slot is busy. */
uint32_t hf_running_now(const hf_worker *w)
{
    size_t n = w->running->c_out + w->running->programs_out;
    return n < w->opts.concurrency ? (uint32_t)n : w->opts.concurrency;
}

size_t hf_running_out(const hf_worker *w)
{
    return w->running->c_out;
}

uint64_t hf_running_hold_until_ns(const hf_worker *w)
{
    return w->running->spawn_hold_until_ns;
}

bool hf_running_must_return(const hf_worker *w)
{
    return w->running->lead.has_job;
}

void hf_running_expect(hf_worker *w)
{
    hf_leader_expect(w);
}

void hf_running_turned(hf_worker *w)
{
    hf_leader_turned(w);
}

/* ---- the start and the end ---- */

/* A line of a program's output, for the log. */
static void on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    hf_run *run = job_arg;
    (void)len; /* followed by a NUL */
    hf_log_field fields[] = {{.key = "job", .text = run->id},
                             {.key = "stream",
                              .text = stream == 1   ? "stdout"
                                      : stream == 2 ? "stderr"
                                                    : "holdfast"},
                             {.key = "line", .text = text}};
    /* What the worker logs about an output, for example a verdict it cannot parse. */
    bool ours = stream != 1 && stream != 2;
    hf_report(arg, ours ? HF_LOG_WARN : HF_LOG_INFO, "output", fields, HF_COUNT(fields));
}

static void on_output(void *job_arg, const char *bytes, size_t len, void *arg)
{
    hf_run *run = job_arg;
    (void)arg;
    if (run->handler->program.logs)
        hf_marks_log(run, bytes, len);
}

/* Nothing is left of it if memory ran out: the next line may fit. */
static void on_news(void *job_arg, const hf_said_news *news, void *arg)
{
    hf_run *run = job_arg;
    (void)arg;
    if (news->has_progress || news->note != NULL)
        hf_marks_progress(run, news->has_progress ? &news->progress : NULL, news->note);
    if (news->checkpoint != NULL)
        (void)!hf_run_set_checkpoint(run, news->checkpoint, news->checkpoint_len);
}

static void on_denied(void *job_arg, void *arg)
{
    const hf_run *run = job_arg;
    const hf_log_field fields[] = {
        {.key = "job", .text = run->id},
        {.key = "error", .text = "it runs as another user, and may outlive its lease"}};
    hf_report(arg, HF_LOG_WARN, "a program may not be ended", fields, HF_COUNT(fields));
}

static void on_minder(bool ready, void *arg)
{
    hf_worker *w = arg;
    hf_report_text(w, ready ? HF_LOG_INFO : HF_LOG_ERROR,
                   ready ? "the minder is back"
                         : "the minder is away: no program is started",
                   NULL, NULL);
    if (ready)
        hf_life_turn(w);
}

hf_err hf_running_open(hf_worker *w)
{
    w->running = calloc(1, sizeof *w->running);
    if (w->running == NULL)
        return HF_NOMEM;
    w->running->lead.wakeup = -1;
    return HF_OK;
}

hf_err hf_running_start(hf_worker *w, void (*returned)(void *arg))
{
    hf_running *r = w->running;
    hf_err err = HF_OK;
    w->only_programs = hf_handlers_only_programs(w->handlers, w->n_handlers);
    if (w->has_programs && hf_children_are_ignored())
        return hf_say(w->detail, HF_CONFIG,
                      "SIGCHLD is ignored in this process, so it would not learn how its "
                      "programs end");
    if (w->has_programs) {
        hf_programs_opts opts = {.minder_path = w->minder,
                                 .kill_grace_ms = w->opts.kill_grace_ms,
                                 .cgroup = w->opts.cgroup,
                                 .on_line = on_line,
                                 .on_output = on_output,
                                 .on_news = on_news,
                                 .on_denied = on_denied,
                                 .on_ready = on_minder,
                                 .arg = w};
        err = hf_programs_new(&r->programs, &w->loop, &opts, w->detail);
    }
    if (err == HF_OK)
        err = hf_pool_new(&r->pool, w->opts.concurrency, work_on, returned, w);
    if (err == HF_OK)
        err = hf_leader_open(w);
    return err;
}

void hf_running_loop(hf_worker *w)
{
    hf_leader_run(w);
}

void hf_running_close(hf_worker *w)
{
    hf_programs *programs = w->running->programs;
    w->running->programs = NULL;
    hf_programs_close(programs, NULL, NULL);
}

void hf_running_join(hf_worker *w)
{
    hf_run_list left = {.n = 0};
    if (w->running->pool != NULL) {
        hf_pool_join(w->running->pool);
        hf_pool_collect(w->running->pool, &left);
    }
    for (hf_run *run; (run = hf_run_pop(&left)) != NULL;)
        hf_run_forget(run);
}

void hf_running_free(hf_worker *w)
{
    if (w->running == NULL)
        return;
    hf_pool_free(w->running->pool);
    hf_leader_close(w);
    free(w->running);
    w->running = NULL;
}

void hf_running_stop(hf_worker *w)
{
    release_waiting(w);
    judge_struck(w);
    ask_all(w);
}

void hf_running_forget(hf_worker *w)
{
    hf_run_list *lists[] = {&w->running->held_back, &w->running->waiting,
                            &w->running->struck};
    for (size_t i = 0; i < HF_COUNT(lists); i++)
        for (hf_run *run; (run = hf_run_pop(lists[i])) != NULL;)
            hf_run_forget(run);
}
