/* wait.c - calls that wait for their answers, from any thread.
 *
 * A small call joins the open batch of its queue. A larger one makes its batches by
 * itself, without the lock: many threads can do so at a time, and the loop owner has
 * nothing left to do but to send them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/detail.h"
#include "base/structs.h"
#include "producer/producer.h"
#include "producer/traced.h"

enum {
    DEADLINE_MAX_MS = 600000,
    AGAIN_MS = 1,    /* how long a request may wait for company; see requests.c */
    LATE_MS = 250,   /* how long after its deadline a call waits for its answer */
    SMALL_JOBS = 32, /* up to this many are written while the lock is held */
    SMALL_BYTES = 32768,
    IDS_AT_ONCE = 64
};
#define NUMBER_MAX (UINT64_C(1) << 53) /* what Redis's Lua counts exactly */

/* A call on its way. */
typedef struct waiting_call {
    hf_producer *producer;
    hf_intake in;
    bool one_queue; /* all jobs are of one */
    hf_waiter *waiter;
    uint64_t number, first; /* of a numbered call, else 0 */
    bool ready;             /* something can perhaps be sent */
} waiting_call;

/* ---- the batches of a larger call ---- */

typedef struct sorted {
    const hf_job *job;
    unsigned shard; /* of its queue */
} sorted;

typedef struct maker {
    const waiting_call *of;
    sorted *order; /* the jobs by queue and shard; NULL: as they are */
    hf_batches made;
    char ids[IDS_AT_ONCE][HF_NEW_ID_SIZE];
    size_t ids_left;
    bool ids_tell; /* when they were made */
    char run_id[HF_RUN_ID_SIZE];
} maker;

static const hf_job *job_at(const maker *m, size_t i)
{
    return m->order != NULL ? m->order[i].job : &m->of->in.jobs[i];
}

static int by_queue(const void *a, const void *b)
{
    const hf_job *x = ((const sorted *)a)->job, *y = ((const sorted *)b)->job;
    int different = strcmp(hf_check_job_queue(x), hf_check_job_queue(y));
    if (different != 0)
        return different;
    return x < y ? -1 : x > y; /* within a queue as they were given */
}

