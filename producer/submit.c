/* submit.c - see submit.h. */
#include "producer/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/slots.h"

/* A request has one deadline, that of the call that began it. Another call may join if
 * this deadline is at most this fraction of its own time too early, or a moment too late:
 * threads that call at the same time arrive in any order. */
enum {
    SHARED_DEADLINE_PART = 16,
    DISORDER_NS = 1000000,
    SILENT_NS = 10000000 /* calls that may go elsewhere do not wait behind one so old */
};

hf_err hf_submit_init(hf_submit_queue *queue, hf_run_loop *run,
                      const hf_producer_opts *opts)
{
    *queue = (hf_submit_queue){.run = run,
                               .jobs_max = opts->buffer_jobs,
                               .bytes_max = opts->buffer_bytes,
                               .next_deadline_ns = UINT64_MAX};
    (void)snprintf(queue->ns, sizeof queue->ns, "%s", opts->server->ns);
    return hf_id_maker_init(&queue->ids);
}

void hf_submit_done(hf_submit_queue *queue)
{
    for (hf_line *line = queue->lines; line != NULL; line = line->next) {
        while (line->batches.first != NULL) {
            hf_batch *batch = line->batches.first;
            hf_batches_remove(&line->batches, batch);
            hf_batch_free(batch);
        }
    }
    for (size_t i = 0; i < HF_TARGET_BUCKETS; i++) {
        while (queue->buckets[i] != NULL) {
            hf_target *target = queue->buckets[i];
            queue->buckets[i] = target->next;
            free(target->shards);
            free(target);
        }
    }
}

/* ---- queues; the lock is held ---- */

/* FNV-1a. */
static size_t bucket_of(const char *name)
{
    uint32_t h = UINT32_C(2166136261);
    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT32_C(16777619);
    return h % HF_TARGET_BUCKETS;
}

static bool is_named(const hf_target *target, const char *name)
{
    return target->whole == NULL && strcmp(target->queue.name, name) == 0;
}

/* The owner sees it with its next look. */
static void put_target(hf_submit_queue *queue, hf_target *target, hf_target **at)
{
    target->slot = hf_slot(target->queue.prefix, target->queue.prefix_len);
    target->line = queue->home;
    target->fresh = queue->fresh;
    queue->fresh = target;
    target->next = *at;
    *at = target;
    queue->n_targets++;
}

static hf_err target_of(hf_submit_queue *queue, const char *name, hf_target **out)
{
    hf_target *target = queue->last_target;
    if (target == NULL || strcmp(target->queue.name, name) != 0) {
        hf_target **bucket = &queue->buckets[bucket_of(name)];
        target = *bucket;
        while (target != NULL && !is_named(target, name))
            target = target->next;
        if (target == NULL) {
            if (queue->n_targets == HF_TARGETS_MAX)
                return HF_FULL;
            target = calloc(1, sizeof *target);
            if (target == NULL)
                return HF_NOMEM;
            hf_err err = hf_queue_init(&target->queue, queue->ns, name);
            HF_ASSERT(err == HF_OK);
            put_target(queue, target, bucket);
        }
    }
    *out = queue->last_target = target;
    return HF_OK;
}

hf_err hf_submit_target(hf_submit_queue *queue, const char *name, hf_target **out)
{
    hf_run_loop_lock(queue->run);
    hf_err err = target_of(queue, name, out);
    hf_run_loop_unlock(queue->run);
    return err;
}

/* ---- counting; the lock is held ---- */

static hf_err reserve(hf_submit_queue *queue, const hf_intake *in)
{
    if (queue->run->retired)
        return HF_CLOSED;
    if (queue->numbering != HF_NUMBERS_UNUSED && queue->numbering != in->numbering)
        return HF_INVALID;
    if (in->n > queue->jobs_max - queue->jobs ||
        in->bytes > queue->bytes_max - queue->bytes)
        return HF_FULL;
    queue->numbering = in->numbering;
    queue->jobs += in->n;
    queue->bytes += in->bytes;
    return HF_OK;
}

