/* link.h - what lies between a socket and the parser of answers, on a libuv loop.
 *
 * Only hiredis's parser is used. Its asynchronous layer would keep a list of callbacks
 * beside our own; in 0.14 its libuv adapter loses errors, and an answer without a request
 * ends the whole process in an assertion. Its connections are not used either: their
 * sockets are not close-on-exec, while another thread may fork at any moment, and their
 * writes raise SIGPIPE.
 *
 *        open          (TLS: handshake)  on_open(HF_OK)              drop
 *   NEW ------> CONNECTING [--> SHAKING] --------------> OPEN ------------------> CLOSED
 *                    |            |                       | on_lost, then drop      ^
 *                    '------------'-- on_open(why), then drop ----------------------'
 *
 * Hooks run on the loop's thread, never from inside a call. Any of them may drop the
 * link. */
#ifndef HF_REDIS_LINK_H
#define HF_REDIS_LINK_H

#include <stddef.h>

#include <hiredis/hiredis.h>
#include <uv.h>

#include "holdfast/error.h"
#include "redis/resolve.h"
#include "redis/tls.h"

typedef struct hf_link hf_link;

typedef struct hf_link_hooks {
    /* HF_OK: it is connected, and by TLS the server's certificate is accepted. Else
     * `why` is a sentence; HF_AUTH says that a certificate was refused, and HF_CONFIG,
     * HF_NOMEM or HF_SYSTEM that TLS could not begin. */
    void (*on_open)(void *owner, hf_err err, const char *why);
    void (*on_reply)(void *owner, const redisReply *reply); /* borrowed */
    void (*on_room)(void *owner); /* after a write that was cut short */
    void (*on_lost)(void *owner, hf_err err, const char *why); /* HF_CONN, HF_PROTO; by
                                                                 TLS also HF_AUTH */
    void (*on_closed)(void *owner); /* after a drop; the link is gone */
} hf_link_hooks;

/* The arguments of hf_tls_open(); borrowed until on_closed. */
typedef struct hf_link_tls {
    const hf_tls_opts *opts; /* NULL: the defaults */
    const char *host;
} hf_link_tls;

/* Connects to an address: of TCP, or of a unix socket. `tls` NULL: a plain connection.
 * The files that TLS needs are read when the connection is there: a server that is away
 * costs no more than it does without TLS. HF_CONN, HF_NOMEM, HF_SYSTEM: refused at once,
 * `detail` says why, and no hook is called. */
HF_MUSTCHECK hf_err hf_link_open(hf_link **out, uv_loop_t *loop,
                                 const hf_address *address, const hf_link_tls *tls,
                                 const hf_link_hooks *hooks, void *owner,
                                 char detail[HF_DETAIL_SIZE]);

/* It is connected, and waits for the server's part of the TLS handshake. */
bool hf_link_is_shaking(const hf_link *link);

/* Writes as much as the socket takes now, and returns how much that was. If it is less
 * than len, on_room or on_lost will come. */
size_t hf_link_write(hf_link *link, const char *data, size_t len);

/* Ends it: nothing more is read or written, and the socket is closed in this turn of the
 * loop. Only on_closed will be called. */
void hf_link_drop(hf_link *link);

#endif
