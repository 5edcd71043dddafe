/* multi.c - a MultiLock: members on several servers, all of them or none.
 *
 * They are taken one after the other in the order of their stations, a server and a tag:
 * a waiter holds only earlier stations, so no circle of waiters can form. All locks of
 * one station are taken in one step, by one member; two of them would wait for each other
 * inside the station's lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/mask.h"
#include "base/structs.h"
#include "lock/lock.h"
#include "lock/names.h"
#include "lock/set/set.h"
#include "lock/tasks.h"

/* ---- the order ---- */

static int by_station(const void *a, const void *b)
{
    const hf_set_member *x = a, *y = b;
    int order = strcmp(hf_set_place(x), hf_set_place(y));
    if (order != 0)
        return order;
    const char *one = x->opts.names[0], *two = y->opts.names[0];
    size_t n = hf_names_tag_len(one), m = hf_names_tag_len(two);
    order = memcmp(one, two, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

static hf_err check_order(const hf_lock_set *set, char *detail)
{
    for (size_t i = 1; i < set->n; i++) {
        const hf_set_member *one = &set->members[i - 1], *two = &set->members[i];
        if (by_station(one, two) == 0)
            return hf_say(detail, HF_INVALID,
                          "expected locks of one server and one tag in one member, "
                          "found \"%s\" and \"%s\"",
                          HF_FOUND(one->opts.names[0]), HF_FOUND(two->opts.names[0]));
    }
    return HF_OK;
}

/* ---- making ---- */

/* Gives where the copy is, and moves on behind it. */
static const char *put_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    const char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

/* The pointers to the names are in `text` as well: members can be moved. */
/* `theirs` was checked. */
static bool copy_lock(hf_set_member *m, const hf_lock_opts *theirs)
{
    hf_lock_opts sized;
    const hf_lock_opts *o = &sized;
    if (hf_struct_in(&sized, sizeof sized, theirs, "hf_lock_opts", NULL) != HF_OK)
        return false;
    size_t size = o->n_names * sizeof(char *);
    size += o->owner == NULL ? 0 : strlen(o->owner) + 1;
    for (size_t i = 0; i < o->n_names; i++)
        size += strlen(o->names[i]) + 1;
    const char **names = m->text = malloc(size);
    if (names == NULL)
        return false;
    char *at = (char *)(names + o->n_names);
    for (size_t i = 0; i < o->n_names; i++)
        names[i] = put_text(&at, o->names[i]);
    m->opts = *o;
    m->opts.names = names;
    m->opts.owner = o->owner == NULL ? NULL : put_text(&at, o->owner);
    return true;
}

static hf_err check_member(const hf_lock_servers *servers, const hf_multilock_member *one,
                           char *detail)
{
    if (one->server >= servers->n)
        return hf_say(detail, HF_INVALID, "expected a server of 0 to %zu, found %zu",
                      servers->n - 1, one->server);
    hf_lock_opts opts;
    hf_err err = hf_struct_in(&opts, sizeof opts, one->lock, "hf_lock_opts", detail);
    if (err != HF_OK)
        return err;
    if (opts.wait_ms != 0 || opts.on_event != NULL || opts.event_arg != NULL)
        return hf_say(detail, HF_INVALID,
                      "expected no wait_ms and no events in a member: a MultiLock "
                      "has its own");
    return hf_lock_opts_check(&opts, detail);
}

static hf_err check(const hf_lock_servers *servers, const hf_multilock_opts *o,
                    char *detail)
{
    if (o->members == NULL || o->n_members < 1 || o->n_members > HF_LOCK_MEMBERS_MAX)
        return hf_say(detail, HF_INVALID, "expected 1 to %d members, found %zu",
                      HF_LOCK_MEMBERS_MAX, o->members == NULL ? 0 : o->n_members);
    hf_err err = HF_OK;
    for (size_t i = 0; i < o->n_members && err == HF_OK; i++)
        err = check_member(servers, &o->members[i], detail);
    return err;
}

/* ---- taking ---- */

/* Until when; the last of them may need its time to say that it cannot. */
static uint64_t limit_ns(const hf_lock_set *set)
{
    const hf_lock_servers *servers = set->servers;
    uint64_t reached_ns = set->begun_ns + servers->connect_timeout_ms * HF_MS_NS;
    if (set->until_ns == UINT64_MAX)
        return UINT64_MAX;
    return (set->until_ns > reached_ns ? set->until_ns : reached_ns) +
           servers->request_timeout_ms * HF_MS_NS;
}

static bool all_stand(hf_lock_set *set)
{
    return hf_lock_set_standing(set) == set->at;
}

static void fail_one_was_lost(hf_lock_set *set)
{
    hf_set_undo(set, true, HF_LOST,
                "a lock was lost while the others were waited for: all were given back");
}

static void ask_next(hf_lock_set *set)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_set_member *m = &set->members[set->at];
    hf_lock_opts opts = m->opts;
    uint64_t now_ns = hf_boot_ns();
    opts.wait_ms = set->wait_ms;
    if (set->wait_ms > 0) {
        if (now_ns >= set->until_ns) {
            hf_set_undo(set, true, HF_TAKEN, "%.120s: %.60s: the time to wait is over",
                        hf_set_place(m), opts.names[0]);
            return;
        }
        opts.wait_ms = (int64_t)((set->until_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS);
    }
    hf_err err = hf_set_ask(m, &opts, detail);
    if (err != HF_OK)
        hf_set_undo(set, true, err, "%s", detail);
}

static void got(hf_set_member *m, hf_lock *lock)
{
    hf_lock_set *set = m->set;
    hf_set_join(m, lock);
    set->at++;
    if (!all_stand(set))
        fail_one_was_lost(set);
    else if (set->at < set->n)
        ask_next(set);
    else if (!hf_set_become_held(set))
        fail_one_was_lost(set);
}

static void refused(hf_set_member *m, const char *detail)
{
    bool late = m->err == HF_CANCEL; /* it was time() that cancelled it */
    hf_set_undo(m->set, true, late ? HF_CONN : m->err, "%.120s: %.60s: %.70s",
                hf_set_place(m), m->opts.names[0],
                late        ? "not reached in time"
                : detail[0] ? detail
                            : hf_err_text(m->err));
}

static void on_lost(hf_lock_set *set)
{
    if (set->step == SET_TAKE && !all_stand(set))
        fail_one_was_lost(set);
}

/* Everything was given back, or its server did not answer. */
static void undone(hf_lock_set *set)
{
    size_t unknown = 0;
    const hf_set_member *first = NULL;
    for (size_t i = 0; i < set->n; i++)
        if (set->members[i].result == HF_RELEASE_UNKNOWN) {
            first = first == NULL ? &set->members[i] : first;
            unknown++;
        }
    size_t len = strlen(set->detail);
    if (unknown > 0)
        (void)snprintf(set->detail + len, sizeof set->detail - len,
                       "; %zu end with their leases, the first on %.100s", unknown,
                       hf_set_place(first));
    hf_set_fail(set);
}

static uint64_t due_ns(const hf_lock_set *set)
{
    return set->step == SET_TAKE ? limit_ns(set) : UINT64_MAX;
}

static void in_time(hf_lock_set *set, uint64_t now_ns)
{
    (void)now_ns;
    if (set->members[set->at].asked != NULL)
        hf_lock_cancel(set->members[set->at].asked);
}

static hf_err make(hf_lock_servers *servers, const hf_multilock_opts *o,
                   hf_lock_set **out, char *detail)
{
    /* A lost member is kept until the release. */
    static const hf_set_kind kind = {ask_next, got,     refused, NULL,
                                     undone,   on_lost, due_ns,  in_time};
    hf_lock_set *set = NULL;
    hf_err err = check(servers, o, detail);
    if (err == HF_OK)
        err = hf_set_new(&set, servers, &kind, o->n_members, o->wait_ms, detail);
    if (err != HF_OK)
        return err;
    set->on_event = o->on_event;
    set->event_arg = o->event_arg;
    HF_ASSERT(o->members != NULL); /* check() refuses that */
    for (size_t i = 0; i < set->n; i++) {
        set->members[i].server = o->members[i].server;
        if (!copy_lock(&set->members[i], o->members[i].lock)) {
            hf_set_free(set);
            return hf_say_err(detail, HF_NOMEM);
        }
    }
    qsort(set->members, set->n, sizeof set->members[0], by_station);
    err = check_order(set, detail);
    if (err != HF_OK)
        hf_set_free(set);
    else
        *out = set;
    return err;
}

static hf_err make_of(hf_lock_servers *servers, const hf_multilock_opts *theirs,
                      hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_multilock_opts o;
    void *copy = NULL;
    hf_err err = hf_struct_in(&o, sizeof o, theirs, "hf_multilock_opts", detail);
    if (err == HF_OK && o.members != NULL && o.n_members <= HF_LOCK_MEMBERS_MAX) {
        const void *ours;
        err = hf_structs_in(&ours, &copy, sizeof *o.members, o.members, o.n_members,
                            "hf_multilock_member", detail);
        o.members = ours;
    }
    if (err == HF_OK)
        err = make(servers, &o, out, detail);
    free(copy);
    return err;
}

hf_err hf_multilock_acquire(hf_lock_servers *servers, const hf_multilock_opts *opts,
                            hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                            char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set = NULL;
    hf_err err = make_of(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_acquire(set, cb, arg, out, detail) : err;
}

hf_err hf_multilock_acquire_wait(hf_lock_servers *servers, const hf_multilock_opts *opts,
                                 hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set = NULL;
    hf_err err = hf_tasks_may_wait(&servers->tasks, detail);
    if (err == HF_OK)
        err = make_of(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_acquire_wait(set, out, detail) : err;
}
