/* batch.c - see batch.h. */
#include "producer/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/record.h"

enum { FIRST_SLOTS = 8, FIRST_CALLS = 4, PLACE_MAX = (1 << 30) - 1 };

/* An offset into a batch's bytes fits in 32 bits. */
_Static_assert(HF_BATCH_BYTES < UINT32_MAX, "a batch is addressed with 32 bits");

hf_batch *hf_batch_new(struct hf_target *target)
{
    hf_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return NULL;
    batch->target = target;
    hf_buf_init(&batch->bytes, HF_BATCH_BYTES);
    return batch;
}

void hf_batch_free(hf_batch *batch)
{
    if (batch == NULL)
        return;
    hf_buf_done(&batch->bytes);
    free(batch->slots);
    free(batch->calls);
    free(batch->items);
    free(batch->conflicts);
    free(batch->awaited);
    free(batch->codes);
    free(batch);
}

void hf_batch_expect(hf_batch *batch, size_t n, size_t bytes)
{
    hf_batch_job *slots = batch->slots == NULL ? malloc(n * sizeof *slots) : NULL;
    if (slots != NULL) {
        batch->slots = slots;
        batch->slots_cap = n;
    }
    if (bytes <= HF_BATCH_BYTES && hf_buf_room(&batch->bytes, bytes) == NULL)
        batch->bytes.err = HF_OK;
}

/* Room for one more element; NULL and no change: out of memory. */
static void *grown(void *array, size_t n, size_t *cap, size_t first, size_t size)
{
    if (n < *cap)
        return array;
    size_t more = *cap == 0 ? first : 2 * *cap;
    void *moved = realloc(array, more * size);
    if (moved != NULL)
        *cap = more;
    return moved;
}

/* Room for one more job; NULL: out of memory. */
static hf_batch_job *next_slot(hf_batch *batch)
{
    hf_batch_job *slots =
        grown(batch->slots, batch->n, &batch->slots_cap, FIRST_SLOTS, sizeof *slots);
    if (slots == NULL)
        return NULL;
    batch->slots = slots;
    return &slots[batch->n];
}

/* The bytes from `start` on are the job of the slot. Never too big: it was measured
 * before it was taken. */
static hf_err end_job(hf_batch *batch, size_t start, const hf_batch_job *job)
{
    if (hf_buf_err(&batch->bytes) != HF_OK) {
        batch->bytes.len = start;
        batch->bytes.err = HF_OK;
        return HF_NOMEM;
    }
    batch->slots[batch->n++] = *job;
    batch->n_made += job->made;
    return HF_OK;
}

hf_err hf_batch_add(hf_batch *batch, const hf_job *job, hf_job_id id, uint32_t place,
                    int64_t created_ms)
{
    if (next_slot(batch) == NULL)
        return HF_NOMEM;
    size_t start = batch->bytes.len;
    hf_buf_add(&batch->bytes, id.text, strlen(id.text) + 1);
    if (job->unique != NULL)
        hf_buf_add(&batch->bytes, job->unique, strlen(job->unique) + 1);
    size_t record = batch->bytes.len;
    hf_record_write(&batch->bytes, job, id.tells ? 0 : created_ms);
    batch->options |= hf_record_has_options(job);
    return end_job(
        batch, start,
        &(hf_batch_job){.id_at = (uint32_t)start,
                        .record_at = (uint32_t)record,
                        .record_len = (uint32_t)(batch->bytes.len - record),
                        .place = place & PLACE_MAX,
                        .made = id.made,
                        .chosen = job->id != NULL,
                        .due_ms = job->delay_ms > 0 ? -job->delay_ms : job->at_ms});
}

const char *hf_batch_shard_text(const hf_batch *batch, size_t i)
{
    const hf_batch_job *job = &batch->slots[i];
    const char *id = batch->bytes.data + job->id_at;
    size_t len = strlen(id) + 1;
    if (job->id_at + len < job->record_at)
        return id + len;
    return job->chosen ? id : NULL;
}

hf_err hf_batch_copy(hf_batch *batch, const hf_batch *from, size_t i)
{
    hf_batch_job job = from->slots[i];
    if (next_slot(batch) == NULL)
        return HF_NOMEM;
    size_t start = batch->bytes.len, id_len = job.record_at - job.id_at;
    hf_buf_add(&batch->bytes, from->bytes.data + job.id_at, id_len + job.record_len);
    job.id_at = (uint32_t)start;
    job.record_at = (uint32_t)(start + id_len);
    batch->options |= from->options;
    return end_job(batch, start, &job);
}

