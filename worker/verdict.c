/* verdict.c - verdicts on their way to Redis, until it has answered each.
 *
 * They leave in one script call for each queue and operation; while it is under way
 * others gather, so batches grow as load grows. A verdict whose answer never came is sent
 * again as such (`resent`): `lost` then probably means that the first sending was
 * executed. The watchdog renews a job until its verdict is answered; a renewal that says
 * `lost` after the verdict was sent is the verdict's own doing and is ignored (leases.c).
 */
#include <stdlib.h>

#include "base/base.h"
#include "worker/core.h"

enum { NOT_NOW_MS = 100, REWRITTEN_MAX = 1 << 20 /* bytes */ };

typedef struct batch {
    hf_worker *worker;
    hf_served *served;
    hf_verdict_op op;
    size_t n;
    hf_run *runs[];
} batch;

void hf_verdict_add(hf_worker *w, hf_run *run)
{
    hf_served *served = run->served;
    (void)w;
    hf_run_push(run->resent ? &served->resent[run->op] : &served->fresh[run->op], run);
}

/* A first sending that finds the lock gone: this worker lost the job and did not know. */
static void on_lost(hf_worker *w, hf_run *run)
{
    if (run->resent || run->lost_told || run->released)
        return;
    run->lost_told = true;
    hf_report_run(w, run, "lost");
}

static void on_settled(batch *b, const hf_settled *settled)
{
    hf_worker *w = b->worker;
    hf_lease *leases[HF_VERDICTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        hf_err code = (hf_err)hf_reply_int(hf_reply_at(settled->codes, i));
        if (code == HF_LOST || code == HF_GONE)
            on_lost(w, b->runs[i]);
        if (b->runs[i]->lease != NULL)
            leases[n++] = b->runs[i]->lease;
    }
    hf_watchdog_drop_many(w->watchdog, leases, n);
    for (size_t i = 0; i < b->n; i++)
        hf_run_free(b->runs[i]);
    w->settling -= b->n;
    w->held -= b->n;
}

/* Not executed, or not known: they go again, in front, those of unknown fate as resent.
 */
static void send_again(batch *b, bool unsure)
{
    for (size_t i = b->n; i-- > 0;) {
        hf_run *run = b->runs[i];
        run->resent = run->resent || unsure;
        hf_run_push_front(
            run->resent ? &b->served->resent[b->op] : &b->served->fresh[b->op], run);
    }
}

static bool keep_locks(batch *b);

/* Whatever it says, the verdicts' own answers tell. Only a server that did not know the
 * script has not tried it. */
static void on_locks_kept(const hf_answer *answer, void *arg)
{
    batch *b = arg;
    if (answer->err == HF_NOSCRIPT && keep_locks(b))
        return;
    b->served->sending[b->op] = false;
    send_again(b, false);
    free(b);
}

/* Redis's clock may have been set forward, and have ended the locks of these jobs. A
 * renewal makes them again; the watchdog's own may come after the verdicts, so they wait
 * for this one. */
