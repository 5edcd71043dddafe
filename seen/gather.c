/* gather.c - see gather.h. */
#include "seen/gather.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "seen/gather_locks.h"
#include "seen/gather_past.h"
#include "seen/words.h"
#include "seen/zones.h"

enum {
    HOUR_MS = 3600 * 1000,
    LATELY_MS = 600 * 1000,
    LOOK_MS = 15 * 1000,    /* a younger job is neither late nor unserved */
    WHYS = 50,              /* queues whose oldest job is asked for its reasons, */
    WHY_MS = 30 * 1000,     /* again after this time if nothing has changed */
    DEATHS = 1000,          /* of a queue that are looked at */
    KINDS = 16,             /* of deaths that are told apart */
    REFUSED = 100,          /* waiting jobs among which refused ones are looked for */
    CANDIDATES = 8,         /* of them whose reasons are asked for */
    AUDITED = 2000,         /* jobs of a queue */
    SCHEDULES = 1000,       /* of a queue */
    LISTED = 1 << 15,       /* workers, schedules */
    FINDING = 1024,         /* bytes; of a longer one the beginning is told */
    SETTLED_MS = 75 * 1000, /* after this long a minute has ended, and was told */
    FAULTS = 3              /* queues of a cluster that could not be asked, one by one */
};

typedef struct gatherer {
    const hf_gather_opts *opts;
    hf_admin *admin;
    hf_facts *facts;
    bool no_memory, stop;
    int64_t began_ms; /* by this host's clock */
    size_t whys, faults;
    size_t deaths; /* that may still be looked at */
    uint64_t audit_until_ns;
    hf_facts_queue *queue;        /* the one at hand, */
    const hf_facts_queue *before; /* and as it was before; NULL: it was not known */
    char detail[HF_DETAIL_SIZE];
} gatherer;

/* Makes room for one more. NULL: no memory, or there are too many. */
static void *more(gatherer *g, void *list, size_t n, size_t size)
{
    void *at = NULL;
    if ((n & (n - 1)) != 0) /* the room is the next power of two */
        return list;
    if (n < LISTED)
        at = realloc(list, (n == 0 ? 1 : 2 * n) * size);
    g->no_memory = g->no_memory || (at == NULL && n < LISTED);
    return at;
}

#define ADD(g, list, n)                                                                  \
    (more_of = more(g, list, n, sizeof *(list)),                                         \
     more_of == NULL ? NULL : ((list) = more_of, &(list)[(n)++]))

/* ---- faults ---- */

static void set_fault(gatherer *g, hf_facts_redis *r, hf_err err)
{
    if (r->err != HF_OK)
        return;
    r->err = err;
    r->since_ms = g->began_ms;
    (void)hf_words_line(g->detail[0] != '\0' ? g->detail : hf_err_text(err), r->detail,
                        sizeof r->detail);
}

/* A call failed that is about all of Redis. */
static void note_fault(gatherer *g, hf_err err)
{
    g->no_memory = g->no_memory || err == HF_NOMEM;
    g->stop = true;
    if (err != HF_NOMEM && g->facts->n_redis > 0)
        set_fault(g, &g->facts->redis[0], err);
}

/* A call failed that is about a queue. Its keys may be broken, or a node of a cluster is
 * away, which its own entry says: each further queue would cost a deadline. */
static void note_queue_fault(gatherer *g, hf_err err)
{
    if (err == HF_REDIS || err == HF_PROTO) {
        g->queue->findings++;
        (void)hf_words_line(g->detail, g->queue->finding, sizeof g->queue->finding);
    } else if (err == HF_NOMEM || g->facts->redis[0].place[0] == '\0') {
        note_fault(g, err);
    } else if (++g->faults == FAULTS) {
        g->stop = true;
    }
}

/* ---- Redis ---- */

static void on_server(const char *place, hf_err err, const char *detail, void *arg)
{
    gatherer *g = arg;
    void *more_of;
    hf_facts_redis *r = ADD(g, g->facts->redis, g->facts->n_redis);
    if (r == NULL)
        return;
    *r = (hf_facts_redis){.info = *hf_admin_server(g->admin)};
    (void)hf_words_line(place == NULL ? "" : place, r->place, sizeof r->place);
    (void)snprintf(g->detail, sizeof g->detail, "%s", detail);
    if (err != HF_OK)
        set_fault(g, r, err);
}

