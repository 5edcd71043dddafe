/* running.c - see running.h. */
#include "seen/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"

enum {
    WATCH_EACH_MS = 5000,
    WORKERS_EACH_MS = 900, /* with each look of a viewer */
    KEPT_MS = 3600000,     /* ended runs and workers, */
    KEPT_MAX = 5000,       /* and this many of these runs */
    UNTOLD_MS = 15000,    /* after its worker told about a run for the last time: it tells
                             each    10 s of one that goes on */
    APART_MS = 1000,      /* starts of two runs of a job that are told: more */
    UNWATCHED_MS = 20000, /* between two looks: workers have ceased to tell */
    RENEWED_MS = 200,     /* the end of a lease moves by more when it is renewed; by less,
                             because of two clocks */
    LISTED = 1000,        /* running jobs of a queue that are looked at, */
    QUEUES_MAX = 4096
};

typedef struct queue_place {
    char name[HF_ID_SIZE];
    hf_runs_place place;
} queue_place;

struct hf_running {
    char only[HF_ID_SIZE];     /* "": all queues */
    queue_place *queues;       /* owned */
    size_t n_queues, n_looked; /* looked at last */
    hf_seen_run *runs;         /* owned */
    size_t n_runs, cap_runs;
    hf_seen_worker *workers; /* owned */
    size_t n_workers, cap_workers;
    int64_t now_ms;
    uint64_t looks;
    uint64_t looked_ns, watched_ns, workers_ns; /* when that was last done; 0: never */
    hf_err refused;
    bool failed;      /* out of memory, in a callback */
    bool first_heard; /* the workers were read once */
    /* while it looks */
    const hf_running_calls *calls;
    queue_place *at;
    int64_t before_ms; /* when this queue was looked at before; 0: never */
    bool all_listed;   /* the list of running jobs was read to its end */
};

/* ---- lists ---- */

/* Room for one more element. False: out of memory. */
static bool more(hf_running *r, void **list, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return true;
    const size_t cap_now = *cap == 0 ? 64 : 2 * *cap;
    void *at = realloc(*list, cap_now * size);
    r->failed = r->failed || at == NULL;
    if (at == NULL)
        return false;
    *list = at;
    *cap = cap_now;
    return true;
}

static uint64_t hash_of(const char *queue, const char *id, uint32_t run)
{
    return (hf_hash_text(hf_hash_text(HF_HASH_START, queue) * 31, id) * 31) + run;
}

/* The one that goes on, or else the last one: a job that was given back has the same
 * number again. NULL: there is none. */
static hf_seen_run *find(hf_running *r, const char *id, uint32_t number)
{
    const uint64_t hash = hash_of(r->at->name, id, number);
    hf_seen_run *best = NULL;
    for (size_t i = 0; i < r->n_runs; i++) {
        hf_seen_run *run = &r->runs[i];
        if (run->hash != hash || run->run != number || strcmp(run->id, id) != 0 ||
            strcmp(run->queue, r->at->name) != 0)
            continue;
        if (run->end_ms == 0)
            return run;
        if (best == NULL || run->start_ms > best->start_ms)
            best = run;
    }
    return best;
}

/* NULL: out of memory. */
static hf_seen_run *add(hf_running *r, const char *id, uint32_t number)
{
    void *list = r->runs;
    const hf_seen_run *last = find(r, id, number);
    const uint32_t again = last == NULL ? 0 : last->again + 1;
    if (!more(r, &list, &r->cap_runs, r->n_runs, sizeof *r->runs))
        return NULL;
    r->runs = list;
    hf_seen_run *run = &r->runs[r->n_runs++];
    *run = (hf_seen_run){.run = number,
                         .hash = hash_of(r->at->name, id, number),
                         .seen_ms = r->now_ms,
                         .again = again,
                         .changed = r->looks};
    (void)snprintf(run->queue, sizeof run->queue, "%s", r->at->name);
    (void)snprintf(run->id, sizeof run->id, "%s", id);
    return run;
}

/* New if need be; NULL: out of memory. */
static hf_seen_worker *worker_of(hf_running *r, const char *id)
{
    for (size_t i = 0; i < r->n_workers; i++)
        if (strcmp(r->workers[i].id, id) == 0)
            return &r->workers[i];
    void *list = r->workers;
    if (!more(r, &list, &r->cap_workers, r->n_workers, sizeof *r->workers))
        return NULL;
    r->workers = list;
    hf_seen_worker *w = &r->workers[r->n_workers++];
    *w = (hf_seen_worker){.silent = false};
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    return w;
}

