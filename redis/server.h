/* server.h - one Redis: how to reach it, and the shared knowledge of it.
 *
 * A worker, a producer, a lock client or an admin object has one hf_server for each Redis
 * that it uses. On it are its connections (redis/client.h), which may be on several
 * loops: those for requests, those that block, the watchdog's. They share what each of
 * them learns:
 *
 *   address  where it is. hf_server_drop() ends all connections at once, and each looks
 *            for the address anew. With Sentinels one connection, the watcher, asks them
 *            for all (redis/sentinel.h); when they name another primary it is dropped.
 *
 *   life     which server has answered: its run id and replication id. A connection that
 *            finds another life than the one before begins the next. An older connection
 *            is given up when its server turns out to be a replica now, or when the
 *            address leads to another one.
 *
 *   clock    the offset of its clock from our CLOCK_BOOTTIME, and since when it is known
 *            (base/remote_clock.h).
 *
 *   pause    it refused a request because of its own state (BUSY, LOADING, OOM): nothing
 *            is asked of it for a while, longer with each refusal in a row.
 *
 * Each connection knows its own unanswered requests: hf_client_in_flight().
 *
 * Threads: the fields that hf_server_open() sets never change. `drops` and `lacks` are
 * atomic. The lock guards the connections, the life and the clock; it is held for a few
 * instructions, and no thread waits under it. The pause belongs to the thread that sends
 * the requests, the owner of their loop. */
#ifndef HF_REDIS_SERVER_H
#define HF_REDIS_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/random.h"
#include "base/remote_clock.h"
#include "holdfast/server.h"
#include "redis/url.h"

/* Commands that a connection can do without, and that Redis does not permit: bits. Of
 * CLIENT ID only if HELLO does not tell the id either. */
enum { HF_LACKS_ID = 1, HF_LACKS_INFO = 2, HF_LACKS_KILL = 4, HF_LACKS_UNBLOCK = 8 };

/* A connection, as its server sees it; part of the connection. */
typedef struct hf_server_seat {
    struct hf_server_seat *next, *prev;
    uv_async_t news; /* on the connection's loop: look at the server again */
} hf_server_seat;

/* The last answer of the Sentinels. */
typedef struct hf_server_word {
    hf_err err;       /* HF_OK: they have named `primary`; else why they have not */
    hf_place primary; /* that was named last; port 0: none yet */
    uint64_t drops;   /* as of then */
    char why[HF_DETAIL_SIZE];
} hf_server_word;

typedef struct hf_server {
    hf_url url;
    hf_tls_opts *tls; /* owned; NULL: the defaults */
    char place[HF_URL_PLACE_SIZE];
    bool in_cluster; /* a node of one: redis/cluster.h */
    uint32_t connect_timeout_ms, request_timeout_ms;

    _Atomic uint64_t drops; /* calls of hf_server_drop() */
    atomic_uint lacks;      /* HF_LACKS_... of any connection */

    pthread_mutex_t lock;
    unsigned refs; /* its users, and the connections */
    hf_server_seat *seats;
    hf_server_seat *watcher; /* one of them; NULL: none asks the Sentinels */
    hf_server_word word;
    uint64_t answers; /* how often there was a word */
    bool asked,
        doubted;  /* a connection waits for a new one; the last one was of no use */
    bool awaited; /* a connection has asked since the last word */
    hf_server_info greeting; /* of the last connection to a primary, ready since then */
    uint64_t greeted_ns;
    uint64_t lives;   /* how many there were */
    char replica[48]; /* the run id that was last found to be a replica's, and when */
    uint64_t replica_ns;
    hf_remote_clock clock;
    uint64_t trip_ns; /* the shortest round trip since `greeted_ns`; 0: none yet */

    uint64_t paused_ns;      /* when the last pause began */
    uint64_t pause_until_ns; /* its end; the owner sets it to 0 when that has come */
    uint32_t refusals;       /* in a row */
    hf_rng rng;
} hf_server;

/* The options in full size (hf_server_opts_in() makes them so); all text is copied.
 * Connects nothing. Of a cluster's URL it tells only how to reach the nodes
 * (redis/cluster.h). HF_INVALID (bad URL or option), HF_CONFIG (password file, TLS),
 * HF_NOMEM, HF_SYSTEM: `detail`, when not NULL, says why. */
