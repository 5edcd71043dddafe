/* heartbeat.h - how a worker shows that it lives: its heartbeat in Redis, and a counter
 * for a supervisor of this process. Belongs to the loop. */
#ifndef HF_WORKER_HEARTBEAT_H
#define HF_WORKER_HEARTBEAT_H

#include "worker/worker.h"

HF_MUSTCHECK hf_err hf_heartbeat_new(hf_worker *w);
void hf_heartbeat_free(hf_worker *w);
void hf_heartbeat_open(hf_worker *w); /* its timer */
void hf_heartbeat_close(hf_worker *w);
void hf_heartbeat_start(hf_worker *w);
void hf_heartbeat_send(hf_worker *w); /* the content of the heartbeat has changed */
void hf_heartbeat_turn(hf_worker *w);

#endif
