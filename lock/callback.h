/* callback.h - which callbacks of a user's this thread is in.
 *
 * A call that waits needs the client's loop, and a callback has it, or the thread that
 * renews: the call would wait for itself. So every callback is entered here, and what
 * waits asks first. The callbacks of other clients are no hindrance. */
#ifndef HF_LOCK_CALLBACK_H
#define HF_LOCK_CALLBACK_H

#include <stdbool.h>

#include "holdfast/error.h"

/* One callback that runs, on the stack of who calls it. `of`: the driver of its client;
 * it may be gone at the end. */
typedef struct hf_callback {
    const void *of;
    struct hf_callback *outer;
} hf_callback;

void hf_callback_begin(hf_callback *callback, const void *of);
void hf_callback_end(const hf_callback *callback);

/* Is this thread in one of this client? */
bool hf_callback_inside(const void *of);

/* May a call that waits be made? HF_OK, or HF_INVALID, which is said. */
HF_MUSTCHECK hf_err hf_callback_may_wait(const void *of, bool threaded,
                                         char detail[HF_DETAIL_SIZE]);

#endif
