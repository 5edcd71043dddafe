/* replicas.h - private replicas of a private Redis: each is an hf_fixture. */
#ifndef HF_TESTS_REPLICAS_H
#define HF_TESTS_REPLICAS_H

#include "tests/support/redis_fixture.h"

/* Options of a primary to which replicas come at once. */
#define HF_PRIMARY .tcp = true, .args = {"--repl-diskless-sync-delay", "0"}

/* Starts n replicas, and returns when the primary counts them. */
void hf_replicas_start(hf_fixture *replicas, size_t n, hf_fixture *primary);
void hf_replicas_stop(hf_fixture *replicas, size_t n);
/* Sends a signal to each: SIGSTOP or SIGCONT. */
void hf_replicas_signal(hf_fixture *replicas, size_t n, int signal);

/* How many replicas the primary can count. */
size_t hf_replicas_online(hf_fixture *primary);

#endif