static void unreserve(hf_submit_queue *queue, size_t jobs, size_t bytes)
{
    HF_ASSERT(jobs <= queue->jobs && bytes <= queue->bytes);
    queue->jobs -= jobs;
    queue->bytes -= bytes;
}

hf_err hf_submit_reserve(hf_submit_queue *queue, const hf_intake *in)
{
    hf_run_loop_lock(queue->run);
    hf_err err = reserve(queue, in);
    hf_run_loop_unlock(queue->run);
    return err;
}

void hf_submit_unreserve(hf_submit_queue *queue, size_t jobs, size_t bytes)
{
    hf_run_loop_lock(queue->run);
    unreserve(queue, jobs, bytes);
    hf_run_loop_unlock(queue->run);
}

bool hf_submit_ids(hf_submit_queue *queue, char (*out)[HF_NEW_ID_SIZE], size_t n,
                   int64_t created_ms)
{
    hf_run_loop_lock(queue->run);
    for (size_t i = 0; i < n; i++)
        hf_id_next(&queue->ids, out[i]);
    bool tell = hf_id_maker_tells(&queue->ids, created_ms);
    hf_run_loop_unlock(queue->run);
    return tell;
}

/* ---- putting in ---- */

static void note_deadline(hf_submit_queue *queue, const hf_batch *batch)
{
    if (batch->deadline_ns < queue->next_deadline_ns)
        queue->next_deadline_ns = batch->deadline_ns;
}

static void put_last(hf_submit_queue *queue, hf_batch *batch)
{
    hf_batches_append(&batch->target->line->batches, batch);
    queue->waiting++;
    note_deadline(queue, batch);
}

void hf_submit_put(hf_submit_queue *queue, hf_batches *batches)
{
    hf_run_loop_lock(queue->run);
    while (batches->first != NULL) {
        hf_batch *batch = batches->first;
        hf_batches_remove(batches, batch);
        put_last(queue, batch);
    }
    hf_run_loop_unlock(queue->run);
}

static bool has_room(const hf_batch *batch, const hf_intake *in)
{
    uint64_t early_ns = (in->deadline_ns - in->now_ns) / SHARED_DEADLINE_PART;
    return batch->n + in->n <= HF_SHARED_JOBS &&
           batch->charge + in->bytes <= HF_SHARED_BYTES &&
           in->deadline_ns <= batch->deadline_ns + early_ns &&
           in->deadline_ns + DISORDER_NS >= batch->deadline_ns;
}

/* Its node can be reached, and has not been silent for long. */
static bool is_awake(const hf_target *shard, uint64_t now_ns)
{
    uint64_t waits_ns =
        atomic_load_explicit(&shard->line->waits_ns, memory_order_relaxed);
    return !shard->line->down && (waits_ns == 0 || now_ns < waits_ns + SILENT_NS);
}

/* The next one whose node is awake; NULL: none is. */
static hf_target *next_awake(hf_shard_states *shards, uint64_t now_ns)
{
    const unsigned next = shards->turn + 1;
    for (unsigned i = next; i < next + shards->n; i++) {
        hf_target *shard = shards->at[i % shards->n];
        if (is_awake(shard, now_ns)) {
            shards->turn = i % shards->n;
            return shard;
        }
    }
    return NULL;
}

static hf_target *next_shard(hf_shard_states *shards, uint64_t now_ns)
{
    hf_target *shard = next_awake(shards, now_ns);
    if (shard != NULL)
        return shard;
    shards->turn = (shards->turn + 1) % shards->n;
    return shards->at[shards->turn];
}

/* A call without ids joins the batch that the one before it has begun, so that batches
 * stay large; the next batch goes to the next shard. */
static hf_target *shard_to_join(hf_shard_states *shards, const hf_intake *in)
{
    hf_target *shard = shards->at[shards->turn];
    if (shard->open == NULL || !has_room(shard->open, in))
        return next_shard(shards, in->now_ns);
    hf_target *other =
        is_awake(shard, in->now_ns) ? NULL : next_awake(shards, in->now_ns);
    return other != NULL ? other : shard;
}