static void read_redis(gatherer *g)
{
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    hf_err err = hf_admin_servers(g->admin, on_server, g, g->detail);
    if (err == HF_OK)
        err = hf_admin_round_trip(g->admin, &trip, g->detail);
    if (err != HF_OK) {
        note_fault(g, err);
        return;
    }
    g->facts->now_ms += trip.ahead_us / 1000;
    hf_facts_redis *r = g->facts->redis;
    if (g->facts->n_redis != 1 || r->place[0] != '\0' || r->err != HF_OK)
        return;
    err = hf_admin_check_writes(g->admin, NULL, g->detail);
    if (err == HF_OK || err == HF_AUTH)
        return;
    r->refuses = err;
    (void)hf_words_line(g->detail, r->refusal, sizeof r->refusal);
}

/* ---- queues: their figures ---- */

static void read_names(gatherer *g)
{
    char **names = NULL;
    size_t n = 0;
    hf_err err = hf_admin_queues(g->admin, &names, &n, g->detail);
    if (err != HF_OK) {
        note_fault(g, err);
        return;
    }
    g->facts->queues = calloc(n + 1, sizeof *g->facts->queues);
    g->no_memory = g->no_memory || g->facts->queues == NULL;
    for (size_t i = 0; i < n && !g->no_memory; i++) {
        hf_queue_stats *s = &g->facts->queues[i].stats;
        *s = (hf_queue_stats){HF_QUEUE_STATS_INIT};
        (void)snprintf(s->queue, sizeof s->queue, "%s", names[i]);
        g->facts->n_queues++;
    }
    free(names);
}

static bool may_ask(gatherer *g)
{
    if (g->opts->between != NULL && !g->opts->between(g->opts->arg))
        g->stop = true;
    return !g->stop;
}

static int by_queue(const void *name, const void *queue)
{
    return strcmp(name, ((const hf_facts_queue *)queue)->stats.queue);
}

/* The names of queues are sorted. */
hf_facts_queue *hf_facts_find(const hf_facts *f, const char *name)
{
    return f == NULL || f->n_queues == 0
               ? NULL
               : bsearch(name, f->queues, f->n_queues, sizeof *f->queues, by_queue);
}

/* Whether something has happened between two looks: each end of a job, each death and
 * each claim changes one of these. */
static bool has_moved(const hf_queue_stats *a, const hf_queue_stats *b)
{
    return a->enqueued != b->enqueued || a->done != b->done || a->failed != b->failed ||
           a->lost != b->lost || a->crashed != b->crashed ||
           a->cancelled != b->cancelled || a->deleted != b->deleted ||
           a->expired != b->expired || a->dead != b->dead || a->running != b->running ||
           a->claimed_ms != b->claimed_ms;
}

/* Whether a job runs, or was claimed or ended a run between the two. */
static bool has_run(const hf_queue_stats *a, const hf_queue_stats *b)
{
    return b->running > 0 || a->done != b->done || a->failed != b->failed ||
           a->lost != b->lost || a->crashed != b->crashed ||
           a->claimed_ms != b->claimed_ms;
}

/* At the first look its last claim tells when it moved, unless a job runs. */
static void date(hf_facts_queue *q, const hf_facts_queue *before)
{
    const hf_queue_stats *now = &q->stats;
    q->ran_ms = q->moved_ms = now->running > 0 ? now->now_ms : now->claimed_ms;
    if (before == NULL)
        return;
    q->moved_ms = has_moved(&before->stats, now) ? now->now_ms : before->moved_ms;
    q->ran_ms = has_run(&before->stats, now) ? now->now_ms : before->ran_ms;
}

static void at_queue(gatherer *g, hf_facts_queue *q)
{
    g->queue = q;
    g->before = hf_facts_find(g->opts->before, q->stats.queue);
}

