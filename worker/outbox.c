/* outbox.c - verdicts on their way to Redis, until it has answered each.
 *
 * They leave in one script call for each queue and operation; while it is under way
 * others gather, so batches grow as load grows. A verdict whose answer never came is sent
 * again as such (`resent`): `lost` then probably means that the first sending was
 * executed. The watchdog renews a job until its verdict is answered; a renewal that says
 * `lost` after the verdict was sent is the verdict's own doing and is ignored (lose() of
 * runner/runner.c).
 *
 * With wait_replicas a verdict counts only when replicas have it. If another server takes
 * over before that, it is sent there, as one whose answer never came. The next batch of
 * its queue and operation waits meanwhile.
 */
#include "worker/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/past.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/result.h"
#include "worker/run/run.h"
#include "worker/run/trace.h"
#include "worker/runs.h"
#include "worker/worker.h"

enum {
    PATIENCE_MS = 3600000,   /* a job that no live worker can handle is dead after this */
    FEW = 200,               /* verdicts that leave without an allocation */
    REWRITTEN_MAX = 1 << 20, /* bytes */
    GATHER_MS = 1            /* that a verdict may wait for others */
};

#define GIVEN_UP UINT64_MAX /* the notes of a run that is lost, or for want of memory */

typedef struct outbox {
    hf_run_list fresh[HF_OPS], resent[HF_OPS]; /* to send, by operation */
    bool sending[HF_OPS];                      /* a batch of them is under way */
    uint64_t sent[HF_OPS];                     /* the flush that has sent it */
} outbox;

typedef struct hf_outbox {
    outbox boxes[HF_SLOTS_MAX]; /* of the queues, by slot */
    uint64_t flushes;
    uint64_t gather_until_ns; /* 0: nothing waits for others */
} hf_outbox;

static outbox *outbox_of(const hf_served *served)
{
    return &served->worker->outbox->boxes[served->slot];
}

/* ---- one exit: the end of a run; that of a job is queue/lua/steps/leaving.lua ---- */

static void end_run(hf_run *run, hf_verdict_op op)
{
    outbox *box = outbox_of(run->served);
    HF_ASSERT(run->state != HF_DECIDED);
    run->state = HF_DECIDED;
    run->op = op;
    run->worker->decided++;
    hf_run_push(run->resent ? &box->resent[op] : &box->fresh[op], run);
}

void hf_outbox_put_back(hf_run *run, int64_t delay_ms)
{
    run->delay_ms = delay_ms;
    end_run(run, HF_OP_RELEASE);
}

void hf_outbox_back_off(hf_run *run, int64_t delay_ms, const char *text)
{
    hf_queue_refund(run->served, 1);
    hf_run_set_text(run, text, strlen(text));
    run->waits = true;
    hf_outbox_put_back(run, delay_ms);
    hf_run_report(run->worker, run, "put_back");
}

void hf_outbox_unreadable(hf_run *run)
{
    char text[128];
    snprintf(text, sizeof text, "its record cannot be read: %s", run->record.fault);
    hf_run_set_text(run, text, strlen(text));
    end_run(run, HF_OP_BURY);
    hf_run_report(run->worker, run, "dead");
}

/* A rolling deploy must not bury jobs: one that this worker cannot take goes back. Redis
 * decides for how long, and whether it is dead (refuse.lua). */
void hf_outbox_no_handler(hf_run *run)
{
    hf_worker *w = run->worker;
    char text[HF_ID_SIZE + HF_WORKER_ID_SIZE + 32];
    snprintf(text, sizeof text, "no handler for type '%s' on %s", run->record.type,
             w->id);
    hf_run_set_text(run, text, strlen(text));
    end_run(run, HF_OP_REFUSE);
}

void hf_outbox_release(hf_run *run)
{
    run->released = true;
    free(run->error);
    run->error = NULL;
    run->delay_ms = 0;
    end_run(run, HF_OP_RELEASE);
}

/* It has no verdict of its own: a job that is marked is removed when it is given back. */
void hf_outbox_cancel(hf_run *run)
{
    hf_outbox_release(run);
    hf_run_report(run->worker, run, "cancelled");
}

static const hf_backoff *backoff_of(const hf_run *run)
{
    const hf_handler *handler = run->handler;
    return handler != NULL && handler->has_backoff ? &handler->backoff
                                                   : &run->worker->backoff;
}

