/* parts.c - see parts.h. */
#include "admin/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hf_err hf_admin_name_shard(hf_admin *admin, hf_err err, const char *tag)
{
    char why[HF_DETAIL_SIZE];
    (void)snprintf(why, sizeof why, "%s", admin->detail);
    return hf_admin_fail(admin, err, "shard %.100s: %.140s", tag, why);
}

/* A copy, because the next answer of another divided queue replaces them. */
static hf_shards *copy_shards(const hf_admin *admin)
{
    hf_shards *shards = malloc(sizeof *shards);
    if (shards != NULL)
        *shards = admin->shards;
    return shards;
}

static hf_err in_shards(hf_admin *admin, const hf_queue *whole, hf_part_fn fn, void *arg,
                        bool goes_on)
{
    hf_shards *shards = copy_shards(admin);
    char why[HF_DETAIL_SIZE] = "";
    hf_err worst = HF_OK;
    if (shards == NULL)
        return hf_admin_no_memory(admin);
    for (unsigned i = 0; i < shards->n && (worst == HF_OK || goes_on); i++) {
        hf_queue queue;
        const hf_part part = {
            .queue = &queue, .tag = shards->tags[i], .i = i, .n = shards->n};
        hf_shards_queue(shards, whole, i, &queue);
        hf_err err = fn(admin, &part, arg);
        if (err == HF_OK || worst != HF_OK)
            continue;
        worst = err;
        if (err != HF_INVALID) /* of what was asked for, and not of this shard */
            (void)hf_admin_name_shard(admin, err, shards->tags[i]);
        (void)snprintf(why, sizeof why, "%s", admin->detail);
    }
    free(shards);
    return worst == HF_OK ? worst : hf_admin_fail(admin, worst, "%s", why);
}

static hf_err in_parts(hf_admin *admin, const hf_queue *queue, hf_part_fn fn, void *arg,
                       bool goes_on)
{
    const hf_part whole = {.queue = queue};
    hf_err err = fn(admin, &whole, arg);
    return err == HF_SHARDED ? in_shards(admin, queue, fn, arg, goes_on) : err;
}

hf_err hf_admin_in_parts(hf_admin *admin, const hf_queue *queue, hf_part_fn fn, void *arg)
{
    return in_parts(admin, queue, fn, arg, false);
}

hf_err hf_admin_in_all_parts(hf_admin *admin, const hf_queue *queue, hf_part_fn fn,
                             void *arg)
{
    return in_parts(admin, queue, fn, arg, true);
}

unsigned hf_part_for(const hf_shards *shards, const char *id, unsigned k)
{
    const unsigned first = hf_shard_of_id(id, shards->n);
    return k == 0 ? first : k <= first ? k - 1 : k;
}

bool hf_part_is_there(hf_admin *admin, const hf_queue *shard, const hf_part_fault *f)
{
    const char *place = f->away ? hf_admin_place(admin, shard) : NULL;
    return f->away && (place == NULL || strcmp(place, f->place) == 0);
}

void hf_part_note_fault(hf_admin *admin, const hf_queue *shard, hf_err err,
                        hf_part_fault *f)
{
    const char *place = hf_admin_place(admin, shard);
    if (err != HF_REDIS && err != HF_PROTO) { /* else its own keys are the reason */
        f->away = true;
        (void)snprintf(f->place, sizeof f->place, "%s", place == NULL ? "" : place);
    }
    if (f->err != HF_OK)
        return;
    f->err = err;
    (void)snprintf(f->why, sizeof f->why, "%s", admin->detail);
}

/* A shard that cannot be asked hides no job of another one. */
static hf_err in_shard_of(hf_admin *admin, const hf_queue *whole, const char *id,
                          hf_in_queue_fn fn, void *arg)
{
    hf_shards *shards = copy_shards(admin);
    hf_part_fault f = {.err = HF_OK};
    hf_err err = HF_GONE;
    if (shards == NULL)
        return hf_admin_no_memory(admin);
    for (unsigned k = 0; k < shards->n && err == HF_GONE; k++) {
        const unsigned i = hf_part_for(shards, id, k);
        hf_queue queue;
        hf_shards_queue(shards, whole, i, &queue);
        if (hf_part_is_there(admin, &queue, &f))
            continue;
        err = fn(admin, &queue, id, arg);
        if (err > HF_INVALID) /* an answer */
            continue;
        (void)hf_admin_name_shard(admin, err, shards->tags[i]);
        hf_part_note_fault(admin, &queue, err, &f);
        err = HF_GONE;
    }
    free(shards);
    return err == HF_GONE && f.err != HF_OK ? hf_admin_fail(admin, f.err, "%s", f.why)
                                            : err;
}

hf_err hf_admin_in_part_of(hf_admin *admin, const hf_queue *queue, const char *id,
                           hf_in_queue_fn fn, void *arg)
{
    hf_err err = fn(admin, queue, id, arg);
    return err == HF_SHARDED ? in_shard_of(admin, queue, id, fn, arg) : err;
}
