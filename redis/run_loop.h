/* run_loop.h - which thread turns an event loop while callers wait for its answers.
 *
 * Waking a thread takes about as long as Redis needs for a request. A call that waits
 * therefore does not hand its work to another thread: it sends the request and reads the
 * answer itself (leader and followers; D. Schmidt et al., Pattern-Oriented Software
 * Architecture 2, 2000). The threads pass the loop on; two never use it at once:
 *
 *   loop owner      the thread that uses the loop, its handles and its connections. It
 *                   never sleeps. Before it leaves it does what others have asked for
 *                   meanwhile, so no thread waits for the ownership.
 *   poller          the one thread that sleeps until the loop has an event or a timer is
 *                   due, and then becomes the owner for one turn. It may be a caller.
 *   service thread  the run loop's own thread. It polls while no caller waits, and while
 *                   a callback is owed that only this thread may run.
 *
 * The poller reads the answers of all callers. When it has its own answer it leaves, and
 * the caller that has waited longest becomes the poller.
 *
 * Invariants, whenever the lock is free:
 *
 *   R1  Every wake-up is seen: requested work is done by the owner before it leaves, or
 *       by the poller before it sleeps, or the poller or the service thread was woken.
 *
 *   R2  While a caller waits there is an owner, or a poller, or a thread that was woken
 * to become one, or the service thread was woken.
 *
 *   R3  A caller whose answer was read is woken by the thread that read it, before that
 *       thread sleeps.
 *
 *   R4  While `callbacks` is not 0 only the service thread becomes owner or poller. A
 *       caller that is the owner already may start nothing that owes a callback
 *       (`by_caller`).
 *
 *   R5  A caller that polls gives that up itself; only the service thread can be
 *       relieved. A caller never sleeps on the loop while another reads its answer.
 *
 * No hook and no callback runs under the lock. A run loop is used in one of three ways:
 *
 *   on a borrowed uv loop   the thread that runs that loop is always the owner; no call
 *                           may wait.
 *
 *   started                 with a loop and a service thread of its own; any thread may
 *                           wait.
 *
 *   never started           with a loop of its own that turns only while a call waits;
 *                           one thread uses it.
 *
 * Closing: hf_run_loop_retire() leaves the loop to the service thread, which ends when no
 * handle is left on the loop; hf_run_loop_close() waits for it and for the callers. After
 * fork() the child must touch none of this: the users of a run loop check the process. */
#ifndef HF_REDIS_RUN_LOOP_H
#define HF_REDIS_RUN_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/spin.h"
#include "holdfast/error.h"

/* One call that waits. The caller sets the first two fields; all else begins as zero. */
typedef struct hf_run_waiter {
    bool submits;      /* it has put in work for the submit hook */
    uint32_t again_ms; /* not 0: if work was held back, it runs that hook once more after
                          this time */
    struct hf_run_waiter *next, *prev;
    atomic_uint word; /* its thread sleeps on it */
    bool waits;       /* it is in the list of those */
    bool done;        /* it has its answer */
    bool left;        /* its thread stopped waiting before that */
} hf_run_waiter;

typedef struct hf_run_waiters {
    hf_run_waiter *first, *last;
} hf_run_waiters;

/* All run on the loop, by its owner. */
typedef struct hf_run_hooks {
    /* Looks at what callers have put in, and sends what may be sent. Never inside of a
     * callback of the loop. Sets `unsent` to whether something is left. */
    void (*submit)(void *arg);
    /* Writes requests to the connections now. NULL: nothing to write. */
    void (*flush)(void *arg);
    /* Whether an answer is expected that takes Redis no longer than any script does: then
     * a caller that waits alone may spin for it. NULL: never. */
    bool (*expects)(void *arg);
} hf_run_hooks;

