/* registry.h - the names of all queues, a set in Redis. remove.c takes a name out of it.
 */
#ifndef HF_ADMIN_REGISTRY_H
#define HF_ADMIN_REGISTRY_H

#include "admin/ask.h"
#include "admin/names.h"

/* Adds those that the registry has: the valid ones, or those that no call can use. */
HF_MUSTCHECK hf_err hf_registry_names(hf_admin *admin, bool valid, hf_names *names);

/* Puts the queue's name into the registry. */
HF_MUSTCHECK hf_err hf_registry_add(hf_admin *admin, const hf_queue *queue);

#endif
