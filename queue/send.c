/* send.c - see send.h. */
#include "queue/send.h"

hf_err hf_queue_send(hf_client *client, const hf_queue *queue, const hf_script *script,
                     hf_args *args, uint32_t timeout_ms, hf_answer_cb cb, void *arg)
{
    const hf_bytes key = {queue->prefix, queue->prefix_len};
    return hf_script_send(client, script, &key, 1, args, timeout_ms, cb, arg);
}
