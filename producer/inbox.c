/* inbox.c - see inbox.h. */
#include "producer/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"

/* A request has one deadline, that of the call that began it. Another call shares it when
 * that is at most this part of its own time too early, or a moment too late: threads that
 * call at the same time come in any order. */
enum { SHARED_DEADLINE_PART = 16, DISORDER_NS = 1000000 };

hf_err hf_inbox_init(hf_inbox *inbox, hf_run_loop *run, const hf_producer_opts *opts)
{
    *inbox = (hf_inbox){.run = run,
                        .jobs_max = opts->buffer_jobs,
                        .bytes_max = opts->buffer_bytes,
                        .next_deadline_ns = UINT64_MAX};
    (void)snprintf(inbox->ns, sizeof inbox->ns, "%s", opts->server->ns);
    return hf_id_maker_init(&inbox->ids);
}

void hf_inbox_done(hf_inbox *inbox)
{
    while (inbox->line.first != NULL) {
        hf_batch *batch = inbox->line.first;
        hf_batches_remove(&inbox->line, batch);
        hf_batch_free(batch);
    }
    for (size_t i = 0; i < HF_LANE_BUCKETS; i++) {
        while (inbox->buckets[i] != NULL) {
            hf_lane *lane = inbox->buckets[i];
            inbox->buckets[i] = lane->next;
            free(lane);
        }
    }
}

/* ---- lanes; the lock is held ---- */

/* FNV-1a. */
static size_t bucket_of(const char *name)
{
    uint32_t h = UINT32_C(2166136261);
    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT32_C(16777619);
    return h % HF_LANE_BUCKETS;
}

static hf_err lane_of(hf_inbox *inbox, const char *name, hf_lane **out)
{
    hf_lane *lane = inbox->last_lane;
    if (lane == NULL || strcmp(lane->queue.name, name) != 0) {
        hf_lane **bucket = &inbox->buckets[bucket_of(name)];
        lane = *bucket;
        while (lane != NULL && strcmp(lane->queue.name, name) != 0)
            lane = lane->next;
        if (lane == NULL) {
            if (inbox->n_lanes == HF_LANES_MAX)
                return HF_FULL;
            lane = calloc(1, sizeof *lane);
            if (lane == NULL)
                return HF_NOMEM;
            hf_err err = hf_queue_init(&lane->queue, inbox->ns, name);
            HF_ASSERT(err == HF_OK);
            lane->next = *bucket;
            *bucket = lane;
            inbox->n_lanes++;
        }
    }
    *out = inbox->last_lane = lane;
    return HF_OK;
}

hf_err hf_inbox_lane(hf_inbox *inbox, const char *name, hf_lane **out)
{
    hf_run_loop_lock(inbox->run);
    hf_err err = lane_of(inbox, name, out);
    hf_run_loop_unlock(inbox->run);
    return err;
}

/* ---- counting; the lock is held ---- */

static hf_err reserve(hf_inbox *inbox, const hf_intake *in)
{
    if (inbox->run->retired)
        return HF_CLOSED;
    if (inbox->numbering != HF_NUMBERS_UNUSED && inbox->numbering != in->numbering)
        return HF_INVALID;
    if (in->n > inbox->jobs_max - inbox->jobs ||
        in->bytes > inbox->bytes_max - inbox->bytes)
        return HF_FULL;
    inbox->numbering = in->numbering;
    inbox->jobs += in->n;
    inbox->bytes += in->bytes;
    return HF_OK;
}

static void unreserve(hf_inbox *inbox, size_t jobs, size_t bytes)
{
    HF_ASSERT(jobs <= inbox->jobs && bytes <= inbox->bytes);
    inbox->jobs -= jobs;
    inbox->bytes -= bytes;
}

hf_err hf_inbox_reserve(hf_inbox *inbox, const hf_intake *in)
{
    hf_run_loop_lock(inbox->run);
    hf_err err = reserve(inbox, in);
    hf_run_loop_unlock(inbox->run);
    return err;
}

