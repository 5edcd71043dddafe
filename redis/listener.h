/* listener.h - receives messages: connections that block on lists, whose names are
 * prefixes with one suffix. What pushes to a list names the listener by the suffix. There
 * are three: for waiting locks (lock/acquire.c), for held locks (lock/notices.c, on the
 * watchdog's thread) and for the ends of jobs (admin/hear.c).
 *
 * A connection, with the lists that it blocks on, is a wait. One request names all lists
 * of a Redis, but only those of one slot in a cluster: there each slot has a wait, up to
 * waits_max. A wait that no list needs any more ends by itself.
 *
 * To listen to one more list, the node's other connection ends the wait
 * (redis/blocking.h), and the listener waits again. When the connection is lost, a
 * message may be lost with it: the listener reports that doubt. A message is only a hint:
 * its user asks for the true state. */
#ifndef HF_REDIS_LISTENER_H
#define HF_REDIS_LISTENER_H

#include "holdfast/producer.h"
#include "redis/nodes.h"

enum {
    HF_HEARD_MAX = 256, /* lists in one wait */
    HF_LISTENER_PREFIX_SIZE = 2 * HF_NAME_MAX + 16,
    HF_LISTENER_SUFFIX_SIZE = 128
};

typedef struct hf_listener hf_listener;
typedef struct hf_listener_wait hf_listener_wait;

/* A list to listen to; all borrowed. */
typedef struct hf_listener_tag {
    const char *prefix;
    size_t prefix_len;
    unsigned slot;    /* of the list; 0 without a cluster */
    hf_server *redis; /* that has it; NULL: none, and nothing can be heard */
} hf_listener_tag;

struct hf_listener {
    hf_nodes *nodes; /* borrowed: their connections end the waits */
    bool second;     /* it belongs to their second thread */
    uv_loop_t *loop;
    char suffix[HF_LISTENER_SUFFIX_SIZE];
    uint32_t wait_ms; /* one wait; in a cluster 10 s at most */
    size_t waits_max; /* that there are at a time */
    void (*choose)(
        hf_listener *listener); /* calls hf_listener_add() for each list to listen to */
    bool (*is_deaf)(hf_listener *listener); /* true: a list is not heard that should be */
    /* `key` is the name of a list. */
    void (*on_message)(hf_listener *listener, const char *key, const char *text);
    void (*on_doubt)(hf_listener *listener); /* a message may have been lost */
    void (*on_turn)(
        hf_listener *listener); /* to call hf_listener_listen(), and to set the timer */
    void *arg;

    hf_listener_wait *waits; /* owned */
    size_t n_waits;
    bool crowded;        /* a list found no room for a wait of its own */
    bool doubt;          /* to be reported, once a second at most */
    uint64_t doubted_ns; /* when a doubt was reported last */
    size_t open; /* waits whose connections are not closed yet, those above included */
    void (*on_closed)(void *arg); /* not NULL: it is being closed */
    void *closed_arg;
};

/* Takes the next step of each wait: connects, listens, or ends the wait, to wait again.
 * On the listener's loop, like all calls here. */
void hf_listener_listen(hf_listener *listener);
/* When to call hf_listener_listen() again, if nothing happens; UINT64_MAX: never.
 */
uint64_t hf_listener_due_ns(hf_listener *listener);
/* In choose. A list that was added already is left out. False: there is no room, so
 * nothing is heard of it. */
bool hf_listener_add(hf_listener *listener, const hf_listener_tag *tag);
/* Whether it is heard, or will be without another call. */
bool hf_listener_hears(const hf_listener *listener, const hf_listener_tag *tag);
/* Whether it is heard now. */
bool hf_listener_hears_now(const hf_listener *listener, const hf_listener_tag *tag);
/* Whether there is room for a list that is not heard. */
bool hf_listener_has_room(const hf_listener *listener, const hf_listener_tag *tag);
/* Ends all waits; cb is called once, perhaps before this returns. */
void hf_listener_close(hf_listener *listener, void (*cb)(void *arg), void *arg);

#endif