static bool on_stats(hf_err err, const hf_queue_stats *stats, void *arg)
{
    gatherer *g = arg;
    hf_facts_queue *q = hf_facts_find(g->facts, stats->queue);
    if (q == NULL)
        return true;
    at_queue(g, q);
    if (err != HF_OK) {
        note_queue_fault(g, err);
        return !g->stop;
    }
    g->queue->stats = *stats;
    date(g->queue, g->before);
    if (stats->now_ms > g->facts->now_ms)
        g->facts->now_ms = stats->now_ms;
    return may_ask(g);
}

static void read_stats(gatherer *g)
{
    const size_t n = g->facts->n_queues;
    const char **names = calloc(n + 1, sizeof *names);
    g->no_memory = g->no_memory || names == NULL;
    for (size_t i = 0; i < n && names != NULL; i++)
        names[i] = g->facts->queues[i].stats.queue;
    if (names != NULL && may_ask(g))
        hf_admin_stats_each(g->admin, names, n, on_stats, g, g->detail);
    free((void *)names);
}

/* ---- workers ---- */

static void note_queues(const gatherer *g, const hf_worker_info *info)
{
    const hf_facts *f = g->facts;
    const bool serves = info->state[0] == '\0' || strcmp(info->state, "serving") == 0;
    for (size_t i = 0; i < info->n_queues; i++) {
        hf_facts_queue *q = hf_facts_find(f, info->queues[i]);
        if (q == NULL)
            continue;
        q->alive += !info->silent;
        q->serving += !info->silent && serves;
    }
}

static void on_worker(const hf_worker_info *info, void *arg)
{
    gatherer *g = arg;
    void *more_of;
    hf_facts_worker *w = ADD(g, g->facts->workers, g->facts->n_workers);
    if (w == NULL)
        return;
    *w = (hf_facts_worker){.silent = info->silent,
                           .heard_ms = info->heard_ms,
                           .started_ms = info->started_ms};
    memcpy(w->id, info->id, sizeof w->id);
    (void)hf_words_line(info->version, w->version, sizeof w->version);
    for (size_t i = 0; i < info->n_pools; i++)
        if (strcmp(info->pools[i].state, "down") == 0 && w->pools_down++ == 0)
            (void)hf_words_line(info->pools[i].name, w->pool, sizeof w->pool);
    note_queues(g, info);
    if (info->now_ms > g->facts->now_ms)
        g->facts->now_ms = info->now_ms;
}

static void read_workers(gatherer *g)
{
    hf_err err = hf_admin_workers(g->admin, on_worker, g, g->detail);
    if (err != HF_OK)
        note_fault(g, err);
}

/* ---- why the jobs of a queue wait ---- */

/* NULL: it has gone meanwhile, or cannot be asked. */
static hf_facts_why *ask_why(gatherer *g, const char *id)
{
    hf_reason reasons[HF_REASONS];
    hf_facts_why *of = calloc(1, sizeof *of);
    if (of == NULL) {
        g->no_memory = true;
        return NULL;
    }
    of->job = (hf_job_info){HF_JOB_INFO_INIT};
    of->why = (hf_job_why){HF_JOB_WHY_INIT, .job = &of->job};
    of->asked_ms = g->queue->stats.now_ms;
    hf_err err = hf_admin_why(g->admin, g->queue->stats.queue, id, &of->why, g->detail);
    if (err != HF_OK) {
        if (err != HF_GONE && err != HF_INVALID) /* the id is of another hand */
            note_queue_fault(g, err);
        free(of);
        return NULL;
    }
    size_t n = hf_why_reasons(&of->why, g->facts->poison, reasons);
    hf_reason_read_for(g->admin, &of->why, reasons, n, &of->read);
    return of;
}

static void take_id(const hf_job_info *info, void *arg)
{
    memcpy(arg, info->id, sizeof info->id);
}

/* Whether nothing is seen that could change why its jobs wait. */
static bool stands_still(const hf_facts_queue *a, const hf_facts_queue *b)
{
    const hf_queue_stats *s = &a->stats, *t = &b->stats;
    return !has_moved(s, t) && a->serving == b->serving && a->alive == b->alive &&
           s->ready == t->ready && s->delayed == t->delayed && s->paused == t->paused &&
           s->max_running == t->max_running && s->rate_limit == t->rate_limit &&
           s->rate_per_ms == t->rate_per_ms && s->refused == t->refused;
}

