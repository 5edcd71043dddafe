/* supervisor.c - worker/pool/supervisor.h. */
#include "worker/pool/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/text.h"
#include "worker/alone.h"
#include "worker/handler.h"
#include "worker/outbox.h"
#include "worker/pool/crash.h"
#include "worker/pool/door.h"
#include "worker/pool/judge.h"
#include "worker/pool/launch.h"
#include "worker/pool/members.h"
#include "worker/pool/offer.h"
#include "worker/pool/paused.h"
#include "worker/pool/pool_job.h"
#include "worker/pool/starts.h"
#include "worker/pool/wear.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/pace.h"

enum {
    SETTLED_MS = 1000,   /* a process that lived this long is no failure */
    AWAY_LEAST_MS = 1000 /* jobs of a pool that is down */
};

struct hf_supervisor {
    hf_worker *worker;
    hf_groups *groups;
    hf_pool_spec *spec;
    void (*gone)(hf_worker *w);
    hf_member *members;
    size_t n_members;
    hf_offer offer;      /* what the processes offer, and the handlers of their types */
    uint64_t generation; /* of the processes that are started */
    uint64_t offer_generation; /* of those that have made the offer */
    bool stopping;
    hf_door *door; /* owned; NULL: it is not open */
    size_t target; /* processes; fewer while there is little to do */
    hf_run_list waiting, started, killed_outside;
    hf_starts starts;
    double mean_run_ns;
    hf_paused paused; /* until a slot is free */
};

/* ---- what it says ---- */

static void report(const hf_supervisor *s, hf_log_level level, const char *message,
                   const hf_child *child, const char *key, const char *text)
{
    hf_log_field fields[3];
    size_t n = 0;
    fields[n++] = (hf_log_field){.key = "pool", .text = s->spec->name};
    if (child != NULL)
        fields[n++] = (hf_log_field){.key = "pid", .number = hf_child_pid(child)};
    if (key != NULL)
        fields[n++] = (hf_log_field){.key = key, .text = text};
    hf_report(s->worker, level, message, fields, n);
}

/* ---- its processes ---- */

static void note_failure(hf_supervisor *s, const char *why)
{
    bool first = s->offer.ready == NULL && s->n_members == 0;
    hf_starts_fail(&s->starts, s->worker, s->spec, first, why);
    /* No slot will be free soon: others may have work in these queues. */
    hf_paused_end(&s->paused, s->worker);
    s->worker->heartbeat_due = true;
}

/* The processes of the last program go on as those of the new one. */
static void keep_old(hf_supervisor *s)
{
    for (hf_member *m = s->members; m != NULL; m = m->next)
        m->generation = s->generation;
    s->offer_generation = s->generation;
    s->starts.failed = false;
    s->starts.due_ns = 0;
    report(s, HF_LOG_ERROR, "the new program of a pool cannot start: the old one stays",
           NULL, NULL, NULL);
}

/* The worker cannot start those anew: they stay while they offer the same. */
static void keep_joined(hf_supervisor *s)
{
    for (hf_member *m = s->members; m != NULL; m = m->next)
        if (m->joined)
            m->generation = s->generation;
}

static bool is_old(const hf_supervisor *s, const hf_member *m)
{
    return m->generation < s->generation;
}

static bool has_old(const hf_supervisor *s)
{
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        if (is_old(s, m) && hf_member_is_alive(m))
            return true;
    return false;
}

static void on_gone(hf_child *child, void *arg)
{
    hf_member *m = arg;
    hf_supervisor *s = m->owner;
    uint64_t now = hf_boot_ns(), ready_ns = hf_child_ready_ns(child);
    bool settled = ready_ns != 0 && now >= ready_ns + SETTLED_MS * HF_MS_NS;
    bool wanted = hf_child_was_stopped(child) || s->stopping || m->stopped;
    bool was_new = m->generation == s->generation && ready_ns == 0;
    bool failed = !wanted && !settled && !m->joined && !hf_child_served(child);
    report(s, wanted ? HF_LOG_DEBUG : HF_LOG_WARN, "a process of a pool has ended", child,
           "error", wanted ? NULL : hf_child_why(child));
    if (!s->stopping)
        hf_member_count_end(m, s->worker->counters, s->spec->name, wanted, failed);
    hf_members_remove(&s->members, m);
    s->n_members--;
    if (failed) {
        s->starts.refused = s->starts.refused || hf_child_refused(child);
        note_failure(s, hf_child_why(child));
        if (was_new && has_old(s))
            keep_old(s);
    }
    s->worker->turn_due = true;
    if (s->stopping && s->members == NULL)
        s->gone(s->worker);
}