static int by_shard(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* An array of the jobs that can be sorted. */
static hf_err begin_order(maker *m)
{
    const hf_intake *in = &m->of->in;
    if (m->order != NULL)
        return HF_OK;
    m->order = calloc(in->n, sizeof *m->order);
    if (m->order == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < in->n; i++)
        m->order[i] = (sorted){.job = &in->jobs[i]};
    return HF_OK;
}

static hf_err sort_by_queue(maker *m)
{
    hf_err err = begin_order(m);
    if (err == HF_OK)
        qsort(m->order, m->of->in.n, sizeof *m->order, by_queue);
    return err;
}

/* An id for a job that has none: from a stock of our own, or always the same for the same
 * place of a run. */
static hf_job_id make_id(maker *m, uint32_t place)
{
    hf_producer *producer = m->of->producer;
    if (m->of->number != 0) {
        hf_id_of_run(producer->id, m->of->first + place, m->run_id);
        return (hf_job_id){m->run_id, .made = !producer->run_given,
                           .tells = strlen(m->run_id) == HF_NEW_ID_LEN};
    }
    if (m->ids_left == 0) {
        m->ids_tell = hf_submit_ids(&producer->requests.queue, m->ids, IDS_AT_ONCE,
                                    m->of->in.created_ms);
        m->ids_left = IDS_AT_ONCE;
    }
    return (hf_job_id){m->ids[IDS_AT_ONCE - m->ids_left--], .made = true,
                       .tells = m->ids_tell};
}

/* Fills a batch with the n jobs of one queue from `from` on. */
static hf_err fill(maker *m, hf_batch *batch, size_t from, size_t n)
{
    const waiting_call *c = m->of;
    for (size_t i = from; i < from + n; i++) {
        const hf_job *job = job_at(m, i);
        uint32_t place = (uint32_t)(job - c->in.jobs);
        hf_job_id id = job->id != NULL ? (hf_job_id){.text = job->id} : make_id(m, place);
        hf_err err = hf_batch_add(batch, job, id, place, c->in.created_ms);
        if (err != HF_OK)
            return err;
        hf_batch_waiter_note_id(c->waiter, place, id.text);
        batch->charge += hf_check_job_bytes(job);
    }
    batch->taken_ns = c->in.now_ns;
    batch->deadline_ns = c->in.deadline_ns;
    batch->numbered = c->number != 0;
    batch->number = c->number;
    const hf_batch_call call = {.n = n, .taken_ns = c->in.now_ns, .waiter = c->waiter};
    hf_err err = hf_batch_end_call(batch, &call);
    return err == HF_OK ? hf_batch_seal(batch, c->in.now_ns) : err;
}

static hf_err make_batch(maker *m, hf_target *target, size_t from, size_t n)
{
    hf_batch *batch = hf_batch_new(target);
    if (batch == NULL)
        return HF_NOMEM;
    hf_batch_expect(batch, n, m->of->in.bytes / m->of->in.n * n);
    hf_err err = fill(m, batch, from, n);
    if (err != HF_OK) {
        hf_batch_free(batch);
        return err;
    }
    hf_batches_append(&m->made, batch);
    m->of->waiter->pending++;
    return HF_OK;
}

/* ---- shards ---- */

/* The shard of all jobs of the call that have no id. */
static unsigned shard_without_id(const maker *m, hf_target *target,
                                 const hf_shard_states *shards)
{
    const waiting_call *c = m->of;
    unsigned i = 0;
    if (c->number != 0)
        return hf_submit_shard_of_number(c->producer->id, c->number, shards->n);
    const hf_target *next = hf_submit_next_shard(&c->producer->requests.queue, target);
    while (shards->at[i] != next)
        i++;
    return i;
}

/* One batch for each shard of the queue. */
static hf_err make_batches_of_shards(maker *m, hf_target *target,
                                     const hf_shard_states *shards, size_t from, size_t n)
{
    const unsigned without_id = shard_without_id(m, target, shards);
    hf_err err = begin_order(m);
    if (err != HF_OK)
        return err;
    for (size_t i = from; i < from + n; i++) {
        const hf_job *job = m->order[i].job;
        HF_ASSERT(job != NULL);
        const char *text = hf_job_shard_text(job);
        m->order[i].shard = text == NULL ? without_id : hf_shard_of_id(text, shards->n);
    }
    qsort(m->order + from, n, sizeof *m->order, by_shard);
    for (size_t i = from, end; err == HF_OK && i < from + n; i = end) {
        unsigned shard = m->order[i].shard;
        for (end = i + 1; end < from + n && m->order[end].shard == shard;)
            end++;
        err = make_batch(m, shards->at[shard], i, end - i);
    }
    return err;
}

/* Of the n jobs of one queue. */
static hf_err make_batches_of_queue(maker *m, size_t from, size_t n)
{
    hf_target *target;
    hf_submit_queue *queue = &m->of->producer->requests.queue;
    hf_err err = hf_submit_target(queue, hf_check_job_queue(job_at(m, from)), &target);
    if (err != HF_OK)
        return err;
    const hf_shard_states *shards = hf_submit_shards(queue, target);
    return shards == NULL ? make_batch(m, target, from, n)
                          : make_batches_of_shards(m, target, shards, from, n);
}

/* One batch for each queue, or for each of its shards; or none. */
static hf_err make_batches(maker *m)
{
    size_t all = m->of->in.n, n;
    hf_err err = m->of->one_queue ? HF_OK : sort_by_queue(m);
    for (size_t from = 0; err == HF_OK && from < all; from += n) {
        const char *queue = hf_check_job_queue(job_at(m, from));
        n = m->of->one_queue ? all : 1;
        while (from + n < all &&
               strcmp(queue, hf_check_job_queue(job_at(m, from + n))) == 0)
            n++;
        err = make_batches_of_queue(m, from, n);
    }
    free(m->order);
    while (err != HF_OK && m->made.first != NULL) {
        hf_batch *batch = m->made.first;
        hf_batches_remove(&m->made, batch);
        hf_batch_free(batch);
    }
    return err;
}

static hf_err put_in_large(waiting_call *c)
{
    hf_producer *producer = c->producer;
    hf_submit_queue *queue = &producer->requests.queue;
    maker m = {.of = c};
    hf_err err = hf_submit_reserve(queue, &c->in);
    if (err != HF_OK)
        return err;
    err = make_batches(&m);
    c->ready = err == HF_OK;
    if (err == HF_OK) {
        hf_submit_put(queue, &m.made);
    } else {
        hf_submit_unreserve(queue, c->in.n, c->in.bytes);
        hf_run_loop_wake(
            &producer->run); /* it may only wait for the last job to be gone */
    }
    return err;
}

/* Several jobs of a divided queue, with ids that may belong to several shards. */
static bool has_parts(const waiting_call *c)
{
    const hf_intake *in = &c->in;
    hf_target *target;
    hf_submit_queue *queue = &c->producer->requests.queue;
    size_t i = 0;
    while (i < in->n && hf_job_shard_text(&in->jobs[i]) == NULL)
        i++;
    return in->n > 1 && i < in->n &&
           hf_submit_target(queue, hf_check_job_queue(in->jobs), &target) == HF_OK &&
           hf_submit_shards(queue, target) != NULL;
}

/* The waiter is told once for each batch. HF_CLOSED, HF_FULL, HF_INVALID (the other kind
 * of numbers), HF_NOMEM: nothing was taken. */
static hf_err put_in(waiting_call *c)
{
    const hf_intake *in = &c->in;
    if (!c->one_queue || c->number != 0 || in->n > SMALL_JOBS ||
        in->bytes > SMALL_BYTES || has_parts(c))
        return put_in_large(c);
    c->waiter->pending = 1;
    const hf_batch_call call = {.n = in->n, .taken_ns = in->now_ns, .waiter = c->waiter};
    return hf_submit_join(&c->producer->requests.queue, in, &call, &c->ready);
}

/* ---- a call ---- */

/* The result of the call. The owner answers at the deadline. The caller waits a little
 * longer for this answer, and then returns even if a callback holds up the producer's
 * thread.
 */
static hf_err wait_for_answers(waiting_call *c, char *detail)
{
    hf_waiter *waiter = c->waiter;
    const uint64_t until_ns = c->in.deadline_ns + LATE_MS * HF_MS_NS;
    waiter->run.submits = c->ready;
    waiter->run.again_ms = c->ready ? AGAIN_MS : 0;
    if (!hf_run_loop_await(&c->producer->run, &waiter->run, until_ns))
        return hf_say(detail, HF_UNSURE,
                      "the producer's thread is busy, or held up by a callback");
    hf_err err = waiter->worst;
    if (err != HF_OK)
        (void)hf_say(detail, err, "%s", waiter->detail);
    hf_batch_waiter_free(waiter);
    return err;
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
        (void)hf_say_err(detail, err);
    return err;
}

/* Until it is known better, nothing is known of any job. */
static void begin_results(arrays *a)
{
    for (size_t i = 0; a->results != NULL && i < a->n; i++) {
        a->results[i].size = sizeof *a->results;
        a->results[i].err = HF_UNSURE;
        a->results[i].accepted_ms = 0;
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
static hf_err carry_out(waiting_call *c, arrays *a, char *detail)
{
    hf_run_loop *run = &c->producer->run;
    c->waiter = hf_batch_waiter_new(a->results);
    if (c->waiter == NULL)
        return hf_say_err(detail, HF_NOMEM);
    begin_results(a);
    hf_run_loop_enter(run);
    hf_err err = put_in(c);
    if (err == HF_OK) {
        err = wait_for_answers(c, detail);
    } else {
        hf_batch_waiter_free(c->waiter);
        (void)hf_producer_refuse(err, detail);
    }
    hf_run_loop_leave(run);
    return err;
}

/* The checks of both kinds of call before they are accepted. */
static hf_err may_wait(const hf_producer *producer, uint32_t deadline_ms, char *detail)
{
    if (hf_producer_forked(producer))
        return hf_say_err(detail, HF_FORKED);
    uv_thread_t self = uv_thread_self();
    if (!producer->run.served || uv_thread_equal(&self, &producer->run.thread))
        return hf_say(detail, HF_INVALID,
                      "expected a producer with its own thread, and a call "
                      "from another thread");
    if (deadline_ms > DEADLINE_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a deadline_ms of 0..%d, found %" PRIu32, DEADLINE_MAX_MS,
                      deadline_ms);
    return HF_OK;
}

static hf_err check_call(waiting_call *c, const arrays *a, uint32_t deadline_ms,
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

/* Gives its jobs the headers of their spans, unless they are too large then. */
static void trace_call(waiting_call *c, hf_traced *traced)
{
    char ignored[HF_DETAIL_SIZE];
    size_t bytes;
    bool one_queue;
    hf_producer *producer = c->producer;
    const hf_job *jobs = hf_traced_begin(traced, producer, c->in.jobs, c->in.n);
    if (jobs == c->in.jobs)
        return;
    if (hf_check_jobs(&producer->bounds, jobs, c->in.n, &bytes, &one_queue, ignored) !=
        HF_OK) {
        hf_traced_give_up(traced);
        return;
    }
    c->in.jobs = jobs;
    c->in.bytes = bytes;
}

hf_err hf_enqueue_wait(hf_producer *producer, const hf_job *jobs, size_t n,
                       hf_enqueue_result *results, uint32_t deadline_ms,
                       char detail[HF_DETAIL_SIZE])
{
    arrays a;
    hf_traced traced;
    waiting_call c = {.producer = producer, .in = {.numbering = HF_NUMBERS_OURS}};
    hf_err err = may_wait(producer, deadline_ms, detail);
    if (err != HF_OK)
        return err;
    err = open_arrays(&a, jobs, results, n, detail);
    if (err == HF_OK)
        err = check_call(&c, &a, deadline_ms, detail);
    if (err == HF_OK) {
        trace_call(&c, &traced);
        err = carry_out(&c, &a, detail);
        hf_traced_end(&traced, err, a.results);
    }
    return close_arrays(&a, err);
}

/* ---- with numbers ---- */

/* One at a time, and none past one that may still be needed: Redis remembers only the
 * last of a queue's numbers one by one. */
static hf_err begin_numbered(waiting_call *c, hf_target *target, char *detail)
{
    hf_submit_queue *queue = &c->producer->requests.queue;
    hf_err err = HF_OK;
    hf_run_loop_lock(queue->run);
    if (queue->numbered_busy)
        err = hf_say(detail, HF_BUSY, "another numbered call is under way");
    else if (target->owed && c->number != target->highest)
        err = hf_say(detail, HF_INVALID,
                     "expected number %" PRIu64 ", which has not succeeded "
                     "yet, found %" PRIu64,
                     target->highest, c->number);
    else if (c->number < target->highest)
        err = hf_say(detail, HF_INVALID,
                     "expected a number of at least %" PRIu64 ", found %" PRIu64,
                     target->highest, c->number);
    else
        queue->numbered_busy = true;
    hf_run_loop_unlock(queue->run);
    return err;
}

static void end_numbered(waiting_call *c, hf_target *target, hf_err err)
{
    hf_submit_queue *queue = &c->producer->requests.queue;
    hf_run_loop_lock(queue->run);
    queue->numbered_busy = false;
    target->highest = c->number;
    target->owed = err != HF_OK;
    hf_run_loop_unlock(queue->run);
}

static hf_err carry_out_numbered(waiting_call *c, arrays *a, char *detail)
{
    hf_target *target;
    if (!c->one_queue)
        return hf_say(detail, HF_INVALID, "expected jobs of one queue, found several");
    if (c->number == 0 || c->number > NUMBER_MAX)
        return hf_say(detail, HF_INVALID,
                      "expected a number of 1..%" PRIu64 ", found %" PRIu64, NUMBER_MAX,
                      c->number);
    hf_err err = hf_submit_target(&c->producer->requests.queue,
                                  hf_check_job_queue(&a->jobs[0]), &target);
    if (err != HF_OK)
        return hf_producer_refuse(err, detail);
    err = begin_numbered(c, target, detail);
    if (err != HF_OK)
        return err;
    err = carry_out(c, a, detail);
    end_numbered(c, target, err);
    return err;
}

hf_err hf_enqueue_numbered(hf_producer *producer, const hf_job *jobs, size_t n,
                           uint64_t number, uint64_t first, hf_enqueue_result *results,
                           char detail[HF_DETAIL_SIZE])
{
    waiting_call c = {.producer = producer,
                      .in = {.numbering = HF_NUMBERS_CALLERS},
                      .number = number,
                      .first = first};
    arrays a;
    hf_traced traced;
    hf_err err = may_wait(producer, 0, detail);
    if (err != HF_OK)
        return err;
    err = open_arrays(&a, jobs, results, n, detail);
    if (err == HF_OK)
        err = check_call(&c, &a, 0, detail);
    if (err == HF_OK) {
        trace_call(&c, &traced);
        err = carry_out_numbered(&c, &a, detail);
        hf_traced_end(&traced, err, a.results);
    }
    return close_arrays(&a, err);
}
