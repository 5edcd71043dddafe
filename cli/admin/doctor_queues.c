/* doctor_queues.c - checks the registry of queues, and each queue: its keys and jobs (the
 * audit), and whether a worker serves it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "cli/admin/doctor.h"
#include "cli/stop.h"
#include "seen/offer.h"

enum { SCHEDULES = 1000 }; /* of a queue: this many are looked at */

/* ---- the audit ---- */

static void on_finding(const hf_finding *finding, void *arg)
{
    hf_doctor_tell(arg, finding);
}

static void on_holder(const char *worker, size_t jobs, int64_t until_ms, void *arg)
{
    hf_doctor *d = arg;
    size_t i = 0;
    while (i < d->n_holders && strcmp(d->holders[i].worker, worker) != 0)
        i++;
    if (i == d->n_holders) {
        hf_doctor_holder *more = realloc(d->holders, (i + 1) * sizeof *more);
        if (more == NULL) {
            d->no_memory = true;
            return;
        }
        d->holders = more;
        d->holders[d->n_holders++] = (hf_doctor_holder){.jobs = 0};
        snprintf(d->holders[i].worker, sizeof d->holders[i].worker, "%s", worker);
    }
    d->holders[i].jobs += jobs;
    if (until_ms > d->holders[i].until_ms)
        d->holders[i].until_ms = until_ms;
}

static bool on_progress(size_t done, size_t total, void *arg)
{
    hf_doctor *d = arg;
    d->progress.total = total;
    hf_progress_show(&d->progress, done, done);
    return hf_stop_asked() == 0;
}

static const char *plural(int64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void look_at_service(hf_doctor *d, const hf_queue_stats *s)
{
    char text[HF_DOCTOR_TEXT], command[HF_OFFER_SIZE];
    int64_t waiting = s->ready + s->delayed;
    if (s->paused && waiting > 0) {
        hf_doctor_note(d, "%s is paused, and %" PRId64 " %s in it (%s)", s->queue,
                       waiting, plural(waiting, "job waits", "jobs wait"),
                       hf_offer(command, "queue resume", s->queue, NULL, ""));
    } else if (s->workers == 0 && s->ready + s->running > 0) {
        snprintf(text, sizeof text,
                 "no live worker serves it, and %" PRId64 " %s due, %" PRId64
                 " %s running",
                 s->ready, plural(s->ready, "job is", "jobs are"), s->running,
                 plural(s->running, "was", "were"));
        hf_doctor_by_hand(d, "unserved", s->queue, text,
                          "start a worker that names this queue: holdfast worker");
    } else if (s->workers == 0 && s->delayed > 0) {
        hf_doctor_note(d, "no live worker serves %s, and %" PRId64 " %s be due in it",
                       s->queue, s->delayed, plural(s->delayed, "job will", "jobs will"));
    }
}

static void on_schedule(const hf_schedule_info *schedule, void *arg)
{
    *(size_t *)arg += schedule->next_ms != 0 && schedule->next_ms < schedule->now_ms;
}

/* Ticks wait for a worker, and are dropped when they are missed. */
static void look_at_schedules(hf_doctor *d, const hf_queue_stats *s)
{
    char text[HF_DOCTOR_TEXT];
    size_t n = 0;
    if (!s->paused && s->workers > 0)
        return;
    hf_err err = hf_admin_schedules(d->admin, s->queue, NULL, SCHEDULES, on_schedule, &n,
                                    d->cli->detail);
    if (err != HF_OK || n == 0)
        return; /* the audit has reported what cannot be read */
    snprintf(text, sizeof text,
             "no live worker serves it, and %zu of its schedules %s late", n,
             plural((int64_t)n, "is", "are"));
    if (s->paused)
        hf_doctor_note(d, "%s is paused, and %zu of its schedules %s late", s->queue, n,
                       plural((int64_t)n, "is", "are"));
    else
        hf_doctor_by_hand(d, "unserved", s->queue, text,
                          "start a worker that names this queue: holdfast worker");
}

static hf_err look_at_queue(hf_doctor *d, const char *name)
{
    size_t found = 0;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT,
                                .idle = hf_argv_has(d->cli->args, "idle"),
                                .fix = d->fix,
                                .cb = on_finding,
                                .holder = on_holder,
                                .progress = on_progress,
                                .arg = d};
    hf_progress_start(&d->progress, "ids looked at", 0);
    hf_err err = hf_admin_audit(d->admin, name, &opts, &found, d->cli->detail);
    hf_progress_end(&d->progress);
    if (err != HF_OK)
        return hf_doctor_unreadable(d, name, err);
    if (d->fix)
        return HF_OK;
    err = hf_admin_stats(d->admin, name, &stats, d->cli->detail);
    if (err == HF_OK) {
        look_at_service(d, &stats);
        look_at_schedules(d, &stats);
    } else if (err != HF_REDIS) /* then the audit has said why */
        return hf_doctor_unreadable(d, name, err);
    return HF_OK;
}

