/* life.h - a worker's start, its turns, its end. */
#ifndef HF_WORKER_LIFE_H
#define HF_WORKER_LIFE_H

#include "worker/worker.h"

void hf_life_free(hf_worker *w); /* waits for handlers that had not returned */

#endif
