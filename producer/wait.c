/* wait.c - calls that wait for their answers, from any thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/structs.h"
#include "producer/handin.h"

enum {
    DEADLINE_MAX_MS = 600000,
    AGAIN_MS = 1, /* how long a request may wait for company; see requests.c */
    LATE_MS = 250 /* how long after its deadline a call waits for its answer */
};
#define NUMBER_MAX (UINT64_C(1) << 53) /* what Redis's Lua counts exactly */

/* ---- a call ---- */

/* What the engine made of it. The engine answers at the deadline; a little more is for
 * the way back, and ends the waiting even if a callback holds up the producer's thread.
 */
static hf_err wait_for_answers(hf_handin *c, char *detail)
{
    hf_waiter *waiter = c->waiter;
    const uint64_t until_ns = c->in.deadline_ns + LATE_MS * HF_MS_NS;
    waiter->run.submits = c->ready;
    waiter->run.again_ms = c->ready ? AGAIN_MS : 0;
    if (!hf_run_loop_await(&c->producer->run, &waiter->run, until_ns))
        return hf_say(detail, HF_UNSURE,
                      "the producer's thread is held up by a callback");
    hf_err err = waiter->worst;
    if (err != HF_OK)
        (void)hf_say(detail, err, "%s", waiter->detail);
    hf_waiter_free(waiter);
    return err;
}

static hf_err say_refusal(hf_err err, char *detail)
{
    if (err == HF_INVALID)
        return hf_say(detail, err,
                      "expected only calls with numbers or only calls without "
                      "them on one producer (with `run`: with numbers), found both");
    return hf_say(detail, err, "%s", hf_err_text(err));
}

/* The caller's arrays as ours: the same, or copies where a struct has another size. */
typedef struct arrays {
    const hf_job *jobs;
    hf_enqueue_result *results; /* NULL: the caller wants none */
    size_t n;
    void *jobs_copy, *theirs; /* theirs: the caller's results, if ours are a copy */
} arrays;

static hf_err open_arrays(arrays *a, const hf_job *jobs, hf_enqueue_result *results,
                          size_t n, char *detail)
{
    const void *ours = NULL;
    *a = (arrays){.jobs = jobs, .results = results, .n = n};
    if (jobs == NULL || n < 1 || n > HF_BATCH_JOBS)
        return HF_OK; /* hf_check_jobs() refuses it */
    hf_err err =
        hf_structs_in(&ours, &a->jobs_copy, sizeof *jobs, jobs, n, "hf_job", detail);
    a->jobs = ours;
    if (err == HF_OK && results != NULL)
        err = hf_struct_can_fill(results, "hf_enqueue_result", detail);
    if (err == HF_OK && results != NULL && results->size != sizeof *results) {
        a->theirs = results;
        a->results = calloc(n, sizeof *results);
        err = a->results == NULL ? HF_NOMEM : HF_OK;
    }
    if (err == HF_NOMEM)
        (void)hf_say(detail, err, "%s", hf_err_text(err));
    return err;
}

/* Until it is known better, nothing is known of any job. */
static void begin_results(arrays *a)
{
    for (size_t i = 0; a->results != NULL && i < a->n; i++) {
        a->results[i].size = sizeof *a->results;
        a->results[i].err = HF_UNSURE;
    }
}

static hf_err close_arrays(arrays *a, hf_err err)
{
    size_t stride = a->theirs == NULL ? 0 : *(size_t *)a->theirs;
    bool begun = a->theirs != NULL && a->results != NULL && a->results->size != 0;
    for (size_t i = 0; begun && i < a->n; i++) {
        char *theirs = (char *)a->theirs + i * stride;
        memcpy(theirs, &stride, sizeof stride);
        hf_struct_fill(theirs, &a->results[i], sizeof *a->results);
    }
    free(a->jobs_copy);
    if (a->theirs != NULL)
        free(a->results);
    return err;
}

/* The whole way of a call that was checked. While it is under way the producer cannot be
 * freed. */
static hf_err carry_out(hf_handin *c, arrays *a, char *detail)
{
    hf_run_loop *run = &c->producer->run;
    c->waiter = hf_waiter_new(a->results);
    if (c->waiter == NULL)
        return hf_say(detail, HF_NOMEM, "%s", hf_err_text(HF_NOMEM));
    begin_results(a);
    hf_run_loop_enter(run);
    hf_err err = hf_hand_in(c);
    if (err == HF_OK) {
        err = wait_for_answers(c, detail);
    } else {
        hf_waiter_free(c->waiter);
        (void)say_refusal(err, detail);
    }
    hf_run_loop_leave(run);
    return err;
}