/* ---- which queues ---- */

static hf_err look_at_each(hf_doctor *d, char *const *names, size_t n)
{
    hf_err err = HF_OK;
    for (size_t i = 0; i < n && err == HF_OK && hf_stop_asked() == 0; i++) {
        if (!hf_name_ok(names[i]))
            continue;
        hf_doctor_begin(d, names[i]);
        err = look_at_queue(d, names[i]);
        hf_doctor_end(d);
        d->n_queues++;
    }
    return err;
}

static void tell_unregistered(hf_doctor *d, const char *name)
{
    bool good = hf_name_ok(name);
    hf_doctor_tell(
        d, &(hf_finding){
               .check = "registry",
               .id = name,
               .text = good ? "has keys, and is not registered as a queue"
                            : "is not a valid name of a queue: no command can see it",
               .repair = good ? "it is registered"
                              : "find out which program wrote it; then DEL its keys, "
                                "and SREM it from the key of the registry",
               .by_hand = !good,
               .repaired = good && d->fix});
}

/* Looks at all queues that are registered, or should be. */
static hf_err look_at_registry(hf_doctor *d, char ***names, size_t *n, char ***more,
                               size_t *n_more)
{
    char key[HF_DOCTOR_TEXT];
    hf_err err = hf_admin_queues(d->admin, names, n, d->cli->detail);
    bool known = err == HF_OK;
    if (!known) {
        *names = NULL; /* what a fault leaves there is undefined */
        *n = 0;
    }
    snprintf(key, sizeof key, "%s:{/}:queues", d->cli->server.ns);
    if (err == HF_REDIS)
        hf_doctor_by_hand(d, "type", key, d->cli->detail,
                          "look at the key, then DEL it: --fix makes it anew");
    else if (err != HF_OK && (err = hf_doctor_unreadable(d, key, err)) != HF_OK)
        return err;
    err = hf_admin_unregistered(d->admin, d->fix, more, n_more, d->cli->detail);
    if (err != HF_OK) {
        *more = NULL;
        *n_more = 0;
        return hf_doctor_unreadable(d, "queues that are not registered", err);
    }
    for (size_t i = 0; known && i < *n_more; i++)
        tell_unregistered(d, (*more)[i]);
    return HF_OK;
}

hf_err hf_doctor_queues(hf_doctor *d)
{
    char *only[] = {(char *)(uintptr_t)d->only}; /* which is not changed */
    char **names = NULL, **more = NULL;
    size_t n = 0, n_more = 0;
    d->n_queues = 0;
    d->n_holders = 0;
    if (d->only != NULL)
        return look_at_each(d, only, 1);
    hf_doctor_begin(d, NULL);
    hf_err err = look_at_registry(d, &names, &n, &more, &n_more);
    hf_doctor_end(d);
    if (err == HF_OK)
        err = look_at_each(d, names, n);
    if (err == HF_OK)
        err = look_at_each(d, more, n_more);
    free(names);
    free(more);
    return err == HF_OK && d->no_memory ? HF_NOMEM : err;
}
