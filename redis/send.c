/* send.c - see send.h. */
#include "redis/send.h"

#include "base/base.h"

enum { LOWEST_ANSWER = -19 }; /* of the family "answers" in holdfast/error.h */

hf_err hf_send_script(hf_client *client, const hf_script *script, const hf_bytes *keys,
                      size_t n_keys, hf_args *args, uint32_t timeout_ms, hf_answer_cb cb,
                      void *arg)
{
    if (args->failed)
        return HF_NOMEM;
    HF_ASSERT(args->n == args->cap && (script == NULL || args->n >= script->nargs));
    hf_err err = hf_request_send(client, &(hf_call){.script = script,
                                                    .keys = keys,
                                                    .n_keys = n_keys,
                                                    .args = args->at,
                                                    .n_args = args->n,
                                                    .timeout_ms = timeout_ms,
                                                    .cb = cb,
                                                    .arg = arg});
    hf_args_done(args);
    return err;
}

hf_err hf_send_command(hf_client *client, hf_args *args, uint32_t timeout_ms,
                       hf_answer_cb cb, void *arg)
{
    return hf_send_script(client, NULL, NULL, 0, args, timeout_ms, cb, arg);
}

hf_err hf_send_script_status(const hf_answer *answer, size_t n, int64_t *now_ms)
{
    if (answer->err != HF_OK)
        return answer->err;
    const hf_reply *reply = answer->reply;
    if (hf_reply_len(reply) < 2)
        return HF_PROTO;
    int64_t status = hf_reply_int(hf_reply_at(reply, 0));
    *now_ms = hf_reply_int(hf_reply_at(reply, 1));
    if (status > 0 || status < LOWEST_ANSWER || *now_ms <= 0)
        return HF_PROTO;
    if (status == HF_OK && hf_reply_len(reply) < n)
        return HF_PROTO;
    return (hf_err)status;
}
