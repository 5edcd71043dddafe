/* client.h - one connection to one Redis, on a libuv loop.
 *
 * A client connects without being asked, and again after every loss, with jitter, until
 * it is closed. It does not queue: a request can be made only while it is ready. Every
 * request that was taken is answered exactly once, with an answer, a fault, or HF_UNSURE
 * when it was sent and the connection ended or stayed silent past the request's deadline;
 * a silent connection is torn down.
 *
 * A server that turns out to be a replica counts as a lost connection, because behind a
 * service address or a proxy the same URL may lead to the new primary. INFO tells the
 * role, or an answer is READONLY. After such an answer the client accepts no more
 * requests, waits for the answers to those it has sent, and connects again. So does every
 * other connection of the same hf_server.
 *
 *        open            connected, AUTH, SELECT, INFO            close
 *   NEW ------> DOWN ---------------------------------> READY ------------> CLOSED
 *                ^ (50 ms .. 1.5 s, jitter)               |
 *                '--- lost, silent, refused, a replica ---'
 *
 * Not thread-safe: call from the loop's thread only. Names are resolved off the loop,
 * SIGPIPE is never raised, sockets are close-on-exec, and passwords are in no text this
 * file makes. */
#ifndef HF_REDIS_CLIENT_H
#define HF_REDIS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/server.h"

struct uv_loop_s;
struct hf_server;

typedef struct hf_client hf_client;

/* The client became ready (err is HF_OK), or is not ready any more / could not become so,
 * for the reason err; it tries again by itself. Called on the loop's thread, never from
 * inside a call of the user's. `detail` is borrowed until it returns. */
typedef void (*hf_client_event_cb)(hf_client *client, hf_err err, const char *detail,
                                   void *arg);

/* Zero means the default. */
typedef struct hf_client_opts {
    struct uv_loop_s *loop;  /* borrowed, must outlive the client */
    struct hf_server *redis; /* redis/server.h; it is shared */
    bool replica_ok; /* a replica becomes ready as well, for reading; READONLY still ends
                        the connection */
    bool blocks;     /* its requests may take long: it is given up without their answers
                        when its server is no longer the right one, and asks at once
                        whether its waits may be ended */
    hf_client_event_cb on_event; /* may be NULL */
    /* An answer without a request came: a message, after SUBSCRIBE. NULL: that ends the
     * connection. */
    void (*on_push)(hf_client *client, void *arg);
    void *arg;
} hf_client_opts;

/* Starts to connect. The caller owns *out and ends it with hf_client_close(). HF_NOMEM,
 * HF_SYSTEM: *out is untouched, and `detail`, when not NULL, says why. */
HF_MUSTCHECK hf_err hf_client_open(hf_client **out, const hf_client_opts *opts,
                                   char detail[HF_DETAIL_SIZE]);

/* Answers what is in flight (HF_UNSURE), closes, then calls cb (may be NULL) on the
 * loop's thread. The client must not be used after this call. NULL: cb is not called. */
void hf_client_close(hf_client *client, void (*cb)(void *arg), void *arg);

bool hf_client_ready(const hf_client *client);

/* The connection ended while nothing was asked of it, as Redis's `timeout` does, and no
 * try to get another one has failed since. Holds from that event to the next failure. */
bool hf_client_was_idle(const hf_client *client);

/* The last try was refused for a reason that waiting does not change: the login, a
 * certificate, a file, the version. The client keeps trying. */
bool hf_client_is_refused(const hf_client *client);

/* The reason why the client is not ready (HF_OK while it is, HF_CONN before the first try
 * ended), and a sentence about it, borrowed until the next call on this client. */
hf_err hf_client_status(const hf_client *client);
const char *hf_client_detail(const hf_client *client);

/* Borrowed from the client; describes the last connection that became ready. */
const hf_server_info *hf_client_server(const hf_client *client);
/* And the number of that life of the server, from 1 on: another one may have other data.
 */
uint64_t hf_client_life(const hf_client *client);

struct uv_loop_s *hf_client_loop(const hf_client *client);

/* Ends the connection, as if it had been lost, and connects again. */
void hf_client_reset(hf_client *client);
/* The same where Sentinels say where the server is: the loop has not turned for more than
 * a second, and they may have named another one meanwhile. */
void hf_client_stood_still(hf_client *client);

/* Writes what was asked for to the connection now, and not at the end of the loop's turn:
 * for what is urgent, or for a caller while the loop does not run. */
void hf_client_flush(hf_client *client);

/* HF_LACKS_... of redis/server.h, as its connections have learned by now. */
unsigned hf_client_lacks(const hf_client *client);

/* How many requests wait for their answers. */
size_t hf_client_in_flight(const hf_client *client);

/* Its first try to connect has not ended. */
bool hf_client_is_new(const hf_client *client);

#endif
