/* lock.c - what an acquisition may ask for; making and freeing its handle; what several
 * steps of a lock do. */
#include "lock/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "lock/client.h"
#include "lock/names.h"
#include "lock/nodes.h"
#include "lock/ops.h"

#define WAIT_MAX_MS (INT64_C(1) << 40)

/* ---- checking ---- */

static hf_err check_names(const hf_lock_opts *o, char *detail)
{
    if (o->names == NULL || o->n_names < 1 || o->n_names > HF_LOCK_NAMES_MAX)
        return hf_say(detail, HF_INVALID, "expected 1 to %d names, found %zu",
                      HF_LOCK_NAMES_MAX, o->names == NULL ? 0 : o->n_names);
    for (size_t i = 0; i < o->n_names; i++) {
        const char *name = o->names[i];
        if (hf_lock_name_check(name) != HF_OK)
            return hf_say(detail, HF_INVALID,
                          "expected the name of a lock, 1 to %d characters of A-Z "
                          "a-z 0-9 . _ : - with at most one / inside, found \"%s\"",
                          HF_LOCK_NAME_MAX, name == NULL ? "" : name);
        size_t tag = hf_names_tag_len(name);
        if (tag != hf_names_tag_len(o->names[0]) || memcmp(name, o->names[0], tag) != 0)
            return hf_say(detail, HF_INVALID,
                          "expected locks of one tag, as in \"tag/a\" and \"tag/b\", "
                          "found \"%s\" and \"%s\"",
                          o->names[0], name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(name, o->names[k]) == 0)
                return hf_say(detail, HF_INVALID,
                              "expected each name once, found \"%s\" twice",
                              HF_FOUND(name));
    }
    return HF_OK;
}

static hf_err check_mode(const hf_lock_opts *o, char *detail)
{
    if (o->mode > HF_LOCK_PERMITS || o->form > HF_LOCK_SPIN)
        return hf_say(detail, HF_INVALID, "expected a mode and a form that exist");
    if (o->mode == HF_LOCK_PERMITS &&
        (o->limit < 1 || o->limit > HF_LOCK_PERMITS_MAX || o->permits > o->limit))
        return hf_say(detail, HF_INVALID,
                      "expected 1 to limit permits, and a limit of 1 to %d, found "
                      "%" PRIu32 " of %" PRIu32,
                      HF_LOCK_PERMITS_MAX, o->permits, o->limit);
    if (o->mode != HF_LOCK_PERMITS && (o->permits != 0 || o->limit != 0))
        return hf_say(detail, HF_INVALID,
                      "expected no permits and no limit without HF_LOCK_PERMITS");
    if (o->form == HF_LOCK_SPIN &&
        (o->n_names != 1 || o->mode != HF_LOCK_EXCLUSIVE || o->reentrant))
        return hf_say(detail, HF_INVALID,
                      "expected one name for HF_LOCK_SPIN, exclusive and not "
                      "reentrant");
    return HF_OK;
}

static hf_err check_rest(const hf_lock_opts *o, char *detail)
{
    uint32_t lease = o->lease_ms;
    if (o->owner != NULL &&
        (!hf_name_ok(o->owner) || strlen(o->owner) > HF_LOCK_OWNER_MAX))
        return hf_say(detail, HF_INVALID,
                      "expected an owner of 1 to %d characters of A-Z a-z 0-9 . _ : -",
                      HF_LOCK_OWNER_MAX);
    if (o->reentrant && o->owner == NULL)
        return hf_say(detail, HF_INVALID, "a reentrant lock needs an owner");
    if (lease != 0 && (lease < HF_LOCK_LEASE_MIN_MS || lease > HF_LOCK_LEASE_MAX_MS))
        return hf_say(detail, HF_INVALID,
                      "expected a lease of %d to %d ms, found %" PRIu32,
                      HF_LOCK_LEASE_MIN_MS, HF_LOCK_LEASE_MAX_MS, lease);
    if (o->wait_ms > WAIT_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a wait of at most %" PRId64 " ms, found %" PRId64,
                      WAIT_MAX_MS, o->wait_ms);
    return HF_OK;
}

