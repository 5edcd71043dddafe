/* plain.h - the plain commands that queues and locks both send: the time, and the end of
 * another connection's wait. */
#ifndef HF_REDIS_PLAIN_H
#define HF_REDIS_PLAIN_H

#include "redis/request.h"

/* Redis's time, by the cheapest way. */
HF_MUSTCHECK hf_err hf_plain_time(hf_client *client, hf_answer_cb cb, void *arg);
/* *now_ms: Unix ms, with HF_OK. */
HF_MUSTCHECK hf_err hf_plain_time_read(const hf_answer *answer, int64_t *now_ms);

/* Ends the blocking of another client of this process. HF_CONN: that has no connection,
 * it is not known to be at the same life of the same server, where its id is its own, or
 * Redis does not permit it. */
HF_MUSTCHECK hf_err hf_plain_unblock(hf_client *client, const hf_client *blocked,
                                     hf_answer_cb cb, void *arg);
/* How long `blocked` should wait in Redis at a time: `ms`, but half a second at most if
 * `client` could not end the wait. */
uint32_t hf_plain_wait_ms(const hf_client *client, const hf_client *blocked, uint32_t ms);

#endif
