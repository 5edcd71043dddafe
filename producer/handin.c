/* handin.c - see handin.h. */
#include "producer/handin.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_JOBS = 32, /* up to so many are written while the lock is held */
    SMALL_BYTES = 32768,
    IDS_AT_ONCE = 64
};

typedef struct sorted {
    const hf_job *job;
} sorted;

typedef struct maker {
    const hf_handin *call;
    sorted *order; /* the jobs by queue; NULL: as they are */
    hf_batches made;
    char ids[IDS_AT_ONCE][HF_NEW_ID_SIZE];
    size_t ids_left;
    bool ids_tell; /* when they were made */
    char run_id[HF_RUN_ID_SIZE];
} maker;

static const hf_job *job_at(const maker *m, size_t i)
{
    return m->order != NULL ? m->order[i].job : &m->call->in.jobs[i];
}

static int by_queue(const void *a, const void *b)
{
    const hf_job *x = ((const sorted *)a)->job, *y = ((const sorted *)b)->job;
    int different = strcmp(hf_job_queue(x), hf_job_queue(y));
    if (different != 0)
        return different;
    return x < y ? -1 : x > y; /* within a queue as they were given */
}

static hf_err sort_by_queue(maker *m)
{
    const hf_intake *in = &m->call->in;
    m->order = malloc(in->n * sizeof *m->order);
    if (m->order == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < in->n; i++)
        m->order[i].job = &in->jobs[i];
    qsort(m->order, in->n, sizeof *m->order, by_queue);
    return HF_OK;
}

/* An id for a job that has none: from a stock of our own, or always the same for the same
 * place of a run. */
static hf_job_id make_id(maker *m, uint32_t place)
{
    hf_producer *producer = m->call->producer;
    if (m->call->number != 0) {
        hf_id_of_run(producer->id, m->call->first + place, m->run_id);
        return (hf_job_id){m->run_id, .made = !producer->run_given,
                           .tells = strlen(m->run_id) == HF_NEW_ID_LEN};
    }
    if (m->ids_left == 0) {
        m->ids_tell = hf_inbox_ids(&producer->engine.inbox, m->ids, IDS_AT_ONCE,
                                   m->call->in.created_ms);
        m->ids_left = IDS_AT_ONCE;
    }
    return (hf_job_id){m->ids[IDS_AT_ONCE - m->ids_left--], .made = true,
                       .tells = m->ids_tell};
}

/* Fills a batch with the n jobs of one queue from `from` on. */
static hf_err fill(maker *m, hf_batch *batch, size_t from, size_t n)
{
    const hf_handin *call = m->call;
    for (size_t i = from; i < from + n; i++) {
        const hf_job *job = job_at(m, i);
        uint32_t place = (uint32_t)(job - call->in.jobs);
        hf_job_id id = job->id != NULL ? (hf_job_id){.text = job->id} : make_id(m, place);
        hf_err err = hf_batch_add(batch, job, id, place, call->in.created_ms);
        if (err != HF_OK)
            return err;
        hf_waiter_note_id(call->waiter, place, id.text);
        batch->charge += hf_job_bytes(job);
    }
    batch->taken_ns = call->in.now_ns;
    batch->deadline_ns = call->in.deadline_ns;
    batch->numbered = call->number != 0;
    batch->number = call->number;
    const hf_part part = {.n = n, .taken_ns = call->in.now_ns, .waiter = call->waiter};
    hf_err err = hf_batch_end_part(batch, &part);
    return err == HF_OK ? hf_batch_seal(batch, call->in.now_ns) : err;
}

static hf_err make_batch(maker *m, size_t from, size_t n)
{
    hf_lane *lane;
    hf_inbox *inbox = &m->call->producer->engine.inbox;
    hf_err err = hf_inbox_lane(inbox, hf_job_queue(job_at(m, from)), &lane);
    if (err != HF_OK)
        return err;
    hf_batch *batch = hf_batch_new(lane);
    if (batch == NULL)
        return HF_NOMEM;
    hf_batch_expect(batch, n, m->call->in.bytes / m->call->in.n * n);
    err = fill(m, batch, from, n);
    if (err != HF_OK) {
        hf_batch_free(batch);
        return err;
    }
    hf_batches_append(&m->made, batch);
    m->call->waiter->pending++;
    return HF_OK;
}

/* One batch for each queue, or none. */
static hf_err make_batches(maker *m)
{
    size_t all = m->call->in.n, n;
    hf_err err = m->call->one_queue ? HF_OK : sort_by_queue(m);
    for (size_t from = 0; err == HF_OK && from < all; from += n) {
        const char *queue = hf_job_queue(job_at(m, from));
        n = m->call->one_queue ? all : 1;
        while (from + n < all && strcmp(queue, hf_job_queue(job_at(m, from + n))) == 0)
            n++;
        err = make_batch(m, from, n);
    }
    free(m->order);
    while (err != HF_OK && m->made.first != NULL) {
        hf_batch *batch = m->made.first;
        hf_batches_remove(&m->made, batch);
        hf_batch_free(batch);
    }
    return err;
}

static hf_err hand_in_large(hf_handin *handin)
{
    hf_producer *producer = handin->producer;
    hf_inbox *inbox = &producer->engine.inbox;
    maker m = {.call = handin};
    hf_err err = hf_inbox_reserve(inbox, &handin->in);
    if (err != HF_OK)
        return err;
    err = make_batches(&m);
    handin->ready = err == HF_OK;
    if (err == HF_OK) {
        hf_inbox_put(inbox, &m.made);
    } else {
        hf_inbox_unreserve(inbox, handin->in.n, handin->in.bytes);
        hf_run_loop_wake(
            &producer->run); /* it may only wait for the last job to be gone */
    }
    return err;
}

hf_err hf_hand_in(hf_handin *handin)
{
    const hf_intake *in = &handin->in;
    if (!handin->one_queue || handin->number != 0 || in->n > SMALL_JOBS ||
        in->bytes > SMALL_BYTES)
        return hand_in_large(handin);
    handin->waiter->pending = 1;
    const hf_part part = {.n = in->n, .taken_ns = in->now_ns, .waiter = handin->waiter};
    return hf_inbox_join(&handin->producer->engine.inbox, in, &part, &handin->ready);
}
