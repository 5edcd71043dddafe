/* red.c - a RedLock: one name on independent servers, held by a majority of them.
 *
 * A try asks all servers at once for a simple lock, with a new owner: an earlier try that
 * is still released in the background cannot release a later one. While the lock is held,
 * a server that lost it is released first. It is acquired again with the same owner only
 * when that release was answered, or cannot be executed any more. */
#include "lock/set/red.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/structs.h"
#include "lock/client.h"
#include "lock/hold.h"
#include "lock/lock.h"
#include "lock/set/set.h"
#include "lock/set/state.h"
#include "lock/tasks.h"

enum {
    NODE_LEAST_MS = 50,
    PAUSE_FIRST_MS = 20,
    PAUSE_LAST_MS = 500,
    COMING_MS = 10, /* how often servers that are being connected are looked at */
    REFILL_MS = 100,
    REFILL_FAULT_MS = 1000
};

/* ---- the options ---- */

static hf_err check(const hf_lock_servers *servers, const hf_redlock_opts *o,
                    uint32_t lease_ms, char *detail)
{
    if (servers->n < HF_REDLOCK_SERVERS_MIN || servers->n % 2 == 0)
        return hf_say(detail, HF_INVALID,
                      "a RedLock needs an odd number of servers, at least %d: found "
                      "%zu",
                      HF_REDLOCK_SERVERS_MIN, servers->n);
    for (size_t i = 0; i < servers->n; i++)
        if (hf_lock_client_in_cluster(servers->clients[i]))
            return hf_say(detail, HF_INVALID,
                          "a RedLock needs servers that fail independently: found the "
                          "cluster %.150s",
                          servers->places[i]);
    if (o->node_timeout_ms > lease_ms / 4)
        return hf_say(detail, HF_INVALID,
                      "expected a time-out for each server of at most a quarter of "
                      "the lease, %" PRIu32 " ms, found %" PRIu32,
                      lease_ms / 4, o->node_timeout_ms);
    return HF_OK;
}

static uint32_t default_timeout(uint32_t lease_ms)
{
    uint32_t least_ms = lease_ms / 4 < NODE_LEAST_MS ? lease_ms / 4 : NODE_LEAST_MS;
    return lease_ms / 100 > least_ms ? lease_ms / 100 : least_ms;
}

static hf_lock_opts opts_of(const hf_lock_set *set)
{
    return (hf_lock_opts){HF_LOCK_OPTS_INIT,
                          .names = (const char *const *)&set->name,
                          .n_names = 1,
                          .form = HF_LOCK_SPIN,
                          .owner = set->owner,
                          .lease_ms = set->red.lease_ms,
                          .fixed = set->red.fixed,
                          .max_hold_ms = set->red.max_hold_ms};
}

/* ---- one try ---- */

static size_t count_asked(const hf_lock_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += set->members[i].asked != NULL;
    return n;
}

/* Joins the servers' answers into one line; then the lock is released everywhere. */
static void give_up(hf_lock_set *set)
{
    size_t granted = hf_lock_set_standing(set), silent = count_asked(set), taken = 0;
    const hf_set_member *fault = NULL;
    for (size_t i = 0; i < set->n; i++) {
        const hf_set_member *m = &set->members[i];
        taken += m->err == HF_TAKEN;
        if (m->err != HF_OK && m->err != HF_TAKEN && fault == NULL)
            fault = m;
    }
    hf_err err = HF_TAKEN;
    if (taken == 0 || granted + taken < set->needed)
        err = fault == NULL || silent > 0 ? HF_CONN : fault->err;
    hf_set_undo(set, false, err,
                "%zu of %zu servers granted it, %zu are needed; on %zu another client "
                "holds it, %zu had not answered (each has %" PRIu32 " ms)%s%.80s%s%.40s",
                granted, set->n, set->needed, taken, silent, set->red.node_timeout_ms,
                fault == NULL ? "" : "; ", fault == NULL ? "" : hf_set_place(fault),
                fault == NULL ? "" : ": ", fault == NULL ? "" : hf_err_text(fault->err));
}

static void plan_refills(hf_lock_set *set);

static void count(hf_lock_set *set)
{
    size_t standing = hf_lock_set_standing(set);
    if (set->step != SET_TAKE)
        return;
    if (standing >= set->needed && hf_set_become_held(set))
        plan_refills(set);
    else if (standing + count_asked(set) < set->needed)
        give_up(set);
}

