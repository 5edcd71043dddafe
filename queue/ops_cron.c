/* ops_cron.c - the operations on schedules. */
#include "queue/schedule.h"

#include "queue/send.h"
#include "queue_scripts.h"

enum {
    PUT_ARGS = 6,
    TICK_FIXED = 2,
    TICK_EACH = 7,
    JOB_EACH = 3,
    DUE_ARGS = 2,
    DUE_EACH = 5,
    DUE_HEAD = 2
};

static void add_time(hf_args *a, int64_t ms)
{
    if (ms == 0)
        hf_args_text(a, "");
    else
        hf_args_int(a, ms);
}

hf_err hf_op_cron_put(hf_client *client, const hf_queue *queue,
                      const hf_cron_put_args *args, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, PUT_ARGS, 3);
    hf_args_int(&a, args->not_after);
    hf_args_text(&a, args->id);
    add_time(&a, args->next_ms);
    hf_args_bytes(&a, args->value);
    hf_args_text(&a, args->file);
    hf_args_int(&a, args->rev);
    return hf_queue_send(client, queue, &hf_lua_queue_cron_put, &a, 0, cb, arg);
}

hf_err hf_cron_put_read(const hf_answer *answer, bool *written)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    *written = err == HF_OK && hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    return err;
}

hf_err hf_op_cron_due(hf_client *client, const hf_queue *queue, const char *worker,
                      hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, DUE_ARGS, 1);
    hf_args_int(&a, HF_DUE_SCHEDULES);
    hf_args_text(&a, worker);
    return hf_queue_send(client, queue, &hf_lua_queue_cron_due, &a, 0, cb, arg);
}

hf_err hf_cron_due_read(const hf_answer *answer, hf_cron_due *out)
{
    *out = (hf_cron_due){.n = 0};
    hf_err err = hf_send_script_status(answer, DUE_HEAD, &out->now_ms);
    if (err != HF_OK)
        return err;
    out->reply_ = answer->reply;
    out->head_ = DUE_HEAD;
    out->n = (hf_reply_len(answer->reply) - DUE_HEAD) / DUE_EACH;
    return HF_OK;
}

void hf_cron_due_claimed(const hf_reply *ticks, int64_t now_ms, hf_cron_due *out)
{
    *out = (hf_cron_due){
        .now_ms = now_ms, .reply_ = ticks, .n = hf_reply_len(ticks) / DUE_EACH};
}

void hf_cron_due_at(const hf_cron_due *due, size_t i, hf_cron_due_one *out)
{
    size_t at = due->head_ + DUE_EACH * i;
    out->id = hf_reply_bytes(hf_reply_at(due->reply_, at));
    out->next = hf_reply_bytes(hf_reply_at(due->reply_, at + 1));
    out->line = hf_reply_bytes(hf_reply_at(due->reply_, at + 2));
    out->state = hf_reply_bytes(hf_reply_at(due->reply_, at + 3));
    out->bytes = hf_reply_int(hf_reply_at(due->reply_, at + 4));
    out->held = out->line.len == 0;
}

hf_err hf_op_cron_tick(hf_client *client, const hf_queue *queue,
                       const hf_cron_tick_args *args, hf_answer_cb cb, void *arg)
{
    hf_args a;
    size_t jobs = 0, n = args->n;
    for (size_t i = 0; i < n; i++)
        jobs += args->ticks[i].n;
    hf_args_init(&a, TICK_FIXED + TICK_EACH * n + JOB_EACH * jobs, 1 + 4 * n + 2 * jobs);
    hf_args_int(&a, args->not_after);
    hf_args_flag(&a, args->claims);
    for (size_t i = 0; i < n; i++) {
        const hf_cron_tick *t = &args->ticks[i];
        hf_args_bytes(&a, t->id);
        hf_args_text(&a, t->gen);
        hf_args_bytes(&a, t->next);
        add_time(&a, t->new_next_ms);
        hf_args_int(&a, t->from_ms);
        hf_args_int(&a, t->dropped);
        hf_args_int(&a, (int64_t)t->n);
        for (size_t k = 0; k < t->n; k++) {
            hf_args_text(&a, t->ids[k]);
            hf_args_int(&a, t->ticks_ms[k]);
            hf_args_int(&a, t->dues_ms[k]);
        }
    }
    return hf_queue_send(client, queue, &hf_lua_queue_cron_tick, &a, 0, cb, arg);
}

hf_err hf_cron_tick_read(const hf_answer *answer, bool *more, const hf_reply **codes)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 4, &now_ms);
    if (err != HF_OK)
        return err;
    *more = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    *codes = hf_reply_at(answer->reply, 3);
    return HF_OK;
}
