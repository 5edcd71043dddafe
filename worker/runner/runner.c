/* runner.c - decides which job starts when.
 *
 * `concurrency` slots are shared by C handlers and programs. C jobs go to the threads as
 * they come, also those claimed ahead: a thread finds its next job without a turn of the
 * loop. They do not overtake a program that waits for a slot.
 *
 * An isolated job (one crash short of being dead) that a C handler takes is started when
 * this worker holds nothing else but programs that are not isolated, and nothing is
 * started beside it: if it ends the process, the crash is its own, and it alone is
 * buried. While it waits nothing else is started, so it waits only for a while
 * (worker/alone.h).
 */
#include "worker/runner/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/parent.h"
#include "worker/alone.h"
#include "worker/group/groups.h"
#include "worker/node/site.h"
#include "worker/outbox.h"
#include "worker/pool/supervisors.h"
#include "worker/program/programs.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/pace.h"
#include "worker/run/result.h"
#include "worker/run/run.h"
#include "worker/runner/launcher.h"
#include "worker/runner/leader.h"
#include "worker/runner/state.h"
#include "worker/runner/threads.h"
#include "worker/worker.h"

enum {
    AHEAD_KEEP_MS = 100, /* then a job claimed ahead that has not started is released */
    AWAY_LEAST_MS = 1000,
};

static bool is_c(const hf_run *run)
{
    return run->handler->fn != NULL;
}

static bool is_pooled(const hf_run *run)
{
    return run->handler != NULL && run->handler->pool != NULL;
}

/* How many more could be started now. */
static size_t free_slots(const hf_worker *w)
{
    size_t busy = w->runner->c_out + w->runner->programs_out;
    return busy < w->opts.concurrency ? w->opts.concurrency - busy : 0;
}

static bool isolated_waits(const hf_worker *w)
{
    for (const hf_run *run = w->runner->waiting.head; run != NULL; run = run->next)
        if (run->isolated && is_c(run))
            return true;
    return false;
}

/* Programs alone, and the minder is away; or the last program could not be started. */
static bool cannot_start(const hf_worker *w)
{
    return w->runner->spawn_hold_until_ns != 0 || hf_supervisors_starting(w) ||
           (w->only_programs &&
            (w->runner->groups == NULL || !hf_groups_ready(w->runner->groups)));
}

/* The slots of C handlers and programs. A worker that has neither needs none. */
static size_t own_slots(const hf_worker *w)
{
    return w->n_own > 0 ? w->opts.concurrency : 0;
}

uint32_t hf_runner_capacity(const hf_worker *w)
{
    return (uint32_t)(own_slots(w) + hf_supervisors_slots(w));
}

/* Zero while an isolated job runs or waits: the baton goes to another worker. */
uint32_t hf_runner_slots(const hf_worker *w)
{
    size_t busy = w->runner->c_out + w->runner->programs_out + w->runner->waiting.n +
                  w->runner->confirming.n;
    size_t own = own_slots(w);
    if (w->runner->exclusive || isolated_waits(w) || cannot_start(w))
        return 0;
    return (uint32_t)(hf_supervisors_free_slots(w) + (busy < own ? own - busy : 0));
}

/* How many jobs to request. While many are in hand, a request should fetch a quarter of
 * the most that can be. */
uint32_t hf_runner_wanted(const hf_worker *w)
{
    size_t slots = own_slots(w) + hf_supervisors_usable(w);
    size_t target = slots + hf_pace_ahead(w->runner->mean_run_ns, own_slots(w)) +
                    hf_supervisors_ahead(w);
    size_t have = w->in_hand + w->arriving - w->decided - w->runner->killed_outside.n;
    if (w->runner->exclusive || have >= target || isolated_waits(w) || cannot_start(w))
        return 0;
    size_t want = target - have;
    if (have > slots && want * 4 < target)
        return 0;
    return (uint32_t)want;
}

/* ---- C handlers ---- */

