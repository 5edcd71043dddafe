/* listener.h - receives messages: one connection that blocks on a client's inboxes, one
 * inbox for each tag. There are two listeners: for waiting locks (acquisition.c), on the
 * client's loop, and for held locks (hold.c), on the watchdog's loop.
 *
 * To listen to one more tag, `CLIENT UNBLOCK` on another connection ends the wait, and
 * the listener waits again. The command may overtake the wait that it is meant for: Redis
 * answers 0 then, and it is sent again. When the connection is lost, a message may be
 * lost with it: the listener reports that doubt. A message is only a hint; the renewals
 * return the true state. Private to lock/. */
#ifndef HF_LOCK_LISTENER_H
#define HF_LOCK_LISTENER_H

#include "lock/ops.h"
#include "redis/server.h"

enum { HF_HEARD_MAX = 256 }; /* tags in one wait */

typedef struct hf_listener hf_listener;

struct hf_listener {
    hf_server *redis; /* borrowed */
    uv_loop_t *loop;
    const char *inbox; /* borrowed: the name of its inboxes after `in:` */
    void (*choose)(
        hf_listener *listener); /* calls hf_listener_add() for each tag to listen to */
    bool (*is_deaf)(hf_listener *listener); /* is something not heard that should be? */
    void (*on_message)(hf_listener *listener, const char *text);
    void (*on_doubt)(hf_listener *listener); /* a message may have been lost */
    void (*on_turn)(
        hf_listener *listener); /* to call hf_listener_listen(), and to set the timer */
    void *arg;

    hf_client *client; /* NULL: it was not needed so far */
    hf_client *other;  /* of the last hf_listener_listen() */
    bool listening, unblocking, doubt;
    uint64_t rest_ns;    /* nothing is listened to before; 0: at once */
    uint64_t unblock_ns; /* the wait is not ended before; 0: at once */
    uint32_t unblock_ms; /* the last pause before that */
    size_t n_heard;      /* prefixes in the wait that is under way */
    char heard[HF_HEARD_MAX][HF_TAG_PREFIX_SIZE];
};

/* Takes the next step: connects, listens, or ends the wait by a request of `other`, to
 * wait again. On the listener's loop, like all calls here. */
void hf_listener_listen(hf_listener *listener, hf_client *other);
/* When to call hf_listener_listen() again, if nothing happens; UINT64_MAX: never.
 */
uint64_t hf_listener_due_ns(hf_listener *listener);
/* In choose. A tag that is in the list already, or exceeds it, is left out. */
void hf_listener_add(hf_listener *listener, const char *prefix, size_t len);
/* Or could not be anyway, because there is no room. */
bool hf_listener_hears(const hf_listener *listener, const char *prefix);

#endif
