/* shards.c - a queue is divided into shards, and they are shown. */
#include <string.h>

#include "admin/parts.h"
#include "admin/registry.h"
#include "base/base.h"
#include "queue/send.h"
#include "queue_scripts.h"
#include "redis/slots.h"

static hf_err read_divided(const hf_answer *answer, void *out)
{
    return hf_divided_read(answer, out);
}

static hf_err ask_to_divide(hf_admin *admin, const hf_queue *queue,
                            const hf_shards *wanted, hf_divided *out)
{
    char text[HF_SHARDS_TEXT_SIZE];
    hf_ask ask = {
        .script = &hf_lua_queue_shards, .queue = queue, .read = read_divided, .out = out};
    hf_ask_order(&ask, admin);
    hf_shards_write(wanted, text);
    hf_args_int(&ask.args, ask.time.not_after);
    hf_args_text(&ask.args, text);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_divide(hf_admin *admin, const char *name, unsigned n,
                       char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_shards wanted;
    hf_divided divided;
    char why[HF_DETAIL_SIZE];
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    if (hf_shards_make(&wanted, queue.name, n) != HF_OK)
        return hf_admin_fail(admin, HF_INVALID,
                             "expected %d to %d shards, and a queue's name of at most "
                             "%d characters, found %u and %zu",
                             HF_SHARDS_MIN, HF_SHARDS_MAX, HF_SHARDED_NAME_MAX, n,
                             strlen(queue.name));
    err = hf_registry_add(admin, &queue);
    if (err == HF_OK)
        err = ask_to_divide(admin, &queue, &wanted, &divided);
    if (err != HF_OK || hf_divided_is(&divided, n, why))
        return err;
    return hf_admin_fail(admin, HF_INVALID, "queue '%s': %.110s", queue.name, why);
}

typedef struct showing {
    hf_shard_cb cb;
    void *arg;
    hf_part_fault fault;
} showing;

/* One that cannot be asked is shown as such, and the others all the same. */
static hf_err show_in(hf_admin *admin, const hf_part *part, void *arg)
{
    showing *s = arg;
    hf_queue_stats stats;
    bool there = hf_part_is_there(admin, part->queue, &s->fault);
    hf_err err = there ? s->fault.err : hf_stats_of(admin, part->queue, &stats);
    if (part->n == 0)
        return err;
    if (err != HF_OK && !there) {
        (void)hf_admin_name_shard(admin, err, part->tag);
        hf_part_note_fault(admin, part->queue, err, &s->fault);
    }
    const hf_shard_info info = {.size = sizeof info,
                                .number = part->i,
                                .tag = part->tag,
                                .slot =
                                    hf_slot(part->queue->prefix, part->queue->prefix_len),
                                .node = hf_admin_place(admin, part->queue),
                                .stats = err == HF_OK ? &stats : NULL};
    s->cb(&info, s->arg);
    return HF_OK;
}

hf_err hf_admin_shards(hf_admin *admin, const char *name, hf_shard_cb cb, void *arg,
                       char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    showing s = {cb, arg, {.err = HF_OK}};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK)
        err = hf_admin_in_parts(admin, &queue, show_in, &s);
    return err == HF_OK && s.fault.err != HF_OK
               ? hf_admin_fail(admin, s.fault.err, "%s", s.fault.why)
               : err;
}
