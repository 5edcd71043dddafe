/* send.h - what all operations share: a script goes to the prefix of a queue, or to that
 * of the registry. */
#ifndef HF_QUEUE_SEND_H
#define HF_QUEUE_SEND_H

#include "queue/ops.h"
#include "redis/send.h"

/* Makes the request and ends the arguments. timeout_ms 0: the client's own. */
HF_MUSTCHECK hf_err hf_queue_send(hf_client *client, const hf_queue *queue,
                                  const hf_script *script, hf_args *args,
                                  uint32_t timeout_ms, hf_answer_cb cb, void *arg);
HF_MUSTCHECK hf_err hf_registry_send(hf_client *client, const char *ns,
                                     const hf_script *script, hf_args *args,
                                     hf_answer_cb cb, void *arg);

#endif