static void try_now(hf_lock_set *set)
{
    hf_err err = hf_lock_owner_make(set->owner);
    set->step = SET_TAKE;
    set->tries++;
    set->check_ns = hf_boot_ns() + set->red.node_timeout_ms * HF_MS_NS;
    for (size_t i = 0; i < set->n; i++) {
        const hf_lock_opts opts = opts_of(set);
        set->members[i].result = HF_RELEASE_EXPIRED;
        set->members[i].may_leave = false;
        set->members[i].err =
            err == HF_OK ? hf_set_ask(&set->members[i], &opts, NULL) : err;
    }
    count(set);
}

/* Its time is over, but for servers whose first connection is still being made. */
static void time_out(hf_lock_set *set, uint64_t now_ns)
{
    const hf_lock_servers *servers = set->servers;
    size_t coming = 0;
    for (size_t i = 0; i < set->n; i++)
        coming += set->members[i].asked != NULL &&
                  hf_lock_client_is_coming(servers->clients[i]);
    bool early = now_ns < set->begun_ns + servers->connect_timeout_ms * HF_MS_NS;
    if (early && hf_lock_set_standing(set) + coming >= set->needed)
        set->check_ns = now_ns + COMING_MS * HF_MS_NS;
    else
        give_up(set);
}

static void undone(hf_lock_set *set)
{
    static const hf_backoff pauses = {HF_SHAPE_EXPONENTIAL, PAUSE_FIRST_MS, PAUSE_LAST_MS,
                                      0.9};
    uint64_t now_ns = hf_boot_ns();
    if (set->final || now_ns >= set->until_ns) {
        hf_set_fail(set);
        return;
    }
    int64_t ms = hf_backoff_ms(&pauses, set->tries, &set->servers->rng);
    uint64_t end_ns = now_ns + (uint64_t)ms * HF_MS_NS;
    set->step = SET_PAUSE;
    set->check_ns = end_ns < set->until_ns ? end_ns : set->until_ns;
}

/* ---- while it is held ---- */

static bool is_missing(const hf_set_member *m)
{
    return m->lock == NULL && m->asked == NULL && !m->leaving;
}

/* Until then Redis may still execute what takes this owner's lock away. */
static uint64_t left_behind_ns(const hf_lock_set *set)
{
    uint32_t ms = set->red.lease_ms + 2 * set->servers->request_timeout_ms;
    return hf_boot_ns() + ms * HF_MS_NS;
}

static void plan_refills(hf_lock_set *set)
{
    if (set->red.max_hold_ms != 0)
        set->max_ns = hf_boot_ns() + set->red.max_hold_ms * HF_MS_NS;
    for (size_t i = 0; i < set->n; i++) {
        hf_set_member *m = &set->members[i];
        m->due_ns = m->may_leave ? left_behind_ns(set) : 0;
    }
}

/* It waits until the server can be reached and no other client holds the lock there. */
static void refill(hf_set_member *m, uint64_t now_ns)
{
    hf_lock_set *set = m->set;
    hf_lock_opts opts = opts_of(set);
    opts.wait_ms = -1;
    m->due_ns = now_ns + REFILL_MS * HF_MS_NS;
    if (set->max_ns != 0) {
        if (now_ns >= set->max_ns)
            return;
        opts.max_hold_ms = (uint32_t)((set->max_ns - now_ns) / HF_MS_NS) + 1;
    }
    m->err = hf_set_ask(m, &opts, NULL);
}

/* Only while a majority holds: with less, others may have it by now. */
static bool may_refill(hf_lock_set *set)
{
    return set->step == SET_HELD && !set->red.fixed && hf_set_state_stands(set);
}

static void refill_due(hf_lock_set *set, uint64_t now_ns)
{
    for (size_t i = 0; i < set->n; i++) {
        hf_set_member *m = &set->members[i];
        if (is_missing(m) && now_ns >= m->due_ns && may_refill(set))
            refill(m, now_ns);
    }
}

/* It had to stand when this came, without this one. */
static void join_again(hf_set_member *m, hf_lock *lock)
{
    hf_lock_set *set = m->set;
    if (!hf_set_state_stands(set)) {
        hf_set_give_back(m, lock);
        return;
    }
    hf_set_join(m, lock);
    hf_hold_renew_now(lock); /* then its event reports the set's state */
}

static void left(hf_set_member *m)
{
    m->due_ns = m->may_leave ? left_behind_ns(m->set) : 0;
}

/* ---- events ---- */

static void got(hf_set_member *m, hf_lock *lock)
{
    if (m->set->step == SET_HELD) {
        join_again(m, lock);
        return;
    }
    hf_set_join(m, lock);
    count(m->set);
}