/* Processes of an earlier version may not know the types of this one: they finish their
 * runs. The worker chooses anew for the jobs that wait. */
static void take_offer(hf_supervisor *s, uint64_t generation)
{
    s->offer_generation = generation;
    hf_offer_report(&s->offer, s->worker, s->spec->name);
    for (hf_member *m = s->members; m != NULL; m = m->next)
        if (m->generation < generation && hf_member_is_alive(m))
            hf_member_stop(m, "reload");
    for (hf_run *run; (run = hf_run_pop(&s->waiting)) != NULL;)
        hf_outbox_release(run);
}

/* Programs that join are under development: one that joins, or that is the only one, may
 * be a new version. */
static bool may_differ(const hf_supervisor *s, const hf_member *m)
{
    return m->joined || (s->spec->pool.listen != NULL &&
                         hf_members_count(s->members, hf_member_is_alive) == 1);
}

static bool on_ready(hf_child *child, hf_ready *ready, char detail[HF_DETAIL_SIZE],
                     void *arg)
{
    hf_member *m = arg;
    hf_supervisor *s = m->owner;
    bool same = s->offer.ready != NULL && hf_ready_same(s->offer.ready, ready);
    const uint64_t generation = s->generation;
    if (!same && may_differ(s, m))
        m->generation = ++s->generation;
    bool is_first = s->offer.ready == NULL || m->generation > s->offer_generation;
    if (same && is_first) { /* then the old ones stop one at a time */
        s->offer_generation = m->generation;
        is_first = false;
        keep_joined(s);
    }
    if (!is_first && !same) {
        hf_ready_free(ready);
        snprintf(detail, HF_DETAIL_SIZE,
                 "it offers other types than the processes that run: after a new version "
                 "of the program, send HUP to the worker");
        return false;
    }
    if (!is_first) {
        hf_ready_free(ready);
    } else if (hf_offer_take(&s->offer, s->worker, s->spec, s, ready, detail) != HF_OK) {
        s->generation = generation;
        return false;
    } else {
        take_offer(s, m->generation);
    }
    report(s, HF_LOG_INFO, "a process of a pool is ready", child, "client",
           s->offer.ready->client);
    s->starts.failed = false;
    s->starts.refused = s->starts.refused && m->generation != s->generation;
    s->worker->heartbeat_due = s->worker->turn_due = true;
    hf_paused_end(&s->paused, s->worker);
    return true;
}

static void on_line(hf_child *child, void *job, int stream, const char *text, size_t len,
                    void *arg)
{
    const hf_member *m = arg;
    if (job != NULL) {
        hf_run_on_line(job, stream, text, len, m->owner->worker);
        return;
    }
    report(m->owner, stream == 0 ? HF_LOG_WARN : HF_LOG_INFO, "output", child, "line",
           text);
}

static void on_output(hf_child *child, void *job, const char *bytes, size_t len,
                      void *arg)
{
    (void)child;
    const hf_member *m = arg;
    if (job != NULL && m->owner->spec->pool.logs)
        hf_notes_log(job, bytes, len);
}

static void on_verdict(hf_child *child, void *job, const hf_child_verdict *verdict,
                       void *arg);
static void on_update(hf_child *child, void *job, const hf_frame *frame, void *arg);
static void on_unanswered(hf_child *child, void *job, const hf_child_end *end, void *arg);

