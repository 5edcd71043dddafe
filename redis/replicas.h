/* replicas.h - waits until replicas have what a Redis has answered (wait_replicas).
 *
 * WAIT blocks its connection until replicas have received what that same connection has
 * caused. So it has a connection of its own, where each round sends:
 *
 *   SET    writes a key for this purpose alone, the mark: WAIT then counts all that any
 *          connection has executed before (on Redis before 7.2 any command would do)
 *   WAIT   until all replicas have it, but only for a short time
 *   ROLE   which replicas are connected
 *
 * One round is under way at a time. It answers all that asked before it began; those that
 * ask meanwhile share the next one. A round counts only for answers of the same life of
 * the server (redis/server.h).
 *
 * The replicas that a question wants are the least. But Sentinels choose the next primary
 * by what they knew of the replicas up to a second before, so it may be one that is a few
 * milliseconds behind. They also tell the old primary nothing of it: its other replicas
 * go on to confirm what the new one will never have. So all must confirm that were seen
 * in this life of the server, except for one that has been missing or behind for
 * HF_REPLICAS_LEFT_MS: it is not the next primary, or we would know by now.
 *
 * Replicas are told apart by their addresses: one may leave while another comes.
 *
 * A process that comes later does not know who has left. The mark tells it: its value is
 * the replication id, and how many replicas must confirm. Each life begins with GET of
 * the mark, and ROLE.
 *
 * Not thread-safe: all of it belongs to the owner of the loop. */
#ifndef HF_REDIS_REPLICAS_H
#define HF_REDIS_REPLICAS_H

#include "redis/client.h"

struct hf_cluster;

typedef struct hf_replicas hf_replicas;

enum {
    HF_REPLICAS_MARK_SIZE = 512,
    HF_REPLICAS_LEFT_MS = 3000 /* one that is missing or behind may still be promoted */
};

/* A question. The caller owns it until the answer, and sets all but `next`. */
typedef struct hf_confirm {
    struct hf_confirm *next;
    uint64_t life;     /* hf_client_life() of the connection that Redis has answered */
    uint32_t wanted;   /* replicas; not 0 */
    uint64_t until_ns; /* on hf_boot_ns() */
    /* Called once, on the loop, and never from inside hf_replicas_ask(). HF_OK: enough
     * replicas have it. HF_UNSURE: another life of the server has begun, which may not
     * have it. HF_UNCONFIRMED: neither, in time. HF_CLOSED. `detail` is borrowed. */
    void (*cb)(void *arg, hf_err err, const char *detail);
    void *arg;
} hf_confirm;

/* Starts to connect. `mark` is the key. The loop and the server are borrowed. HF_NOMEM,
 * HF_SYSTEM: *out is untouched. */
HF_MUSTCHECK hf_err hf_replicas_open(hf_replicas **out, struct uv_loop_s *loop,
                                     struct hf_server *redis, const char *mark);
/* Answers all questions with HF_CLOSED, before it returns; then closes, and calls cb (may
 * be NULL) on the loop. NULL: cb is called at once. */
void hf_replicas_close(hf_replicas *replicas, void (*cb)(void *arg), void *arg);

void hf_replicas_ask(hf_replicas *replicas, hf_confirm *confirm);
/* Takes a question back that has no answer yet: cb is not called. */
void hf_replicas_withdraw(hf_replicas *replicas, hf_confirm *confirm);

/* The server is a node of this cluster (borrowed): each round sets a key in a slot that
 * the node serves, with the same end. A refusal is a reason to doubt the cluster's table.
 * Nothing changes with a plain URL. */
void hf_replicas_in_cluster(hf_replicas *replicas, struct hf_cluster *cluster,
                            const char *ns);

#endif