static bool keep_locks(batch *b)
{
    hf_worker *w = b->worker;
    hf_renew_item items[HF_VERDICTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (!atomic_load(&b->runs[i]->lost))
            items[n++] = (hf_renew_item){b->runs[i]->id, b->runs[i]->fence};
    hf_renew_args args = {.worker = w->id,
                          .lease_ms = w->opts.lease_ms,
                          .not_after = hf_clock_not_after(w)};
    uint32_t judged_ms;
    args.clock = hf_clock_shown(w, &judged_ms);
    if (n == 0 || !hf_client_ready(w->client) ||
        hf_op_renew(w->client, &b->served->queue, &args, items, n, 0, on_locks_kept, b) !=
            HF_OK)
        return false;
    b->served->sending[b->op] = true;
    return true;
}

static void on_answer(const hf_answer *answer, void *arg)
{
    batch *b = arg;
    hf_worker *w = b->worker;
    hf_settled settled;
    hf_err err = hf_settled_read(answer, &settled);
    b->served->sending[b->op] = false;
    if (settled.now_ms != 0)
        hf_clock_read(w, settled.now_ms, answer->sent_ns);
    if (err == HF_OK && (settled.n == 0 || settled.n == b->n)) {
        on_settled(b, &settled);
    } else {
        /* HF_DEADLINE: it did nothing. It lay somewhere for too long, or the clock was
         * set.
         */
        if (err == HF_DEADLINE && keep_locks(b))
            return;
        send_again(b, err == HF_UNSURE || err == HF_PROTO || err == HF_OK);
        if (err != HF_UNSURE && err != HF_NOSCRIPT && err != HF_DEADLINE &&
            hf_queue_refused(b->served, err == HF_OK ? HF_PROTO : err, answer->detail))
            hf_queue_on(b->served, HF_E_HELD);
    }
    free(b);
}

static void fill(batch *b, hf_verdict_item *items)
{
    for (size_t i = 0; i < b->n; i++) {
        const hf_run *run = b->runs[i];
        bool placed = run->op == HF_OP_RELEASE && run->error == NULL;
        items[i] = (hf_verdict_item){
            .id = run->id,
            .fence = run->fence,
            .resent = run->resent,
            .counts = run->reason != NULL && run->verdict != HF_VERDICT_DONE,
            .started = run->started || atomic_load(&run->begun_ns) != 0,
            .due_ms = placed ? run->due_ms : run->delay_ms,
            .error = {run->error == NULL ? "" : run->error, 0},
            .reason = run->reason,
        };
        while (((const char *)items[i].error.ptr)[items[i].error.len] != '\0')
            items[i].error.len++;
    }
}

/* The resent ones first, as the script wants them. */
static batch *gather(hf_worker *w, hf_served *served, hf_verdict_op op)
{
    size_t n = served->resent[op].n + served->fresh[op].n, bytes = 0;
    size_t most = op == HF_OP_COMPLETE ? HF_VERDICTS_MAX : HF_REWRITES_MAX;
    if (n > most)
        n = most;
    batch *b = malloc(sizeof *b + n * sizeof(hf_run *));
    if (b == NULL)
        return NULL;
    *b = (batch){.worker = w, .served = served, .op = op};
    while (b->n < n && bytes < REWRITTEN_MAX) {
        hf_run *run = hf_run_pop(&served->resent[op]);
        if (run == NULL)
            run = hf_run_pop(&served->fresh[op]);
        bytes += op == HF_OP_COMPLETE ? 0 : run->record.payload.len;
        b->runs[b->n++] = run;
    }
    return b;
}

static bool flush(hf_worker *w, hf_served *served, hf_verdict_op op)
{
    hf_verdict_item few[HF_CLAIM_BATCH], *items = few;
    batch *b = gather(w, served, op);
    if (b == NULL)
        return false;
    if (b->n > HF_COUNT(few))
        items = malloc(b->n * sizeof *items);
    hf_err err = HF_NOMEM;
    if (items != NULL) {
        fill(b, items);
        hf_verdict_args args = {.worker = w->id,
                                .not_after = hf_clock_not_after(w),
                                .dead_max = w->opts.dead_max,
                                .dead_age_ms = w->opts.dead_age_ms};
        err = hf_op_verdict(w->client, &served->queue, op, &args, items, b->n, on_answer,
                            b);
    }
    if (items != few)
        free(items);
    if (err == HF_OK) {
        served->sending[op] = true;
        return true;
    }
    send_again(b, false);
    free(b);
    hf_life_pause(w, NOT_NOW_MS);
    return false;
}

bool hf_verdict_flush(hf_worker *w)
{
    bool sent = false;
    if (!hf_client_ready(w->client) || w->pause_until_ns != 0)
        return false;
    for (size_t i = 0; i < w->n_slots; i++)
        for (hf_verdict_op op = HF_OP_COMPLETE; op <= HF_OP_BURY; op++) {
            hf_served *served = &w->slots[i];
            if (served->hold_until_ns == 0 &&
                served->fresh[op].n + served->resent[op].n > 0 && !served->sending[op])
                sent = flush(w, served, op) || sent;
        }
    return sent;
}
