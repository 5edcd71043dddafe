/* ops_claim.c - taking jobs, keeping them, and giving back what a lost answer took. */
#include "queue/ops.h"

#include <string.h>

#include "base/base.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum {
    CLAIM_ARGS = 9,
    CLAIM_HEAD = 7, /* of its answer: the fields before the jobs */
    UNCLAIM_ARGS = 2,
    RENEW_FIXED = 5,
    RENEW_EACH = 2,
    RENEW_NOTE = 3
};

/* ---- claim ---- */

enum { NUMBERS_SIZE = 3 * (HF_DECIMAL_MAX + 1) };

/* Up to three numbers as one argument: Redis takes as long for each argument as for a
 * field of a hash. */
static hf_bytes numbers(char out[NUMBERS_SIZE], const int64_t *values, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            out[len++] = ' ';
        len += hf_args_digits(out + len, values[i]);
    }
    return (hf_bytes){out, len};
}

hf_err hf_op_claim(hf_client *client, const hf_queue *queue, const hf_claim_args *args,
                   hf_answer_cb cb, void *arg)
{
    hf_args a;
    char rules[NUMBERS_SIZE];
    HF_ASSERT(args->max >= 1 && args->max <= HF_CLAIM_MAX);
    hf_args_init(&a, CLAIM_ARGS, CLAIM_ARGS);
    hf_args_text(&a, args->worker);
    hf_args_int(&a, (int64_t)args->number);
    hf_args_int(&a, args->max);
    hf_args_int(&a, args->lease_ms);
    hf_args_int(&a, args->not_after);
    hf_args_int(&a, args->alive_ms);
    hf_args_text(&a, args->doubted ? "doubted" : args->due ? "due" : "");
    hf_args_int(&a, args->slots != 0 ? args->slots : args->max);
    int64_t poison = args->forgive ? 0 : args->poison;
    hf_args_bytes(
        &a, numbers(rules, (int64_t[]){poison, args->dead_max, args->dead_age_ms}, 3));
    return hf_queue_send(client, queue, &hf_lua_queue_claim, &a, 0, cb, arg);
}

hf_err hf_claimed_read(const hf_answer *answer, hf_claimed *out)
{
    *out = (hf_claimed){.n = 0};
    hf_err err = hf_send_script_status(answer, CLAIM_HEAD, &out->now_ms);
    if (err != HF_OK)
        return err;
    const hf_reply *reply = answer->reply;
    size_t len = hf_reply_len(reply);
    out->fence = hf_reply_bytes(hf_reply_at(reply, 2));
    out->next_ms = hf_reply_int(hf_reply_at(reply, 3));
    const hf_reply *more = hf_reply_at(reply, 4);
    out->ticks = hf_reply_at(more, 1);
    out->more = hf_reply_int(hf_reply_is_array(more) ? hf_reply_at(more, 0) : more) != 0;
    out->crashes_ = hf_reply_at(reply, 5);
    out->buried_ = hf_reply_at(reply, 6);
    out->n_buried = hf_reply_len(out->buried_) / 2;
    if (out->fence.len == 0)
        return HF_PROTO;
    if (len == CLAIM_HEAD)
        return HF_OK;
    out->reply_ = reply;
    out->due_ = hf_reply_at(reply, CLAIM_HEAD);
    const hf_reply *ids = hf_reply_at(reply, CLAIM_HEAD + 1);
    size_t n = (len - CLAIM_HEAD - 1) / 2;
    if (hf_reply_is_array(ids)) { /* and the records are another one */
        out->ids_ = ids;
        out->records_ = hf_reply_at(reply, CLAIM_HEAD + 2);
        if (n != 1 || hf_reply_len(out->records_) != hf_reply_len(ids))
            return HF_PROTO;
        n = hf_reply_len(ids);
        len = CLAIM_HEAD + 1 + 2 * n;
    }
    if (n == 0 || len != CLAIM_HEAD + 1 + 2 * n ||
        (hf_reply_is_array(out->due_) && hf_reply_len(out->due_) != n))
        return HF_PROTO;
    out->n = n;
    return HF_OK;
}