hf_err hf_batch_end_call(hf_batch *batch, const hf_batch_call *call)
{
    hf_batch_call *calls = grown(batch->calls, batch->n_calls, &batch->calls_cap,
                                 FIRST_CALLS, sizeof *calls);
    if (calls == NULL)
        return HF_NOMEM;
    batch->calls = calls;
    calls[batch->n_calls++] = *call;
    if (call->waiter == NULL)
        batch->callbacks++;
    return HF_OK;
}

void hf_batch_rewind(hf_batch *batch, size_t n)
{
    if (n >= batch->n)
        return;
    for (size_t i = n; i < batch->n; i++)
        batch->n_made -= batch->slots[i].made;
    batch->bytes.len = batch->slots[n].id_at;
    batch->n = n;
}

/* A delay counts from the call: the time that a job has waited here is subtracted. */
static int64_t due_now(int64_t due_ms, int64_t waited_ms)
{
    if (due_ms >= 0)
        return due_ms;
    return -due_ms > waited_ms ? due_ms + waited_ms : 0;
}

/* Mostly they are all of one kind, and then one letter is enough. */
static hf_bytes letters_of_made(const hf_batch *batch, char *room)
{
    bool mixed = batch->n_made != 0 && batch->n_made != batch->n;
    size_t n = mixed ? batch->n : batch->n_made != 0;
    for (size_t i = 0; i < n; i++)
        room[i] = batch->slots[i].made ? HF_ID_MADE : HF_ID_CHOSEN;
    return (hf_bytes){room, n};
}

hf_err hf_batch_seal(hf_batch *batch, uint64_t now_ns)
{
    hf_enqueue_item *items = malloc(batch->n * (sizeof *items + 1));
    if (items == NULL)
        return HF_NOMEM;
    const char *bytes = batch->bytes.data;
    size_t i = 0;
    for (size_t p = 0; p < batch->n_calls; p++) {
        const hf_batch_call *call = &batch->calls[p];
        /* A thread may have joined after the owner looked at the clock. */
        int64_t waited_ms =
            now_ns > call->taken_ns ? (int64_t)((now_ns - call->taken_ns) / HF_MS_NS) : 0;
        for (size_t end = i + call->n; i < end; i++) {
            const hf_batch_job *slot = &batch->slots[i];
            items[i] =
                (hf_enqueue_item){.id = bytes + slot->id_at,
                                  .due_ms = due_now(slot->due_ms, waited_ms),
                                  .record = {bytes + slot->record_at, slot->record_len}};
        }
    }
    HF_ASSERT(i == batch->n);
    batch->items = items;
    batch->made = letters_of_made(batch, (char *)(items + batch->n));
    batch->sealed_ns = now_ns;
    return HF_OK;
}

void hf_batch_rename(hf_batch *batch, uv_mutex_t *lock, hf_id_maker *ids,
                     const hf_reply *codes)
{
    size_t i = 0;
    uv_mutex_lock(lock);
    for (size_t p = 0; p < batch->n_calls; p++) {
        const hf_batch_call *call = &batch->calls[p];
        for (size_t end = i + call->n; i < end; i++) {
            const hf_batch_job *slot = &batch->slots[i];
            if (!slot->made || hf_reply_int(hf_reply_at(codes, i)) == HF_OK)
                continue;
            char *id = batch->bytes.data + slot->id_at;
            HF_ASSERT(strlen(id) == HF_NEW_ID_LEN);
            hf_id_next(ids, id);
            hf_batch_waiter_note_id(call->waiter, slot->place, id);
        }
    }
    uv_mutex_unlock(lock);
}

/* ---- a call that waits ---- */

hf_waiter *hf_batch_waiter_new(hf_enqueue_result *results)
{
    hf_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter != NULL)
        waiter->results = results;
    return waiter;
}

void hf_batch_waiter_free(hf_waiter *waiter)
{
    free(waiter);
}

void hf_batch_waiter_note_id(hf_waiter *waiter, size_t place, const char *id)
{
    if (waiter != NULL && waiter->results != NULL && !waiter->run.left)
        memcpy(waiter->results[place].id, id, strlen(id) + 1);
}