/* Where a small call goes. If it has ids for several shards, and these were not known
 * when it was looked at, Redis refuses it and it is divided then. */
static hf_target *place_of(hf_target *target, const hf_intake *in)
{
    hf_shard_states *shards = target->shards;
    if (shards == NULL)
        return target;
    if (in->n == 1 && hf_job_shard_text(&in->jobs[0]) != NULL)
        return shards->at[hf_shard_of_id(hf_job_shard_text(&in->jobs[0]), shards->n)];
    for (size_t i = 0; i < in->n; i++)
        if (hf_job_shard_text(&in->jobs[i]) != NULL)
            return target;
    return shard_to_join(shards, in);
}

static hf_err append(hf_submit_queue *queue, hf_batch *batch, const hf_intake *in,
                     const hf_batch_call *call)
{
    hf_err err = HF_OK;
    size_t before = batch->n;
    for (size_t i = 0; err == HF_OK && i < in->n; i++) {
        char made[HF_NEW_ID_SIZE];
        const hf_job *job = &in->jobs[i];
        hf_job_id id = {.text = job->id != NULL ? job->id : made,
                        .made = job->id == NULL};
        if (id.made) {
            hf_id_next(&queue->ids, made);
            id.tells = hf_id_maker_tells(&queue->ids, in->created_ms);
        }
        err = hf_batch_add(batch, job, id, (uint32_t)i, in->created_ms);
        hf_batch_waiter_note_id(call->waiter, i, id.text);
    }
    if (err == HF_OK)
        err = hf_batch_end_call(batch, call);
    if (err != HF_OK)
        hf_batch_rewind(batch, before);
    return err;
}

static hf_err join(hf_submit_queue *queue, hf_target *target, const hf_intake *in,
                   const hf_batch_call *call, bool *ready)
{
    hf_batch *batch = target->open;
    bool begun = batch == NULL || !has_room(batch, in);
    if (begun) {
        batch = hf_batch_new(target);
        if (batch == NULL)
            return HF_NOMEM;
        batch->taken_ns = in->now_ns;
        batch->deadline_ns = in->deadline_ns;
    }
    hf_err err = append(queue, batch, in, call);
    if (err != HF_OK) {
        if (begun)
            hf_batch_free(batch);
        return err;
    }
    batch->charge += in->bytes;
    if (begun) {
        put_last(queue, batch);
        target->open = batch;
    }
    const size_t wanted = target->line->enough;
    bool enough = batch->n >= wanted && batch->n - in->n < wanted;
    bool first_callback = call->waiter == NULL && queue->run->callbacks++ == 0;
    *ready = begun || enough || first_callback;
    return HF_OK;
}

hf_err hf_submit_join(hf_submit_queue *queue, const hf_intake *in,
                      const hf_batch_call *call, bool *ready)
{
    hf_target *target;
    const char *name = in->jobs[0].queue != NULL ? in->jobs[0].queue : HF_DEFAULT_QUEUE;
    hf_run_loop_lock(queue->run);
    hf_err err = target_of(queue, name, &target);
    if (err == HF_OK)
        err = reserve(queue, in);
    if (err == HF_OK) {
        err = join(queue, place_of(target, in), in, call, ready);
        if (err != HF_OK)
            unreserve(queue, in->n, in->bytes);
    }
    hf_run_loop_unlock(queue->run);
    return err;
}

/* ---- the side of the loop owner ---- */

/* Their space is free before their callers have the result. */
void hf_submit_report(hf_submit_queue *queue, hf_batch *batch, const hf_outcome *outcome)
{
    hf_run_loop_lock(queue->run);
    unreserve(queue, batch->n, batch->charge);
    queue->run->callbacks -= batch->callbacks;
    hf_batch_report(batch, outcome, queue->run);
    hf_run_loop_unlock(queue->run);
    if (batch->callbacks == 0)
        return;
    hf_run_loop_wake_done(queue->run); /* a callback may take its time */
    hf_batch_call_back(batch, outcome);
}

