/* run.c - the life of one held job, from the claim to the answer to its verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/core.h"

/* ---- lists ---- */

void hf_run_push(hf_run_list *list, hf_run *run)
{
    run->next = NULL;
    run->prev = list->tail;
    if (list->tail != NULL)
        list->tail->next = run;
    else
        list->head = run;
    list->tail = run;
    list->n++;
}

void hf_run_push_front(hf_run_list *list, hf_run *run)
{
    run->prev = NULL;
    run->next = list->head;
    if (list->head != NULL)
        list->head->prev = run;
    else
        list->tail = run;
    list->head = run;
    list->n++;
}

void hf_run_remove(hf_run_list *list, hf_run *run)
{
    if (run->prev != NULL)
        run->prev->next = run->next;
    else
        list->head = run->next;
    if (run->next != NULL)
        run->next->prev = run->prev;
    else
        list->tail = run->prev;
    run->next = run->prev = NULL;
    list->n--;
}

hf_run *hf_run_pop(hf_run_list *list)
{
    hf_run *run = list->head;
    if (run != NULL)
        hf_run_remove(list, run);
    return run;
}

/* ---- making and freeing ---- */

static hf_handler *find_handler(const hf_worker *w, const char *type)
{
    hf_handler *handler = hf_handlers_find(w->handlers, w->n_handlers, type);
    return handler != NULL ? handler : hf_handlers_find(w->handlers, w->n_handlers, "*");
}

void hf_run_choose(hf_run *run)
{
    hf_handler_unref(run->handler);
    run->handler = hf_handler_ref(find_handler(run->worker, run->record.type));
    if (run->handler != NULL)
        run->timeout_ms = run->record.timeout_ms != 0 ? run->record.timeout_ms
                                                      : run->handler->timeout_ms;
}

/* NULL: out of memory; nobody renews the job's lock, and it ends. */
hf_run *hf_run_new(hf_served *served, const hf_claimed_job *job, hf_bytes fence,
                   int64_t now_ms)
{
    size_t id_room = job->id.len + 1;
    hf_run *run = calloc(1, sizeof *run + id_room + job->record.len + 1);
    if (run == NULL)
        return NULL;
    hf_worker *w = served->worker;
    run->worker = w;
    run->served = served;
    memcpy(run->id, job->id.ptr, job->id.len);
    char *record = run->id + id_room;
    memcpy(record, job->record.ptr, job->record.len);
    snprintf(run->fence, sizeof run->fence, "%.*s", (int)fence.len,
             (const char *)fence.ptr);
    run->due_ms = job->due_ms;
    run->suspect = w->opts.poison > 1 && job->crashes + 1 >= w->opts.poison;
    run->claimed_ns = hf_boot_ns();
    int64_t waited = now_ms - job->due_ms;
    run->wait_ms = waited > 0 ? waited : 0;
    hf_err err = hf_record_read(&run->record, (hf_bytes){record, job->record.len});
    if (err == HF_NOMEM) {
        free(run);
        return NULL;
    }
    if (err == HF_OK)
        hf_run_choose(run);
    else
        run->reason = "record"; /* nobody can run it */
    served->runs++;
    return run;
}

void hf_run_free(hf_run *run)
{
    hf_leases_forget(run);
    hf_program_free(atomic_load(&run->process));
    hf_record_done(&run->record);
    hf_handler_unref(run->handler);
    run->served->runs--;
    free(run->error);
    free(run);
}

hf_run *hf_run_shadow(hf_run *run)
{
    hf_run *shadow = calloc(1, sizeof *shadow + strlen(run->id) + 1);
    if (shadow == NULL)
        return NULL;
    shadow->worker = run->worker;
    shadow->served = run->served;
    shadow->served->runs++;
    shadow->shadow_of = run;
    shadow->started = true;
    shadow->due_ms = run->due_ms;
    memcpy(shadow->fence, run->fence, sizeof shadow->fence);
    memcpy(shadow->id, run->id, strlen(run->id) + 1);
    return shadow;
}

void hf_run_put_back(hf_worker *w, hf_run *run, int64_t delay_ms)
{
    run->delay_ms = delay_ms;
    hf_run_settle(w, run, HF_OP_RELEASE);
}

/* ---- claimed ---- */

/* A rolling deploy must not bury jobs: one that nobody here takes goes back for a while,
 * until it is an hour old. */
