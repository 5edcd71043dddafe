/* launcher.h - runs that are programs: each from its start to its end. Belongs to the
 * loop.
 */
#ifndef HF_WORKER_RUNNER_LAUNCHER_H
#define HF_WORKER_RUNNER_LAUNCHER_H

#include "worker/run/run.h"

/* Starts a run that waits. False: it waits on, and no program is started for a while, if
 * the system has no room for one. */
bool hf_launcher_start(hf_worker *w, hf_run *run);
/* About programs that a signal from elsewhere has ended. */
void hf_launcher_decide(hf_worker *w);

#endif
