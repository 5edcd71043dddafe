/* cluster.h - the servers of a URL: the nodes of a cluster, or the one Redis of any other
 * URL; and which of them serves a key.
 *
 * It answers one question: which server has this slot. Each server is an hf_server, with
 * its own address, life, clock and pause. The one Redis of a plain URL (or that Sentinels
 * name) has all slots, always: a user needs no second code path. redis/nodes.h keeps the
 * connections to the servers, and has the rules of what to do when a node refuses
 * something.
 *
 *   - wait_replicas: hf_replicas_in_cluster() after hf_replicas_open(). When a queue
 *     leaves a server, what waits for replicas there is in doubt
 *     (hf_replicas_withdraw()): the new server has to confirm it.
 *
 *   - ASKING is never sent, and replicas are not read (no hf_client_opts.replica_ok).
 *
 * The table comes from CLUSTER SLOTS: of the node that has answered MOVED, of nodes that
 * are known, and of those in the URL, in turn. It is read while there is a reason, and
 * not else. After a failure the next node is asked; when all have failed, it backs off
 * for 50 ms to 1.5 s, with jitter. No state is final.
 *
 * Threads: any may call hf_cluster_server(), _refused(), _moved(), _doubt(), _changes(),
 * _has_slots(), _key(), _status(). The lock is held for a few instructions, and while a
 * server is made that was not used before (with TLS its files are read). Watching and
 * closing belong to the loop. */
#ifndef HF_REDIS_CLUSTER_H
#define HF_REDIS_CLUSTER_H

#include "redis/server.h"
#include "redis/slots.h"

struct uv_loop_s;

typedef struct hf_cluster hf_cluster;

/* As hf_server_open(). */
HF_MUSTCHECK hf_err hf_cluster_open(hf_cluster **out, const hf_server_opts *opts,
                                    char detail[HF_DETAIL_SIZE]);

/* From now on the nodes are asked on this loop (borrowed), at once for the first time. At
 * most one loop watches. `on_change` is called there, never from inside a call: the table
 * has changed, or hf_cluster_status() has. A plain URL puts nothing on the loop and never
 * changes. HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_cluster_watch(hf_cluster *cluster, struct uv_loop_s *loop,
                                     void (*on_change)(void *arg), void *arg);

/* The user is done with it. Its servers live on while they have users or connections. cb
 * (may be NULL) is called when nothing of it is left on the loop; from inside this call
 * if nothing was there. NULL is fine. */
void hf_cluster_close(hf_cluster *cluster, void (*cb)(void *arg), void *arg);

/* For one more thread, which may still ask when the user is done with it: the table does
 * not change any more then. Returns the cluster. */
hf_cluster *hf_cluster_share(hf_cluster *cluster);
void hf_cluster_unshare(hf_cluster *cluster); /* NULL is fine */

/* The URL is no cluster's: there is one server, for all slots. */
bool hf_cluster_is_plain(const hf_cluster *cluster);

/* The server of a slot, shared: the caller ends it with hf_server_close(). The same one
 * as before while its address stays and it has users. NULL: none is known now; the nodes
 * are asked until the table has changed. */
hf_server *hf_cluster_server(hf_cluster *cluster, unsigned slot);

/* All that have slots, each shared, up to `max`. Returns how many there are. */
size_t hf_cluster_servers(hf_cluster *cluster, hf_server **out, size_t max);

/* This server, which is in use, has slots; any has with a plain URL. */
bool hf_cluster_has_slots(hf_cluster *cluster, const hf_server *server);

/* The key "NS:{/N}:NAME", no queue's, in a slot of this server: that of the first N from
 * *tag on, which is then put there. So all processes find the same one, and one that is
 * refused its key finds the next. "": the server has no slot now. */
void hf_cluster_key(hf_cluster *cluster, const hf_server *server, const char *ns,
                    const char *name, unsigned *tag, char *out, size_t size);

/* How often the table has changed: never with a plain URL. */
uint64_t hf_cluster_changes(const hf_cluster *cluster);

/* HF_OK: the last node that was asked has told the table, or the URL is plain. Else why
 * none did: HF_CONN, HF_AUTH, HF_CONFIG (it is not a cluster), ... HF_CONN before the
 * first answer as well. */
hf_err hf_cluster_status(hf_cluster *cluster, char why[HF_DETAIL_SIZE]);

/* A part of hf_cluster_refused(): a server has answered HF_MOVED with these words. */
void hf_cluster_moved(hf_cluster *cluster, const hf_server *asked, const char *words);

/* A server has answered so. True (HF_ERR_OF_CLUSTER, or HF_READONLY of a node that was a
 * primary; never with a plain URL): nothing happened, and another node may have the slot:
 * MOVED has corrected the table, anything else is a reason to ask for it. Any thread. */
bool hf_cluster_refused(hf_cluster *cluster, const hf_server *asked, hf_err err,
                        const char *words);

/* The table may be wrong. */
void hf_cluster_doubt(hf_cluster *cluster);

#endif