/* A checked copy. */
static hf_err take_opts(hf_lock_opts *out, const hf_lock_opts *theirs, char *detail)
{
    hf_err err = hf_struct_in(out, sizeof *out, theirs, "hf_lock_opts", detail);
    if (err == HF_OK)
        err = check_names(out, detail);
    if (err == HF_OK)
        err = check_mode(out, detail);
    return err == HF_OK ? check_rest(out, detail) : err;
}

hf_err hf_lock_opts_check(const hf_lock_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_lock_opts copy;
    return take_opts(&copy, opts, detail);
}

/* ---- making ---- */

static hf_err random_hex(char *out, size_t bytes)
{
    unsigned char raw[HF_LOCK_OWNER_MAX];
    hf_err err = hf_random_bytes(raw, bytes);
    for (size_t i = 0; i < bytes && err == HF_OK; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return err;
}

hf_err hf_lock_owner_make(char out[HF_LOCK_OWNER_SIZE])
{
    return random_hex(out, 16);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool copy_names(hf_lock *lock, const hf_lock_opts *o)
{
    size_t len = 0;
    for (size_t i = 0; i < o->n_names; i++)
        len += strlen(o->names[i]) + 1;
    char *at = lock->names_text = malloc(len);
    if (at == NULL)
        return false;
    for (size_t i = 0; i < o->n_names; i++) {
        size_t size = strlen(o->names[i]) + 1;
        memcpy(at, o->names[i], size);
        lock->names[i] = at;
        at += size;
    }
    lock->n_names = o->n_names;
    qsort(lock->names, lock->n_names, sizeof lock->names[0], by_name);
    return true;
}

static void set_times(hf_lock *lock, const hf_lock_opts *o)
{
    uint64_t now_ns = hf_boot_ns();
    lock->acquire.until_ns =
        o->wait_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)o->wait_ms * HF_MS_NS;
    uint32_t reach_ms = lock->locks->connect_timeout_ms;
    if (o->reach_ms != 0 && o->reach_ms < reach_ms)
        reach_ms = o->reach_ms;
    lock->acquire.reached_ns = now_ns + reach_ms * HF_MS_NS;
    lock->fixed = o->fixed;
    lock->max_hold_ms = o->max_hold_ms;
    lock->wait_replicas = o->wait_replicas;
}

static hf_err fill(hf_lock *lock, const hf_lock_opts *o)
{
    static const char modes[] = "xsp";
    hf_lock_client *locks = lock->locks;
    hf_err err = random_hex(lock->hold, (HF_HOLD_SIZE - 1) / 2);
    if (err == HF_OK && o->owner == NULL)
        err = hf_lock_owner_make(lock->owner);
    if (err != HF_OK)
        return err;
    lock->alone = o->owner == NULL;
    if (o->owner != NULL)
        (void)snprintf(lock->owner, sizeof lock->owner, "%s", o->owner);
    if (!copy_names(lock, o))
        return HF_NOMEM;
    lock->prefix_len = hf_names_prefix(lock->prefix, locks->ns, lock->names[0]);
    lock->slot = hf_nodes_slot(&locks->nodes, lock->prefix, lock->prefix_len);
    lock->mode = modes[o->mode];
    lock->acquire.args = (hf_acquire_args){
        .client = locks->id,
        .mode = lock->mode,
        .permits = o->permits == 0 ? 1 : o->permits,
        .limit = o->limit,
        .wait = o->wait_ms != 0 && o->form == HF_LOCK_LINE,
        .reentrant = o->reentrant,
        .lease_ms = o->lease_ms == 0 ? HF_LOCK_LEASE_MS : o->lease_ms,
    };
    atomic_init(&lock->lease_ms, lock->acquire.args.lease_ms);
    lock->simple = o->form == HF_LOCK_SPIN;
    lock->on_event = o->on_event != NULL ? o->on_event : locks->on_event;
    lock->event_arg = o->on_event != NULL ? o->event_arg : locks->arg;
    set_times(lock, o);
    return HF_OK;
}

hf_err hf_lock_make(hf_lock_client *locks, const hf_lock_opts *theirs, hf_lock **out,
                    char detail[HF_DETAIL_SIZE])
{
    hf_lock_opts opts;
    hf_err err = take_opts(&opts, theirs, detail);
    if (err != HF_OK)
        return err;
    hf_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return hf_say(detail, HF_NOMEM, "out of memory");
    lock->locks = locks;
    lock->handle.tasks = &locks->tasks;
    atomic_init(&lock->fd, -1);
    atomic_init(&lock->node, HF_CONTAINER(locks->nodes.home, hf_lock_node, base));
    err = fill(lock, &opts);
    if (err != HF_OK) {
        hf_lock_free(lock);
        return hf_say(detail, err, "%s", hf_err_text(err));
    }
    *out = lock;
    return HF_OK;
}

void hf_lock_free(hf_lock *lock)
{
    int fd = atomic_load(&lock->fd);
    if (fd >= 0)
        (void)close(fd);
    free(lock->names_text);
    free(lock);
}

hf_lock_of hf_lock_of_lock(const hf_lock *lock)
{
    return (hf_lock_of){.prefix = {lock->prefix, lock->prefix_len},
                        .names = lock->names,
                        .n_names = lock->n_names,
                        .owner = lock->owner,
                        .hold = lock->hold,
                        .simple = lock->simple};
}

/* ---- what several steps do ---- */

void hf_lock_move(hf_lock *lock, hf_lock **list)
{
    if (lock->list != NULL) {
        if (lock->next != NULL)
            lock->next->prev = lock->prev;
        if (lock->prev != NULL)
            lock->prev->next = lock->next;
        else
            *lock->list = lock->next;
    }
    lock->next = lock->prev = NULL;
    lock->list = list;
    if (list == NULL)
        return;
    lock->next = *list;
    if (*list != NULL)
        (*list)->prev = lock;
    *list = lock;
}

/* Its line's clock is read anew: the new node may have older data. */
hf_lock_node *hf_lock_route(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    hf_lock_node *old = atomic_load(&lock->node);
    hf_lock_node *node = hf_lock_node_of(locks, lock->slot);
    if (node == old || &node->base == locks->nodes.away)
        return old;
    hf_lock_confirm_end(lock); /* the new node's replicas have to confirm it */
    hf_lock_node_begins_epoch(node);
    if (lock->in_flight == 0)
        lock->asked = NULL;
    atomic_store(&lock->node, node);
    return node;
}

void hf_lock_confirm_end(hf_lock *lock)
{
    if (lock->acquire.asks_replicas)
        hf_replicas_withdraw(atomic_load(&lock->node)->base.replicas,
                             &lock->acquire.confirm);
    lock->acquire.asks_replicas = false;
}

void hf_lock_note_reading(hf_lock *lock, uint64_t number, uint64_t clock_ms,
                          int64_t redis_ms)
{
    unsigned epoch = atomic_load(&atomic_load(&lock->node)->epoch);
    hf_reading_note(&lock->reading, epoch, number, clock_ms, redis_ms);
}

bool hf_lock_left_behind(const hf_lock *lock)
{
    return lock->may_be_there || lock->in_flight > 0;
}

void hf_lock_background(hf_lock *lock, bool on)
{
    if (lock->release.background != on)
        hf_run_loop_background(&lock->locks->tasks.run, on ? 1 : -1);
    lock->release.background = on;
}

void hf_lock_over(hf_lock *lock)
{
    lock->over = true;
    lock->step = STEP_RELEASE;
    lock->due_ns = lock->release.until_ns = lock->release.tell_until_ns = UINT64_MAX;
    if (lock->in_flight > 0 || atomic_load(&lock->handle.cancel_queued) ||
        atomic_load(&lock->release.event_runs))
        return;
    hf_lock_background(lock, false);
    hf_lock_move(lock, NULL);
    hf_lock_free(lock);
}