static const hf_child_calls calls = {.ready = on_ready,
                                     .verdict = on_verdict,
                                     .update = on_update,
                                     .line = on_line,
                                     .output = on_output,
                                     .unanswered = on_unanswered,
                                     .gone = on_gone};

/* How long a process may live without a word of this loop; less than what is left of any
 * lease that is renewed as it should be. */
static uint64_t lease_part_ns(const hf_supervisor *s)
{
    return s->worker->opts.lease_ms * HF_MS_NS / 2;
}

static hf_err add_member(hf_supervisor *s, const hf_joined *joined)
{
    hf_worker *w = s->worker;
    uint64_t now = hf_boot_ns();
    hf_member *m = calloc(1, sizeof *m);
    if (m == NULL) {
        hf_launch_refuse(joined);
        return HF_NOMEM;
    }
    m->owner = s;
    m->joined = joined != NULL;
    m->generation = s->generation;
    m->born_ns = m->busy_ns = now;
    m->limits = hf_wear_begin(&s->spec->pool, now, &w->rng);
    const hf_child_opts opts = {.loop = &w->loop,
                                .groups = s->groups,
                                .spec = s->spec,
                                .deadline_ns = now + lease_part_ns(s),
                                .joined = joined,
                                .calls = &calls,
                                .arg = m};
    hf_err err = hf_child_start(&m->child, &opts);
    if (err == HF_OK) {
        m->next = s->members;
        s->members = m;
        s->n_members++;
        return HF_OK;
    }
    int error = errno;
    free(m);
    errno = error;
    return err;
}

/* False: nothing more can be started now. */
static bool start_one(hf_supervisor *s)
{
    hf_err err = add_member(s, NULL);
    if (err == HF_OK)
        return true;
    int error = err == HF_SYSTEM ? errno : ENOMEM;
    if (err != HF_BUSY) /* the minder comes back soon */
        note_failure(s,
                     err == HF_TOOBIG ? "its environment is too large" : strerror(error));
    return false;
}

/* ---- those that were started by hand ---- */

static void on_refused(const char *why, void *arg)
{
    report(arg, HF_LOG_WARN, "a program may not join a pool", NULL, "error", why);
}

static void on_joined(const hf_joined *joined, void *arg)
{
    hf_supervisor *s = arg;
    if (s->n_members >= HF_POOL_PROCESSES_MAX) {
        hf_launch_refuse(joined);
        on_refused("the pool has too many processes", s);
    } else if (add_member(s, joined) != HF_OK) {
        on_refused("the worker has no memory or no descriptors left", s);
    }
}

static const hf_door_calls door_calls = {.joined = on_joined, .refused = on_refused};

static void open_door(hf_supervisor *s)
{
    const char *path = s->spec->pool.listen;
    hf_worker *w = s->worker;
    if (path == NULL || s->door != NULL || w->start_failed)
        return;
    if (hf_door_open(&s->door, &w->loop, path, &door_calls, s, w->detail) != HF_OK)
        w->start_failed = w->turn_due = true;
    else
        report(s, HF_LOG_INFO, "programs may join a pool", NULL, "listen", path);
}

static void close_door(hf_supervisor *s)
{
    hf_door_close(s->door);
    s->door = NULL;
}

/* ---- how many there are ---- */

static hf_member *first_old(const hf_supervisor *s)
{
    for (hf_member *m = s->members; m != NULL; m = m->next)
        if (hf_member_serves(m) && !m->joined && (is_old(s, m) || m->worn))
            return m;
    return NULL;
}

/* One that joined takes the place of one that the worker has started. */
static void give_place(hf_supervisor *s)
{
    if (hf_members_count(s->members, hf_member_has_joined) == 0 || first_old(s) != NULL ||
        hf_members_count(s->members, hf_member_is_alive) <= s->target)
        return;
    for (hf_member *m = s->members; m != NULL; m = m->next)
        if (!m->joined && hf_member_is_alive(m)) {
            hf_member_stop(m, "joined");
            return;
        }
}

static bool is_fresh(const hf_member *m)
{
    return hf_member_is_alive(m) && !m->worn && !is_old(m->owner, m);
}