static void tell_run(const hf_running *r, const hf_seen_run *run)
{
    if (r->calls->run != NULL)
        r->calls->run(run, r->calls->arg);
}

/* ---- what workers tell ---- */

static bool has_ended(const hf_seen_run *run)
{
    return run->end_ms != 0 && run->end != HF_RUN_GOES_ON;
}

/* Its start is told anew each time, by an estimate of Redis's clock. */
static bool is_same(const hf_seen_run *run, const hf_reported_run *told)
{
    const int64_t apart_ms = told->start_ms - run->start_ms;
    return !run->told || (apart_ms < APART_MS && apart_ms > -APART_MS);
}

static void take_told(hf_running *r, const hf_runs_entry *entry,
                      const hf_reported_run *told)
{
    hf_seen_run *run = find(r, told->id, told->run);
    if (run == NULL || !is_same(run, told))
        run = add(r, told->id, told->run);
    if (run == NULL || has_ended(run))
        return; /* out of memory; or an entry came twice */
    const bool news = !run->told || told->end != HF_RUN_GOES_ON;
    (void)snprintf(run->type, sizeof run->type, "%s", told->type);
    (void)snprintf(run->worker, sizeof run->worker, "%s", entry->worker);
    run->told = true;
    run->told_ms = entry->at_ms;
    run->slot = told->slot;
    run->start_ms = told->start_ms;
    run->end = told->end;
    run->end_ms = told->end == HF_RUN_GOES_ON ? 0 : told->start_ms + told->ran_ms;
    run->held = run->held && told->end == HF_RUN_GOES_ON;
    if (!news)
        return;
    run->changed = r->looks;
    tell_run(r, run);
}

static void on_entry(const hf_runs_entry *entry, void *arg)
{
    hf_running *r = arg;
    hf_seen_worker *w = worker_of(r, entry->worker);
    if (w != NULL && entry->at_ms > w->heard_ms)
        w->heard_ms = entry->at_ms;
    for (size_t i = 0; i < entry->n_runs; i++)
        take_told(r, entry, &entry->runs[i]);
    if (r->calls->shorts != NULL &&
        entry->short_done + entry->short_failed + entry->cut > 0)
        r->calls->shorts(r->at->name, entry, r->calls->arg);
}

/* ---- what Redis holds ---- */

/* Its worker has renewed the lease since the look before, and so was alive then. */
static void note_renewal(hf_running *r, const hf_seen_run *run, const hf_job_info *job)
{
    if (run->lease_until_ms == 0 || job->due_ms - run->lease_until_ms < RENEWED_MS)
        return;
    hf_seen_worker *w = worker_of(r, job->holder);
    if (w != NULL && r->before_ms > w->heard_ms)
        w->heard_ms = r->before_ms;
}

static void on_job(const hf_job_info *job, void *arg)
{
    hf_running *r = arg;
    const uint32_t number = job->attempts + job->crashes + 1;
    hf_seen_run *run = find(r, job->id, number);
    if (run == NULL || has_ended(run) || strcmp(run->worker, job->holder) != 0) {
        run = add(r, job->id, number);
        if (run == NULL)
            return;
        (void)snprintf(run->type, sizeof run->type, "%s", job->type);
        (void)snprintf(run->worker, sizeof run->worker, "%s", job->holder);
    }
    if (run->end_ms != 0 || run->has_progress != job->has_progress ||
        run->progress != job->progress)
        run->changed = r->looks;
    run->end_ms = 0;
    run->held = true;
    run->attempt = job->attempts + 1;
    if (job->due_ms > 0) { /* 0: the lease was found to be over */
        note_renewal(r, run, job);
        run->lease_until_ms = job->due_ms;
    }
    run->has_progress = job->has_progress;
    run->progress = job->progress;
}

static hf_err read_held(hf_running *r, hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    char next[HF_CURSOR_SIZE] = "";
    for (size_t i = 0; i < r->n_runs; i++)
        if (strcmp(r->runs[i].queue, r->at->name) == 0)
            r->runs[i].held = false;
    hf_err err = hf_admin_list(admin, r->at->name, HF_STATE_RUNNING, NULL, LISTED, on_job,
                               r, next, detail);
    r->all_listed = err == HF_OK && next[0] == '\0';
    return err;
}

