/* reload.h - the plan of a running worker is replaced (hf_worker_reload). */
#ifndef HF_WORKER_RELOAD_H
#define HF_WORKER_RELOAD_H

#include "worker/worker.h"

/* On the loop: applies the plan that another thread has left, if there is one. */
void hf_reload_apply(hf_worker *w);

#endif