/* What was found before, until a time has come that it names; NULL: it has to be asked
 * for. */
static hf_facts_why *kept_why(gatherer *g)
{
    const hf_facts_why *old = g->before == NULL ? NULL : g->before->oldest;
    const int64_t now_ms = g->queue->stats.now_ms;
    if (old == NULL || now_ms - old->asked_ms > WHY_MS ||
        (old->why.next_token_ms > old->asked_ms && old->why.next_token_ms <= now_ms) ||
        (old->why.locked_until_ms > old->asked_ms &&
         old->why.locked_until_ms <= now_ms) ||
        !stands_still(g->before, g->queue))
        return NULL;
    hf_facts_why *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return NULL;
    *kept = *old;
    kept->why.job = &kept->job;
    kept->why.now_ms = now_ms;
    return kept;
}

static void read_oldest(gatherer *g)
{
    char id[HF_ID_SIZE] = "";
    const hf_facts *f = g->facts;
    const hf_queue_stats *s = &g->queue->stats;
    const int64_t bound = f->late_ms < LOOK_MS ? f->late_ms : LOOK_MS;
    if (s->ready == 0 || s->paused || f->now_ms - s->oldest_ready_ms < bound ||
        g->whys >= WHYS)
        return;
    g->queue->oldest = kept_why(g);
    if (g->queue->oldest != NULL) {
        g->whys++;
        return;
    }
    hf_err err = hf_admin_list(g->admin, s->queue, HF_STATE_READY, NULL, 1, take_id, id,
                               NULL, g->detail);
    if (err != HF_OK) {
        note_queue_fault(g, err);
        return;
    }
    if (id[0] == '\0')
        return;
    g->whys++;
    g->queue->oldest = ask_why(g, id);
}

typedef struct candidates {
    size_t n;
    char ids[CANDIDATES][HF_ID_SIZE], types[CANDIDATES][HF_ID_SIZE];
} candidates;

/* One of each type is enough. */
static void on_waiting(const hf_job_info *info, void *arg)
{
    candidates *c = arg;
    if (info->refused_ms == 0 || c->n == CANDIDATES)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->types[i], info->type) == 0)
            return;
    memcpy(c->ids[c->n], info->id, sizeof info->id);
    memcpy(c->types[c->n++], info->type, sizeof info->type);
}

static void read_unhandled(gatherer *g)
{
    candidates c = {.n = 0};
    const hf_queue_stats *s = &g->queue->stats;
    if (s->refused == 0 || s->paused || g->queue->serving == 0 || g->whys >= WHYS)
        return;
    g->whys++;
    hf_err err = hf_admin_list(g->admin, s->queue, HF_STATE_READY, NULL, REFUSED,
                               on_waiting, &c, NULL, g->detail);
    if (err == HF_OK)
        err = hf_admin_list(g->admin, s->queue, HF_STATE_DELAYED, NULL, REFUSED,
                            on_waiting, &c, NULL, g->detail);
    if (err != HF_OK)
        note_queue_fault(g, err);
    for (size_t i = 0; i < c.n && err == HF_OK && !g->stop; i++) {
        hf_facts_why *of = ask_why(g, c.ids[i]);
        if (of != NULL && of->why.workers_for_type == 0) {
            g->queue->unhandled = of;
            return;
        }
        free(of);
    }
}

/* ---- deaths ---- */

typedef struct kind {
    uint64_t hash;
    size_t n;
    char type[HF_ID_SIZE], error[HF_FACTS_TEXT];
} kind;

typedef struct deaths {
    hf_facts_deaths *of;
    hf_facts *facts;
    size_t n;
    kind at[KINDS];
} deaths;

