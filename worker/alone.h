/* alone.h - a claimed job that has to run alone and waits for that: in the worker (a C
 * handler, one crash short of being dead), or in a process of its pool.
 *
 * While it waits, slots stay free for it, so it waits only for a while and is then put
 * back, for a less busy worker. Each wait lasts at most an eighth of the time since it
 * was first put back, and it stays away for four times as long. So it takes at most a
 * fifth of the time of what it waits for, and it runs in the end, however long the other
 * jobs take. Belongs to the loop. */
#ifndef HF_WORKER_ALONE_H
#define HF_WORKER_ALONE_H

#include "worker/run/run.h"

int64_t hf_alone_patience_ms(const hf_run *run); /* from its claim */
void hf_alone_put_back(hf_run *run);             /* it ends here, as with hf_outbox_*() */

#endif