/* A caller that owns the loop leaves callbacks to the service thread. */
static bool may_take(const hf_submit_queue *queue, const hf_batch *batch)
{
    return !queue->run->by_caller || batch->callbacks == 0;
}

static void take_out(hf_submit_queue *queue, hf_batch *batch)
{
    hf_batches_remove(&batch->target->line->batches, batch);
    queue->waiting--;
    if (batch->target->open == batch)
        batch->target->open = NULL;
}

hf_batch *hf_submit_take(hf_submit_queue *queue, hf_line *line, size_t enough,
                         uint64_t gather_ns, uint64_t now_ns, uint64_t *later_ns)
{
    hf_run_loop_lock(queue->run);
    hf_batch *batch = line->batches.first;
    line->enough = enough;
    if (batch != NULL && batch->target->open == batch && batch->n < enough &&
        now_ns < batch->taken_ns + gather_ns) {
        if (batch->taken_ns + gather_ns < *later_ns)
            *later_ns = batch->taken_ns + gather_ns;
        batch = NULL;
    }
    if (batch != NULL && !may_take(queue, batch))
        batch = NULL;
    if (batch != NULL)
        take_out(queue, batch);
    hf_run_loop_unlock(queue->run);
    return batch;
}

void hf_submit_put_back(hf_submit_queue *queue, hf_batch *batch)
{
    hf_run_loop_lock(queue->run);
    hf_batches *line = &batch->target->line->batches;
    hf_batch *before = line->first;
    while (before != NULL && before->turn != 0 && before->turn < batch->turn)
        before = before->next;
    hf_batches_insert(line, before, batch);
    queue->waiting++;
    note_deadline(queue, batch);
    hf_run_loop_unlock(queue->run);
}

static void expire_line(hf_submit_queue *queue, hf_line *line, uint64_t until_ns,
                        hf_batches *out)
{
    hf_batch *next;
    for (hf_batch *batch = line->batches.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->deadline_ns <= until_ns && may_take(queue, batch)) {
            take_out(queue, batch);
            hf_batches_append(out, batch);
        } else if (batch->deadline_ns < queue->next_deadline_ns) {
            queue->next_deadline_ns = batch->deadline_ns;
        }
    }
}

void hf_submit_expire(hf_submit_queue *queue, const hf_line *all, uint64_t now_ns,
                      hf_batches *out)
{
    hf_run_loop_lock(queue->run);
    queue->next_deadline_ns = UINT64_MAX;
    for (hf_line *line = queue->lines; line != NULL; line = line->next)
        expire_line(queue, line, line == all ? UINT64_MAX : now_ns, out);
    hf_run_loop_unlock(queue->run);
}

uint64_t hf_submit_look(hf_submit_queue *queue, bool *idle)
{
    hf_run_loop_lock(queue->run);
    if (queue->waiting == 0)
        queue->next_deadline_ns = UINT64_MAX;
    uint64_t next_ns = queue->next_deadline_ns;
    *idle = queue->run->retired && queue->jobs == 0;
    hf_run_loop_unlock(queue->run);
    return next_ns;
}

/* ---- lines ---- */

void hf_submit_add_line(hf_submit_queue *queue, hf_line *line)
{
    hf_run_loop_lock(queue->run);
    line->next = queue->lines;
    queue->lines = line;
    hf_run_loop_unlock(queue->run);
}

void hf_submit_drop_line(hf_submit_queue *queue, hf_line *line)
{
    hf_run_loop_lock(queue->run);
    HF_ASSERT(line->batches.first == NULL);
    hf_line **at = &queue->lines;
    while (*at != line)
        at = &(*at)->next;
    *at = line->next;
    hf_run_loop_unlock(queue->run);
}

static void take_moving(hf_line *line, hf_batches *out)
{
    hf_batch *next;
    for (hf_batch *batch = line->batches.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->target->line == line)
            continue;
        hf_batches_remove(&line->batches, batch);
        hf_batches_append(out, batch);
    }
}