static void no_handler(hf_worker *w, hf_run *run)
{
    char text[HF_ID_SIZE + HF_WORKER_ID_SIZE + 32];
    snprintf(text, sizeof text, "no handler for type '%s' on %s", run->record.type,
             w->id);
    hf_run_set_text(run, text, strlen(text));
    /* Each time it was put back it became due anew. */
    int64_t waited_ms = run->record.refused_ms > 0
                            ? hf_clock_now(w) - run->record.refused_ms
                            : run->wait_ms;
    if (waited_ms >= HF_NO_HANDLER_END_MS) {
        run->reason = "type";
        hf_run_settle(w, run, HF_OP_BURY);
    } else {
        hf_run_put_back(w, run, HF_NO_HANDLER_MS);
    }
    hf_report_run(w, run, run->op == HF_OP_BURY ? "dead" : "no_handler");
}

void hf_run_take(hf_worker *w, hf_run *run)
{
    if (run->reason != NULL) {
        hf_run_set_text(run, "its record cannot be read",
                        strlen("its record cannot be read"));
        hf_run_settle(w, run, HF_OP_BURY);
        hf_report_run(w, run, "dead");
    } else if (hf_lease_lost(run->lease) || w->phase != HF_SERVING ||
               hf_queue_is(run->served->state, HF_Q_GONE)) {
        hf_run_release(w, run);
    } else if (atomic_load(&run->cancelled)) {
        hf_run_cancel(w, run);
    } else if (run->handler == NULL) {
        no_handler(w, run);
    } else {
        run->state = HF_WAITING;
        hf_run_push(&w->waiting, run);
    }
}

/* ---- verdicts ---- */

void hf_run_settle(hf_worker *w, hf_run *run, hf_verdict_op op)
{
    HF_ASSERT(run->state != HF_SETTLING);
    run->state = HF_SETTLING;
    run->op = op;
    w->settling++;
    hf_verdict_add(w, run);
}

void hf_run_release(hf_worker *w, hf_run *run)
{
    run->released = true;
    free(run->error);
    run->error = NULL;
    run->delay_ms = 0;
    hf_run_settle(w, run, HF_OP_RELEASE);
}

/* There is no verdict for it: what is marked is removed by whatever gives it back. */
void hf_run_cancel(hf_worker *w, hf_run *run)
{
    hf_run_release(w, run);
    hf_report_run(w, run, "cancelled");
}

static uint32_t attempts_allowed(const hf_worker *w, const hf_run *run)
{
    if (run->record.max_attempts != 0)
        return run->record.max_attempts;
    if (run->handler->max_attempts != 0)
        return run->handler->max_attempts;
    return w->opts.max_attempts;
}

static void settle_failed(hf_worker *w, hf_run *run)
{
    if (run->error == NULL)
        hf_run_set_text(run, "failed", strlen("failed"));
    if (run->verdict == HF_VERDICT_DEAD) {
        run->reason = "handler";
        hf_run_settle(w, run, HF_OP_BURY);
    } else if (run->record.attempts + 1 >= attempts_allowed(w, run)) {
        run->reason = "attempts";
        hf_run_settle(w, run, HF_OP_BURY);
    } else {
        if (!run->has_retry_in)
            run->delay_ms = hf_backoff_ms(&w->backoff, run->record.attempts + 1, &w->rng);
        hf_run_settle(w, run, HF_OP_RETRY);
    }
    hf_report_run(w, run, run->op == HF_OP_RETRY ? "retry" : "dead");
}

/* The handler has returned, or its program is gone. What is LOST is given back with the
 * token it had: refused if the job has passed on, and at once in the line again if it has
 * not. */
void hf_run_finish(hf_worker *w, hf_run *run)
{
    if (atomic_load(&run->lost) || hf_lease_lost(run->lease)) {
        hf_run_release(w, run);
        if (!run->lost_told) {
            run->lost_told = true;
            hf_report_run(w, run, "lost");
        }
        return;
    }
    if (atomic_load(&run->timed_out)) {
        char text[64];
        snprintf(text, sizeof text, "time-out after %u ms", run->timeout_ms);
        if (run->verdict == HF_VERDICT_DONE || run->error == NULL)
            hf_run_set_text(run, text, strlen(text));
        run->verdict = HF_VERDICT_RETRY;
    }
    if (run->verdict == HF_VERDICT_DONE) {
        hf_run_settle(w, run, HF_OP_COMPLETE);
        hf_report_run(w, run, "done"); /* also if it was to be cancelled: it was faster */
    } else if (atomic_load(&run->cancelled)) {
        hf_run_cancel(w, run);
    } else if (run->released) {
        hf_run_release(w, run);
        hf_report_run(w, run, "released");
    } else {
        settle_failed(w, run);
    }
}
