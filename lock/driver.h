/* driver.h - one loop that is run by whoever waits for something on it.
 *
 * A call that waits for Redis's answer must not pay for waking another thread, and for
 * being woken by it. So the thread that waits runs the loop itself, until it has what it
 * waits for; others that come meanwhile hand in their work, sleep, and one of them goes
 * on running the loop when the first one is done (leader and followers; D. Schmidt et
 * al., Pattern-Oriented Software Architecture 2, 2000). Work whose caller does not wait
 * is `background`: while there is some, a thread of the driver's own runs the loop
 * whenever nobody else does. With a loop of the caller's there is no such thread, and
 * nobody waits.
 *
 * Everything that is done on the loop is done by one thread at a time, with everything
 * that was done before visible to it. */
#ifndef HF_LOCK_DRIVER_H
#define HF_LOCK_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/spin.h"
#include "holdfast/error.h"

typedef struct hf_driver_waiter {
    struct hf_driver_waiter *next;
    uv_cond_t turn; /* an answer, or the loop, is there */
    bool done;      /* under the driver's lock */
} hf_driver_waiter;

typedef struct hf_driver {
    uv_loop_t *loop;
    uv_loop_t own;
    bool threaded;
    uv_mutex_t lock;
    uv_async_t wake;
    uv_thread_t thread;
    uv_cond_t work; /* for the thread */
    void (*on_turn)(void *arg);
    bool (*is_due)(void *arg);
    void *arg;
    bool runs;    /* the loop; whoever runs it */
    hf_spin spin; /* whoever runs the loop */

    /* under lock */
    bool driven; /* somebody runs the loop */
    bool due;    /* on_turn() is to be called */
    bool stopping;
    size_t background;
    hf_driver_waiter *waiters;
} hf_driver;

/* `loop` NULL: one of its own, and a thread. on_turn is called on the loop after
 * hf_driver_kick(); is_due on the loop as well: is an answer expected that takes Redis no
 * longer than any script? Then who waits may spin (base/spin.h). NULL: it never does.
 * HF_SYSTEM: nothing is left of it. */
HF_MUSTCHECK hf_err hf_driver_open(hf_driver *driver, uv_loop_t *loop,
                                   void (*on_turn)(void *arg), bool (*is_due)(void *arg),
                                   void *arg);

/* There is something for on_turn to see. From any thread, not under the lock. */
void hf_driver_kick(hf_driver *driver);

/* More, or less, work that nobody waits for. Not under the lock. */
void hf_driver_background(hf_driver *driver, int change);

/* Waits until hf_driver_done(). Only a threaded one; not on the loop. HF_SYSTEM: no
 * memory for a condition. */
HF_MUSTCHECK hf_err hf_driver_waiter_init(hf_driver_waiter *waiter);
void hf_driver_waiter_done(hf_driver_waiter *waiter);
void hf_driver_await(hf_driver *driver, hf_driver_waiter *waiter);
/* On the loop. The waiter may be gone when it returns. */
void hf_driver_done(hf_driver *driver, hf_driver_waiter *waiter);

/* Ends the thread, and waits until nobody runs the loop; then the caller runs it alone.
 * Who still waits goes on waiting. Without a thread of its own: does nothing. */
void hf_driver_stop(hf_driver *driver);
/* Closes the wake handle on the loop; cb when it is gone. */
void hf_driver_close_wake(hf_driver *driver, uv_close_cb cb);
/* Frees the rest, when the loop has nothing left and everybody who waits was told. */
void hf_driver_free(hf_driver *driver);

#endif
