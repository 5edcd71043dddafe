/* keys.h - the keys that C names. All others are named in queue/lua/lib/ alone; C gives
 * the scripts no more than a prefix: that of a queue, or that of the registry, which
 * holds the names of the queues and the workers' heartbeats. No queue has its tag,
 * because a slash cannot be in a queue's name. */
#ifndef HF_QUEUE_KEYS_H
#define HF_QUEUE_KEYS_H

#include "queue/ops.h"

enum { HF_KEY_SIZE = 3 * HF_NAME_MAX + 24 };

void hf_key_registry(char out[HF_KEY_SIZE], const char *ns);   /* its prefix, "hf:{/}:" */
void hf_key_queues(char out[HF_KEY_SIZE], const char *ns);     /* "hf:{/}:queues" */
void hf_key_workers(char out[HF_KEY_SIZE], const char *ns);    /* "hf:{/}:workers" */
void hf_key_replicated(char out[HF_KEY_SIZE], const char *ns); /* redis/replicas.h */
void hf_key_watch(char out[HF_KEY_SIZE], const char *ns);      /* a viewer watches runs */
void hf_key_worker(char out[HF_KEY_SIZE], const char *ns, const char *worker);

void hf_key_wake(char out[HF_KEY_SIZE], const hf_queue *queue); /* "hf:{q}:wake" */
void hf_key_seen(char out[HF_KEY_SIZE], const hf_queue *queue, const char *producer);

#endif
