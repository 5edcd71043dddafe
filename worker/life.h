/* life.h - the life of a worker: start, turns, Redis's comings and goings, reload, end.
 */
#ifndef HF_WORKER_LIFE_H
#define HF_WORKER_LIFE_H

#include "worker/shared.h"

/* -- life.c -- */
void hf_life_free(hf_worker *w);    /* waits for handlers that had not returned */
void hf_life_forgive(hf_worker *w); /* counts no crash for a while */
/* -- reload.c -- */
void hf_reload_take(hf_worker *w);
hf_backoff hf_backoff_of(const hf_worker_opts *opts);

/* -- server.c -- */
void hf_server_tell(hf_worker *w); /* of queues and limits that Redis does not know of */
void hf_server_event(hf_client *client, hf_err err, const char *detail, void *arg);
void hf_server_start_over(uv_timer_t *timer);
void hf_server_tell_lacks(hf_worker *w); /* commands that Redis does not permit */

void hf_end_take_down(hf_worker *w);

/* -- beat.c: what it shows of itself -- */
HF_MUSTCHECK hf_err hf_beat_new(hf_worker *w);
void hf_beat_free(hf_worker *w);
void hf_beat_open(hf_worker *w); /* its timer */
void hf_beat_close(hf_worker *w);
void hf_beat_start(hf_worker *w);
void hf_beat_send(hf_worker *w); /* what its heartbeat says has changed */
void hf_beat_turn(hf_worker *w);

#endif
