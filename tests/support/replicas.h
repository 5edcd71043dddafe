/* replicas.h - private replicas of a private Redis, and private Sentinels: each is an
 * hf_fixture. A Sentinel is the same program in another role, which takes commands,
 * signals and a restart like a Redis. */
#ifndef HF_TESTS_REPLICAS_H
#define HF_TESTS_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

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

/* ---- Sentinels ---- */

enum { HF_SENTINELS_URL_SIZE = 256 };

/* Starts one on TCP that watches the server at that port by the name "m". `options` may
 * be NULL; its config is replaced. It finds no server to be down: a test switches it. */
void hf_sentinel_fixture_start(hf_fixture *f, const hf_fixture_options *options,
                               uint16_t port);

/* "redis+sentinel://127.0.0.1:P1,127.0.0.1:P2/m" */
void hf_sentinels_url(const hf_fixture *all, size_t n, char url[HF_SENTINELS_URL_SIZE]);

/* From now on the Sentinel names the server at that port. With a message: as if another
 * Sentinel had led a failover there, so +switch-master is published. Without one: as an
 * administrator would set it by hand. */
void hf_sentinel_switch(hf_fixture *f, uint16_t port);
void hf_sentinel_switch_silently(hf_fixture *f, uint16_t port);

#endif