static void end_failed(hf_run *run)
{
    hf_worker *w = run->worker;
    if (run->error == NULL)
        hf_run_set_text(run, "failed", strlen("failed"));
    if (run->verdict == HF_VERDICT_DEAD) {
        run->reason = "handler";
        end_run(run, HF_OP_BURY);
    } else if (run->record.attempts + 1 >= hf_run_max_attempts(run)) {
        run->reason = "attempts";
        end_run(run, HF_OP_BURY);
    } else {
        if (!run->has_retry_in)
            run->delay_ms =
                hf_backoff_ms(backoff_of(run), run->record.attempts + 1, &w->rng);
        end_run(run, HF_OP_RETRY);
    }
    hf_run_report(run->worker, run, run->op == HF_OP_RETRY ? "retry" : "dead");
}

/* Whether its handler has ended the run like this, and nothing overrode it. */
static bool has_said(const hf_run *run, hf_verdict verdict)
{
    return run->verdict == verdict && !run->released;
}

/* Its handler gives it back or does not want it: no attempt is counted. */
static void end_given_up(hf_run *run)
{
    end_run(run, HF_OP_RELEASE);
    hf_run_report(run->worker, run,
                  run->verdict == HF_VERDICT_CANCEL ? "cancelled" : "released");
}

/* A LOST job is released with its old token: Redis refuses that if the job has passed on;
 * otherwise the job is ready again at once. False: it is not lost. */
static bool end_lost(hf_run *run)
{
    if (!atomic_load(&run->lost) && !hf_lease_lost(run->lease))
        return false;
    hf_outbox_release(run);
    if (!run->lost_logged) {
        run->lost_logged = true;
        hf_run_report(run->worker, run, "lost");
    }
    return true;
}

/* Redis counts it, and decides whether the job is dead (crash.lua). */
void hf_outbox_crashed(hf_run *run, const char *text)
{
    if (end_lost(run))
        return;
    if (atomic_load(&run->cancelled)) {
        hf_outbox_cancel(run);
        return;
    }
    hf_run_set_text(run, text, strlen(text));
    end_run(run, HF_OP_CRASH);
    hf_run_report(run->worker, run, "crashed");
}

void hf_outbox_neighbour(hf_run *run, const char *id)
{
    char text[HF_ID_SIZE + 16];
    if (end_lost(run))
        return;
    if (atomic_load(&run->cancelled)) {
        hf_outbox_cancel(run);
        return;
    }
    snprintf(text, sizeof text, "neighbour of %s", id);
    hf_run_set_text(run, text, strlen(text));
    run->released = run->neighbour = true;
    end_run(run, HF_OP_RELEASE);
    hf_run_report(run->worker, run, "released");
}

/* The handler has returned, or its program is gone. */
void hf_outbox_finish(hf_run *run)
{
    if (end_lost(run))
        return;
    if (atomic_load(&run->timed_out)) {
        char text[64];
        snprintf(text, sizeof text, "time-out after %u ms", run->timeout_ms);
        if (run->verdict == HF_VERDICT_DONE || run->error == NULL)
            hf_run_set_text(run, text, strlen(text));
        run->verdict = HF_VERDICT_RETRY;
    }
    if (run->verdict == HF_VERDICT_DONE) {
        end_run(run, hf_result_keep(run) ? HF_OP_KEEP : HF_OP_COMPLETE);
        hf_run_report(run->worker, run,
                      "done"); /* also if it was to be cancelled: it was faster */
    } else if (atomic_load(&run->cancelled)) {
        hf_outbox_cancel(run);
    } else if (run->released) {
        hf_outbox_release(run);
        hf_run_report(run->worker, run, "released");
    } else if (run->verdict == HF_VERDICT_RELEASE || run->verdict == HF_VERDICT_CANCEL) {
        end_given_up(run);
    } else {
        end_failed(run);
    }
}

/* ---- to Redis ---- */

typedef struct batch {
    hf_worker *worker;
    hf_served *served;
    hf_site *site; /* that was asked */
    hf_verdict_op op;
    hf_confirm confirm;
    size_t n;
    hf_run *runs[];
} batch;

/* A first sending that finds the lock gone: this worker lost the job and did not know. */
static void on_lost(hf_worker *w, hf_run *run)
{
    if (run->resent || run->lost_logged || run->released)
        return;
    run->lost_logged = true;
    hf_run_report(w, run, "lost");
}

