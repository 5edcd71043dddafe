/* sweeper.h - a thread that ends families (lock/minder/family.h) and waits until they are
 * gone, for a loop that cannot wait. It starts with the first of them, and makes its
 * passes for all that are wanted at the same time. */
#ifndef HF_LOCK_MINDER_SWEEPER_H
#define HF_LOCK_MINDER_SWEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "lock/minder/family.h"

struct uv_loop_s;

typedef struct hf_sweeper hf_sweeper;

/* Part of its owner's struct; must not move or be freed until cb was called. */
typedef struct hf_sweep {
    hf_family family;
    _Atomic uint64_t until_ns;          /* CLOCK_BOOTTIME; any thread may set it sooner */
    bool left;                          /* some were still there then */
    void (*cb)(struct hf_sweep *sweep); /* on the loop's thread */
    struct hf_sweep *next;
} hf_sweep;

/* HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_sweeper_new(hf_sweeper **out, struct uv_loop_s *loop);
/* The loop's thread, as all below. Kills the family until it is gone, or until_ns; then
 * calls cb, never from inside this call. */
void hf_sweeper_kill(hf_sweeper *sweeper, hf_sweep *sweep);
/* TERM to those outside of its group. */
void hf_sweeper_ask(hf_sweeper *sweeper, const hf_family *family);
/* None may be wanted any more. cb is called when it is freed. */
void hf_sweeper_close(hf_sweeper *sweeper, void (*cb)(void *arg), void *arg);

#endif
