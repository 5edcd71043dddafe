/* sentinel.h - which server is the primary, as Sentinels tell it.
 *
 * The Sentinels of a URL are asked in turn, each with a deadline. The one that answered
 * is asked first the next time: once a second, and whenever the user wants to know. A
 * second connection to the same Sentinel listens for news of a failover. A message is
 * only a reason to ask at once; without messages the new primary is known a second later.
 *
 *   BACKOFF --> CONNECTING --> ASKING --> READY    an answer names a primary
 *                     ^            ^         |
 *                     |            '---------|       a second has passed, a message, ...
 *                     '----------------------'       lost, or what it named is of no use
 *
 * When a Sentinel fails, the next one is asked; when all have failed in a row, it backs
 * off, for 50 ms to 1.5 s, with jitter. No state is final: it goes on until it is closed.
 *
 * Not thread-safe: call from the loop's thread only. */
#ifndef HF_REDIS_SENTINEL_H
#define HF_REDIS_SENTINEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "redis/client.h"
#include "redis/server.h"

typedef struct hf_sentinel hf_sentinel;

/* On the loop's thread, never from inside a call. Any of them may close it. */
typedef struct hf_sentinel_hooks {
    /* A Sentinel has named the primary; borrowed until the hook returns. It is not
     * verified yet. */
    void (*on_primary)(void *owner, const hf_place *primary);
    /* All were asked since the last answer or the last time that this was told.
     * HF_CONFIG: a Sentinel does not know the master's name; HF_AUTH; else HF_CONN,
     * HF_PROTO, ... `why` names a Sentinel. */
    void (*on_vain)(void *owner, hf_err err, const char *why);
    void (*on_closed)(void *owner); /* after hf_sentinel_close(); it is gone */
    /* hf_client_open() and hf_client_close(), which are above this file: a client finds
     * its server by it. */
    hf_err (*open_client)(hf_client **out, const hf_client_opts *opts, char *detail);
    void (*close_client)(hf_client *client, void (*cb)(void *arg), void *arg);
} hf_sentinel_hooks;

/* Begins to ask the Sentinels of this server, which is borrowed, as the loop is. The
 * caller owns *out and ends it with hf_sentinel_close(). HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_sentinel_open(hf_sentinel **out, uv_loop_t *loop,
                                     const hf_server *redis,
                                     const hf_sentinel_hooks *hooks, void *owner);

/* Asks now: on_primary or on_vain will be called. */
void hf_sentinel_again(hf_sentinel *sentinel);

/* The named server is not a primary that answers: ask another Sentinel next. */
void hf_sentinel_doubt(hf_sentinel *sentinel);

/* Only on_closed will be called. */
void hf_sentinel_close(hf_sentinel *sentinel);

#endif