/* Like the counters of the queue, and its history. */
static void count_attempt(const hf_run *run)
{
    if ((run->ended & (HF_PAST_DONE | HF_PAST_FAILED)) != 0)
        hf_counters_attempt(run->served->whole->counters, run->record.type,
                            (uint64_t)run->wait_ms * HF_MS_NS, hf_run_ran_ns(run));
}

/* The end of it. */
static void settle(batch *b)
{
    hf_worker *w = b->worker;
    hf_lease *leases[HF_VERDICTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->runs[i]->lease != NULL)
            leases[n++] = b->runs[i]->lease;
    hf_watchdog_drop_many(w->watchdog, leases, n);
    for (size_t i = 0; i < b->n; i++) {
        hf_past_note(b->runs[i], b->runs[i]->ended);
        count_attempt(b->runs[i]);
        hf_runs_ended(b->runs[i]);
        hf_trace_end(b->runs[i]);
        hf_run_free(b->runs[i]);
    }
    w->decided -= b->n;
    w->in_hand -= b->n;
    free(b);
}

static void send_again(batch *b, bool unsure);

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    batch *b = arg;
    hf_worker *w = b->worker;
    bool moved = b->site != b->served->site;
    outbox_of(b->served)->sending[b->op] = false;
    if (moved && w->phase != HF_ENDED)
        err = HF_UNSURE; /* the new site has to confirm it */
    if (!moved)
        hf_site_confirm_report(b->site, err, detail);
    if (err == HF_UNCONFIRMED) {
        w->unconfirmed += b->n;
        const hf_log_field fields[] = {{.key = "queue", .text = b->served->queue.name},
                                       {.key = "jobs", .number = (int64_t)b->n},
                                       {.key = "all", .number = (int64_t)w->unconfirmed},
                                       {.key = "error", .text = detail}};
        hf_report(w, HF_LOG_WARN, "ended, and not confirmed by replicas", fields,
                  HF_COUNT(fields));
    }
    if (err == HF_UNSURE) {
        send_again(b, true);
        free(b);
    } else {
        settle(b);
    }
    if (err != HF_CLOSED)
        w->turn_due = true; /* a timer may have led here */
}

/* Nothing is lost if a job that did not run, or was stopped, is given back twice. */
static bool has_not_run(const batch *b)
{
    for (size_t i = 0; b->op != HF_OP_REFUSE && i < b->n; i++)
        if (b->op != HF_OP_RELEASE || has_said(b->runs[i], HF_VERDICT_RELEASE) ||
            has_said(b->runs[i], HF_VERDICT_CANCEL))
            return false;
    return true;
}

/* Workers with different types on one queue are no mistake, but each job may come to the
 * wrong one first: it is logged once for each queue. */
static void report_mix(hf_run *run)
{
    hf_worker *w = run->worker;
    const hf_log_field fields[] = {{.key = "queue", .text = run->served->queue.name},
                                   {.key = "type", .text = run->record.type}};
    run->elsewhere = true;
    if (!run->served->whole->logged_mix)
        hf_report(w, HF_LOG_WARN,
                  "a queue has jobs of types that only other workers take", fields,
                  HF_COUNT(fields));
    run->served->whole->logged_mix = true;
}

/* What Redis has decided about a job without a handler here. */
static void report_refused(hf_run *run, hf_err code)
{
    if (code == HF_EXISTS)
        report_mix(run);
    if (code == HF_EXISTS || code == HF_OK)
        hf_run_report(run->worker, run, "no_handler");
}

/* Whether a verdict counts the attempt as failed. */
static bool counts(const hf_run *run)
{
    return run->reason != NULL && run->verdict != HF_VERDICT_DONE;
}

/* For the history, which counts what Redis has counted. One that was sent before and is
 * lost now was probably executed then. */
static unsigned ended_how(const hf_run *run, hf_err code)
{
    if (code == HF_DEAD)
        return HF_PAST_DIED;
    if (code != HF_OK && !run->resent)
        return 0;
    switch (run->op) {
    case HF_OP_COMPLETE:
    case HF_OP_KEEP:
        return HF_PAST_DONE;
    case HF_OP_RETRY:
        return HF_PAST_FAILED;
    case HF_OP_BURY:
        return HF_PAST_DIED | (counts(run) ? HF_PAST_FAILED : 0);
    default:
        return 0;
    }
}