/* The worst of several answers is the one that leaves most open. */
static int badness(hf_err err)
{
    if (err == HF_OK || err == HF_EXISTS)
        return 0;
    if (err == HF_UNSURE)
        return 4;
    if (err == HF_UNCONFIRMED)
        return 3;
    return err == HF_TIMEOUT ? 2 : 1;
}

void hf_batch_waiter_answered(hf_waiter *waiter, hf_err err, const char *detail,
                              hf_run_loop *run)
{
    if (badness(err) > badness(waiter->worst)) {
        waiter->worst = err;
        (void)snprintf(waiter->detail, sizeof waiter->detail, "%s", detail);
    }
    if (--waiter->pending > 0)
        return;
    if (waiter->run.left)
        hf_batch_waiter_free(waiter);
    else
        hf_run_loop_done_locked(run, &waiter->run);
}

/* ---- telling ---- */

/* place, how, id, state of each. */
static hf_err take_conflicts(hf_batch *batch, const hf_reply *conflicts)
{
    size_t n = hf_reply_len(conflicts) / 4;
    hf_batch_conflict *list = n == 0 ? NULL : calloc(n, sizeof *list);
    if (n != 0 && list == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *how = hf_reply_text(hf_reply_at(conflicts, 4 * i + 1));
        const char *id = hf_reply_text(hf_reply_at(conflicts, 4 * i + 2));
        list[i].place = (size_t)hf_reply_int(hf_reply_at(conflicts, 4 * i)) - 1;
        list[i].how = strcmp(how, "skipped") == 0    ? HF_CONFLICT_SKIPPED
                      : strcmp(how, "replaced") == 0 ? HF_CONFLICT_REPLACED
                                                     : HF_CONFLICT_PARKED;
        list[i].state = (hf_err)hf_reply_int(hf_reply_at(conflicts, 4 * i + 3));
        (void)snprintf(list[i].id, sizeof list[i].id, "%s", id);
    }
    free(batch->conflicts);
    batch->conflicts = list;
    batch->n_conflicts = n;
    return HF_OK;
}

/* place, accepted of each. */
static hf_err take_awaited(hf_batch *batch, const hf_reply *awaited)
{
    size_t n = hf_reply_len(awaited) / 2;
    free(batch->awaited);
    batch->awaited = NULL;
    if (n == 0)
        return HF_OK;
    batch->awaited = calloc(batch->n, sizeof *batch->awaited);
    if (batch->awaited == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t place = (size_t)hf_reply_int(hf_reply_at(awaited, 2 * i)) - 1;
        if (place < batch->n)
            batch->awaited[place] = hf_reply_int(hf_reply_at(awaited, 2 * i + 1));
    }
    return HF_OK;
}

hf_err hf_batch_meet(hf_batch *batch, const hf_enqueued *got)
{
    hf_err err = take_conflicts(batch, got->conflicts);
    return err == HF_OK ? take_awaited(batch, got->awaited) : err;
}

static int64_t accepted_ms(const hf_batch *batch, size_t i)
{
    return batch->awaited != NULL && batch->awaited[i] != 0 ? batch->awaited[i]
                                                            : batch->accepted_ms;
}

static int by_place(const void *key, const void *element)
{
    const size_t *place = key;
    const hf_batch_conflict *conflict = element;
    return *place < conflict->place ? -1 : *place > conflict->place;
}

/* Another job may stand for the i-th one. */
static void tell_conflict(const hf_batch *batch, size_t i, hf_enqueue_result *result)
{
    const hf_batch_conflict *found =
        batch->n_conflicts == 0 ? NULL
                                : bsearch(&i, batch->conflicts, batch->n_conflicts,
                                          sizeof *batch->conflicts, by_place);
    result->conflict = found == NULL ? HF_CONFLICT_NONE : found->how;
    result->holder[0] = '\0';
    if (found == NULL)
        return;
    result->holder_state = found->state;
    memcpy(result->holder, found->id, sizeof result->holder);
    if (found->how != HF_CONFLICT_PARKED)
        memcpy(result->id, found->id, sizeof result->id);
}

