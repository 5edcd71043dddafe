/* send.h - scripts and commands with gathered arguments; and how each script's answer
 * begins: with a status and Redis's time. */
#ifndef HF_REDIS_SEND_H
#define HF_REDIS_SEND_H

#include "redis/args.h"

/* Makes the request and ends the arguments. timeout_ms 0: the client's own. */
HF_MUSTCHECK hf_err hf_send_script(hf_client *client, const hf_script *script,
                                   const hf_bytes *keys, size_t n_keys, hf_args *args,
                                   uint32_t timeout_ms, hf_answer_cb cb, void *arg);
/* The same for a plain command. */
HF_MUSTCHECK hf_err hf_send_command(hf_client *client, hf_args *args, uint32_t timeout_ms,
                                    hf_answer_cb cb, void *arg);

/* The answer's fault, or the script's status; HF_PROTO when it is not an array of at
 * least n elements after a status HF_OK. *now_ms is set with any status. */
HF_MUSTCHECK hf_err hf_send_script_status(const hf_answer *answer, size_t n,
                                          int64_t *now_ms);

#endif