static void on_settled(batch *b, const hf_settled *settled)
{
    hf_worker *w = b->worker;
    for (size_t i = 0; i < b->n; i++) {
        hf_err code = (hf_err)hf_reply_int(hf_reply_at(settled->codes, i));
        if (b->op == HF_OP_REFUSE)
            report_refused(b->runs[i], code);
        if (b->runs[i]->ended == 0) /* it may come again for its replicas */
            b->runs[i]->ended = ended_how(b->runs[i], code);
        if (code == HF_LOST || code == HF_GONE) {
            on_lost(w, b->runs[i]);
        } else if (code == HF_DEAD) {
            b->runs[i]->reason = b->op == HF_OP_CRASH ? "poison" : "type";
            hf_run_report(w, b->runs[i], "dead");
        }
    }
    if (b->site->base.replicas == NULL || has_not_run(b)) {
        settle(b);
        return;
    }
    outbox_of(b->served)->sending[b->op] = true;
    hf_site_confirm(b->site, &b->confirm, on_confirmed, b);
}

/* Not executed, or not known: they go again, in front, those of unknown fate as resent.
 */
static void send_again(batch *b, bool unsure)
{
    for (size_t i = b->n; i-- > 0;) {
        hf_run *run = b->runs[i];
        run->resent = run->resent || unsure;
        hf_run_push_front(run->resent ? &outbox_of(b->served)->resent[b->op]
                                      : &outbox_of(b->served)->fresh[b->op],
                          run);
    }
}

static bool keep_locks(batch *b);

/* The notes of the runs are reported, or Redis refuses them for good. */
static bool is_settled(hf_err err)
{
    return err == HF_OK || err == HF_TOOBIG || hf_err_is(err, HF_ERR_OF_QUEUE);
}

/* What the renewal had no room for goes with the next one. */
static void settle_notes(hf_run *run, hf_err err)
{
    if (err == HF_OK && run->noted != GIVEN_UP)
        hf_notes_answered(run, run->noted);
    else
        hf_notes_settle(run);
}

/* For the locks its answer does not matter: the answers to the verdicts follow. Only a
 * server that did not know the script has not tried it. */
static void on_locks_kept(const hf_answer *answer, void *arg)
{
    batch *b = arg;
    hf_settled settled;
    hf_err err = hf_settled_read(answer, &settled);
    if (settled.now_ms != 0)
        hf_site_clock_read(b->site, settled.now_ms, answer->sent_ns);
    if (err == HF_NOSCRIPT && keep_locks(b))
        return;
    outbox_of(b->served)->sending[b->op] = false;
    for (size_t i = 0; is_settled(err) && i < b->n; i++) {
        settle_notes(b->runs[i], err);
        b->runs[i]->kept_ns = answer->sent_ns;
    }
    send_again(b, false);
    if (err != HF_OK && err != HF_UNSURE && !hf_err_is(err, HF_ERR_AT_ONCE) &&
        hf_queue_refused(b->served, b->site, err, answer))
        hf_queue_apply(b->served, HF_E_OTHER_REFUSED);
    free(b);
}

/* A renewal makes locks again that a step of Redis's clock has ended. The watchdog's own
 * may come after the verdicts, so they wait for this one. It also takes along the
 * unreported notes of the runs. */
static bool keep_locks(batch *b)
{
    hf_worker *w = b->worker;
    hf_site *site = b->served->site;
    hf_renew_item items[HF_VERDICTS_MAX];
    hf_run *runs[HF_VERDICTS_MAX];
    hf_notes_taken taken;
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        b->runs[i]->noted = GIVEN_UP;
        if (!atomic_load(&b->runs[i]->lost)) {
            runs[n] = b->runs[i];
            items[n++] = (hf_renew_item){b->runs[i]->id, b->runs[i]->fence};
        }
    }
    if (n == 0 || !hf_site_ready(site))
        return false;
    hf_notes_take(&taken, runs, n);
    for (size_t i = 0; taken.numbers != NULL && i < n; i++)
        runs[i]->noted = taken.numbers[i];
    hf_renew_args args = {.worker = w->id,
                          .lease_ms = w->opts.lease_ms,
                          .not_after = hf_site_not_after(site),
                          .notes = taken.notes,
                          .n_notes = taken.n_notes};
    bool sent = hf_op_renew(site->base.client, &b->served->queue, &args, items, n, 0,
                            on_locks_kept, b) == HF_OK;
    hf_notes_taken_free(&taken);
    if (sent) {
        b->site = site; /* the queue may have moved since the verdicts were sent */
        outbox_of(b->served)->sending[b->op] = true;
    }
    return sent;
}

