/* launch.h - how a process comes into a pool: the worker starts it, or it was started by
 * hand and joins. */
#ifndef HF_WORKER_POOL_LAUNCH_H
#define HF_WORKER_POOL_LAUNCH_H

#include <stdint.h>
#include <uv.h>

#include "holdfast/error.h"
#include "worker/group/groups.h"
#include "worker/pool/door.h"
#include "worker/pool/outputs.h"
#include "worker/pool/wire.h"
#include "worker/pool_spec.h"

/* What the process gets; all of it is initialised, and borrowed. */
typedef struct hf_launch {
    uv_loop_t *loop;
    const hf_pool *pool;
    hf_group *group;
    hf_wire *wire;
    hf_outputs *outputs;
} hf_launch;

/* *handles counts those of libuv that were opened, after an error, too: the caller closes
 * the wire and the outputs. HF_BUSY (no minder), HF_SYSTEM (errno is kept), HF_NOMEM,
 * HF_TOOBIG (its environment): nothing was started. */
HF_MUSTCHECK hf_err hf_launch_start(const hf_launch *launch, uint64_t deadline_ns,
                                    int *handles);
/* It has no outputs here. Takes both descriptors in any case. HF_SYSTEM: errno is kept.
 */
HF_MUSTCHECK hf_err hf_launch_join(const hf_launch *launch, const hf_joined *joined,
                                   int *handles);
/* No pool takes it: closes both descriptors. NULL is fine. */
void hf_launch_refuse(const hf_joined *joined);

#endif
