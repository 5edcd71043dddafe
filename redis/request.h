/* request.h - one request on a client, answered exactly once.
 *
 * A request is a script with its KEYS and ARGV, or a plain command. It is written into
 * the connection's buffer before hf_request_send() returns, and leaves together with all
 * others of the same turn of the loop. The answer comes on the loop's thread, never from
 * inside the call.
 *
 * NOSCRIPT is a fault like any other (nothing happened), but by the time it is told the
 * script has been sent to Redis with SCRIPT LOAD: asking again works. If Redis refuses to
 * load it, asking again is answered with the reason (HF_AUTH: no permission). */
#ifndef HF_REDIS_REQUEST_H
#define HF_REDIS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/client.h"
#include "redis/reply.h"
#include "redis/script.h"

struct uv_timer_s;

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
HF_MUSTCHECK hf_err hf_request_send(hf_client *client, const hf_call *call);

/* ---- for the other files of a client (conn.h) ---- */

enum { HF_NO_DEADLINE = 0 }; /* another part watches the time */
HF_MUSTCHECK hf_err hf_request_put(hf_client *client, const hf_call *call,
                                   uint32_t timeout_ms);
void hf_request_on_reply(void *client, const hf_reply *reply);
void hf_request_flush(hf_client *client);
void hf_request_on_deadline(struct uv_timer_s *timer);
/* Answers everything that is in flight with HF_UNSURE. */
void hf_request_fail_all(hf_client *client, const char *why);

#endif