hf_err hf_batch_keep(hf_batch *batch, const hf_reply *codes)
{
    free(batch->codes);
    batch->codes = NULL;
    if (codes == NULL)
        return HF_OK;
    batch->codes = malloc(batch->n);
    if (batch->codes == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < batch->n; i++)
        batch->codes[i] = (signed char)hf_reply_int(hf_reply_at(codes, i));
    return HF_OK;
}

/* The answer of Redis for one job. For a known id, its set only appears in the detail. */
static hf_err one_answer(const hf_batch *batch, const hf_outcome *outcome, size_t i,
                         hf_err *state, const char **detail)
{
    *state = HF_OK;
    *detail = outcome->detail;
    if (outcome->err != HF_OK || (outcome->codes == NULL && batch->codes == NULL))
        return outcome->err;
    int64_t code = outcome->codes == NULL ? batch->codes[i]
                                          : hf_reply_int(hf_reply_at(outcome->codes, i));
    if (code == HF_OK)
        return HF_OK;
    if (code == HF_RUNNING || code == HF_DEAD)
        *detail = hf_err_text((hf_err)code);
    *state = (hf_err)code;
    return HF_EXISTS;
}

static void tell_callback(const hf_batch *batch, const hf_batch_call *call, size_t i,
                          const hf_outcome *outcome)
{
    hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
    const char *detail;
    if (call->cb == NULL)
        return;
    result.err = one_answer(batch, outcome, i, &result.holder_state, &detail);
    result.accepted_ms = accepted_ms(batch, i);
    const char *id = batch->bytes.data + batch->slots[i].id_at;
    memcpy(result.id, id, strlen(id) + 1);
    tell_conflict(batch, i, &result);
    call->cb(&result, detail, call->arg);
}

static void tell_waiter(const hf_batch *batch, const hf_batch_call *call, size_t first,
                        const hf_outcome *outcome, hf_run_loop *run)
{
    hf_waiter *waiter = call->waiter;
    bool wanted = waiter->results != NULL && !waiter->run.left;
    for (size_t i = first; i < first + call->n && wanted; i++) {
        const char *detail;
        hf_enqueue_result *result = &waiter->results[batch->slots[i].place];
        result->err = one_answer(batch, outcome, i, &result->holder_state, &detail);
        result->accepted_ms = accepted_ms(batch, i);
        tell_conflict(batch, i, result);
    }
    hf_batch_waiter_answered(waiter, outcome->err, outcome->detail, run);
}

void hf_batch_report(hf_batch *batch, const hf_outcome *outcome, hf_run_loop *run)
{
    size_t first = 0;
    for (size_t p = 0; p < batch->n_calls; first += batch->calls[p++].n)
        if (batch->calls[p].waiter != NULL)
            tell_waiter(batch, &batch->calls[p], first, outcome, run);
}

void hf_batch_call_back(hf_batch *batch, const hf_outcome *outcome)
{
    size_t first = 0;
    for (size_t p = 0; p < batch->n_calls; first += batch->calls[p++].n)
        if (batch->calls[p].waiter == NULL)
            tell_callback(batch, &batch->calls[p], first, outcome);
}

/* ---- a line of batches ---- */

static void link_between(hf_batches *list, hf_batch *prev, hf_batch *batch,
                         hf_batch *next)
{
    batch->prev = prev;
    batch->next = next;
    if (prev != NULL)
        prev->next = batch;
    else
        list->first = batch;
    if (next != NULL)
        next->prev = batch;
    else
        list->last = batch;
}

void hf_batches_append(hf_batches *list, hf_batch *batch)
{
    link_between(list, list->last, batch, NULL);
}

void hf_batches_insert(hf_batches *list, hf_batch *before, hf_batch *batch)
{
    link_between(list, before == NULL ? list->last : before->prev, batch, before);
}

void hf_batches_in_turn(hf_batches *list, hf_batch *batch)
{
    hf_batch *after = list->last;
    while (after != NULL && after->turn > batch->turn)
        after = after->prev;
    link_between(list, after, batch, after == NULL ? list->first : after->next);
}

void hf_batches_remove(hf_batches *list, hf_batch *batch)
{
    if (batch->prev != NULL)
        batch->prev->next = batch->next;
    else
        list->first = batch->next;
    if (batch->next != NULL)
        batch->next->prev = batch->prev;
    else
        list->last = batch->prev;
    batch->next = batch->prev = NULL;
}