void hf_submit_move(hf_submit_queue *queue, hf_target *targets)
{
    hf_batches moving = {NULL, NULL};
    hf_run_loop_lock(queue->run);
    for (hf_target *t = targets; t != NULL; t = t->routed)
        t->line = t->goes;
    for (hf_line *line = queue->lines; line != NULL; line = line->next)
        take_moving(line, &moving);
    while (moving.first != NULL) {
        hf_batch *batch = moving.first;
        hf_batches_remove(&moving, batch);
        hf_batches_append(&batch->target->line->batches, batch);
    }
    hf_run_loop_unlock(queue->run);
}

hf_target *hf_submit_new_target(hf_submit_queue *queue)
{
    hf_run_loop_lock(queue->run);
    hf_target *target = queue->fresh;
    if (target != NULL)
        queue->fresh = target->fresh;
    hf_run_loop_unlock(queue->run);
    return target;
}

/* ---- shards ---- */

const hf_shard_states *hf_submit_shards(hf_submit_queue *queue, const hf_target *target)
{
    hf_run_loop_lock(queue->run);
    const hf_shard_states *shards = target->shards;
    hf_run_loop_unlock(queue->run);
    return shards;
}

hf_target *hf_submit_next_shard(hf_submit_queue *queue, hf_target *target)
{
    hf_run_loop_lock(queue->run);
    hf_target *shard = next_shard(target->shards, hf_boot_ns());
    hf_run_loop_unlock(queue->run);
    return shard;
}

unsigned hf_submit_shard_of_number(const char *producer, uint64_t number, unsigned n)
{
    return (unsigned)((hf_shard_of_id(producer, n) + number) % n);
}

static hf_err make_shards(hf_submit_queue *queue, hf_target *target,
                          const hf_shards *found)
{
    HF_ASSERT(found->n >= HF_SHARDS_MIN);
    if (found->n > HF_TARGETS_MAX - queue->n_targets)
        return HF_FULL;
    hf_shard_states *shards = calloc(1, sizeof *shards + found->n * sizeof shards->at[0]);
    while (shards != NULL && shards->n < found->n &&
           (shards->at[shards->n] = calloc(1, sizeof *target)) != NULL)
        shards->n++;
    if (shards == NULL || shards->n < found->n) {
        while (shards != NULL && shards->n > 0)
            free(shards->at[--shards->n]);
        free(shards);
        return HF_NOMEM;
    }
    for (unsigned i = 0; i < shards->n; i++) {
        hf_target *shard = shards->at[i];
        hf_shards_queue(found, &target->queue, i, &shard->queue);
        shard->whole = target;
        put_target(queue, shard, &target->next);
    }
    shards->turn = (unsigned)queue->ids.low % shards->n; /* producers begin anywhere */
    target->shards = shards;
    target->open = NULL; /* it is divided when Redis has refused it */
    return HF_OK;
}

hf_err hf_submit_divide(hf_submit_queue *queue, hf_target *target, const char *words)
{
    hf_shards shards;
    hf_err err = hf_shards_refused(&shards, words);
    hf_run_loop_lock(queue->run);
    if (err == HF_OK && target->shards == NULL)
        err = make_shards(queue, target, &shards);
    hf_run_loop_unlock(queue->run);
    return err;
}

/* The parts of a batch, one for each shard or NULL, and how many jobs each has of the
 * call at hand. */
typedef struct parts {
    const char *producer;
    hf_shard_states *shards;
    hf_batch *of[HF_SHARDS_MAX];
    size_t n[HF_SHARDS_MAX];
    unsigned without_id; /* the shard of all jobs whose ids were made */
} parts;

static unsigned shard_without_id(parts *p, const hf_batch *batch)
{
    if (batch->numbered)
        return hf_submit_shard_of_number(p->producer, batch->number, p->shards->n);
    (void)next_shard(p->shards, hf_boot_ns());
    return p->shards->turn;
}

