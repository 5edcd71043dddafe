/* service.h - reports the worker to systemd: that it is ready, its status, that it
 * reloads or stops, and that it is alive. Alive means that its pulse rises
 * (hf_worker_pulse()): Redis answers the requests of its claiming, and its loop turns. A
 * worker that hangs, or gets no answers, is not reported as alive, and systemd starts
 * another one. One thread at a time. */
#ifndef HF_CLI_WORKER_SERVICE_H
#define HF_CLI_WORKER_SERVICE_H

#include "cli/worker/log.h"
#include "cli/worker/notify.h"
#include "holdfast/worker.h"

typedef struct hf_service {
    hf_notify notify;
    hf_worker *worker; /* borrowed */
    bool ready, quiet, stopping, reloading;
    bool owes_stopping, owes_reloading; /* it could not be sent yet */
    int64_t reloading_us;               /* since then, CLOCK_MONOTONIC */
    uint64_t reloads; /* how many were asked for: this many come to their end */
    uint64_t pulse;   /* as last reported */
    uint64_t next_ns; /* when it is looked at again */
    char status[96];  /* as last reported */
} hf_service;

void hf_service_open(hf_service *s, hf_worker *worker, hf_log *log);
void hf_service_close(hf_service *s);

/* How long to wait for a signal before the next tick; -1: for ever. */
int64_t hf_service_wait_ms(const hf_service *s);
void hf_service_tick(hf_service *s);

void hf_service_stopping(hf_service *s);
/* Before the file is read. It ends when each reload that was asked for has. */
void hf_service_reloading(hf_service *s);
void hf_service_reload_asked(hf_service *s); /* hf_worker_reload() took it */

#endif
