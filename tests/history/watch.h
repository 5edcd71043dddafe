/* watch.h - sees what scripts of locks do in Redis, in the order in which they do it
 * (MONITOR), and writes it as the history of a server: see history.h and docs/keys.md. */
#ifndef HF_TESTS_HISTORY_WATCH_H
#define HF_TESTS_HISTORY_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/support/redis_fixture.h"

typedef struct hf_watch {
    hf_fixture *redis;
    long long id; /* of its connection */
    int in, out;
    FILE *file; /* owned; of `in` */
    pthread_t thread;
    atomic_uint marks; /* that it saw */
    unsigned marked;
    atomic_ulong commands; /* scripts, and what they called */
} hf_watch;

void hf_watch_start(hf_watch *w, hf_fixture *redis, const char *path);
/* Waits until all that Redis has executed is written. */
void hf_watch_sync(hf_watch *w);
void hf_watch_stop(hf_watch *w); /* the server may be gone by then */

#endif