/* Only jobs whose holder died, or that have a checkpoint, are listed, and those are few.
 */
static void read_marks(const hf_claimed *claimed, hf_claimed_job *out)
{
    size_t n = hf_reply_len(claimed->crashes_);
    out->crashes = 0;
    out->ran_before = false;
    out->checkpoint = (hf_bytes){"", 0};
    for (size_t i = 0; i + 2 < n; i += 3) {
        hf_bytes other = hf_reply_bytes(hf_reply_at(claimed->crashes_, i));
        if (other.len == out->id.len && memcmp(other.ptr, out->id.ptr, other.len) == 0) {
            out->ran_before = true;
            out->crashes = (uint32_t)hf_reply_int(hf_reply_at(claimed->crashes_, i + 1));
            out->checkpoint = hf_reply_bytes(hf_reply_at(claimed->crashes_, i + 2));
            return;
        }
    }
}

void hf_claimed_at(const hf_claimed *claimed, size_t i, hf_claimed_job *out)
{
    const hf_reply *due = claimed->due_;
    const hf_reply *ids = claimed->ids_, *all = claimed->reply_;
    size_t at = CLAIM_HEAD + 1 + 2 * i;
    out->id = hf_reply_bytes(ids != NULL ? hf_reply_at(ids, i) : hf_reply_at(all, at));
    out->record = hf_reply_bytes(ids != NULL ? hf_reply_at(claimed->records_, i)
                                             : hf_reply_at(all, at + 1));
    out->due_ms = hf_reply_int(hf_reply_is_array(due) ? hf_reply_at(due, i) : due);
    read_marks(claimed, out);
}

void hf_claimed_buried(const hf_claimed *claimed, size_t i, hf_bytes *id, hf_bytes *why)
{
    *id = hf_reply_bytes(hf_reply_at(claimed->buried_, 2 * i));
    *why = hf_reply_bytes(hf_reply_at(claimed->buried_, 2 * i + 1));
}

hf_err hf_op_unclaim(hf_client *client, const hf_queue *queue, const char *worker,
                     uint64_t number, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, UNCLAIM_ARGS, 1);
    hf_args_text(&a, worker);
    hf_args_int(&a, (int64_t)number);
    return hf_queue_send(client, queue, &hf_lua_queue_unclaim, &a, 0, cb, arg);
}

/* ---- renew ---- */

static void add_note(hf_args *a, const hf_renew_note *note)
{
    hf_args_int(a, (int64_t)note->place + 1);
    hf_args_text(a, note->kind == HF_RENEW_PROGRESS     ? "progress"
                    : note->kind == HF_RENEW_CHECKPOINT ? "checkpoint"
                                                        : "log");
    hf_args_bytes(a, note->text);
}

hf_err hf_op_renew(hf_client *client, const hf_queue *queue, const hf_renew_args *args,
                   const hf_renew_item *items, size_t n, uint32_t timeout_ms,
                   hf_answer_cb cb, void *arg)
{
    hf_args a;
    HF_ASSERT(n >= 1 && n <= HF_VERDICTS_MAX);
    hf_args_init(&a, RENEW_FIXED + RENEW_EACH * n + RENEW_NOTE * args->n_notes,
                 RENEW_FIXED + args->n_notes);
    hf_args_text(&a, args->worker);
    hf_args_int(&a, args->lease_ms);
    hf_args_int(&a, args->not_after);
    hf_args_int(&a, args->alive_ms);
    hf_args_int(&a, (int64_t)(RENEW_NOTE * args->n_notes));
    for (size_t i = 0; i < n; i++) {
        hf_args_text(&a, items[i].id);
        hf_args_text(&a, items[i].fence);
    }
    for (size_t i = 0; i < args->n_notes; i++)
        add_note(&a, &args->notes[i]);
    return hf_queue_send(client, queue, &hf_lua_queue_renew, &a, timeout_ms, cb, arg);
}