/* Errors that differ in numbers alone are one. */
static uint64_t hash_kind(const char *type, const char *error)
{
    char text[HF_FACTS_TEXT];
    (void)snprintf(text, sizeof text, "%s", error);
    for (char *at = text; *at != '\0'; at++)
        *at = isdigit((unsigned char)*at) ? '#' : *at;
    return hf_hash_text(hf_hash_text(HF_HASH_START, type), text);
}

/* A takeover adds to the error which silent workers of the queue may have been the
 * holder. One that stands there alone is told with the job; of several, most have nothing
 * to do with it. */
static void count_killed(deaths *d, const hf_job_info *info)
{
    char named[HF_HOLDER_SIZE + 24];
    for (size_t i = 0; i < d->facts->n_workers; i++) {
        hf_facts_worker *w = &d->facts->workers[i];
        (void)snprintf(named, sizeof named, "; %s, lease ended ", w->id);
        if (!w->silent || w->of_poison || w->heard_ms > info->due_ms ||
            strstr(info->error, named) == NULL)
            continue;
        w->of_poison = true;
        d->of->silent++;
        memcpy(d->of->killed, w->id, sizeof w->id);
    }
}

static void note_poison(deaths *d, const hf_job_info *info)
{
    hf_facts_deaths *of = d->of;
    of->poison++;
    of->poison_late += info->due_ms > d->facts->now_ms - LATELY_MS;
    of->poison_ms = of->poison_ms == 0 ? info->due_ms : of->poison_ms;
    of->poison_alike =
        strcmp(of->poison_type, info->type) == 0 ? of->poison_alike + 1 : 1;
    memcpy(of->poisoned, info->id, sizeof of->poisoned);
    memcpy(of->poison_type, info->type, sizeof of->poison_type);
    count_killed(d, info);
}

static void on_dead(const hf_job_info *info, void *arg)
{
    char error[HF_FACTS_TEXT];
    size_t i = 0;
    deaths *d = arg;
    d->of->looked++;
    if (d->of->first_ms == 0 || info->due_ms < d->of->first_ms)
        d->of->first_ms = info->due_ms;
    if (strcmp(info->reason, "poison") == 0)
        note_poison(d, info);
    (void)hf_words_line(hf_text_gist(info->error), error, sizeof error);
    const uint64_t hash = hash_kind(info->type, error);
    while (i < d->n && d->at[i].hash != hash)
        i++;
    if (i == KINDS)
        return;
    if (i == d->n) {
        d->n++;
        d->at[i] = (kind){.hash = hash};
        memcpy(d->at[i].type, info->type, sizeof info->type);
        memcpy(d->at[i].error, error, sizeof error);
    }
    d->at[i].n++;
}

/* Those of before are those of now: none came, went or grew too old. Of poison it matters
 * when it was, and which workers are silent by now. */
static bool has_same_deaths(const gatherer *g)
{
    const hf_facts_queue *b = g->before;
    return b != NULL && b->deaths.read && b->deaths.poison == 0 &&
           b->stats.died_hour == g->queue->stats.died_hour &&
           !has_moved(&b->stats, &g->queue->stats);
}

static void read_deaths(gatherer *g)
{
    hf_facts_deaths *of = &g->queue->deaths;
    const size_t most = g->deaths < DEATHS ? g->deaths : DEATHS;
    deaths *d = NULL;
    if (g->queue->stats.died_hour == 0)
        return;
    if (g->before != NULL)
        *of = g->before->deaths;
    if (has_same_deaths(g))
        return;
    if (most == 0)
        return;
    *of = (hf_facts_deaths){.read = false};
    d = calloc(1, sizeof *d);
    if (d == NULL) {
        g->no_memory = true;
        return;
    }
    d->of = of;
    d->facts = g->facts;
    hf_err err =
        hf_admin_deaths(g->admin, g->queue->stats.queue, g->queue->stats.now_ms - HOUR_MS,
                        most, on_dead, d, g->detail);
    of->read = most == DEATHS || of->looked < most;
    if (g->opts->deaths > 0) {
        g->deaths -= of->looked;
        g->facts->next_deaths = (size_t)(g->queue - g->facts->queues) + of->read;
    }
    if (err != HF_OK)
        note_queue_fault(g, err);
    for (size_t i = 0; i < d->n; i++) {
        if (d->at[i].n <= of->alike)
            continue;
        of->alike = d->at[i].n;
        memcpy(of->type, d->at[i].type, sizeof of->type);
        memcpy(of->error, d->at[i].error, sizeof of->error);
    }
    free(d);
}

