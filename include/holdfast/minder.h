/* minder.h - for a program that hf_worker_opts or hf_lock_client_opts name as `minder`,
 * instead of the `holdfast` command.
 *
 * The minder is a small process beside a worker or a lock client. When a lease is over,
 * it ends the program or process group that ran under it, even if the worker or client is
 * stopped or has died. */
#ifndef HOLDFAST_MINDER_H
#define HOLDFAST_MINDER_H

#include "holdfast/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the minder. A program whose first argument is `minder` calls this with its own
 * arguments, and exits with the status that it returns. The process must do nothing else:
 * no other thread, no child of its own. */
HF_API int hf_minder_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