static bool is_fresh_and_serves(const hf_member *m)
{
    return is_fresh(m) && hf_member_serves(m);
}

/* The replacement of an old process is ready before that one stops, one at a time. */
static void replace(hf_supervisor *s)
{
    size_t alive = hf_members_count(s->members, hf_member_is_alive),
           fresh = hf_members_count(s->members, is_fresh);
    hf_member *old = first_old(s);
    if (old == NULL)
        return;
    if (alive <= s->target && fresh < s->target)
        (void)start_one(s);
    else if (hf_members_count(s->members, is_fresh_and_serves) == fresh &&
             alive > s->target)
        hf_member_stop(old, "reload");
}

void hf_supervisor_turn(hf_supervisor *s, uint64_t now_ns)
{
    if (s->stopping)
        return;
    open_door(s);
    give_place(s);
    if (s->spec->pool.argv[0] == NULL || s->starts.refused || now_ns < s->starts.due_ns ||
        !hf_groups_ready(s->groups) ||
        hf_members_count(s->members, hf_member_is_unjudged) > 0)
        return;
    /* After a failure one is tried, and the others follow when it is ready. */
    size_t alive = hf_members_count(s->members, hf_member_is_alive), want = s->target;
    if (s->starts.failed && hf_members_count(s->members, hf_member_is_open) > 0)
        return;
    if (s->starts.failed && want > alive + 1)
        want = alive + 1;
    if (alive >= want)
        replace(s);
    while (alive < want && start_one(s))
        alive++;
}

static void look_for_worn(hf_supervisor *s, uint64_t now_ns)
{
    for (hf_member *m = s->members;
         m != NULL && hf_members_count(s->members, hf_member_is_worn) == 0; m = m->next) {
        const char *why = NULL;
        if (hf_member_serves(m) && !m->joined && !m->worn)
            why = hf_wear_cause(&m->limits, hf_child_jobs(m->child),
                                hf_child_pid(m->child), now_ns);
        if (why == NULL)
            continue;
        m->worn = true;
        m->because = why;
        report(s, HF_LOG_INFO, "a process of a pool is replaced", m->child, "because",
               why);
    }
}

/* Beyond the first one, a process without work ends after a while. */
static void look_for_idle(hf_supervisor *s, uint64_t now_ns)
{
    int64_t idle_ms = s->spec->pool.idle_ms;
    if (idle_ms == HF_IDLE_NEVER || has_old(s) ||
        hf_members_count(s->members, hf_member_is_worn) > 0)
        return;
    for (hf_member *m = s->members; m != NULL && s->target > 1; m = m->next) {
        if (!hf_member_serves(m) || m->joined || hf_child_busy(m->child) > 0 ||
            now_ns < m->busy_ns + (uint64_t)idle_ms * HF_MS_NS)
            continue;
        s->target--;
        hf_member_stop(m, "idle");
    }
}

void hf_supervisor_tick(hf_supervisor *s, uint64_t now_ns)
{
    hf_supervisor_decide(s, now_ns);
    hf_pool_job_warn(&s->started, s->worker->opts.kill_grace_ms, now_ns);
    for (hf_member *m = s->members; m != NULL; m = m->next) {
        hf_child_extend(m->child, hf_pool_job_deadline(&s->started, m->child,
                                                       now_ns + lease_part_ns(s)));
        if (hf_child_ping(m->child, now_ns))
            report(s, HF_LOG_WARN, "a process of a pool does not answer", m->child, NULL,
                   NULL);
        if (m->child != NULL && hf_child_ready_ns(m->child) != 0 &&
            now_ns > hf_child_ready_ns(m->child) + SETTLED_MS * HF_MS_NS &&
            !s->starts.failed)
            s->starts.failures = 0;
    }
    look_for_worn(s, now_ns);
    look_for_idle(s, now_ns);
    hf_supervisor_turn(s, now_ns);
}

/* ---- its jobs ---- */

