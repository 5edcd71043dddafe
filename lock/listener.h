/* listener.h - receives messages: connections that block on a client's inboxes, one inbox
 * for each tag. There are two listeners: for waiting locks (acquire.c), on the
 * client's loop, and for held locks (notices.c), on the watchdog's loop.
 *
 * A connection, with the inboxes that it blocks on, is a wait. One request names all tags
 * of a Redis, but only those of one slot in a cluster: there each slot has a wait, up to
 * HF_LISTENER_WAITS_MAX. A wait that no tag needs any more ends by itself.
 *
 * To listen to one more tag, `CLIENT UNBLOCK` on another connection ends the wait, and
 * the listener waits again. The command may overtake the wait that it is meant for: Redis
 * answers 0 then, and it is sent again. When the connection is lost, a message may be
 * lost with it: the listener reports that doubt. A message is only a hint; the renewals
 * return the true state. Private to lock/. */
#ifndef HF_LOCK_LISTENER_H
#define HF_LOCK_LISTENER_H

#include "lock/ops.h"
#include "redis/cluster.h"

enum {
    HF_HEARD_MAX = 256, /* tags in one wait */
    HF_LISTENER_WAITS_MAX = 32
};

typedef struct hf_listener hf_listener;
typedef struct hf_listener_wait hf_listener_wait;

/* A tag to listen to; all borrowed. */
typedef struct hf_listener_tag {
    const char *prefix;
    size_t prefix_len;
    unsigned slot;    /* of its keys; 0 without a cluster */
    hf_server *redis; /* the one with its keys; NULL: none, and nothing can be heard */
    hf_client *other; /* another connection to that, which may end the wait; or NULL */
} hf_listener_tag;

struct hf_listener {
    hf_cluster *cluster; /* borrowed */
    uv_loop_t *loop;
    const char *inbox; /* borrowed: the name of its inboxes after `in:` */
    void (*choose)(
        hf_listener *listener); /* calls hf_listener_add() for each tag to listen to */
    bool (*is_deaf)(hf_listener *listener); /* true: a tag is not heard that should be */
    void (*on_message)(hf_listener *listener, const char *text);
    void (*on_doubt)(hf_listener *listener); /* a message may have been lost */
    void (*on_turn)(
        hf_listener *listener); /* to call hf_listener_listen(), and to set the timer */
    void *arg;

    hf_listener_wait *waits; /* owned */
    size_t n_waits;
    bool crowded;        /* a tag found no room for a wait of its own */
    bool doubt;          /* to be reported, once a second at most */
    uint64_t doubted_ns; /* when a doubt was reported last */
    size_t open; /* waits whose connections are not closed yet, those above included */
    void (*on_closed)(void *arg); /* not NULL: it is being closed */
    void *closed_arg;
};

/* Takes the next step of each wait: connects, listens, or ends the wait by a request of
 * the other connection, to wait again. On the listener's loop, like all calls here. */
void hf_listener_listen(hf_listener *listener);
/* When to call hf_listener_listen() again, if nothing happens; UINT64_MAX: never.
 */
uint64_t hf_listener_due_ns(hf_listener *listener);
/* In choose. A tag that is in the list already is left out. False: there is no room, so
 * nothing is heard of it. */
bool hf_listener_add(hf_listener *listener, const hf_listener_tag *tag);
/* Whether the tag is heard, or will be without another call. */
bool hf_listener_hears(const hf_listener *listener, const hf_listener_tag *tag);
/* Whether there is room for a tag that is not heard. */
bool hf_listener_has_room(const hf_listener *listener, const hf_listener_tag *tag);
/* This connection is about to be closed. */
void hf_listener_forget(hf_listener *listener, const hf_client *other);
/* Ends all waits; cb is called once, perhaps before this returns. */
void hf_listener_close(hf_listener *listener, void (*cb)(void *arg), void *arg);

#endif