void hf_inbox_unreserve(hf_inbox *inbox, size_t jobs, size_t bytes)
{
    hf_run_loop_lock(inbox->run);
    unreserve(inbox, jobs, bytes);
    hf_run_loop_unlock(inbox->run);
}

bool hf_inbox_ids(hf_inbox *inbox, char (*out)[HF_NEW_ID_SIZE], size_t n,
                  int64_t created_ms)
{
    hf_run_loop_lock(inbox->run);
    for (size_t i = 0; i < n; i++)
        hf_id_next(&inbox->ids, out[i]);
    bool tell = hf_id_maker_tells(&inbox->ids, created_ms);
    hf_run_loop_unlock(inbox->run);
    return tell;
}

/* ---- putting in ---- */

static void note_deadline(hf_inbox *inbox, const hf_batch *batch)
{
    if (batch->deadline_ns < inbox->next_deadline_ns)
        inbox->next_deadline_ns = batch->deadline_ns;
}

static void put_last(hf_inbox *inbox, hf_batch *batch)
{
    hf_batches_append(&inbox->line, batch);
    note_deadline(inbox, batch);
}

void hf_inbox_put(hf_inbox *inbox, hf_batches *batches)
{
    hf_run_loop_lock(inbox->run);
    while (batches->first != NULL) {
        hf_batch *batch = batches->first;
        hf_batches_remove(batches, batch);
        put_last(inbox, batch);
    }
    hf_run_loop_unlock(inbox->run);
}

static bool has_room(const hf_batch *batch, const hf_intake *in)
{
    uint64_t early_ns = (in->deadline_ns - in->now_ns) / SHARED_DEADLINE_PART;
    return batch->n + in->n <= HF_SHARED_JOBS &&
           batch->charge + in->bytes <= HF_SHARED_BYTES &&
           in->deadline_ns <= batch->deadline_ns + early_ns &&
           in->deadline_ns + DISORDER_NS >= batch->deadline_ns;
}

static hf_err append(hf_inbox *inbox, hf_batch *batch, const hf_intake *in,
                     const hf_part *part)
{
    hf_err err = HF_OK;
    size_t before = batch->n;
    for (size_t i = 0; err == HF_OK && i < in->n; i++) {
        char made[HF_NEW_ID_SIZE];
        const hf_job *job = &in->jobs[i];
        hf_job_id id = {.text = job->id != NULL ? job->id : made,
                        .made = job->id == NULL};
        if (id.made) {
            hf_id_next(&inbox->ids, made);
            id.tells = hf_id_maker_tells(&inbox->ids, in->created_ms);
        }
        err = hf_batch_add(batch, job, id, (uint32_t)i, in->created_ms);
        hf_waiter_note_id(part->waiter, i, id.text);
    }
    if (err == HF_OK)
        err = hf_batch_end_part(batch, part);
    if (err != HF_OK)
        hf_batch_rewind(batch, before);
    return err;
}

static hf_err join(hf_inbox *inbox, hf_lane *lane, const hf_intake *in,
                   const hf_part *part, bool *ready)
{
    hf_batch *batch = lane->open;
    bool begun = batch == NULL || !has_room(batch, in);
    if (begun) {
        batch = hf_batch_new(lane);
        if (batch == NULL)
            return HF_NOMEM;
        batch->taken_ns = in->now_ns;
        batch->deadline_ns = in->deadline_ns;
    }
    hf_err err = append(inbox, batch, in, part);
    if (err != HF_OK) {
        if (begun)
            hf_batch_free(batch);
        return err;
    }
    batch->charge += in->bytes;
    if (begun) {
        put_last(inbox, batch);
        lane->open = batch;
    }
    bool enough = batch->n >= inbox->enough && batch->n - in->n < inbox->enough;
    bool first_callback = part->waiter == NULL && inbox->run->callbacks++ == 0;
    *ready = begun || enough || first_callback;
    return HF_OK;
}