/* A job that goes back, or dies, may have an unreported checkpoint. */
static bool has_unreported(const batch *b)
{
    bool ends = b->op == HF_OP_COMPLETE || b->op == HF_OP_KEEP;
    for (size_t i = 0; !ends && i < b->n; i++)
        if (b->runs[i]->stands_in_for == NULL && hf_notes_unreported(b->runs[i]))
            return true;
    return false;
}

/* The watchdog verifies a lease, and has not renewed it yet: its lock may have ended,
 * because Redis's clock was set forward, this is another Redis, or a queue of the worker
 * moved to another node. */
static bool in_doubt(const batch *b)
{
    uint32_t lease_ms = b->worker->opts.lease_ms;
    uint64_t verify_ns = hf_watchdog_verify_ns(b->worker->watchdog);
    if (hf_boot_ns() > verify_ns + lease_ms * HF_MS_NS)
        return false; /* what is held was renewed since */
    for (size_t i = 0; i < b->n; i++) {
        const hf_run *run = b->runs[i];
        uint64_t until_ns = run->lease == NULL ? 0 : hf_lease_deadline_ns(run->lease);
        if (until_ns != 0 && until_ns < hf_lease_deadline(verify_ns, lease_ms) &&
            run->kept_ns < verify_ns)
            return true;
    }
    return false;
}

static void on_answer(const hf_answer *answer, void *arg)
{
    batch *b = arg;
    hf_settled settled;
    hf_err err = hf_settled_read(answer, &settled);
    outbox_of(b->served)->sending[b->op] = false;
    if (settled.now_ms != 0)
        hf_site_clock_read(b->site, settled.now_ms, answer->sent_ns);
    if (err == HF_OK && (settled.n == 0 || settled.n == b->n)) {
        on_settled(b, &settled);
        return;
    }
    /* HF_DEADLINE: it did nothing. It was late, or the clock was set. */
    if (err == HF_DEADLINE && keep_locks(b))
        return;
    send_again(b, err == HF_UNSURE || err == HF_PROTO || err == HF_OK);
    if (err != HF_UNSURE && !hf_err_is(err, HF_ERR_AT_ONCE) &&
        hf_queue_refused(b->served, b->site, err == HF_OK ? HF_PROTO : err, answer))
        hf_queue_apply(b->served, HF_E_OTHER_REFUSED);
    free(b);
}

/* It goes back to where it was in line. */
static bool keeps_place(const hf_run *run)
{
    return run->op == HF_OP_CRASH ||
           (run->op == HF_OP_RELEASE && !run->waits &&
            (run->neighbour ||
             (run->error == NULL && !has_said(run, HF_VERDICT_RELEASE))));
}

static void fill(batch *b, hf_verdict_item *items)
{
    for (size_t i = 0; i < b->n; i++) {
        const hf_run *run = b->runs[i];
        items[i] = (hf_verdict_item){
            .id = run->id,
            .fence = run->fence,
            .resent = run->resent,
            .counts = counts(run),
            .started = run->started || atomic_load(&run->begun_ns) != 0,
            .cancels = has_said(run, HF_VERDICT_CANCEL),
            .later = has_said(run, HF_VERDICT_RELEASE),
            .neighbour = run->neighbour,
            .waits = run->waits,
            .alone = run->shared && atomic_load(&run->timed_out),
            .due_ms = keeps_place(run) ? run->due_ms : run->delay_ms,
            .error = {run->error == NULL ? "" : run->error, 0},
            .reason = run->reason,
            .words = run->words,
            .ran_ms = hf_run_ran_ms(run),
            .leaving = hf_record_leaving(&run->record),
        };
        while (((const char *)items[i].error.ptr)[items[i].error.len] != '\0')
            items[i].error.len++;
    }
}

/* The resent ones first, as the script wants them. */
static batch *gather(hf_worker *w, hf_served *served, hf_verdict_op op)
{
    size_t n = outbox_of(served)->resent[op].n + outbox_of(served)->fresh[op].n,
           bytes = 0;
    size_t most = op == HF_OP_COMPLETE ? HF_VERDICTS_MAX : HF_REWRITES_MAX;
    if (n > most)
        n = most;
    batch *b = malloc(sizeof *b + n * sizeof(hf_run *));
    if (b == NULL)
        return NULL;
    *b = (batch){.worker = w, .served = served, .site = served->site, .op = op};
    while (b->n < n && bytes < REWRITTEN_MAX) {
        hf_run *run = hf_run_pop(&outbox_of(served)->resent[op]);
        if (run == NULL)
            run = hf_run_pop(&outbox_of(served)->fresh[op]);
        if (op != HF_OP_COMPLETE)
            bytes += op == HF_OP_KEEP ? run->words.len : run->record.payload.len;
        b->runs[b->n++] = run;
    }
    return b;
}

