/* client.h - a client of locks, as all of its files see it (lock.h). */
#ifndef HF_LOCK_CLIENT_H
#define HF_LOCK_CLIENT_H

#include "base/machine.h"
#include "base/random.h"
#include "lock/guard.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/notices.h"
#include "lock/tasks.h"
#include "lock/watchdog/watch_loop.h"

/* Of a listener. If a connection has died unseen, the news only arrives with a renewal;
 * the kernel detects the dead connection. */
enum { HF_LISTEN_MS = 600000, HF_LISTEN_WAITS = 32 };

struct hf_lock_client {
    hf_tasks tasks;
    hf_nodes nodes; /* each begins an hf_lock_node */
    const hf_lock_node_hooks *hooks;
    char replicas_ns[HF_ID_SIZE + sizeof ":lock"];
    atomic_uint epochs;
    uint32_t connect_timeout_ms, request_timeout_ms;
    hf_listener listener; /* for locks that wait */
    hf_watchdog *watchdog;
    unsigned stopping; /* on its thread: what it still closes there; then */
    void (*on_stopped)(void *arg);
    void *stopped_arg;
    hf_guard guard;
    hf_notices notices; /* for locks that are held */
    char ns[HF_ID_SIZE];
    char id[HF_LOCK_CLIENT_SIZE];
    char machine[HF_MACHINE_SIZE]; /* base/machine.h; its own id if there is none */
    hf_lock_event_cb on_event;
    void *arg;
    hf_rng rng;

    hf_lock *active; /* there is something to do or to wait for */
    hf_lock *held;
    struct hf_lock_ask *asks;
    void (*on_asked)(
        hf_lock *lock); /* a call about it has ended, and it is being released */
    bool closing;
    uint64_t close_until_ns;
};

/* ---- for a lock over several servers ---- */

/* hf_lock_client_open() of a client whose leases are renewed on a shared loop, which is
 * not started yet. */
HF_MUSTCHECK hf_err hf_lock_client_open_on(hf_lock_client **out,
                                           const hf_lock_client_opts *opts,
                                           hf_watch_loop *watch,
                                           char detail[HF_DETAIL_SIZE]);

/* Its first try to connect has not ended. */
bool hf_lock_client_is_coming(const hf_lock_client *locks);

/* Its URL is a cluster's. */
bool hf_lock_client_in_cluster(const hf_lock_client *locks);

#endif