hf_err hf_inbox_join(hf_inbox *inbox, const hf_intake *in, const hf_part *part,
                     bool *ready)
{
    hf_lane *lane;
    const char *name = in->jobs[0].queue != NULL ? in->jobs[0].queue : HF_DEFAULT_QUEUE;
    hf_run_loop_lock(inbox->run);
    hf_err err = lane_of(inbox, name, &lane);
    if (err == HF_OK)
        err = reserve(inbox, in);
    if (err == HF_OK) {
        err = join(inbox, lane, in, part, ready);
        if (err != HF_OK)
            unreserve(inbox, in->n, in->bytes);
    }
    hf_run_loop_unlock(inbox->run);
    return err;
}

/* ---- the engine's side ---- */

/* What they took is free before they learn it. */
void hf_inbox_tell(hf_inbox *inbox, hf_batch *batch, const hf_outcome *outcome)
{
    hf_run_loop_lock(inbox->run);
    unreserve(inbox, batch->n, batch->charge);
    inbox->run->callbacks -= batch->callbacks;
    hf_batch_tell(batch, outcome, inbox->run);
    hf_run_loop_unlock(inbox->run);
    if (batch->callbacks == 0)
        return;
    hf_run_loop_tell(inbox->run); /* a callback may take its time */
    hf_batch_call_back(batch, outcome);
}

/* A caller that owns the loop leaves callbacks to the service thread. */
static bool may_take(const hf_inbox *inbox, const hf_batch *batch)
{
    return !inbox->run->by_caller || batch->callbacks == 0;
}

static void take_out(hf_inbox *inbox, hf_batch *batch)
{
    hf_batches_remove(&inbox->line, batch);
    if (batch->lane->open == batch)
        batch->lane->open = NULL;
}

hf_batch *hf_inbox_take(hf_inbox *inbox, size_t enough, uint64_t gather_ns,
                        uint64_t now_ns, uint64_t *later_ns)
{
    hf_run_loop_lock(inbox->run);
    hf_batch *batch = inbox->line.first;
    inbox->enough = enough;
    if (batch != NULL && batch->lane->open == batch && batch->n < enough &&
        now_ns < batch->taken_ns + gather_ns) {
        *later_ns = batch->taken_ns + gather_ns;
        batch = NULL;
    }
    if (batch != NULL && !may_take(inbox, batch))
        batch = NULL;
    if (batch != NULL)
        take_out(inbox, batch);
    hf_run_loop_unlock(inbox->run);
    return batch;
}

void hf_inbox_put_back(hf_inbox *inbox, hf_batch *batch)
{
    hf_run_loop_lock(inbox->run);
    hf_batch *before = inbox->line.first;
    while (before != NULL && before->number != 0 && before->number < batch->number)
        before = before->next;
    hf_batches_insert(&inbox->line, before, batch);
    note_deadline(inbox, batch);
    hf_run_loop_unlock(inbox->run);
}

void hf_inbox_expire(hf_inbox *inbox, uint64_t until_ns, hf_batches *out)
{
    hf_run_loop_lock(inbox->run);
    inbox->next_deadline_ns = UINT64_MAX;
    hf_batch *next;
    for (hf_batch *batch = inbox->line.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->deadline_ns <= until_ns && may_take(inbox, batch)) {
            take_out(inbox, batch);
            hf_batches_append(out, batch);
        } else if (batch->deadline_ns < inbox->next_deadline_ns) {
            inbox->next_deadline_ns = batch->deadline_ns;
        }
    }
    hf_run_loop_unlock(inbox->run);
}

uint64_t hf_inbox_look(hf_inbox *inbox, bool *idle)
{
    hf_run_loop_lock(inbox->run);
    if (inbox->line.first == NULL)
        inbox->next_deadline_ns = UINT64_MAX;
    uint64_t next_ns = inbox->next_deadline_ns;
    *idle = inbox->run->retired && inbox->jobs == 0;
    hf_run_loop_unlock(inbox->run);
    return next_ns;
}
