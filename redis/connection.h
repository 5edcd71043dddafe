/* connection.h - one connection to one Redis, on a libuv loop.
 *
 * A client connects by itself, and again after every loss, with jitter, for ever, until
 * it is closed. It does not queue: a request can be made only while it is ready. Every
 * request that was taken is answered exactly once, with an answer, a fault, or HF_UNSURE
 * when it was sent and the connection ended or stayed silent past the request's deadline;
 * a silent connection is torn down.
 *
 * A server that turns out to be a replica counts as a lost connection, because behind a
 * service address or a proxy the same URL may lead to the new primary. It is found out by
 * the role that INFO tells, or by an answer READONLY. After such an answer the client
 * takes nothing more, waits for the answers to what it has sent, and connects again.
 *
 *        open            connected, AUTH, SELECT, INFO            close
 *   NEW ------> DOWN ---------------------------------> READY ------------> CLOSED
 *                ^ (50 ms .. 1.5 s, jitter)               |
 *                '--- lost, silent, refused, a replica ---'
 *
 * Not thread-safe: call from the loop's thread only. Names are resolved off the loop,
 * SIGPIPE is never raised, sockets are close-on-exec, and passwords are in no text this
 * file makes. */
#ifndef HF_REDIS_CONNECTION_H
#define HF_REDIS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/server.h"

struct uv_loop_s;

typedef struct hf_client hf_client;

/* The client became ready (err is HF_OK), or is not ready any more / could not become so,
 * for the reason err; it tries again by itself. Called on the loop's thread, never from
 * inside a call of the user's. `detail` is borrowed until it returns. */
typedef void (*hf_client_event_cb)(hf_client *client, hf_err err, const char *detail,
                                   void *arg);

/* Zero means the default. All text is copied. */
typedef struct hf_client_opts {
    struct uv_loop_s *loop; /* borrowed, must outlive the client */
    hf_server_opts server;  /* in full size; hf_server_opts_in() makes it so */
    bool replica_ok; /* a replica becomes ready as well, for reading; READONLY still ends
                        the connection */
    hf_client_event_cb on_event; /* may be NULL */
    void *arg;
} hf_client_opts;

/* Starts to connect. The caller owns *out and ends it with hf_client_close(). HF_INVALID
 * (bad URL or option), HF_CONFIG (password file, TLS), HF_NOMEM, HF_SYSTEM; then *out is
 * untouched and `detail`, when not NULL, says why. */
HF_MUSTCHECK hf_err hf_client_open(hf_client **out, const hf_client_opts *opts,
                                   char detail[HF_DETAIL_SIZE]);

/* Answers what is in flight (HF_UNSURE), closes, then calls cb (may be NULL) on the
 * loop's thread. The client must not be used after this call. NULL: cb is not called. */
void hf_client_close(hf_client *client, void (*cb)(void *arg), void *arg);

bool hf_client_ready(const hf_client *client);

/* The reason why the client is not ready (HF_OK while it is, HF_CONN before the first try
 * ended), and a sentence about it, borrowed until the next call on this client. */
hf_err hf_client_status(const hf_client *client);
const char *hf_client_detail(const hf_client *client);

/* Borrowed from the client; what is in it is of the last connection that became ready. */
const hf_server_info *hf_client_server(const hf_client *client);

/* Ends the connection, as if it had been lost, and connects again. */
void hf_client_reset(hf_client *client);

#endif