void hf_supervisor_accept(hf_supervisor *s, hf_run *run)
{
    run->state = HF_WAITING;
    hf_run_push(&s->waiting, run);
}

/* The process with least to do takes nothing while the next job has to run alone: that
 * job gets the process when it is empty. */
static const hf_member *kept(const hf_supervisor *s)
{
    const hf_member *least = NULL;
    if (s->waiting.head == NULL || !s->waiting.head->alone)
        return NULL;
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        if (hf_member_serves(m) && !m->exclusive &&
            (least == NULL || hf_child_busy(m->child) < hf_child_busy(least->child)))
            least = m;
    return least;
}

/* The process that takes the run now. One that will be replaced takes it only if no other
 * has a slot. With one slot each it is the first free one, so processes that are not
 * needed stay idle. Else it is the one with the least to do. */
static hf_member *choose(const hf_supervisor *s, const hf_run *run)
{
    hf_member *best = NULL;
    const hf_member *not = run->alone ? NULL : kept(s);
    uint64_t lease_end = hf_lease_deadline_ns(run->lease);
    for (hf_member *m = s->members; m != NULL; m = m->next) {
        size_t busy = hf_child_busy(m->child);
        if (m->stopped || m->exclusive || m == not || !hf_child_can_take(m->child) ||
            (run->alone && busy > 0) || lease_end < hf_child_deadline_ns(m->child))
            continue;
        if (best == NULL || is_fresh(m) > is_fresh(best) ||
            (is_fresh(m) == is_fresh(best) && busy < hf_child_busy(best->child)))
            best = m;
        if (busy == 0 && is_fresh(m) && hf_child_parallel(m->child) == 1)
            break;
    }
    return best;
}

static void start(hf_supervisor *s, hf_member *m, hf_run *run)
{
    const hf_child_job job = hf_pool_job(run);
    hf_run_remove(&s->waiting, run);
    run->state = HF_STARTED;
    run->started = true;
    run->started_ns = hf_boot_ns();
    run->child = m->child;
    run->shared = hf_child_parallel(m->child) > 1;
    hf_run_push(&s->started, run);
    s->worker->in_pools++;
    m->busy_ns = run->started_ns;
    m->exclusive = run->alone;
    hf_child_send(m->child, &job, s->worker->in_pools == 1);
}

/* A job that has to run alone does not stop those behind it. */
void hf_supervisor_dispatch(hf_supervisor *s)
{
    bool full = false;
    if (s->stopping || !hf_groups_ready(s->groups))
        return;
    for (hf_run *run = s->waiting.head, *next; run != NULL && !full; run = next) {
        next = run->next;
        if (hf_lease_lost(run->lease))
            continue; /* its event is on the way */
        hf_member *m = choose(s, run);
        if (m != NULL)
            start(s, m, run);
        else
            full = !run->alone;
    }
    if (s->waiting.n > 0 && s->target < s->spec->pool.processes && !s->starts.failed) {
        s->target++;
        s->worker->turn_due = true;
    }
}

void hf_supervisor_withdraw(hf_supervisor *s, hf_run *run)
{
    hf_run_remove(&s->waiting, run);
}

static void release_one(hf_supervisor *s, hf_run *run)
{
    s->mean_run_ns = 0; /* none is claimed ahead for now */
    if (!s->stopping &&
        (s->started.n > 0 ||
         hf_members_count(s->members, hf_member_serves) == 0)) /* it ends */
        hf_paused_add(&s->paused, run->served);
    hf_queue_refund(run->served, 1);
    hf_outbox_release(run);
}

/* Its pool is full, or down: other workers may have a slot. */
void hf_supervisor_release_stale(hf_supervisor *s, uint64_t now_ns, uint64_t keep_ms)
{
    bool down = hf_supervisor_health(s) == HF_POOL_DOWN;
    int64_t delay_ms = hf_supervisor_backoff_ms(s);
    char text[HF_POOL_NAME_SIZE + 32];
    snprintf(text, sizeof text, "its pool is down: %s", s->spec->name);
    for (hf_run *run = s->waiting.head, *next; run != NULL; run = next) {
        uint64_t ms = run->alone ? (uint64_t)hf_alone_patience_ms(run) : keep_ms;
        next = run->next;
        if (!down && run->claimed_ns + ms * HF_MS_NS >= now_ns)
            continue;
        hf_run_remove(&s->waiting, run);
        if (down)
            hf_outbox_back_off(run, delay_ms < AWAY_LEAST_MS ? AWAY_LEAST_MS : delay_ms,
                               text);
        else if (run->alone)
            hf_alone_put_back(run);
        else
            release_one(s, run);
    }
}