static void hand_over(hf_worker *w, hf_run *run, hf_run_list *batch)
{
    hf_run_remove(&w->runner->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(batch, run);
    w->runner->c_out++;
}

/* It was claimed for nothing. */
static void release_unstarted(hf_run *run)
{
    hf_queue_refund(run->served, 1);
    hf_outbox_release(run);
}

/* Every other job must leave first. Waiting jobs are released, because a crash would
 * count against them; verdicts of finished jobs must be answered. */
static void try_isolated(hf_worker *w, hf_run *isolated)
{
    hf_run_list batch = {.n = 0};
    for (hf_run *run = w->runner->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (run != isolated) {
            hf_run_remove(&w->runner->waiting, run);
            release_unstarted(run);
        }
    }
    if (w->runner->c_out > 0 || w->runner->isolated_out > 0 ||
        w->in_hand != w->runner->programs_out + 1 || free_slots(w) == 0)
        return;
    w->runner->exclusive = true;
    hand_over(w, isolated, &batch);
    hf_threads_push(w->runner->threads, &batch);
}

/* In their order. A program waits for a slot, and the jobs behind it wait as well, or C
 * jobs would take every free slot. */
static void start_all(hf_worker *w)
{
    hf_run_list batch = {.n = 0};
    bool program_waits = false;
    for (hf_run *run = w->runner->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (is_c(run)) {
            if (!program_waits)
                hand_over(w, run, &batch);
        } else if (w->runner->spawn_hold_until_ns == 0 &&
                   hf_groups_ready(w->runner->groups)) {
            if (free_slots(w) == 0)
                program_waits = true;
            else if (!hf_launcher_start(w, run))
                break;
        }
    }
    if (!hf_leader_keep_one(w, &batch))
        hf_threads_push(w->runner->threads, &batch);
}

void hf_runner_dispatch(hf_worker *w)
{
    hf_run *isolated = NULL;
    for (hf_run *run = w->runner->waiting.head; run != NULL && isolated == NULL;
         run = run->next)
        if (run->isolated && is_c(run))
            isolated = run;
    if (w->runner->exclusive || w->phase != HF_SERVING)
        return;
    hf_supervisors_turn(w);
    if (isolated != NULL)
        try_isolated(w, isolated);
    else
        start_all(w);
}

void hf_runner_returned(hf_worker *w)
{
    hf_run_list done;
    hf_run *run;
    uint64_t total_ns = 0;
    hf_threads_collect(w->runner->threads, &done);
    if (done.n == 0)
        return;
    size_t n = done.n;
    while ((run = hf_run_pop(&done)) != NULL) {
        total_ns += run->ended_ns - run->started_ns;
        w->runner->c_out--;
        if (run->isolated)
            w->runner->exclusive = false;
        if (atomic_load(&run->begun_ns) != 0)
            hf_outbox_finish(run);
        else if (atomic_load(&run->cancelled))
            hf_outbox_cancel(run);
        else
            hf_outbox_release(run);
    }
    hf_pace_learn(&w->runner->mean_run_ns, total_ns, n);
}

/* On a thread of the handlers. A job that was lost or cancelled while it waited for a
 * thread is never started. */
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

void hf_runner_kill(hf_worker *w)
{
    hf_supervisors_end(w);
    for (hf_run *run = w->runner->started.head; run != NULL; run = run->next)
        hf_program_end(atomic_load(&run->process), 0);
}

static void ask_one(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_ask_to_stop(run);
}

static void ask_all(hf_worker *w)
{
    hf_threads_running(w->runner->threads, ask_one, NULL);
}

static void add_stand_in(hf_run *run, void *arg)
{
    hf_run *stand_in = hf_run_stand_in(run);
    if (stand_in != NULL)
        hf_run_push(arg, stand_in);
}

/* The handler stops believing before its job can start elsewhere. */
void hf_runner_abandon(hf_worker *w)
{
    hf_run_list stand_ins = {.n = 0};
    hf_run *stand_in;
    hf_threads_running(w->runner->threads, add_stand_in, &stand_ins);
    while ((stand_in = hf_run_pop(&stand_ins)) != NULL) {
        hf_run *run = stand_in->stands_in_for;
        hf_watchdog_end(w->watchdog, run->lease);
        if (!run->lost_logged)
            hf_run_report(w, run, "released");
        run->lost_logged = true; /* "released" was logged */
        w->in_hand++;
        hf_outbox_release(stand_in);
    }
}

/* ---- timers ---- */

static void release_waiting(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    hf_supervisors_recall(w, &w->runner->waiting);
    while ((run = hf_run_pop(&w->runner->waiting)) != NULL)
        hf_outbox_release(run);
    while ((run = hf_run_pop(&w->runner->confirming)) != NULL)
        hf_outbox_release(run);
    hf_threads_take_back(w->runner->threads, UINT64_MAX, &back);
    w->runner->c_out -= back.n;
    while ((run = hf_run_pop(&back)) != NULL)
        hf_outbox_release(run);
}

static void on_running(hf_run *run, void *arg)
{
    uint64_t begun = atomic_load(&run->begun_ns), now = *(uint64_t *)arg;
    if (begun != 0 && run->timeout_ms != 0 && begun + run->timeout_ms * HF_MS_NS <= now &&
        !atomic_exchange(&run->timed_out, true))
        hf_run_ask_to_stop(run);
}

/* A job claimed ahead is not kept from other workers for long. If no more jobs were
 * claimed than there are slots, they only wait for a program's start or an isolated job's
 * end.
 */
static void release_stale(hf_worker *w, uint64_t now)
{
    for (hf_run *run = w->runner->waiting.head, *next; run != NULL; run = next) {
        bool isolated = run->isolated && is_c(run);
        uint64_t keep_ms = isolated ? (uint64_t)hf_alone_patience_ms(run) : AHEAD_KEEP_MS;
        next = run->next;
        if (run->claimed_ns + keep_ms * HF_MS_NS >= now)
            continue;
        hf_run_remove(&w->runner->waiting, run);
        if (!is_c(run))
            w->runner->mean_run_ns =
                AHEAD_KEEP_MS * (double)HF_MS_NS; /* none ahead for now */
        if (isolated)
            hf_alone_put_back(run);
        else
            release_unstarted(run);
    }
}

void hf_runner_tick(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    uint64_t now = hf_boot_ns(), keep = AHEAD_KEEP_MS * HF_MS_NS;
    hf_threads_take_back(w->runner->threads, now - keep, &back);
    w->runner->c_out -= back.n;
    if (back.n > 0)
        w->runner->mean_run_ns =
            (double)keep; /* they are not short: claim none ahead for now */
    while ((run = hf_run_pop(&back)) != NULL) {
        if (run->isolated)
            w->runner->exclusive = false;
        release_unstarted(run);
    }
    release_stale(w, now);
    hf_supervisors_tick(w, AHEAD_KEEP_MS);
    hf_threads_running(w->runner->threads, on_running, &now);
    hf_launcher_decide(w);
}

void hf_runner_hold_over(hf_worker *w, uint64_t now_ns)
{
    if (w->runner->spawn_hold_until_ns <= now_ns)
        w->runner->spawn_hold_until_ns = 0;
}

/* ---- new jobs ---- */

/* A pool that has not been ready yet may have its type. */
static void no_handler(hf_run *run)
{
    static const char text[] = "it waits for a pool that is down, and may have its type";
    int64_t backoff_ms = 0;
    if (!hf_supervisors_any_unknown(run->worker, &backoff_ms)) {
        hf_outbox_no_handler(run);
        return;
    }
    hf_outbox_back_off(run, backoff_ms < AWAY_LEAST_MS ? AWAY_LEAST_MS : backoff_ms,
                       text);
}

void hf_runner_accept(hf_run *run)
{
    hf_worker *w = run->worker;
    if (run->reason != NULL) {
        hf_outbox_unreadable(run);
    } else if (hf_lease_lost(run->lease) || w->phase != HF_SERVING ||
               hf_queue_is(run->served, HF_Q_GONE)) {
        hf_outbox_release(run);
    } else if (atomic_load(&run->cancelled)) {
        hf_outbox_cancel(run);
    } else if (run->handler == NULL) {
        no_handler(run);
    } else if (is_pooled(run)) {
        hf_supervisors_accept(run);
    } else {
        run->state = HF_WAITING;
        hf_run_push(&w->runner->waiting, run);
    }
}

void hf_runner_confirm_first(hf_run *run)
{
    run->state = HF_CONFIRMING;
    hf_run_push(&run->worker->runner->confirming, run);
}

static bool withdraw(hf_run *run)
{
    hf_runner *r = run->worker->runner;
    if (run->state != HF_CONFIRMING && run->state != HF_WAITING)
        return false;
    if (run->state == HF_CONFIRMING)
        hf_run_remove(&r->confirming, run);
    else if (is_pooled(run))
        hf_supervisors_withdraw(run);
    else
        hf_run_remove(&r->waiting, run);
    return true;
}

static void lose(hf_run *run)
{
    hf_worker *w = run->worker;
    hf_process *process = atomic_load(&run->process);
    if (run->state == HF_DECIDED)
        return;              /* the verdict's answer tells */
    hf_run_ask_to_stop(run); /* before the log, which may keep the loop */
    if (!run->lost_logged) {
        run->lost_logged = true;
        if (process != NULL || is_pooled(run))
            run->ended_ns = hf_boot_ns();
        hf_run_report(w, run, "lost");
    }
    if (run->state == HF_STARTED) {
        if (process != NULL)
            hf_program_end(process, 0);
        else if (is_pooled(run))
            hf_supervisors_lose(run);
        return;
    }
    if (withdraw(run))
        hf_outbox_release(run);
}

static void cancel(hf_run *run)
{
    hf_process *process = atomic_load(&run->process);
    hf_run_ask_to_stop(run);
    if (run->state == HF_STARTED && process != NULL)
        hf_program_end(process, run->handler->program.grace_ms);
    else if (run->state == HF_STARTED && is_pooled(run))
        hf_supervisors_cancel(run);
    if (withdraw(run))
        hf_outbox_cancel(run);
}

static void renewed(hf_run *run)
{
    if (run->state != HF_CONFIRMING)
        return;
    (void)withdraw(run);
    hf_runner_accept(run);
}

void hf_runner_events(hf_worker *w)
{
    unsigned events;
    for (hf_run *run; (run = hf_run_next_event(w, &events)) != NULL;) {
        if (events & 1U << HF_LEASE_LOST)
            lose(run);
        else if (events & 1U << HF_LEASE_CANCELLED)
            cancel(run);
        else
            renewed(run);
    }
}

void hf_runner_confirmed(const hf_served *served, const char *fence, bool confirmed)
{
    hf_run *next, *run = served->worker->runner->confirming.head;
    for (; run != NULL; run = next) {
        next = run->next;
        if (run->served != served || strcmp(run->fence, fence) != 0)
            continue;
        (void)withdraw(run);
        if (confirmed)
            hf_runner_accept(run);
        else
            hf_outbox_release(run);
    }
}

/* ---- a reload ---- */

void hf_runner_recall(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    hf_threads_take_back(w->runner->threads, UINT64_MAX, &back);
    w->runner->c_out -= back.n;
    while ((run = hf_run_pop(&back)) != NULL) {
        if (run->isolated)
            w->runner->exclusive = false;
        run->state = HF_WAITING;
        hf_run_push(&w->runner->waiting, run);
    }
}

/* In their order; those whose lease is being renewed first are taken when it is. */
void hf_runner_choose_anew(hf_worker *w)
{
    hf_run *run;
    hf_supervisors_recall(w, &w->runner->waiting);
    hf_supervisors_take(w);
    hf_run_list waiting = w->runner->waiting;
    w->runner->waiting = (hf_run_list){.n = 0};
    for (run = w->runner->confirming.head; run != NULL; run = run->next)
        hf_run_choose(run);
    while ((run = hf_run_pop(&waiting)) != NULL) {
        hf_run_choose(run);
        hf_runner_accept(run);
    }
}

/* ---- for the other parts ---- */

bool hf_runner_all_busy(const hf_worker *w)
{
    return w->runner->c_out > w->opts.concurrency ||
           (own_slots(w) == 0 && hf_supervisors_waiting(w) > 0);
}

/* C jobs that were claimed ahead wait for a thread while every slot is busy. */
uint32_t hf_runner_now(const hf_worker *w)
{
    size_t n = w->runner->c_out + w->runner->programs_out;
    n = n < w->opts.concurrency ? n : w->opts.concurrency;
    return (uint32_t)(n + hf_supervisors_running(w));
}

size_t hf_runner_out(const hf_worker *w)
{
    return w->runner->c_out;
}

void hf_runner_started(hf_worker *w, void (*fn)(hf_run *run, void *arg), void *arg)
{
    hf_threads_running(w->runner->threads, fn, arg);
    for (hf_run *run = w->runner->started.head; run != NULL; run = run->next)
        fn(run, arg);
    hf_supervisors_started(w, fn, arg);
}

uint64_t hf_runner_hold_until_ns(const hf_worker *w)
{
    return w->runner->spawn_hold_until_ns;
}

bool hf_runner_must_return(const hf_worker *w)
{
    return w->runner->lead.has_job;
}

void hf_runner_expect(hf_worker *w)
{
    hf_leader_expect(w);
}

void hf_runner_turned(hf_worker *w, bool idle)
{
    hf_leader_turned(w, idle);
}

/* ---- the start and the end ---- */

static void on_minder(bool ready, void *arg)
{
    hf_worker *w = arg;
    hf_report_text(w, ready ? HF_LOG_INFO : HF_LOG_ERROR,
                   ready ? "the minder is back"
                         : "the minder is away: no program is started",
                   NULL, NULL);
    w->turn_due = w->turn_due || ready;
}

hf_err hf_runner_open(hf_worker *w)
{
    w->runner = calloc(1, sizeof *w->runner);
    if (w->runner == NULL)
        return HF_NOMEM;
    w->runner->lead.wakeup = -1;
    return HF_OK;
}

hf_err hf_runner_start(hf_worker *w, void (*returned)(void *arg),
                       void (*returned_here)(hf_worker *w))
{
    hf_runner *r = w->runner;
    hf_err err = HF_OK;
    if (w->has_programs && hf_children_are_ignored())
        return hf_say(w->detail, HF_CONFIG,
                      "SIGCHLD is ignored in this process, so it would not learn how its "
                      "programs end");
    if (w->has_programs) {
        hf_groups_opts groups = {.minder_path = w->minder,
                                 .kill_grace_ms = w->opts.kill_grace_ms,
                                 .cgroup = w->opts.cgroup,
                                 .on_ready = on_minder,
                                 .arg = w};
        hf_programs_opts opts = {.on_line = hf_run_on_line,
                                 .on_output = hf_notes_on_output,
                                 .on_update = hf_notes_on_update,
                                 .on_denied = hf_run_on_denied,
                                 .arg = w};
        err = hf_groups_new(&r->groups, &w->loop, &groups, w->detail);
        if (err == HF_OK)
            err = hf_programs_new(&r->programs, &w->loop, r->groups, &opts);
        if (err == HF_OK)
            err = hf_supervisors_start(w, r->groups);
    }
    if (err == HF_OK)
        err = hf_threads_new(&r->threads, w->opts.concurrency, work_on, returned, w);
    if (err == HF_OK)
        err = hf_leader_open(w, returned_here);
    return err;
}

void hf_runner_loop(hf_worker *w)
{
    hf_leader_run(w);
}

void hf_runner_close(hf_worker *w)
{
    hf_programs *programs = w->runner->programs;
    hf_groups *groups = w->runner->groups;
    w->runner->programs = NULL;
    w->runner->groups = NULL;
    hf_programs_close(programs, NULL, NULL);
    hf_supervisors_close(w);
    hf_groups_close(groups);
}

void hf_runner_join(hf_worker *w)
{
    hf_run_list left = {.n = 0};
    if (w->runner->threads != NULL) {
        hf_threads_join(w->runner->threads);
        hf_threads_collect(w->runner->threads, &left);
    }
    for (hf_run *run; (run = hf_run_pop(&left)) != NULL;)
        hf_run_forget(run);
}

void hf_runner_free(hf_worker *w)
{
    if (w->runner == NULL)
        return;
    hf_threads_free(w->runner->threads);
    hf_leader_close(w);
    hf_supervisors_free(w);
    free(w->runner);
    w->runner = NULL;
}

void hf_runner_stop(hf_worker *w)
{
    release_waiting(w);
    hf_launcher_decide(w);
    hf_supervisors_stop(w);
    ask_all(w);
}

bool hf_runner_is_tidy(const hf_worker *w)
{
    return !hf_supervisors_alive(w);
}

void hf_runner_forget(hf_worker *w)
{
    hf_run_list *lists[] = {&w->runner->confirming, &w->runner->waiting,
                            &w->runner->killed_outside};
    for (size_t i = 0; i < HF_COUNT(lists); i++)
        for (hf_run *run; (run = hf_run_pop(lists[i])) != NULL;)
            hf_run_forget(run);
}