static void refused(hf_set_member *m, const char *detail)
{
    (void)detail;
    bool passes = m->err == HF_TAKEN || m->err == HF_CONN;
    left(m);
    if (m->due_ns == 0)
        m->due_ns = hf_boot_ns() + (passes ? REFILL_MS : REFILL_FAULT_MS) * HF_MS_NS;
    count(m->set);
}

/* A lost member makes room for the one that is acquired again. A lock that was given back
 * has no more events. A member that is lost by the clock is therefore kept until this is
 * reported: the set may be lost with it, and no other event would tell. */
static void give_lost_back(hf_lock_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        hf_set_member *m = &set->members[i];
        if (m->lock != NULL && atomic_load(&m->lost))
            hf_set_give_back(m, hf_set_take_out(m));
    }
}

static void stop_refills(hf_lock_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->members[i].asked != NULL)
            hf_lock_cancel(set->members[i].asked);
}

static void on_lost(hf_lock_set *set)
{
    count(set);
    if (may_refill(set))
        give_lost_back(set);
    else if (set->step == SET_HELD && !hf_set_state_stands(set))
        stop_refills(set);
}

static uint64_t due_ns(const hf_lock_set *set)
{
    uint64_t due_ns = UINT64_MAX;
    if (set->step == SET_TAKE || set->step == SET_PAUSE)
        return set->check_ns;
    if (!may_refill((hf_lock_set *)set))
        return UINT64_MAX;
    for (size_t i = 0; i < set->n; i++)
        if (is_missing(&set->members[i]) && set->members[i].due_ns < due_ns)
            due_ns = set->members[i].due_ns;
    return due_ns;
}

static void in_time(hf_lock_set *set, uint64_t now_ns)
{
    if (set->step == SET_TAKE)
        time_out(set, now_ns);
    else if (set->step == SET_PAUSE)
        try_now(set);
    else
        refill_due(set, now_ns);
}

/* ---- making ---- */

static hf_err fill(hf_lock_set *set, const hf_redlock_opts *o, uint32_t lease_ms,
                   char *detail)
{
    set->needed = set->n / 2 + 1;
    set->red = *o;
    set->red.name = NULL;
    set->red.lease_ms = lease_ms;
    if (o->node_timeout_ms == 0)
        set->red.node_timeout_ms = default_timeout(lease_ms);
    set->on_event = o->on_event;
    set->event_arg = o->event_arg;
    set->name = strdup(o->name == NULL ? "" : o->name);
    if (set->name == NULL)
        return hf_say_err(detail, HF_NOMEM);
    hf_lock_opts opts = opts_of(set);
    opts.owner = NULL;
    return hf_lock_opts_check(&opts, detail);
}

hf_err hf_red_make(hf_lock_servers *servers, const hf_redlock_opts *theirs,
                   hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_redlock_opts o;
    hf_lock_set *set;
    static const hf_set_kind kind = {try_now, got,     refused, left,
                                     undone,  on_lost, due_ns,  in_time};
    hf_err err = hf_struct_in(&o, sizeof o, theirs, "hf_redlock_opts", detail);
    if (err != HF_OK)
        return err;
    uint32_t lease_ms = o.lease_ms == 0 ? HF_LOCK_LEASE_MS : o.lease_ms;
    err = check(servers, &o, lease_ms, detail);
    if (err == HF_OK)
        err = hf_set_new(&set, servers, &kind, servers->n, o.wait_ms, detail);
    if (err != HF_OK)
        return err;
    err = fill(set, &o, lease_ms, detail);
    if (err != HF_OK)
        hf_set_free(set);
    else
        *out = set;
    return err;
}

hf_err hf_redlock_acquire(hf_lock_servers *servers, const hf_redlock_opts *opts,
                          hf_lock_set_acquired_cb cb, void *arg, hf_lock_set **out,
                          char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = hf_red_make(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_acquire(set, cb, arg, out, detail) : err;
}

hf_err hf_redlock_acquire_wait(hf_lock_servers *servers, const hf_redlock_opts *opts,
                               hf_lock_set **out, char detail[HF_DETAIL_SIZE])
{
    hf_lock_set *set;
    hf_err err = hf_tasks_may_wait(&servers->tasks, detail);
    if (err == HF_OK)
        err = hf_red_make(servers, opts, &set, detail);
    return err == HF_OK ? hf_set_acquire_wait(set, out, detail) : err;
}
