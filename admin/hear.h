/* hear.h - to be told about the ends of jobs, instead of asking again and again.
 *
 * The script that ends a job puts its id into the list `told:<client>` of each client
 * that waits for it (queue/lua/await.lua). A listener (redis/listener.h) blocks on these
 * lists. What it hears is a hint: its user asks again. While the list of a queue is not
 * heard, because the connection is away or may not block, or because there is no room for
 * it (256 queues of a Redis, or 32 slots of a cluster, are heard), the user asks from
 * time to time. */
#ifndef HF_ADMIN_HEAR_H
#define HF_ADMIN_HEAR_H

#include "admin/ask.h"

/* A hint; not while a request waits for its answer only. `id` is borrowed. */
typedef void (*hf_told_fn)(const hf_queue *queue, const char *id, void *arg);

/* One for each admin. HF_NOMEM, HF_SYSTEM: there is none. */
HF_MUSTCHECK hf_err hf_hearing_open(hf_admin *admin, hf_told_fn told, void *arg);
void hf_hearing_close(hf_admin *admin);               /* nothing is fine */
const char *hf_hearing_client(const hf_admin *admin); /* its name for the scripts */

/* Listens to a queue. Whether hints of it arrive: else it has to be asked. */
bool hf_hearing_has(hf_admin *admin, const hf_queue *queue);
/* No longer. */
void hf_hearing_drop(hf_admin *admin, const hf_queue *queue);

/* Waits until then, or until a hint or a word of hf_hearing_wake() has come. */
void hf_hearing_wait(hf_admin *admin, uint64_t until_ns);
void hf_hearing_wake(hf_admin *admin); /* from any thread */

#endif