/* ---- history ---- */

/* What is known of the past of a queue stays, when its workers have told their minutes
 * since it moved. */
static bool has_same_past(const gatherer *g)
{
    const hf_facts_queue *b = g->before;
    return b != NULL && b->past.known &&
           b->past.read_ms > g->queue->moved_ms + SETTLED_MS;
}

static void keep_past(gatherer *g)
{
    if (g->before == NULL || !g->before->past.known)
        return;
    g->queue->past = g->before->past;
    hf_gather_past_judge(&g->queue->stats, &g->queue->past);
}

static bool on_past(hf_err err, hf_facts_queue *queue, const hf_facts_past *past,
                    void *arg)
{
    gatherer *g = arg;
    at_queue(g, queue);
    if (err == HF_OK) {
        queue->past = *past;
        hf_gather_past_judge(&queue->stats, &queue->past);
    } else {
        note_queue_fault(g, err);
    }
    return may_ask(g) && !g->no_memory;
}

/* The room goes to other queues first than the last time. */
static void read_pasts(gatherer *g)
{
    hf_facts *f = g->facts;
    const size_t first = g->opts->before == NULL ? 0 : g->opts->before->next_pasts;
    const size_t most = g->opts->pasts > 0 ? g->opts->pasts : f->n_queues;
    size_t n = 0;
    hf_facts_queue **read = calloc(f->n_queues + 1, sizeof(hf_facts_queue *));
    g->no_memory = g->no_memory || read == NULL;
    f->next_pasts = first;
    for (size_t i = 0; i < f->n_queues && !g->no_memory; i++) {
        const size_t place = (first + i) % f->n_queues;
        at_queue(g, &f->queues[place]);
        keep_past(g);
        /* Of a queue with findings the keys cannot be read, one without a time could not
         * be asked. */
        if (n == most || has_same_past(g) || g->queue->findings > 0 ||
            g->queue->stats.now_ms == 0)
            continue;
        read[n++] = g->queue;
        f->next_pasts = place + 1;
    }
    if (!g->no_memory && !hf_gather_past(g->admin, read, n, on_past, g, g->detail))
        g->no_memory = true;
    free((void *)read);
}

/* ---- schedules ---- */

static void on_schedule(const hf_schedule_info *info, void *arg)
{
    gatherer *g = arg;
    void *more_of;
    hf_facts_schedule *s = ADD(g, g->facts->schedules, g->facts->n_schedules);
    if (s == NULL)
        return;
    *s = (hf_facts_schedule){.paused = info->paused,
                             .queue_paused = g->queue->stats.paused,
                             .served = g->queue->serving > 0,
                             .next_ms = info->next_ms,
                             .last_ms = info->last_ms,
                             .passed = info->passed,
                             .skipped = info->skipped,
                             .accepted = info->accepted,
                             .dropped = info->dropped};
    (void)snprintf(s->zone, sizeof s->zone, "%s", hf_zones_of(info));
    memcpy(s->id, info->id, sizeof s->id);
    memcpy(s->queue, info->queue, sizeof s->queue);
    memcpy(s->job, info->job, sizeof s->job);
}

static void read_schedules(gatherer *g)
{
    if (g->queue->stats.schedules == 0 || !may_ask(g))
        return;
    hf_err err = hf_admin_schedules(g->admin, g->queue->stats.queue, NULL, SCHEDULES,
                                    on_schedule, g, g->detail);
    if (err != HF_OK)
        note_queue_fault(g, err);
}

/* ---- the audit ---- */

static void on_finding(const hf_finding *finding, void *arg)
{
    char text[FINDING];
    gatherer *g = arg;
    if (g->queue->findings++ > 0)
        return;
    (void)snprintf(text, sizeof text, "%s: %s", finding->id, finding->text);
    (void)hf_words_line(text, g->queue->finding, sizeof g->queue->finding);
}

