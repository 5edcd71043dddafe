/* call.h - one request on a client, answered exactly once.
 *
 * A request is a script with its KEYS and ARGV, or a plain command. It is written into
 * the connection's buffer before hf_redis_call() returns, and leaves together with all
 * others of the same turn of the loop. The answer comes on the loop's thread, never from
 * inside the call.
 *
 * NOSCRIPT is a fault like any other (nothing happened), but by the time it is told the
 * script has been sent to Redis with SCRIPT LOAD: asking again works. If Redis refuses to
 * load it, asking again is answered with the reason (HF_AUTH: no permission). */
#ifndef HF_REDIS_CALL_H
#define HF_REDIS_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/connection.h"
#include "redis/script.h"

typedef struct hf_bytes {
    const void *ptr;
    size_t len;
} hf_bytes;

/* A reply, borrowed from the answer it came with. NULL is accepted everywhere and is nil.
 */
typedef struct redisReply hf_reply;

typedef struct hf_answer {
    hf_err err;            /* HF_OK, a fault, or HF_UNSURE */
    const hf_reply *reply; /* with HF_OK, else NULL */
    const char *detail;    /* Redis's own words, or why; never NULL */
    uint64_t sent_ns;      /* CLOCK_BOOTTIME before it was written */
} hf_answer;

typedef void (*hf_answer_cb)(const hf_answer *answer, void *arg);

typedef struct hf_call {
    const hf_script
        *script; /* NULL: a command, args[0] is its name and there are no keys */
    const hf_bytes *keys;
    size_t n_keys;
    const hf_bytes *args;
    size_t n_args;
    uint32_t timeout_ms; /* 0: the client's request_timeout_ms */
    hf_answer_cb cb;     /* required */
    void *arg;
} hf_call;

/* HF_OK: cb will be called once. HF_CONN (not ready), HF_NOMEM, HF_TOOBIG: it never will.
 */
HF_MUSTCHECK hf_err hf_redis_call(hf_client *client, const hf_call *call);

/* Writes what was asked for to the connection now, and not at the end of the loop's turn:
 * for a caller while the loop does not run. */
void hf_redis_flush(hf_client *client);

/* Redis's time, by the cheapest way. */
HF_MUSTCHECK hf_err hf_redis_time(hf_client *client, hf_answer_cb cb, void *arg);
/* *now_ms: Unix ms, with HF_OK. */
HF_MUSTCHECK hf_err hf_time_read(const hf_answer *answer, int64_t *now_ms);

/* Ends the blocking of another client of this process. HF_CONN: that has no connection,
 * it is not known to be at the same life of the same server, where its id is its own, or
 * Redis does not permit it. An answer HF_AUTH is passed to hf_redis_unblock_refused(). */
HF_MUSTCHECK hf_err hf_redis_unblock(hf_client *client, const hf_client *blocked,
                                     hf_answer_cb cb, void *arg);
void hf_redis_unblock_refused(hf_client *blocked);
/* How long `blocked` should wait in Redis at a time: `ms`, but half a second at most if
 * `client` could not end the wait. */
uint32_t hf_redis_wait_ms(const hf_client *client, const hf_client *blocked, uint32_t ms);

/* HF_LACKS_... of redis/server.h, as its connections have learned by now. */
unsigned hf_client_lacks(const hf_client *client);

/* How many requests wait for their answers. */
size_t hf_client_in_flight(const hf_client *client);

/* Its first try to connect has not ended. */
bool hf_client_is_new(const hf_client *client);

/* -- reading a reply; a wrong type reads as 0, nil, "" -- */
bool hf_reply_is_array(const hf_reply *reply);
bool hf_reply_is_nil(const hf_reply *reply);
size_t hf_reply_len(const hf_reply *reply);                   /* elements of an array */
const hf_reply *hf_reply_at(const hf_reply *reply, size_t i); /* NULL past the end */
int64_t
hf_reply_int(const hf_reply *reply); /* an integer, or text that is one or begins so */
hf_bytes hf_reply_bytes(const hf_reply *reply);   /* NUL-terminated as well */
const char *hf_reply_text(const hf_reply *reply); /* never NULL */

#endif
