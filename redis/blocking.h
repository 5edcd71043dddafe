/* blocking.h - a connection whose requests wait in Redis until something comes, and how a
 * wait is ended before that: by `CLIENT UNBLOCK` on another connection.
 *
 * The command may overtake the wait that it is meant for. Redis answers 0 then, and it is
 * sent again after 2 ms, doubled up to 512 ms. The wait itself is answered when it has
 * ended. Where Redis does not permit the command, waits are short. Belongs to the loop.
 */
#ifndef HF_REDIS_BLOCKING_H
#define HF_REDIS_BLOCKING_H

#include "redis/client.h"
#include "redis/server.h"

typedef struct hf_blocking {
    hf_client *client;       /* owned */
    hf_server *redis;        /* the client holds it */
    bool ending;             /* its wait was told to end */
    unsigned asked;          /* such requests that are not answered yet */
    uint32_t pause_ms;       /* before the next one; 0: there was none for this wait */
    uint64_t pause_until_ns; /* its end; 0: none */
    void (*on_pause)(void *arg);
    void *arg;
    bool closes;
    void (*on_closed)(void *arg);
} hf_blocking;

/* Begins to connect; on_event as in hf_client_opts. on_pause: the wait has not ended, and
 * hf_blocking_end() is to be called again at pause_until_ns. What hf_client_open() gives.
 */
HF_MUSTCHECK hf_err hf_blocking_open(hf_blocking **out, struct uv_loop_s *loop,
                                     hf_server *redis, hf_client_event_cb on_event,
                                     void (*on_pause)(void *arg), void *arg,
                                     char detail[HF_DETAIL_SIZE]);
/* Answers its wait, then calls cb (may be NULL) with its arg. NULL is fine. */
void hf_blocking_close(hf_blocking *b, void (*cb)(void *arg));

/* How long a request should wait in Redis, if `other` (may be NULL) is there to end it:
 * `ms`, or less. */
uint32_t hf_blocking_ms(const hf_blocking *b, const hf_client *other, uint32_t ms);
/* Its wait was answered. */
void hf_blocking_answered(hf_blocking *b);
/* Tells its wait to end, by a request on `other` (may be NULL), unless that is under way
 * or in a pause. False: it could not be sent, and a pause has begun. */
bool hf_blocking_end(hf_blocking *b, hf_client *other);

#endif