/* Runs whose end no worker has told. A run that was never told may have been a short
 * one: it is forgotten. */
static void end_untold(hf_running *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
        hf_seen_run *run = &r->runs[i];
        const bool here = strcmp(run->queue, r->at->name) == 0;
        const bool gone = here && !run->held && run->end_ms == 0;
        if (gone && !run->told)
            continue;
        if (gone && r->now_ms - run->told_ms > UNTOLD_MS) {
            const bool over = run->lease_until_ms > 0 && run->lease_until_ms < r->now_ms;
            run->end_ms = over ? run->lease_until_ms : r->now_ms;
            run->changed = r->looks;
            tell_run(r, run);
        }
        r->runs[n++] = *run;
    }
    r->n_runs = n;
}

/* ---- the queues ---- */

static hf_err find_queues(hf_running *r, hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    char **names = NULL;
    size_t n = 1;
    hf_err err = HF_OK;
    if (r->only[0] == '\0')
        err = hf_admin_queues(admin, &names, &n, detail);
    if (err != HF_OK)
        return err;
    n = n < QUEUES_MAX ? n : QUEUES_MAX;
    queue_place *queues = calloc(n + 1, sizeof *queues);
    for (size_t i = 0; queues != NULL && i < n; i++) {
        (void)snprintf(queues[i].name, sizeof queues[i].name, "%s",
                       names == NULL ? r->only : names[i]);
        queues[i].place = (hf_runs_place){HF_RUNS_PLACE_INIT};
        for (size_t k = 0; k < r->n_queues; k++)
            if (strcmp(r->queues[k].name, queues[i].name) == 0)
                queues[i].place = r->queues[k].place;
    }
    free(names);
    if (queues == NULL)
        return HF_NOMEM;
    free(r->queues);
    r->queues = queues;
    r->n_queues = n;
    return HF_OK;
}

static hf_err look_at(hf_running *r, hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    hf_err err;
    r->before_ms = r->at->place.now_ms;
    do {
        err = hf_admin_runs(admin, r->at->name, &r->at->place, on_entry, r, detail);
    } while (err == HF_OK && r->at->place.more);
    if (err == HF_OK) {
        r->now_ms = r->at->place.now_ms;
        err = read_held(r, admin, detail);
    }
    if (err == HF_OK && r->all_listed)
        end_untold(r);
    return err;
}

/* ---- the workers ---- */

/* Their leases matter now. */
static void mark_runs_of(hf_running *r, const char *worker)
{
    for (size_t i = 0; i < r->n_runs; i++)
        if (r->runs[i].end_ms == 0 && strcmp(r->runs[i].worker, worker) == 0)
            r->runs[i].changed = r->looks;
}

static void on_worker(const hf_worker_info *info, void *arg)
{
    hf_running *r = arg;
    hf_seen_worker *w = worker_of(r, info->id);
    if (w == NULL)
        return;
    if (info->heard_ms > w->heard_ms)
        w->heard_ms = info->heard_ms;
    const bool news = info->silent && !w->silent;
    w->listed = true;
    w->silent = info->silent;
    w->pid = info->pid;
    memcpy(w->host, info->host, sizeof w->host);
    if (!info->silent) { /* else they are not told */
        w->slots = info->concurrency;
        w->started_ms = info->started_ms;
    }
    if (news)
        mark_runs_of(r, w->id);
    if (news && r->first_heard && r->calls->silent != NULL)
        r->calls->silent(w, r->calls->arg);
}

static void forget_workers(hf_running *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_workers; i++)
        if (r->workers[i].listed || r->workers[i].heard_ms > r->now_ms - KEPT_MS)
            r->workers[n++] = r->workers[i];
    r->n_workers = n;
}

static bool is_time(uint64_t *last_ns, uint64_t each_ms)
{
    const uint64_t now = hf_boot_ns();
    if (*last_ns != 0 && now - *last_ns < each_ms * HF_MS_NS)
        return false;
    *last_ns = now;
    return true;
}

static hf_err watch(hf_running *r, hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    if (!is_time(&r->watched_ns, WATCH_EACH_MS))
        return HF_OK;
    hf_err err = hf_admin_watch(admin, detail);
    r->refused = err == HF_AUTH ? HF_AUTH : HF_OK;
    return err == HF_AUTH ? HF_OK : err;
}

