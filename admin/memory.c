/* memory.c - about how much of Redis's memory a queue takes.
 *
 * Redis itself looks at 20 members of each set and hash, and multiplies: the time that it
 * takes does not grow with the queue. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <string.h>

#include "admin/parts.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "queue/send.h"

/* Those that grow with the number of jobs (docs/keys.md). */
static const char *const keys[] = {"jobs",    "schedule", "schedule:h", "schedule:l",
                                   "running", "dead",     "parked",     "done",
                                   "kept",    "results",  "unique",     "crashes"};

static hf_err read_bytes(const hf_answer *answer, void *out)
{
    *(int64_t *)out += hf_reply_int(answer->reply); /* nil: there is no such key */
    return HF_OK;
}

static hf_err ask_key(hf_admin *admin, const hf_queue *queue, const char *name,
                      int64_t *bytes)
{
    char key[HF_KEY_SIZE];
    hf_ask ask = {.queue = queue, .read = read_bytes, .out = bytes};
    (void)snprintf(key, sizeof key, "%.*s%s", (int)queue->prefix_len, queue->prefix,
                   name);
    hf_args_text(&ask.args, "MEMORY");
    hf_args_text(&ask.args, "USAGE");
    hf_args_text(&ask.args, key);
    hf_args_text(&ask.args, "SAMPLES");
    hf_args_text(&ask.args, "20");
    return hf_admin_ask(admin, &ask);
}

/* A script says whether the queue is divided; a plain command does not. */
static hf_err add_part(hf_admin *admin, const hf_part *part, void *arg)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_err err = hf_stats_of(admin, part->queue, &stats);
    for (size_t i = 0; i < HF_COUNT(keys) && err == HF_OK; i++)
        err = ask_key(admin, part->queue, keys[i], arg);
    return err;
}

hf_err hf_admin_memory(hf_admin *admin, const char *queue, int64_t *bytes,
                       char detail[HF_DETAIL_SIZE])
{
    hf_queue whole;
    hf_admin_begin(admin, detail);
    *bytes = 0;
    hf_err err = hf_admin_queue(admin, queue, &whole);
    return err == HF_OK ? hf_admin_in_parts(admin, &whole, add_part, bytes) : err;
}
