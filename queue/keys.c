/* keys.c - how keys are spelled. The braces keep every key of a queue in one cluster
 * slot, as a script must have them. */
#include "queue/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"

hf_err hf_queue_init(hf_queue *queue, const char *ns, const char *name)
{
    if (!hf_name_ok(ns) || !hf_name_ok(name))
        return HF_INVALID;
    *queue = (hf_queue){.prefix_len = 0};
    memcpy(queue->ns, ns, strlen(ns));
    memcpy(queue->name, name, strlen(name));
    int len = snprintf(queue->prefix, sizeof queue->prefix, "%s:{%s}:", ns, name);
    HF_ASSERT(len > 0 && (size_t)len < sizeof queue->prefix);
    queue->prefix_len = (size_t)len;
    return HF_OK;
}

/* Every part was checked to be a name, so a key that does not fit is a programming error.
 */
static void join(char out[HF_KEY_SIZE], const char *first, const char *second,
                 const char *third)
{
    int len = snprintf(out, HF_KEY_SIZE, "%s%s%s", first, second, third);
    HF_ASSERT(len > 0 && len < HF_KEY_SIZE);
}

void hf_key_registry(char out[HF_KEY_SIZE], const char *ns)
{
    join(out, ns, ":{/}:", "");
}

void hf_key_queues(char out[HF_KEY_SIZE], const char *ns)
{
    join(out, ns, ":{/}:queues", "");
}

void hf_key_workers(char out[HF_KEY_SIZE], const char *ns)
{
    join(out, ns, ":{/}:workers", "");
}

void hf_key_replicated(char out[HF_KEY_SIZE], const char *ns)
{
    join(out, ns, ":{/}:replicated", "");
}

void hf_key_watch(char out[HF_KEY_SIZE], const char *ns)
{
    join(out, ns, ":{/}:watch", "");
}

void hf_key_worker(char out[HF_KEY_SIZE], const char *ns, const char *worker)
{
    join(out, ns, ":{/}:worker:", worker);
}

void hf_key_wake(char out[HF_KEY_SIZE], const hf_queue *queue)
{
    join(out, queue->prefix, "wake", "");
}

void hf_key_seen(char out[HF_KEY_SIZE], const hf_queue *queue, const char *producer)
{
    join(out, queue->prefix, "seen:", producer);
}
