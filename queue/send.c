/* send.c - see send.h. */
#include "queue/send.h"

#include <string.h>

#include "queue/keys.h"

hf_err hf_queue_send(hf_client *client, const hf_queue *queue, const hf_script *script,
                     hf_args *args, uint32_t timeout_ms, hf_answer_cb cb, void *arg)
{
    const hf_bytes key = {queue->prefix, queue->prefix_len};
    return hf_send_script(client, script, &key, 1, args, timeout_ms, cb, arg);
}

hf_err hf_registry_send(hf_client *client, const char *ns, const hf_script *script,
                        hf_args *args, hf_answer_cb cb, void *arg)
{
    char prefix[HF_KEY_SIZE];
    hf_key_registry(prefix, ns);
    const hf_bytes key = {prefix, strlen(prefix)};
    return hf_send_script(client, script, &key, 1, args, 0, cb, arg);
}
