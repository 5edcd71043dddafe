/* remove.c - see remove.h; and a queue is removed.
 *
 * The keys of the queue go first, shard by shard, and its name last: a queue that is half
 * removed is listed, and the call can be repeated. Several keys in several slots are no
 * transaction. So the queue is looked at once more when its name has gone, and one that
 * was used meanwhile is registered again. */
#include "admin/remove.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/parts.h"
#include "admin/registry.h"
#include "base/base.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { LIST_SIZE = 160 };

typedef struct looking {
    hf_holdings *sum;
    bool remove;
} looking;

static bool holds_something(const hf_holdings *h)
{
    return h->waiting + h->running + h->dead + h->kept + h->stray + h->schedules +
               h->workers + h->keys >
           0;
}

bool hf_holdings_none(const hf_holdings *h)
{
    return !holds_something(h) && !h->used;
}

/* ---- what it holds ---- */

static hf_err read_holdings(const hf_answer *answer, void *out)
{
    hf_holdings *h = out;
    int64_t now_ms, used = 0;
    int64_t *const fields[] = {&h->waiting,   &h->running, &h->dead, &h->kept, &h->stray,
                               &h->schedules, &h->workers, &h->keys, &used};
    hf_err err = hf_send_script_status(answer, 2 + HF_COUNT(fields), &now_ms);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < HF_COUNT(fields); i++)
        *fields[i] = hf_reply_int(hf_reply_at(answer->reply, 2 + i));
    h->used = used != 0;
    return HF_OK;
}

/* Each worker of the queue serves all shards. */
static void add(hf_holdings *sum, const hf_holdings *h)
{
    sum->waiting += h->waiting;
    sum->running += h->running;
    sum->dead += h->dead;
    sum->kept += h->kept;
    sum->stray += h->stray;
    sum->schedules += h->schedules;
    sum->workers = h->workers > sum->workers ? h->workers : sum->workers;
    sum->keys += h->keys;
    sum->used = sum->used || h->used;
}

static hf_err look_in(hf_admin *admin, const hf_part *part, void *arg)
{
    const looking *l = arg;
    hf_holdings found = {.used = false};
    hf_ask ask = {.script = &hf_lua_queue_remove,
                  .queue = part->queue,
                  .read = read_holdings,
                  .out = &found};
    if (l->remove)
        hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_flag(&ask.args, l->remove);
    hf_err err = hf_admin_ask(admin, &ask);
    if (err == HF_OK)
        add(l->sum, &found);
    l->sum->divided = l->sum->divided || part->n > 0;
    return err;
}

static hf_err look(hf_admin *admin, const hf_queue *queue, bool to_remove,
                   hf_holdings *out)
{
    looking l = {out, to_remove};
    *out = (hf_holdings){.used = false};
    return hf_admin_in_parts(admin, queue, look_in, &l);
}

hf_err hf_holdings_of(hf_admin *admin, const hf_queue *queue, hf_holdings *out)
{
    return look(admin, queue, false, out);
}

static void name_one(char list[LIST_SIZE], int64_t n, const char *one, const char *many)
{
    size_t len = strlen(list);
    if (n > 0)
        (void)snprintf(list + len, LIST_SIZE - len, "%s%" PRId64 " %s",
                       len > 0 ? ", " : "", n, n == 1 ? one : many);
}

static hf_err refuse(hf_admin *admin, const hf_queue *queue, const hf_holdings *h)
{
    char list[LIST_SIZE] = "";
    name_one(list, h->waiting, "waiting job", "waiting jobs");
    name_one(list, h->running, "running job", "running jobs");
    name_one(list, h->dead, "dead job", "dead jobs");
    name_one(list, h->kept, "kept job", "kept jobs");
    name_one(list, h->stray, "stray record", "stray records");
    name_one(list, h->schedules, "schedule", "schedules");
    name_one(list, h->workers, "live worker", "live workers");
    name_one(list, h->keys, "unique key", "unique keys");
    return hf_admin_fail(admin, HF_BUSY, "queue '%.80s' is not empty: %s", queue->name,
                         list);
}

/* ---- the registry ---- */

static hf_err unregister(hf_admin *admin, const hf_queue *queue)
{
    hf_ask ask = {.script = &hf_lua_queue_unregister};
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_text(&ask.args, queue->name);
    return hf_admin_ask(admin, &ask);
}

/* HF_BUSY: it came into use before its name had gone, and is registered again. */
static hf_err leave_the_list(hf_admin *admin, const hf_queue *queue)
{
    hf_holdings found;
    hf_err err = unregister(admin, queue);
    if (err == HF_OK)
        err = hf_holdings_of(admin, queue, &found);
    if (err != HF_OK || hf_holdings_none(&found))
        return err;
    err = hf_registry_add(admin, queue);
    return err != HF_OK ? err
                        : hf_admin_fail(admin, HF_BUSY, "queue '%.80s' was used just now",
                                        queue->name);
}

void hf_forget_unused(hf_admin *admin, const hf_queue *queue)
{
    hf_holdings found;
    if (hf_holdings_of(admin, queue, &found) == HF_OK && hf_holdings_none(&found) &&
        !found.divided)
        (void)leave_the_list(admin, queue);
}

static hf_err is_listed(hf_admin *admin, const char *name, bool *listed)
{
    char **names;
    size_t n;
    hf_err err = hf_admin_queues(admin, &names, &n, admin->detail);
    *listed = false;
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < n && !*listed; i++)
        *listed = strcmp(names[i], name) == 0;
    free(names);
    return HF_OK;
}

hf_err hf_admin_remove(hf_admin *admin, const char *name, char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_holdings found;
    bool listed = false;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK)
        err = is_listed(admin, queue.name, &listed);
    if (err == HF_OK)
        err = hf_holdings_of(admin, &queue, &found);
    if (err != HF_OK)
        return err;
    if (!listed && hf_holdings_none(&found))
        return hf_admin_fail(admin, HF_GONE, "no queue '%s'", queue.name);
    /* The script decides. But it knows one shard, and the others should keep their
     * settings if this one refuses. */
    if (!found.divided || !holds_something(&found))
        err = look(admin, &queue, true, &found);
    if (err != HF_OK)
        return err;
    return holds_something(&found) ? refuse(admin, &queue, &found)
                                   : leave_the_list(admin, &queue);
}
