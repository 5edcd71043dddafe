/* callback.h - the user's callbacks that this thread is in.
 *
 * A call that waits needs the client's loop. A callback occupies this loop, or the thread
 * that renews: the call would wait for itself. So every callback is registered here, and
 * calls that wait check first. Callbacks of other clients do not matter. */
#ifndef HF_LOCK_CALLBACK_H
#define HF_LOCK_CALLBACK_H

#include <stdbool.h>

#include "holdfast/error.h"

/* One callback that runs, on the stack of its caller. `of`: its client, which may be gone
 * at the end. */
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