HF_MUSTCHECK hf_err hf_server_open(hf_server **out, const hf_server_opts *opts,
                                   char detail[HF_DETAIL_SIZE]);
/* A user is done with it; the last one, or its last connection, frees it. NULL is fine.
 */
void hf_server_close(hf_server *server);
/* One more user, which calls hf_server_close() as well. Returns the server. */
hf_server *hf_server_share(hf_server *server);
bool hf_server_is_shared(hf_server *server); /* by more than one user or connection */

/* The same from what is taken apart already. */
HF_MUSTCHECK hf_err hf_server_open_at(hf_server **out, const hf_url *url,
                                      const hf_tls_opts *tls, uint32_t connect_timeout_ms,
                                      uint32_t request_timeout_ms,
                                      char detail[HF_DETAIL_SIZE]);

/* A node of a cluster: at that place, else as `given` is. */
HF_MUSTCHECK hf_err hf_server_open_node(hf_server **out, const hf_server *given,
                                        const hf_place *place,
                                        uint32_t connect_timeout_ms,
                                        uint32_t request_timeout_ms,
                                        char detail[HF_DETAIL_SIZE]);

/* The address leads elsewhere: all connections end as if they were lost, and connect
 * again at once. No request is taken on an old one once this has returned. */
void hf_server_drop(hf_server *server);

/* ---- its clock ---- */

/* An answer to a request of sent_ns says now_ms. Returns by how much the clock was set,
 * in ms; 0: it was not. */
int64_t hf_server_sample(hf_server *server, int64_t now_ms, uint64_t sent_ns);
/* The shortest round trip of a sample since a connection became ready; 0: none yet. */
uint64_t hf_server_trip_ns(hf_server *server);
int64_t hf_server_now(hf_server *server); /* Unix ms, never ahead; 0: not known yet */
/* The boot time, ns, at which its clock shows this time, if it runs as fast as ours; 0:
 * it has long passed, or the clock is not known yet; UINT64_MAX: in centuries. */
uint64_t hf_server_when(hf_server *server, int64_t at_ms);

/* ---- the pause; by the owner of the loop ---- */

/* It refused a request of sent_ns, and time may heal it. Requests that were sent before
 * the pause began met the same cause: they do not prolong it. */
void hf_server_pause(hf_server *server, hf_err err, uint64_t sent_ns);
/* It has executed a request: the next pause is short again. */
static inline void hf_server_accepted(hf_server *server)
{
    server->refusals = 0;
}

/* ---- for connections ---- */

/* From join to leave `news` is sent to the seat whenever something may concern it. */
void hf_server_join(hf_server *server, hf_server_seat *seat);
void hf_server_leave(hf_server *server, hf_server_seat *seat);
void hf_server_unref(hf_server *server); /* after leaving: it may be freed */

/* A connection wants the next answer of the Sentinels. `bad` did not lead it to a
 * primary; NULL: it has tried none. Returns the number of answers until now. */
uint64_t hf_server_find(hf_server *server, const hf_place *bad);
/* False: there was none after that number. */
bool hf_server_word_after(hf_server *server, uint64_t answers, hf_server_word *out);
/* Whether this seat is the watcher, and its next action. */
typedef enum hf_watch {
    HF_WATCH_NOT,
    HF_WATCH_ON,
    HF_WATCH_ASK,
    HF_WATCH_DOUBT
} hf_watch;
hf_watch hf_server_watches(hf_server *server, hf_server_seat *seat);
/* By the watcher: the answer of the Sentinels. */
void hf_server_named(hf_server *server, const hf_place *primary);
void hf_server_not_named(hf_server *server, hf_err err, const char *why);

uint64_t hf_server_life(hf_server *server); /* the number of the last one; 0: none yet */
/* A connection is ready, since *ready_ns. Returns the number of this life. */
uint64_t hf_server_greeted(hf_server *server, const hf_server_info *greeting,
                           uint64_t *ready_ns);
/* A greeting, or a refusal to write, has told that this life is a replica's. */
void hf_server_is_replica(hf_server *server, const char *run_id);
/* Whether to give up a connection that is ready since then. HF_OK: no; HF_READONLY: a
 * replica was found there; HF_CONN: the address leads elsewhere. */
HF_MUSTCHECK hf_err hf_server_has_left(hf_server *server, const hf_server_info *greeting,
                                       uint64_t ready_ns);

#endif