/* What both kinds of call have in common before they are taken. */
static hf_err may_wait(const hf_producer *producer, uint32_t deadline_ms, char *detail)
{
    if (hf_producer_forked(producer))
        return hf_say(detail, HF_FORKED, "%s", hf_err_text(HF_FORKED));
    uv_thread_t self = uv_thread_self();
    if (!producer->run.served || uv_thread_equal(&self, &producer->run.thread))
        return hf_say(detail, HF_INVALID,
                      "expected a producer with a thread of its own, and "
                      "not to be called from there");
    if (deadline_ms > DEADLINE_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a deadline_ms of 0..%d, found %" PRIu32, DEADLINE_MAX_MS,
                      deadline_ms);
    return HF_OK;
}

static hf_err check_call(hf_handin *c, const arrays *a, uint32_t deadline_ms,
                         char *detail)
{
    hf_producer *producer = c->producer;
    c->in.jobs = a->jobs;
    c->in.n = a->n;
    hf_err err = hf_check_jobs(&producer->bounds, a->jobs, a->n, &c->in.bytes,
                               &c->one_queue, detail);
    c->in.now_ns = hf_boot_ns();
    c->in.deadline_ns =
        c->in.now_ns +
        (deadline_ms != 0 ? deadline_ms : producer->deadline_ms) * HF_MS_NS;
    c->in.created_ms = hf_wall_ms();
    return err;
}

hf_err hf_enqueue_wait(hf_producer *producer, const hf_job *jobs, size_t n,
                       hf_enqueue_result *results, uint32_t deadline_ms,
                       char detail[HF_DETAIL_SIZE])
{
    arrays a;
    hf_handin c = {.producer = producer, .in = {.numbering = HF_NUMBERS_OURS}};
    hf_err err = may_wait(producer, deadline_ms, detail);
    if (err != HF_OK)
        return err;
    err = open_arrays(&a, jobs, results, n, detail);
    if (err == HF_OK)
        err = check_call(&c, &a, deadline_ms, detail);
    if (err == HF_OK)
        err = carry_out(&c, &a, detail);
    return close_arrays(&a, err);
}

/* ---- with numbers ---- */

/* One at a time, and none past one that may still be needed: Redis remembers only the
 * last of a queue's numbers one by one. */
static hf_err begin_numbered(hf_handin *c, hf_lane *lane, char *detail)
{
    hf_inbox *inbox = &c->producer->engine.inbox;
    hf_err err = HF_OK;
    hf_run_loop_lock(inbox->run);
    if (inbox->numbered_busy)
        err = hf_say(detail, HF_BUSY, "another numbered call is under way");
    else if (lane->owed && c->number != lane->highest)
        err = hf_say(detail, HF_INVALID,
                     "expected number %" PRIu64 ", which has not succeeded "
                     "yet, found %" PRIu64,
                     lane->highest, c->number);
    else if (c->number < lane->highest)
        err = hf_say(detail, HF_INVALID,
                     "expected a number of at least %" PRIu64 ", found %" PRIu64,
                     lane->highest, c->number);
    else
        inbox->numbered_busy = true;
    hf_run_loop_unlock(inbox->run);
    return err;
}

static void end_numbered(hf_handin *c, hf_lane *lane, hf_err err)
{
    hf_inbox *inbox = &c->producer->engine.inbox;
    hf_run_loop_lock(inbox->run);
    inbox->numbered_busy = false;
    lane->highest = c->number;
    lane->owed = err != HF_OK;
    hf_run_loop_unlock(inbox->run);
}

static hf_err carry_out_numbered(hf_handin *c, arrays *a, char *detail)
{
    hf_lane *lane;
    if (!c->one_queue)
        return hf_say(detail, HF_INVALID, "expected jobs of one queue, found several");
    if (c->number == 0 || c->number > NUMBER_MAX)
        return hf_say(detail, HF_INVALID,
                      "expected a number of 1..%" PRIu64 ", found %" PRIu64, NUMBER_MAX,
                      c->number);
    hf_err err =
        hf_inbox_lane(&c->producer->engine.inbox, hf_job_queue(&a->jobs[0]), &lane);
    if (err != HF_OK)
        return say_refusal(err, detail);
    err = begin_numbered(c, lane, detail);
    if (err != HF_OK)
        return err;
    err = carry_out(c, a, detail);
    end_numbered(c, lane, err);
    return err;
}

hf_err hf_enqueue_numbered(hf_producer *producer, const hf_job *jobs, size_t n,
                           uint64_t number, uint64_t first, hf_enqueue_result *results,
                           char detail[HF_DETAIL_SIZE])
{
    hf_handin c = {.producer = producer,
                   .in = {.numbering = HF_NUMBERS_CALLERS},
                   .number = number,
                   .first = first};
    arrays a;
    hf_err err = may_wait(producer, 0, detail);
    if (err != HF_OK)
        return err;
    err = open_arrays(&a, jobs, results, n, detail);
    if (err == HF_OK)
        err = check_call(&c, &a, 0, detail);
    if (err == HF_OK)
        err = carry_out_numbered(&c, &a, detail);
    return close_arrays(&a, err);
}