/* ---- their ends ---- */

static void leave_child(hf_supervisor *s, hf_member *m, hf_run *run)
{
    run->ended_ns = hf_boot_ns();
    run->child = NULL;
    m->busy_ns = run->ended_ns;
    m->exclusive = false;
    hf_run_remove(&s->started, run);
    s->worker->in_pools--;
    if (s->paused.n > 0)
        hf_paused_end(&s->paused, s->worker);
    s->worker->turn_due = true;
}

static void on_verdict(hf_child *child, void *job, const hf_child_verdict *verdict,
                       void *arg)
{
    hf_member *m = arg;
    hf_supervisor *s = m->owner;
    hf_run *run = job;
    (void)child;
    leave_child(s, m, run);
    hf_pace_learn(&s->mean_run_ns, run->ended_ns - run->started_ns, 1);
    hf_supervisor_dispatch(
        s); /* the process has its next job before this one is judged */
    hf_judge_verdict(run, verdict);
    hf_outbox_finish(run);
    if (s->waiting.n > 0)
        hf_outbox_gather(s->worker);
}

static void on_update(hf_child *child, void *job, const hf_frame *frame, void *arg)
{
    (void)child, (void)arg;
    hf_judge_update(job, frame);
}

void hf_supervisor_decide(hf_supervisor *s, uint64_t now_ns)
{
    hf_crash_decide(&s->killed_outside, now_ns);
}

static void on_unanswered(hf_child *child, void *job, const hf_child_end *end, void *arg)
{
    hf_member *m = arg;
    hf_supervisor *s = m->owner;
    hf_run *run = job;
    (void)child;
    leave_child(s, m, run);
    if (end->fate == HF_FATE_CRASHED) {
        hf_crash_take(&s->killed_outside, run, end);
    } else if (end->fate == HF_FATE_NEIGHBOUR) {
        const hf_run *culprit = end->culprit;
        hf_outbox_neighbour(run, culprit == NULL ? "a job" : culprit->id);
    } else {
        hf_judge_end(run, end);
        hf_outbox_finish(run);
    }
}

/* ---- for all pools ---- */

hf_supervisor *hf_supervisor_new(hf_worker *w, hf_groups *groups, hf_pool_spec *spec,
                                 void (*gone)(hf_worker *w))
{
    hf_supervisor *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->worker = w;
    s->groups = groups;
    s->spec = hf_pool_spec_ref(spec);
    s->gone = gone;
    s->target = spec->pool.processes;
    return s;
}

void hf_supervisor_free(hf_supervisor *s)
{
    hf_offer_free(&s->offer);
    hf_pool_spec_unref(s->spec);
    free(s);
}

void hf_supervisor_renew(hf_supervisor *s, hf_pool_spec *spec)
{
    hf_pool_spec *old = s->spec;
    s->spec = hf_pool_spec_ref(spec);
    hf_pool_spec_unref(old);
    s->target = spec->pool.processes;
    s->generation++;
    hf_starts_renew(&s->starts);
    hf_offer_renew(&s->offer, s->worker, spec, s);
    s->worker->turn_due = true;
}

void hf_supervisor_stop(hf_supervisor *s)
{
    s->stopping = true;
    close_door(s);
    for (hf_member *m = s->members; m != NULL; m = m->next)
        if (m->joined || hf_member_is_alive(m))
            hf_member_stop(m, NULL);
    hf_supervisor_decide(s, hf_boot_ns());
}