static hf_err put_part(parts *p, const hf_batch *batch, size_t i)
{
    const char *text = hf_batch_shard_text(batch, i);
    unsigned k = text != NULL ? hf_shard_of_id(text, p->shards->n) : p->without_id;
    hf_batch *part = p->of[k];
    if (part == NULL && (part = hf_batch_new(p->shards->at[k])) == NULL)
        return HF_NOMEM;
    p->of[k] = part;
    p->n[k]++;
    return hf_batch_copy(part, batch, i);
}

static hf_err put_call(parts *p, const hf_batch *batch, size_t first, size_t c)
{
    hf_batch_call call = batch->calls[c];
    hf_err err = HF_OK;
    memset(p->n, 0, sizeof p->n);
    p->without_id = shard_without_id(p, batch);
    for (size_t i = first; err == HF_OK && i < first + call.n; i++)
        err = put_part(p, batch, i);
    for (unsigned k = 0; err == HF_OK && k < p->shards->n; k++) {
        if (p->n[k] == 0)
            continue;
        call.n = p->n[k];
        err = hf_batch_end_call(p->of[k], &call);
    }
    return err;
}

/* A call is reported when all of its parts are. */
static void put_parts(hf_submit_queue *queue, parts *p, const hf_batch *batch)
{
    size_t charge = batch->charge, n = batch->n;
    for (size_t c = 0; c < batch->n_calls; c++)
        if (batch->calls[c].waiter != NULL)
            batch->calls[c].waiter->pending--;
    for (unsigned k = 0; k < p->shards->n; k++) {
        hf_batch *part = p->of[k];
        if (part == NULL)
            continue;
        for (size_t c = 0; c < part->n_calls; c++)
            if (part->calls[c].waiter != NULL)
                part->calls[c].waiter->pending++;
        part->taken_ns = batch->taken_ns;
        part->deadline_ns = batch->deadline_ns;
        part->numbered = batch->numbered;
        part->number = batch->numbered ? batch->number : 0;
        part->charge = charge * part->n / n; /* all of it, in the end */
        charge -= part->charge;
        n -= part->n;
        put_last(queue, part);
    }
}

hf_err hf_submit_divide_batch(hf_submit_queue *queue, const hf_batch *batch,
                              const char *producer)
{
    parts *p = calloc(1, sizeof *p);
    hf_err err = p == NULL ? HF_NOMEM : HF_OK;
    hf_run_loop_lock(queue->run);
    if (p != NULL) {
        p->producer = producer;
        p->shards = batch->target->shards;
    }
    for (size_t c = 0, first = 0; err == HF_OK && c < batch->n_calls;
         first += batch->calls[c++].n)
        err = put_call(p, batch, first, c);
    if (err == HF_OK)
        put_parts(queue, p, batch);
    hf_run_loop_unlock(queue->run);
    for (unsigned k = 0; err != HF_OK && p != NULL && k < HF_SHARDS_MAX; k++)
        hf_batch_free(p->of[k]);
    free(p);
    return err;
}

/* It can go to any shard. In line there are only batches that no Redis has executed. */
static bool may_go_anywhere(const hf_batch *batch)
{
    return batch->target->whole != NULL && batch->n_made == batch->n && !batch->numbered;
}

static void leave_line(hf_submit_queue *queue, hf_line *line)
{
    hf_batch *next;
    for (hf_batch *batch = line->batches.first; batch != NULL; batch = next) {
        next = batch->next;
        if (!may_go_anywhere(batch))
            continue;
        hf_target *shard = next_shard(batch->target->whole->shards, hf_boot_ns());
        if (shard->line->down)
            continue;
        take_out(queue, batch);
        batch->target = shard;
        put_last(queue, batch);
    }
}

void hf_submit_line_is_down(hf_submit_queue *queue, hf_line *line, bool down)
{
    hf_run_loop_lock(queue->run);
    line->down = down;
    if (down)
        leave_line(queue, line);
    hf_run_loop_unlock(queue->run);
}