static bool flush(hf_worker *w, hf_served *served, hf_verdict_op op)
{
    hf_verdict_item few[FEW], *items = few;
    batch *b = gather(w, served, op);
    if (b == NULL)
        return false;
    int64_t not_after = hf_site_not_after(served->site); /* a later step is LATE */
    if ((has_unreported(b) || in_doubt(b)) && keep_locks(b)) {
        outbox_of(served)->sent[op] = w->outbox->flushes;
        return true;
    }
    if (b->n > HF_COUNT(few))
        items = malloc(b->n * sizeof *items);
    hf_err err = HF_NOMEM;
    if (items != NULL) {
        fill(b, items);
        hf_verdict_args args = {.worker = w->id,
                                .not_after = not_after,
                                .dead_max = w->opts.dead_max,
                                .dead_age_ms = w->opts.dead_age_ms,
                                .poison = w->opts.poison,
                                .keep_max = served->whole->limits.keep_max,
                                .keep_bytes = served->whole->limits.keep_bytes,
                                .patience_ms = PATIENCE_MS};
        err = hf_op_verdict(b->site->base.client, &served->queue, op, &args, items, b->n,
                            on_answer, b);
    }
    if (items != few)
        free(items);
    if (err == HF_OK) {
        outbox_of(served)->sending[op] = true;
        outbox_of(served)->sent[op] = w->outbox->flushes;
        return true;
    }
    send_again(b, false);
    free(b);
    hf_site_pause(served->site, err);
    return false;
}

/* The members of a queue at one site send together what has gathered, and then wait for
 * all answers: else each would send a few. */
static bool gathers(const hf_served *served, hf_verdict_op op)
{
    const hf_served *m = served->whole->members;
    for (; m != NULL; m = m->next_member)
        if (outbox_of(m)->sending[op] && m->site == served->site &&
            outbox_of(m)->sent[op] != served->worker->outbox->flushes)
            return true;
    return false;
}

void hf_outbox_gather(hf_worker *w)
{
    if (w->outbox->gather_until_ns == 0 && w->phase == HF_SERVING)
        w->outbox->gather_until_ns = hf_boot_ns() + GATHER_MS * HF_MS_NS;
}

bool hf_outbox_gathers(const hf_worker *w)
{
    return w->outbox->gather_until_ns != 0;
}

bool hf_outbox_flush(hf_worker *w)
{
    bool sent = false;
    if (hf_outbox_gathers(w) && w->phase == HF_SERVING &&
        hf_boot_ns() < w->outbox->gather_until_ns)
        return false;
    w->outbox->gather_until_ns = 0;
    w->outbox->flushes++;
    for (size_t i = 0, n = hf_queues_slots(w); i < n; i++) {
        hf_served *served = hf_queues_slot(w, i);
        const outbox *box = &w->outbox->boxes[i];
        for (hf_verdict_op op = HF_OP_COMPLETE; op < HF_OPS; op++)
            if (box->fresh[op].n + box->resent[op].n > 0 && !gathers(served, op) &&
                served->backoff.until_ns == 0 && hf_site_can_ask(served->site))
                sent = flush(w, served, op) || sent;
    }
    return sent;
}

/* ---- for the other parts ---- */

hf_err hf_outbox_open(hf_worker *w)
{
    w->outbox = calloc(1, sizeof *w->outbox);
    return w->outbox == NULL ? HF_NOMEM : HF_OK;
}

void hf_outbox_close(hf_worker *w)
{
    free(w->outbox);
    w->outbox = NULL;
}

void hf_outbox_forget(hf_worker *w)
{
    for (size_t i = 0; i < HF_SLOTS_MAX; i++)
        for (hf_verdict_op op = HF_OP_COMPLETE; op < HF_OPS; op++) {
            outbox *box = &w->outbox->boxes[i];
            for (hf_run *run; (run = hf_run_pop(&box->fresh[op])) != NULL;)
                hf_run_forget(run);
            for (hf_run *run; (run = hf_run_pop(&box->resent[op])) != NULL;)
                hf_run_forget(run);
        }
}
