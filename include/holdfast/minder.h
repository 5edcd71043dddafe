/* minder.h - for the program that is named as `minder` in hf_worker_opts or
 * hf_lock_client_opts, in place of the `holdfast` command.
 *
 * The minder is a small process beside a worker or a lock client. It ends programs and
 * process groups whose lease is over when their own process cannot do so, because it is
 * stopped or has died. */
#ifndef HOLDFAST_MINDER_H
#define HOLDFAST_MINDER_H

#include "holdfast/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The whole of the minder. A program calls it when its first argument is `minder`, with
 * its own arguments, and ends with the exit status that this returns. The process must
 * do nothing else: no other thread, no child of its own. */
HF_API int hf_minder_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
