/* ops.c - what producers ask for: enqueue, register, forget. */
#include "queue/ops.h"

#include "base/base.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { ENQUEUE_FIXED = 5, ENQUEUE_EACH = 3 };

hf_err hf_op_enqueue(hf_client *client, const hf_queue *queue,
                     const hf_enqueue_args *args, const hf_enqueue_item *items, size_t n,
                     uint32_t timeout_ms, hf_answer_cb cb, void *arg)
{
    hf_args a;
    HF_ASSERT(n >= 1 && n <= HF_BATCH_JOBS);
    static const char chosen[] = {HF_ID_CHOSEN};
    hf_args_init(&a, ENQUEUE_FIXED + ENQUEUE_EACH * n + 1, ENQUEUE_FIXED + n);
    const hf_script *script =
        args->options ? &hf_lua_queue_enqueue_with : &hf_lua_queue_enqueue;
    hf_args_text(&a, args->producer);
    hf_args_int(&a, (int64_t)args->number);
    hf_args_int(&a, args->not_after);
    hf_args_int(&a, args->remember_ms);
    hf_args_int(&a, args->waited_ms);
    for (size_t i = 0; i < n; i++) {
        hf_args_text(&a, items[i].id);
        hf_args_int(&a, items[i].due_ms);
        hf_args_bytes(&a, items[i].record);
    }
    hf_args_bytes(&a, args->made.len != 0 ? args->made : (hf_bytes){chosen, 1});
    return hf_queue_send(client, queue, script, &a, timeout_ms, cb, arg);
}

hf_err hf_enqueued_read(const hf_answer *answer, hf_enqueued *out)
{
    *out = (hf_enqueued){.now_ms = 0};
    hf_err err = hf_send_script_status(answer, 4, &out->now_ms);
    if (err != HF_OK && err != HF_EXISTS)
        return err;
    out->repeated = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    out->codes = hf_reply_at(answer->reply, 3);
    out->conflicts = hf_reply_at(answer->reply, 4);
    out->awaited = hf_reply_at(answer->reply, 5);
    if (!hf_reply_is_array(out->codes))
        return HF_PROTO;
    if (hf_reply_len(out->codes) == 0)
        out->codes = NULL;
    return err;
}

hf_err hf_op_register(hf_client *client, const hf_queue *queue, hf_answer_cb cb,
                      void *arg)
{
    hf_args a;
    hf_args_init(&a, 1, 0);
    hf_args_text(&a, queue->name);
    return hf_registry_send(client, queue->ns, &hf_lua_queue_register, &a, cb, arg);
}

hf_err hf_op_forget(hf_client *client, const hf_queue *queue, const char *producer,
                    hf_answer_cb cb, void *arg)
{
    hf_args a;
    char key[HF_KEY_SIZE];
    hf_key_seen(key, queue, producer);
    hf_args_init(&a, 2, 0);
    hf_args_text(&a, "DEL");
    hf_args_text(&a, key);
    return hf_send_command(client, &a, 0, cb, arg);
}
