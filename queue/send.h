/* send.h - what all operations share: a script goes to a queue, and its answer begins
 * with a status and Redis's time. */
#ifndef HF_QUEUE_SEND_H
#define HF_QUEUE_SEND_H

#include "queue/args.h"
#include "queue/ops.h"

/* Makes the request and ends the arguments. timeout_ms 0: the client's own. */
HF_MUSTCHECK hf_err hf_queue_send(hf_client *client, const hf_queue *queue,
                                  const hf_script *script, hf_args *args,
                                  uint32_t timeout_ms, hf_answer_cb cb, void *arg);
/* The same for a plain command. */
HF_MUSTCHECK hf_err hf_command_send(hf_client *client, hf_args *args, uint32_t timeout_ms,
                                    hf_answer_cb cb, void *arg);

/* The answer's fault, or the script's status; HF_PROTO when it is not an array of at
 * least n elements after a status HF_OK. *now_ms is set with any status. */
HF_MUSTCHECK hf_err hf_script_status(const hf_answer *answer, size_t n, int64_t *now_ms);

#endif
