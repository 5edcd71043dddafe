/* keys.h - the keys that plain commands use: those outside of every queue's tag (the
 * registry of queues, the workers' heartbeats), and two of a queue. All others are named
 * in queue/lua/lib/ alone; C gives the scripts no more than the queue's prefix. */
#ifndef HF_QUEUE_KEYS_H
#define HF_QUEUE_KEYS_H

#include "queue/ops.h"

enum { HF_KEY_SIZE = 3 * HF_NAME_MAX + 24 };

void hf_key_queues(char out[HF_KEY_SIZE], const char *ns);  /* "hf:queues" */
void hf_key_workers(char out[HF_KEY_SIZE], const char *ns); /* "hf:workers" */
void hf_key_worker(char out[HF_KEY_SIZE], const char *ns, const char *worker);

void hf_key_wake(char out[HF_KEY_SIZE], const hf_queue *queue); /* "hf:{q}:wake" */
void hf_key_seen(char out[HF_KEY_SIZE], const hf_queue *queue, const char *producer);

#endif