typedef struct hf_run_loop {
    uv_loop_t *uv; /* borrowed, or `own` */
    uv_loop_t own;
    bool owned;   /* the uv loop; only then a call may wait */
    bool started; /* the wake-up is on the loop */
    bool served;  /* there is a service thread */
    uv_thread_t thread;
    uv_async_t wakeup;
    const hf_run_hooks *hooks;
    void *arg;
    uv_mutex_t lock;
    atomic_uint callers; /* calls under way that wait; without the lock */

    /* under the lock; the users of a run loop may guard their own data by it as well */
    bool taken;        /* there is an owner */
    bool by_caller;    /* and it is a caller */
    unsigned wanted;   /* of the owner */
    size_t callbacks;  /* owed, and only the service thread may run them */
    size_t background; /* pieces of work for which no caller waits */
    bool retired;      /* left to the service thread */
    bool over;         /* nothing is left on the loop */
    hf_run_waiters waiting, done;
    hf_run_waiter *poller; /* NULL: none */
    uint64_t until_ns;     /* when its sleep ends at the latest; 0: it is awake */
    uint64_t due_ns;       /* when the loop's next timer is due; UINT64_MAX: never */
    bool expects;          /* the last word of the hook */
    uint64_t polled_ns;    /* when a caller polled last */
    hf_spin spin;          /* of callers that poll */
    bool unsent;           /* set by the owner: some submitted work was not sent yet */

    hf_run_waiter service; /* never done */
    int event;             /* owned: an eventfd that wakes the service thread's poll */
    bool signalled;        /* and was written */
    bool service_polls;    /* also when it is not the poller any more */
    bool service_sleeps;   /* on its word */
    uint64_t service_until_ns; /* when its poll or sleep ends at the latest */
} hf_run_loop;

/* `uv` NULL: a loop of its own. Puts nothing on the loop. HF_SYSTEM: nothing is left of
 * it. */
HF_MUSTCHECK hf_err hf_run_loop_open(hf_run_loop *loop, uv_loop_t *uv,
                                     const hf_run_hooks *hooks, void *arg);
/* From now on there are wake-ups, and on an own loop a service thread, which has all
 * signals blocked; until now the opener is the owner. HF_SYSTEM: there is no thread;
 * hf_run_loop_close() does what the thread would do. */
HF_MUSTCHECK hf_err hf_run_loop_start(hf_run_loop *loop);

/* The submit hook has something to look at. From any thread, without the lock. */
void hf_run_loop_wake(hf_run_loop *loop);

static inline void hf_run_loop_lock(hf_run_loop *loop)
{
    uv_mutex_lock(&loop->lock);
}

static inline void hf_run_loop_unlock(hf_run_loop *loop)
{
    uv_mutex_unlock(&loop->lock);
}

/* More or less work for which no caller waits. While there is some the service thread
 * polls whenever no caller does. Without the lock. */
void hf_run_loop_background(hf_run_loop *loop, int change);

/* ---- calls that wait ---- */

/* Around a call that waits, also around what it puts in: the loop is not closed between.
 */
void hf_run_loop_enter(hf_run_loop *loop);
void hf_run_loop_leave(hf_run_loop *loop);

/* Waits until the waiter is done, and takes part in the work meanwhile. Not on the loop.
 * False: it was not done in time; it is `left`, which is seen under the lock. */
bool hf_run_loop_await(hf_run_loop *loop, hf_run_waiter *waiter, uint64_t until_ns);

/* On the loop: the waiter has its answer, and may be gone soon after. The second form is
 * for owners that hold the lock. */
void hf_run_loop_done(hf_run_loop *loop, hf_run_waiter *waiter);
void hf_run_loop_done_locked(hf_run_loop *loop, hf_run_waiter *waiter);

/* On the loop, without the lock: wakes the waiters that are done, before something that
 * may take long. Else the owner wakes them when its turn ends. */
void hf_run_loop_wake_done(hf_run_loop *loop);

/* ---- the end ---- */

/* From now on only the service thread turns the loop; runs the submit hook. */
void hf_run_loop_retire(hf_run_loop *loop);
/* On the loop: closes the run loop's own handle; cb(handle), whose data is the arg. */
void hf_run_loop_close_wakeup(hf_run_loop *loop, uv_close_cb cb);
/* When all handles are closed or being closed: turns an own loop until nothing is left,
 * waits for the callers, and frees the run loop's resources. */
void hf_run_loop_close(hf_run_loop *loop);

#endif
