/* slot_watch.h - asks the nodes of a cluster who serves which slot, for redis/cluster.h.
 *
 *   QUIET --(again, in time)--> CONNECTING --> ASKING --(an answer)--> QUIET
 *     ^                          ^     |          |
 *     |                          '-----+----------'   it failed: the next node
 *     '----------------------------- all have failed: told, and again later
 *
 * An answer is asked for when the owner wants one, once a second at most. When all nodes
 * have failed, they are asked again after 50 ms to 1.5 s, with jitter. No state is final:
 * it goes on until it is closed.
 *
 * Not thread-safe: call from the loop's thread only. */
#ifndef HF_REDIS_SLOT_WATCH_H
#define HF_REDIS_SLOT_WATCH_H

#include <uv.h>

#include "redis/server.h"
#include "redis/slots.h"

typedef struct hf_slot_watch hf_slot_watch;

enum { HF_ASKED_MAX = 2 * HF_URL_NODES_MAX };

/* On the loop's thread, never from inside a call. The last three may close it. */
typedef struct hf_slot_hooks {
    /* A round begins: the nodes to ask, in order. Returns how many, at least 1. */
    size_t (*nodes)(void *owner, hf_place out[HF_ASKED_MAX]);
    /* A node has told the table; borrowed until the hook returns. */
    void (*on_map)(void *owner, const hf_slot_map *map);
    /* All nodes of a round have failed. HF_CONFIG: one of them is no node of a cluster;
     * HF_AUTH; else HF_CONN, HF_PROTO, ... `why` names a node. */
    void (*on_vain)(void *owner, hf_err err, const char *why);
    void (*on_closed)(void *owner); /* after hf_slot_watch_close(); it is gone */
} hf_slot_hooks;

/* `given` tells the login, TLS and the time to connect, which the nodes of a round share.
 * It and the loop are borrowed. HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_slot_watch_open(hf_slot_watch **out, uv_loop_t *loop,
                                       const hf_server *given, const hf_slot_hooks *hooks,
                                       void *owner);

/* The table may have changed: on_map or on_vain will be called. */
void hf_slot_watch_again(hf_slot_watch *watch);

/* Only on_closed will be called. */
void hf_slot_watch_close(hf_slot_watch *watch);

#endif