static hf_err read_workers(hf_running *r, hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    if (!is_time(&r->workers_ns, WORKERS_EACH_MS))
        return HF_OK;
    for (size_t i = 0; i < r->n_workers; i++)
        r->workers[i].listed = false;
    hf_err err = hf_admin_workers(admin, on_worker, r, detail);
    r->first_heard = r->first_heard || err == HF_OK;
    if (err == HF_OK)
        forget_workers(r);
    return err;
}

/* ---- all of it ---- */

/* Those that go on first, then by their start; those without one last. */
static int by_start(const void *a, const void *b)
{
    const hf_seen_run *x = a, *y = b;
    const int64_t s = x->start_ms == 0 ? INT64_MAX : x->start_ms;
    const int64_t t = y->start_ms == 0 ? INT64_MAX : y->start_ms;
    if ((x->end_ms == 0) != (y->end_ms == 0))
        return x->end_ms == 0 ? -1 : 1;
    if (x->end_ms != y->end_ms)
        return x->end_ms > y->end_ms ? -1 : 1;
    return s != t ? (s > t) - (s < t) : strcmp(x->id, y->id);
}

/* What ended long ago is behind all others. */
static void forget(hf_running *r)
{
    size_t ended = 0, i = 0;
    if (r->n_runs > 0)
        qsort(r->runs, r->n_runs, sizeof *r->runs, by_start);
    for (; i < r->n_runs; i++) {
        const hf_seen_run *run = &r->runs[i];
        ended += run->end_ms != 0;
        if (ended > KEPT_MAX || (run->end_ms != 0 && run->end_ms < r->now_ms - KEPT_MS))
            break;
    }
    r->n_runs = i;
}

/* The end of a run without a viewer is not known. */
static void forget_unwatched(hf_running *r)
{
    size_t n = 0;
    if (hf_boot_ns() - r->looked_ns < UNWATCHED_MS * HF_MS_NS)
        return;
    for (size_t i = 0; i < r->n_runs; i++)
        if (r->runs[i].end_ms != 0)
            r->runs[n++] = r->runs[i];
    r->n_runs = n;
}

hf_err hf_running_look(hf_running *r, hf_admin *admin, const hf_running_calls *calls,
                       char detail[HF_DETAIL_SIZE])
{
    r->calls = calls;
    r->failed = false;
    r->looks++;
    forget_unwatched(r);
    r->n_looked = 0;
    r->now_ms = calls->now_ms > r->now_ms ? calls->now_ms : r->now_ms;
    hf_err err = watch(r, admin, detail);
    if (err == HF_OK)
        err = find_queues(r, admin, detail);
    for (size_t i = 0; err == HF_OK && i < r->n_queues; i++) {
        r->at = &r->queues[i];
        if (calls->rests != NULL && calls->rests(r->at->name, calls->arg))
            continue;
        r->n_looked++;
        err = look_at(r, admin, detail);
    }
    if (err == HF_OK)
        err = read_workers(r, admin, detail);
    forget(r);
    if (err == HF_OK)
        r->looked_ns = hf_boot_ns();
    return err == HF_OK && r->failed ? HF_NOMEM : err;
}

hf_err hf_running_refused(const hf_running *r)
{
    return r->refused;
}

int64_t hf_running_now_ms(const hf_running *r)
{
    return r->now_ms;
}

uint64_t hf_running_looks(const hf_running *r)
{
    return r->looks;
}

size_t hf_running_queues(const hf_running *r)
{
    return r->n_looked;
}

size_t hf_running_count(const hf_running *r)
{
    return r->n_runs;
}

const hf_seen_run *hf_running_at(const hf_running *r, size_t i)
{
    return &r->runs[i];
}

size_t hf_running_n_workers(const hf_running *r)
{
    return r->n_workers;
}

const hf_seen_worker *hf_running_worker(const hf_running *r, size_t i)
{
    return &r->workers[i];
}

hf_running *hf_running_new(const char *queue)
{
    hf_running *r = calloc(1, sizeof *r);
    if (r != NULL && queue != NULL)
        (void)snprintf(r->only, sizeof r->only, "%s", queue);
    return r;
}

void hf_running_free(hf_running *r)
{
    if (r == NULL)
        return;
    free(r->queues);
    free(r->runs);
    free(r->workers);
    free(r);
}