void hf_supervisor_retire(hf_supervisor *s)
{
    hf_supervisor_stop(s);
    hf_offer_drop(&s->offer, s->worker);
    hf_paused_end(&s->paused, s->worker);
}

void hf_supervisor_cancel_all(hf_supervisor *s, uint32_t grace_ms)
{
    for (hf_run *run = s->started.head; run != NULL; run = run->next)
        hf_child_cancel(run->child, run, HF_FRAME_WHY_STOP, grace_ms);
}

void hf_supervisor_kill(hf_supervisor *s)
{
    s->stopping = true;
    close_door(s);
    for (hf_member *m = s->members; m != NULL; m = m->next)
        hf_child_kill(m->child);
}

hf_run_list *hf_supervisor_waiting(hf_supervisor *s)
{
    return &s->waiting;
}

const hf_run_list *hf_supervisor_started(const hf_supervisor *s)
{
    return &s->started;
}

hf_pool_spec *hf_supervisor_spec(const hf_supervisor *s)
{
    return s->spec;
}

hf_pool_health hf_supervisor_health(const hf_supervisor *s)
{
    if (hf_members_count(s->members, hf_member_serves) > 0)
        return HF_POOL_UP;
    if (s->starts.failed || s->starts.refused)
        return HF_POOL_DOWN;
    bool starts = !hf_supervisor_has_offer(s) && s->spec->pool.argv[0] != NULL;
    return starts ? HF_POOL_STARTING : HF_POOL_UP;
}

bool hf_supervisor_has_offer(const hf_supervisor *s)
{
    return s->offer.ready != NULL || s->stopping;
}

const hf_ready *hf_supervisor_offer(const hf_supervisor *s)
{
    return s->offer.ready;
}

bool hf_supervisor_is_empty(const hf_supervisor *s)
{
    return s->members == NULL;
}

bool hf_supervisor_is_done(const hf_supervisor *s)
{
    return s->members == NULL && s->waiting.n + s->started.n + s->killed_outside.n == 0;
}

/* One job more than there are slots tells that an idle process has to come back. */
static size_t slots_to_come(const hf_supervisor *s)
{
    return s->target < s->spec->pool.processes && !s->starts.failed && !s->stopping &&
                   s->waiting.n == 0 &&
                   hf_members_count(s->members, hf_member_serves) >= s->target
               ? 1
               : 0;
}

size_t hf_supervisor_slots(const hf_supervisor *s)
{
    size_t n = slots_to_come(s);
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        n += hf_member_serves(m) ? hf_child_parallel(m->child) : 0;
    return n;
}

/* Those beside a job that runs alone, or waits for that, get no other job. */
size_t hf_supervisor_usable(const hf_supervisor *s)
{
    const hf_member *not = kept(s);
    size_t n = hf_supervisor_slots(s);
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        if (hf_member_serves(m) && (m->exclusive || m == not ))
            n -= hf_child_parallel(m->child) - hf_child_busy(m->child);
    return n;
}

size_t hf_supervisor_free_slots(const hf_supervisor *s)
{
    size_t taken = s->waiting.n, usable = hf_supervisor_usable(s);
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        taken += hf_member_serves(m) ? hf_child_busy(m->child) : 0;
    return usable > taken ? usable - taken : 0;
}

size_t hf_supervisor_ahead(const hf_supervisor *s)
{
    return hf_pace_ahead(s->mean_run_ns, hf_supervisor_slots(s));
}

hf_pool_facts hf_supervisor_facts(const hf_supervisor *s)
{
    hf_pool_facts facts = {.name = s->spec->name,
                           .health = hf_supervisor_health(s),
                           .processes = hf_members_count(s->members, hf_member_serves),
                           .slots = hf_supervisor_slots(s),
                           .running = s->started.n};
    for (const hf_member *m = s->members; m != NULL; m = m->next)
        facts.resident += hf_wear_resident(hf_child_pid(m->child));
    return facts;
}

int64_t hf_supervisor_backoff_ms(const hf_supervisor *s)
{
    return hf_starts_wait_ms(&s->starts);
}
