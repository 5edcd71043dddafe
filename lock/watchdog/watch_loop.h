/* watch_loop.h - a loop and its thread, on which one or several watchdogs run.
 *
 * A lock client and a worker have one for their watchdog. The lock clients of a set's
 * servers share one: each has its own connection, leases and timer on it, and no request
 * waits for another server's answer. Every watchdog holds a reference, from before the
 * thread starts until its handles are closed. */
#ifndef HF_LOCK_WATCHDOG_WATCH_LOOP_H
#define HF_LOCK_WATCHDOG_WATCH_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include <uv.h>

#include "holdfast/error.h"

typedef struct hf_watch_loop {
    uv_loop_t uv; /* of the thread, once that runs */
    uv_thread_t thread;
    bool runs; /* the thread was started */
    atomic_uint refs;
} hf_watch_loop;

/* With one reference. HF_NOMEM, HF_SYSTEM: *out is untouched. */
HF_MUSTCHECK hf_err hf_watch_loop_open(hf_watch_loop **out);
/* When the watchdogs are on it. The thread has all signals blocked, and ends when no
 * handle is left on the loop. HF_SYSTEM: there is no thread; hf_watch_loop_turn() does
 * what it would do. */
HF_MUSTCHECK hf_err hf_watch_loop_start(hf_watch_loop *loop);
/* Waits for an event and handles it; only if there is no thread. */
void hf_watch_loop_turn(hf_watch_loop *loop);
bool hf_watch_loop_is_self(const hf_watch_loop *loop); /* is this its thread? */

void hf_watch_loop_ref(hf_watch_loop *loop);
/* The last one waits for the thread, and frees. Not on the thread. */
void hf_watch_loop_unref(hf_watch_loop *loop);

#endif
