/* life.h - the life of a worker: start, turns, reload, end. */
#ifndef HF_WORKER_LIFE_H
#define HF_WORKER_LIFE_H

#include "worker/shared.h"

/* -- life.c -- */
void hf_life_free(hf_worker *w); /* waits for handlers that had not returned */
/* A Redis that may be used is there, for the first time or again. */
void hf_life_started(hf_worker *w);
void hf_life_refuse(hf_worker *w, hf_err err, const char *detail); /* ends the worker */
/* -- reload.c -- */
void hf_reload_take(hf_worker *w);
hf_backoff hf_backoff_of(const hf_worker_opts *opts);

/* -- beat.c: heartbeat and pulse -- */
HF_MUSTCHECK hf_err hf_beat_new(hf_worker *w);
void hf_beat_free(hf_worker *w);
void hf_beat_open(hf_worker *w); /* its timer */
void hf_beat_close(hf_worker *w);
void hf_beat_start(hf_worker *w);
void hf_beat_send(hf_worker *w); /* the content of its heartbeat has changed */
void hf_beat_turn(hf_worker *w);

#endif