static bool on_audited(size_t done, size_t total, void *arg)
{
    const gatherer *g = arg;
    (void)total;
    return done < AUDITED && hf_boot_ns() < g->audit_until_ns;
}

static void read_findings(gatherer *g)
{
    size_t found;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .cb = on_finding,
                                .progress = on_audited, .arg = g};
    if (g->queue->findings > 0 || hf_boot_ns() >= g->audit_until_ns)
        return;
    hf_err err =
        hf_admin_audit(g->admin, g->queue->stats.queue, &opts, &found, g->detail);
    if (err != HF_OK)
        note_queue_fault(g, err);
}

/* ---- all of it ---- */

/* From the first-th on; those before it come last. */
static void for_queues_from(gatherer *g, size_t first, void (*read)(gatherer *g))
{
    const size_t n = g->facts->n_queues;
    for (size_t i = 0; i < n && !g->stop && !g->no_memory; i++) {
        at_queue(g, &g->facts->queues[(first + i) % n]);
        if (g->queue->findings == 0) /* else its keys cannot be read */
            read(g);
    }
}

static void for_each_queue(gatherer *g, void (*read)(gatherer *g))
{
    for_queues_from(g, 0, read);
}

/* The room goes to other queues first than the last time. */
static void for_each_death(gatherer *g)
{
    const hf_facts *before = g->opts->before;
    g->facts->next_deaths = before == NULL ? 0 : before->next_deaths;
    for_queues_from(g, g->facts->next_deaths, read_deaths);
}

hf_err hf_facts_gather(const hf_gather_opts *opts, hf_facts *facts)
{
    static void (*const of_all[])(gatherer *) = {read_redis, read_names};
    static void (*const of_queues[])(gatherer *) = {read_oldest, read_unhandled,
                                                    read_schedules, read_findings};
    gatherer g = {.opts = opts,
                  .admin = opts->admin,
                  .facts = facts,
                  .began_ms = hf_wall_ms(),
                  .deaths = opts->deaths > 0 ? opts->deaths : DEATHS,
                  .audit_until_ns = hf_boot_ns() + opts->audit_ms * HF_MS_NS};
    facts->now_ms = g.began_ms;
    hf_zones_host(facts->zone);
    for (size_t i = 0; i < HF_COUNT(of_all) && !g.stop && !g.no_memory; i++)
        of_all[i](&g);
    if (!g.stop && !g.no_memory)
        read_stats(&g);
    if (!g.stop && !g.no_memory)
        read_workers(&g);
    for_each_death(&g);
    if (!g.stop && !g.no_memory)
        read_pasts(&g);
    for (size_t i = 0; i < HF_COUNT(of_queues); i++)
        for_each_queue(&g, of_queues[i]);
    if (!g.stop && !g.no_memory && opts->locks != NULL)
        g.no_memory = !hf_gather_locks(opts, facts);
    return g.no_memory ? HF_NOMEM : HF_OK;
}

hf_err hf_facts_away(hf_facts *facts, hf_err err, const char *detail, int64_t since_ms)
{
    facts->now_ms = hf_wall_ms();
    facts->redis = calloc(1, sizeof *facts->redis);
    if (facts->redis == NULL)
        return HF_NOMEM;
    facts->n_redis = 1;
    facts->redis->err = err;
    facts->redis->since_ms = since_ms;
    (void)hf_words_line(detail, facts->redis->detail, sizeof facts->redis->detail);
    return HF_OK;
}

void hf_facts_done(hf_facts *facts)
{
    for (size_t i = 0; i < facts->n_queues; i++) {
        free(facts->queues[i].oldest);
        free(facts->queues[i].unhandled);
    }
    free(facts->redis);
    free(facts->workers);
    free(facts->queues);
    free(facts->schedules);
    free(facts->locks);
    facts->redis = NULL;
    facts->workers = NULL;
    facts->queues = NULL;
    facts->schedules = NULL;
    facts->locks = NULL;
    facts->n_redis = facts->n_workers = facts->n_queues = 0;
    facts->n_schedules = facts->n_locks = 0;
}
