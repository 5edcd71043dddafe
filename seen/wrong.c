/* wrong.c - see wrong.h. Each rule is a function of the facts, which adds what it finds:
 * its level, its sentence, its why, a command and a page. */
#include "seen/wrong.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "seen/holder.h"
#include "seen/offer.h"
#include "seen/words.h"
#include "seen/zones.h"

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    AWAY_MS = 3 * SECOND_MS,
    SILENT_MS = 30 * SECOND_MS,
    UNSERVED_MS = 15 * SECOND_MS,
    DEATHS = 10, /* in an hour */
    ATTEMPTS = 20,
    FAILED_PERCENT = 20,
    LATE_BAD = 10, /* times as late */
    RISES = 5,     /* minutes running */
    CRASHED = 3,
    TICK_LATE_MS = MINUTE_MS,
    PASSED = 2, /* ticks running */
    WAITS_NOTE_MS = 30 * SECOND_MS,
    WAITS_MS = 10 * MINUTE_MS,
    LEASES_OVER = 2,
    MEMORY_WARN = 80, /* percent */
    MEMORY_BAD = 95,
    MIXED_MS = HOUR_MS,
    VERSIONS_MAX = 8,
    ZONES_TOLD = 3,
    MIB = 1 << 20,
    GIB = 1 << 30
};

/* ---- the list ---- */

const char *hf_wrong_rule_word(hf_wrong_rule rule)
{
#define WORD(name, word) word,
    static const char *const words[] = {HF_WRONG_RULES(WORD)};
#undef WORD
    return words[rule];
}

const char *hf_wrong_level_word(hf_wrong_level level)
{
    static const char *const words[] = {"bad", "warn", "note", "hint"};
    return words[level];
}

static bool comes_before(const hf_wrong *a, const hf_wrong *b)
{
    if (a->level != b->level)
        return a->level < b->level;
    if (a->since_ms != b->since_ms)
        return b->since_ms == 0 || (a->since_ms != 0 && a->since_ms < b->since_ms);
    return a->rule < b->rule;
}

/* Those of one rank stay in the order in which they came. */
static void add(hf_wrongs *out, hf_wrong *w)
{
    size_t at = out->n;
    hf_text_plain(w->what);
    hf_text_plain(w->why);
    hf_text_plain(w->command);
    out->levels[w->level]++;
    while (at > 0 && comes_before(w, &out->at[at - 1]))
        at--;
    if (at == HF_WRONG_MAX)
        return;
    size_t behind = (out->n < HF_WRONG_MAX ? out->n : HF_WRONG_MAX - 1) - at;
    memmove(&out->at[at + 1], &out->at[at], behind * sizeof *w);
    out->at[at] = *w;
    out->n += out->n < HF_WRONG_MAX ? 1 : 0;
}

static hf_wrong begin(hf_wrong_rule rule, hf_wrong_level level, int64_t since_ms)
{
    return (hf_wrong){.rule = rule, .level = level, .since_ms = since_ms};
}

#define SAY(field, ...)                                                                  \
    ((field)[0] = '\0', hf_words_add(field, sizeof(field), __VA_ARGS__))

static void add_why(hf_wrong *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_why(hf_wrong *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_words_add_args(w->why, sizeof w->why, format, args);
    va_end(args);
}

/* What others have said may have its own end. */
static void end_why(hf_wrong *w)
{
    size_t len = strlen(w->why);
    if (len > 0 && w->why[len - 1] != '.')
        add_why(w, ".");
}

/* ---- why a job waits: the reason of `job why` and its sentence ---- */

/* A worker has to start before anything else helps. */
static hf_reason told_first(const hf_reason *reasons, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (reasons[i] == HF_REASON_NO_WORKER)
            return reasons[i];
    return reasons[0];
}

static void add_reason(hf_wrong *w, const hf_facts *f, const hf_facts_why *of)
{
    char text[HF_REASON_TEXT_SIZE], remedy[HF_REASON_COMMAND_SIZE];
    hf_reason reasons[HF_REASONS];
    if (of == NULL)
        return;
    hf_job_why why = of->why;
    why.job = (hf_job_info *)(uintptr_t)&of->job; /* which is only read */
    const hf_reason reason =
        told_first(reasons, hf_why_reasons(&why, f->poison, reasons));
    const hf_reason_facts facts = hf_reason_facts_of(&why, &of->read, of->job.queue);
    (void)hf_reason_text(&facts, reason, text);
    char *more = strchr(text, '\n');
    if (more != NULL)
        *more++ = '\0';
    add_why(w, "Job %s (%s): %s%s%s.", of->job.id, hf_reason_word(reason), text,
            more != NULL ? "; " : "", more != NULL ? more : "");
    if (reason == HF_REASON_MAX_RUNNING && why.slots > why.busy)
        add_why(w, " Its workers have %" PRId64 " free slots.", why.slots - why.busy);
    if (hf_reason_remedy(&facts, reason, remedy)[0] != '\0')
        memcpy(w->command, remedy, sizeof remedy);
    else if (reason != HF_REASON_NO_WORKER)
        (void)hf_offer(w->command, "job why", of->job.id, of->job.queue, "");
}

/* ---- Redis ---- */

static void begin_redis(hf_wrong *w, const hf_facts_redis *r, const char *text)
{
    *w = begin(HF_WRONG_REDIS, HF_LEVEL_BAD, r->since_ms);
    if (r->place[0] != '\0')
        SAY(w->what, "Redis at %s %s.", r->place, text);
    else
        SAY(w->what, "Redis %s.", text);
    SAY(w->command, "holdfast doctor");
    SAY(w->page, "redis");
}

/* A short silence is none: the connection is being made anew. */
static void judge_away(hf_wrongs *out, const hf_facts *f, const hf_facts_redis *r)
{
    hf_wrong w;
    const bool silent = r->err == HF_CONN || r->err == HF_TIMEOUT || r->err == HF_UNSURE;
    if (silent && f->now_ms - r->since_ms < AWAY_MS)
        return;
    begin_redis(&w, r,
                silent                     ? "does not answer"
                : r->err == HF_LOADING     ? "is loading its data"
                : r->err == HF_BUSY_SCRIPT ? "is busy with a script"
                : r->err == HF_AUTH        ? "refuses this user"
                                           : "cannot be used");
    add_why(&w, "%s", r->detail[0] != '\0' ? r->detail : hf_err_text(r->err));
    end_why(&w);
    add(out, &w);
}

static bool is_replica(const hf_facts_redis *r)
{
    return r->info.role[0] != '\0' && strcmp(r->info.role, "master") != 0;
}

static void judge_redis(hf_wrongs *out, const hf_facts *f, const hf_facts_redis *r)
{
    hf_wrong w;
    const char *policy = r->info.policy;
    if (r->err != HF_OK) {
        judge_away(out, f, r);
        return;
    }
    if (is_replica(r)) {
        begin_redis(&w, r, "is a replica");
        add_why(&w, "It accepts no writes: no job can be enqueued or started here. Use "
                    "the address of its primary.");
        add(out, &w);
    } else if (r->refuses != HF_OK && r->refuses != HF_OOM) {
        begin_redis(&w, r, "refuses every write");
        add_why(&w, "No job is accepted, started or ended: %s", r->refusal);
        end_why(&w);
        add(out, &w);
    }
    if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0) {
        begin_redis(&w, r, "may evict keys");
        add_why(&w, "Its maxmemory-policy is %s. It may evict %s.", policy,
                strncmp(policy, "allkeys", 7) == 0
                    ? "any key: jobs would be lost, or run twice"
                    : "locks, as they have an end: a job would run twice");
        SAY(w.command, "redis-cli config set maxmemory-policy noeviction");
        add(out, &w);
    }
}

/* What a full Redis refuses, and what it does not, is told here alone. */
static void judge_memory(hf_wrongs *out, const hf_facts_redis *r)
{
    const int64_t used = r->info.used_memory, most = r->info.maxmemory;
    const bool full = r->refuses == HF_OOM || (most > 0 && used >= most);
    if (!full && (most <= 0 || used < most / 100 * MEMORY_WARN))
        return;
    const double percent = most > 0 ? (double)used * 100 / (double)most : 100;
    const double unit = most < GIB ? MIB : GIB;
    hf_wrong w = begin(HF_WRONG_MEMORY,
                       full || percent >= MEMORY_BAD ? HF_LEVEL_BAD : HF_LEVEL_WARN, 0);
    SAY(w.what, "Redis%s%s is full.", r->place[0] != '\0' ? " at " : "", r->place);
    if (most > 0)
        SAY(w.what, "Redis%s%s uses %.0f %% of its memory limit.",
            r->place[0] != '\0' ? " at " : "", r->place, percent);
    if (most > 0)
        add_why(&w, "%.2f of %.2f %s are used. ", (double)used / unit,
                (double)most / unit, most < GIB ? "MiB" : "GiB");
    add_why(&w,
            "%s new jobs and ticks of schedules are refused. All else goes on: the jobs "
            "that it has start and end, and make room, and locks are given. Raise "
            "maxmemory, or remove what is not needed ('holdfast dead purge').",
            full ? "It is full:" : "When it is full,");
    SAY(w.command, "holdfast queue list");
    SAY(w.page, "redis");
    add(out, &w);
}

/* A snapshot that failed is told by the refusal of writes. */
static void judge_disk(hf_wrongs *out, const hf_facts_redis *r)
{
    const hf_server_info *info = &r->info;
    if (info->policy[0] == '\0' || info->aof || info->rdb || info->rdb_failed)
        return;
    hf_wrong w = begin(HF_WRONG_NO_AOF, HF_LEVEL_HINT, 0);
    SAY(w.what, "Redis%s%s keeps nothing on disk.", r->place[0] != '\0' ? " at " : "",
        r->place);
    SAY(w.why, "It has no append-only file, and has saved no snapshot yet: all jobs are "
               "gone when it ends.");
    SAY(w.command, "redis-cli config set appendonly yes");
    SAY(w.page, "redis");
    add(out, &w);
}

/* ---- workers ---- */

/* A queue with running jobs that no live worker could take over; NULL: there is none.
 * *waits: one where none takes jobs now. */
static const char *left_alone(const hf_facts *f, bool *waits)
{
    *waits = false;
    for (size_t i = 0; i < f->n_queues; i++) {
        const hf_facts_queue *q = &f->queues[i];
        if (q->stats.running > 0 && q->alive == 0)
            return q->stats.queue;
        *waits = *waits || (q->stats.running > 0 && (q->serving == 0 || q->stats.paused));
    }
    return NULL;
}

static void judge_silent(hf_wrongs *out, const hf_facts *f, const hf_facts_worker *v)
{
    bool waits;
    const char *queue = left_alone(f, &waits);
    char who[HF_HOLDER_TEXT], span[HF_WORDS_SIZE];
    const int64_t silent_ms = f->now_ms - v->heard_ms;
    if (!v->silent || silent_ms < SILENT_MS || v->of_poison)
        return;
    const bool is_old = silent_ms > HOUR_MS;
    hf_wrong w =
        begin(HF_WRONG_WORKER_SILENT, is_old ? HF_LEVEL_NOTE : HF_LEVEL_BAD, v->heard_ms);
    hf_holder_text(v->id, who);
    SAY(w.what, "Worker %s has been silent for %s.", who, hf_words_span(silent_ms, span));
    SAY(w.why, "It sends no heartbeat, and did not sign off: it was killed, has crashed, "
               "or cannot reach Redis. ");
    if (queue == NULL)
        add_why(&w, "Its jobs run elsewhere once their leases are over%s.",
                waits ? " and a live worker takes jobs of their queue" : "");
    else
        add_why(&w,
                "No live worker serves queue %s: what ran there waits until one starts.",
                queue);
    SAY(w.command, is_old ? "holdfast doctor --fix" : "holdfast worker list");
    SAY(w.page, "workers");
    add(out, &w);
}

static void judge_pools(hf_wrongs *out, const hf_facts_worker *v)
{
    char who[HF_HOLDER_TEXT], others[HF_WORDS_SIZE];
    if (v->silent || v->pools_down == 0)
        return;
    hf_wrong w = begin(HF_WRONG_POOL_DOWN, HF_LEVEL_BAD, 0);
    hf_holder_text(v->id, who);
    SAY(w.what, "The pool '%s' of worker %s is down.", v->pool, who);
    SAY(w.why, "No process of it takes jobs, and the last start has failed. The log of "
               "the worker says why ('a process of a pool does not live').");
    if (v->pools_down > 1)
        add_why(&w, " So are %s of this worker.",
                hf_words_count((int64_t)v->pools_down - 1, "other pool", "other pools",
                               others));
    SAY(w.command, "holdfast worker list --json");
    SAY(w.page, "workers");
    add(out, &w);
}

typedef struct versions {
    const char *at[VERSIONS_MAX];
    int64_t since_ms[VERSIONS_MAX]; /* the start of the first worker that has it */
    size_t n;
} versions;

static void note_version(versions *v, const hf_facts_worker *worker)
{
    size_t i = 0;
    if (worker->silent || worker->version[0] == '\0')
        return;
    while (i < v->n && strcmp(v->at[i], worker->version) != 0)
        i++;
    if (i == VERSIONS_MAX)
        return;
    if (i == v->n) {
        v->at[v->n] = worker->version;
        v->since_ms[v->n++] = worker->started_ms;
    }
    if (worker->started_ms < v->since_ms[i])
        v->since_ms[i] = worker->started_ms;
}

/* They differ since the first worker of the second version started. */
static void judge_versions(hf_wrongs *out, const hf_facts *f)
{
    versions v = {.n = 0};
    int64_t first_ms = INT64_MAX, second_ms = INT64_MAX;
    for (size_t i = 0; i < f->n_workers; i++)
        note_version(&v, &f->workers[i]);
    for (size_t i = 0; i < v.n; i++) {
        const int64_t ms = v.since_ms[i];
        second_ms = ms < first_ms ? first_ms : ms < second_ms ? ms : second_ms;
        first_ms = ms < first_ms ? ms : first_ms;
    }
    if (v.n < 2 || f->now_ms - second_ms < MIXED_MS)
        return;
    hf_wrong w = begin(HF_WRONG_VERSIONS, HF_LEVEL_NOTE, second_ms);
    SAY(w.what, "Workers of different versions run: %s and %s%s.", v.at[0], v.at[1],
        v.n > 2 ? ", and others" : "");
    SAY(w.why, "An upgrade has not reached all of them.");
    SAY(w.command, "holdfast worker list");
    SAY(w.page, "workers");
    add(out, &w);
}

/* ---- queues ---- */

static void set_page(hf_wrong *w, const hf_facts_queue *q)
{
    SAY(w->page, "queue/%s", q->stats.queue);
}

/* Without any worker: since the oldest job is ready, or since the last claim if a worker
 * was there until then. */
static bool judge_no_worker(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    char jobs[HF_WORDS_SIZE];
    const hf_queue_stats *s = &q->stats;
    const int64_t since_ms =
        s->claimed_ms > s->oldest_ready_ms ? s->claimed_ms : s->oldest_ready_ms;
    if (q->serving > 0 || s->ready == 0 || s->paused ||
        f->now_ms - since_ms < UNSERVED_MS)
        return false;
    hf_wrong w = begin(HF_WRONG_UNSERVED, HF_LEVEL_BAD, since_ms);
    SAY(w.what, "No live worker serves queue %s; %s.", s->queue,
        hf_words_count(s->ready, "job waits", "jobs wait", jobs));
    SAY(w.command, "holdfast worker list");
    add_reason(&w, f, q->oldest);
    set_page(&w, q);
    add(out, &w);
    return true;
}

/* Its time counts from the first refusal. */
static bool judge_no_handler(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    const hf_facts_why *of = q->unhandled;
    if (q->serving == 0 || q->stats.paused || of == NULL ||
        of->why.workers_for_type > 0 || f->now_ms - of->job.refused_ms < UNSERVED_MS)
        return false;
    hf_wrong w = begin(HF_WRONG_UNSERVED, HF_LEVEL_BAD, of->job.refused_ms);
    SAY(w.what, "No live worker of queue %s has a handler for type %s.", q->stats.queue,
        of->job.type);
    add_reason(&w, f, of);
    (void)hf_offer(w.command, "job show", of->job.id, q->stats.queue, "");
    set_page(&w, q);
    add(out, &w);
    return true;
}

/* What the poison has done to workers belongs to it. */
static void add_poison(hf_wrong *w, const hf_facts_deaths *d)
{
    char who[HF_HOLDER_TEXT], n[HF_WORDS_SIZE];
    add_why(w, "%sWorkers or processes died while they ran job %s of type %s%s.",
            w->why[0] != '\0' ? " " : "", d->poisoned, d->poison_type,
            d->poison_alike < d->poison ? ", and jobs of other types" : "");
    if (d->silent == 0)
        return;
    hf_holder_text(d->killed, who);
    add_why(w, " %s silent meanwhile: %s%s.",
            hf_words_count((int64_t)d->silent, "worker fell", "workers fell", n), who,
            d->silent > 1 ? " and others" : "");
}

static void judge_deaths(hf_wrongs *out, const hf_facts_queue *q)
{
    char jobs[HF_WORDS_SIZE], of_type[HF_ID_SIZE + 32];
    const hf_queue_stats *s = &q->stats;
    const hf_facts_deaths *d = &q->deaths;
    const bool many = s->died_hour >= DEATHS;
    if (!many && d->poison == 0)
        return;
    hf_wrong w =
        begin(HF_WRONG_DEATHS, many || d->silent > 0 ? HF_LEVEL_BAD : HF_LEVEL_WARN,
              many ? d->first_ms : d->poison_ms);
    if (many) {
        SAY(w.what, "%s of queue %s died in the last hour.",
            hf_words_count(s->died_hour, "job", "jobs", jobs), s->queue);
        if (d->alike > 0)
            add_why(&w,
                    "%zu of %zu that were looked at have the type %s and one error: %s",
                    d->alike, d->looked, d->type, d->error);
        end_why(&w);
    } else {
        const bool one_type = d->poison_alike == d->poison;
        SAY(w.what, "%s%s%s of queue %s died as poison in the last hour.",
            hf_words_count((int64_t)d->poison, "job", "jobs", jobs),
            one_type ? " of type " : "", one_type ? d->poison_type : "", s->queue);
    }
    (void)hf_offer(w.command, "dead list", "", s->queue, " --since 1h");
    if (d->poison > 0)
        add_poison(&w, d);
    if (!many && d->poison_alike == d->poison) {
        (void)snprintf(of_type, sizeof of_type, " --type %s --since 1h", d->poison_type);
        (void)hf_offer(w.command, "dead list", "", s->queue, of_type);
    }
    SAY(w.page, "dead");
    add(out, &w);
}

static void judge_failing(hf_wrongs *out, const hf_facts_queue *q)
{
    const hf_facts_past *p = &q->past;
    if (!p->known || p->attempts < ATTEMPTS ||
        p->failed * 100 < p->attempts * FAILED_PERCENT)
        return;
    hf_wrong w = begin(HF_WRONG_FAILING, HF_LEVEL_BAD, 0);
    SAY(w.what, "%" PRId64 " %% of the attempts of queue %s failed in the last 5 min.",
        p->failed * 100 / p->attempts, q->stats.queue);
    SAY(w.why,
        "%" PRId64 " of %" PRId64
        " failed. A job that failed waits for its next attempt, "
        "and is dead after its last one.",
        p->failed, p->attempts);
    (void)hf_offer(w.command, "job list", "", q->stats.queue, " --state retry");
    set_page(&w, q);
    add(out, &w);
}

/* A queue that grows is late as well; this says more, unless the other one is worse. */
static void judge_grows(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    char span[HF_WORDS_SIZE];
    const hf_queue_stats *s = &q->stats;
    hf_wrong w = begin(HF_WRONG_GROWS, HF_LEVEL_WARN, s->oldest_ready_ms);
    SAY(w.what, "Queue %s grows by %" PRId64 " a minute; the oldest job waits for %s.",
        s->queue, q->past.rise_per_min,
        hf_words_span(f->now_ms - s->oldest_ready_ms, span));
    (void)hf_offer(w.command, "queue show", s->queue, NULL, "");
    add_reason(&w, f, q->oldest);
    if (q->past.done_per_min > 0)
        add_why(&w, " Without new jobs the backlog ends in %s.",
                hf_words_span(s->ready * MINUTE_MS / q->past.done_per_min, span));
    set_page(&w, q);
    add(out, &w);
}

static void judge_late(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    char span[HF_WORDS_SIZE], jobs[HF_WORDS_SIZE];
    const hf_queue_stats *s = &q->stats;
    const int64_t waits_ms = f->now_ms - s->oldest_ready_ms;
    if (s->ready == 0 || s->paused || waits_ms < f->late_ms)
        return;
    const bool is_bad = waits_ms / LATE_BAD >= f->late_ms;
    const bool grows = q->past.known && q->past.rises >= RISES;
    if (grows)
        judge_grows(out, f, q);
    if (grows && !is_bad)
        return;
    hf_wrong w =
        begin(HF_WRONG_LATE, is_bad ? HF_LEVEL_BAD : HF_LEVEL_WARN, s->oldest_ready_ms);
    SAY(w.what, "The oldest job of queue %s waits for %s; %s.", s->queue,
        hf_words_span(waits_ms, span),
        hf_words_count(s->ready, "job is ready", "jobs are ready", jobs));
    (void)hf_offer(w.command, "queue show", s->queue, NULL, "");
    add_reason(&w, f, q->oldest);
    set_page(&w, q);
    add(out, &w);
}

/* Those of poison are told with it. */
static void judge_crashes(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    char n[HF_WORDS_SIZE];
    const hf_facts_past *p = &q->past;
    if (p->known && p->crashed - (int64_t)q->deaths.poison_late * f->poison >= CRASHED) {
        hf_wrong w = begin(HF_WRONG_CRASHES, HF_LEVEL_WARN, 0);
        SAY(w.what, "%s of queue %s crashed in the last 10 min.",
            hf_words_count(p->crashed, "run", "runs", n), q->stats.queue);
        SAY(w.why, "Their workers or processes died while they ran.");
        SAY(w.command, "holdfast worker list");
        set_page(&w, q);
        add(out, &w);
    }
    if (p->known && p->lost > 0) {
        hf_wrong w = begin(HF_WRONG_LOST, HF_LEVEL_WARN, 0);
        SAY(w.what, "%s of queue %s came too late in the last 10 min.",
            hf_words_count(p->lost, "verdict", "verdicts", n), q->stats.queue);
        SAY(w.why,
            "The lease was over by then: a worker was stopped, or could not reach "
            "Redis. Such a verdict is refused: the job has run again or will, unless "
            "it is dead or was removed.");
        (void)hf_offer(w.command, "queue show", q->stats.queue, NULL, "");
        set_page(&w, q);
        add(out, &w);
    }
}

static void judge_paused(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    char span[HF_WORDS_SIZE], jobs[HF_WORDS_SIZE];
    const hf_queue_stats *s = &q->stats;
    if (!s->paused || s->ready == 0)
        return;
    hf_wrong w = begin(HF_WRONG_PAUSED, HF_LEVEL_NOTE, s->paused_ms);
    (void)hf_words_count(s->ready, "job waits", "jobs wait", jobs);
    if (s->paused_ms != 0)
        SAY(w.what, "Queue %s has been paused for %s; %s.", s->queue,
            hf_words_span(f->now_ms - s->paused_ms, span), jobs);
    else /* an older version has not noted since when */
        SAY(w.what, "Queue %s is paused; %s.", s->queue, jobs);
    (void)hf_offer(w.command, "queue resume", s->queue, NULL, "");
    set_page(&w, q);
    add(out, &w);
}

static void judge_doctor(hf_wrongs *out, const hf_facts_queue *q)
{
    char n[HF_WORDS_SIZE];
    if (q->findings == 0)
        return;
    hf_wrong w = begin(HF_WRONG_DOCTOR, HF_LEVEL_BAD, 0);
    SAY(w.what, "The data of queue %s has %s.", q->stats.queue,
        hf_words_count((int64_t)q->findings, "fault", "faults", n));
    SAY(w.why, "%s", q->finding);
    end_why(&w);
    (void)hf_offer(w.command, "doctor", "", q->stats.queue, "");
    SAY(w.page, "redis");
    add(out, &w);
}

static void judge_queue(hf_wrongs *out, const hf_facts *f, const hf_facts_queue *q)
{
    const bool unserved = judge_no_worker(out, f, q);
    (void)judge_no_handler(out, f, q);
    judge_deaths(out, q);
    judge_failing(out, q);
    if (!unserved) /* which explains why it is late */
        judge_late(out, f, q);
    judge_crashes(out, f, q);
    judge_paused(out, f, q);
    judge_doctor(out, q);
}

/* ---- schedules and locks ---- */

static void judge_schedule(hf_wrongs *out, const hf_facts *f, const hf_facts_schedule *s)
{
    char span[HF_WORDS_SIZE];
    const bool late = s->next_ms != 0 && f->now_ms - s->next_ms >= TICK_LATE_MS;
    if (s->paused || s->queue_paused || (!late && s->passed < PASSED))
        return;
    hf_wrong w = begin(HF_WRONG_SCHEDULE, HF_LEVEL_WARN, late ? s->next_ms : s->last_ms);
    if (late) {
        SAY(w.what, "Schedule %s of queue %s is %s late.", s->id, s->queue,
            hf_words_span(f->now_ms - s->next_ms, span));
        SAY(w.why, "%s",
            s->served
                ? "A worker decides on each tick, and none has: see the logs of the "
                  "workers of its queue."
                : "A worker decides on each tick, and no live worker serves its "
                  "queue.");
    } else {
        SAY(w.what,
            "Schedule %s of queue %s has made no job at its last %" PRId64 " ticks.",
            s->id, s->queue, s->passed);
        if (s->skipped > 0 && s->job[0] != '\0')
            SAY(w.why,
                "Ticks were skipped because job %s, of the tick before, had not "
                "ended, or were missed.",
                s->job);
        else
            SAY(w.why, "They were missed: no worker took them in time.");
    }
    (void)hf_offer(w.command, "cron show", s->id, s->queue, "");
    SAY(w.page, "schedules");
    add(out, &w);
}

/* Those that differ, as many as are told and have room. How many. */
static size_t add_zones(hf_wrong *w, const hf_facts *f, const hf_zones *zones)
{
    size_t told = 0;
    for (size_t i = 0; i < f->n_schedules && told < ZONES_TOLD; i++) {
        const hf_facts_schedule *s = &f->schedules[i];
        const size_t len = strlen(w->what), room = sizeof w->what - len;
        if (!hf_zones_differs(zones, s->zone))
            continue;
        if (room < strlen(s->id) + strlen(s->zone) + sizeof ",  in , and others.")
            break;
        (void)snprintf(w->what + len, room, "%s %s in %s", told++ > 0 ? "," : "", s->id,
                       s->zone);
    }
    return told;
}

/* One thing for all of them: several zones are often meant. */
static void judge_zones(hf_wrongs *out, const hf_facts *f)
{
    hf_zones zones = {.n = 0};
    const hf_facts_schedule *first = NULL;
    char n[HF_WORDS_SIZE];
    size_t differ = 0;
    (void)snprintf(zones.host, sizeof zones.host, "%s", f->zone);
    for (size_t i = 0; i < f->n_schedules; i++)
        hf_zones_add(&zones, f->schedules[i].zone);
    for (size_t i = 0; i < f->n_schedules; i++)
        if (hf_zones_differs(&zones, f->schedules[i].zone) && differ++ == 0)
            first = &f->schedules[i];
    if (first == NULL)
        return;
    const char *usual = hf_zones_usual(&zones);
    hf_wrong w = begin(HF_WRONG_ZONES, HF_LEVEL_HINT, 0);
    SAY(w.what,
        "%s %s:", hf_words_count((int64_t)differ, "schedule is", "schedules are", n),
        usual != NULL ? "not in the usual time zone" : "in different time zones");
    const size_t told = add_zones(&w, f, &zones), len = strlen(w.what);
    (void)snprintf(w.what + len, sizeof w.what - len, "%s.",
                   told < differ ? ", and others" : "");
    if (usual != NULL)
        add_why(&w, "The usual one here is %s. ", usual);
    add_why(&w,
            "A schedule's hours are those of its zone: give it another one if that is "
            "not meant.");
    (void)hf_offer(w.command, "cron show", first->id, first->queue, "");
    SAY(w.page, "schedules");
    add(out, &w);
}

static void say_over(hf_wrong *w, const hf_facts *f, const hf_facts_lock *l)
{
    char span[HF_WORDS_SIZE], who[HF_HOLDER_TEXT];
    hf_holder_text(l->holder, who);
    SAY(w->what, "The lease of lock %s has been over for %s.", l->name,
        hf_words_span(f->now_ms - l->ends_ms, span));
    add_why(w, "%s has not renewed it, and no other client has proved that it is over.",
            who[0] != '\0' ? who : "Another client");
    (void)hf_offer(w->command, "lock show", l->name, NULL, "");
}

/* To ask the holder takes nothing from it. */
static void say_waits(hf_wrong *w, const hf_facts *f, const hf_facts_lock *l)
{
    char span[HF_WORDS_SIZE], who[HF_HOLDER_TEXT], n[HF_WORDS_SIZE];
    const bool known = l->held_ms != 0;
    hf_holder_text(known ? l->keeper : l->holder, who);
    SAY(w->what, "A client has waited for lock %s for %s.", l->name,
        hf_words_span(f->now_ms - l->waits_ms, span));
    add_why(w, "%s %s it%s%s", who[0] != '\0' ? who : "Another client",
            known ? "has held" : "holds", known ? " for " : "",
            known ? hf_words_span(f->now_ms - l->held_ms, span) : "");
    if (l->holders > 1)
        add_why(w, ", with %s",
                hf_words_count((int64_t)l->holders - 1, "other hold", "other holds", n));
    (void)hf_offer(w->command, "lock revoke", l->name, NULL, "");
    add_why(w, ": the command asks for it, and takes nothing away.");
}

/* Most waits are short or wanted: a longer one is a note first. */
static void judge_lock(hf_wrongs *out, const hf_facts *f, const hf_facts_lock *l)
{
    char n[HF_WORDS_SIZE];
    const int64_t waits_ms =
        l->waiting > 0 && l->waits_ms > 0 ? f->now_ms - l->waits_ms : 0;
    const bool over = l->lease_ms > 0 && l->ends_ms > 0 &&
                      f->now_ms - l->ends_ms >= LEASES_OVER * l->lease_ms;
    if (!over && waits_ms < WAITS_NOTE_MS)
        return;
    hf_wrong w =
        begin(HF_WRONG_LOCK, over || waits_ms >= WAITS_MS ? HF_LEVEL_WARN : HF_LEVEL_NOTE,
              over ? l->ends_ms : l->waits_ms);
    if (over)
        say_over(&w, f, l);
    else
        say_waits(&w, f, l);
    if (l->waiting > 0)
        add_why(&w, " %s.",
                hf_words_count((int64_t)l->waiting, "client waits", "clients wait", n));
    SAY(w.page, "locks?name=%s", l->name);
    add(out, &w);
}

/* ---- all of it ---- */

void hf_wrong_judge(const hf_facts *f, hf_wrongs *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < f->n_redis; i++) {
        judge_redis(out, f, &f->redis[i]);
        judge_memory(out, &f->redis[i]);
        if (f->redis[i].err == HF_OK)
            judge_disk(out, &f->redis[i]);
    }
    for (size_t i = 0; i < f->n_workers; i++) {
        judge_silent(out, f, &f->workers[i]);
        judge_pools(out, &f->workers[i]);
    }
    judge_versions(out, f);
    for (size_t i = 0; i < f->n_queues; i++)
        judge_queue(out, f, &f->queues[i]);
    for (size_t i = 0; i < f->n_schedules; i++)
        judge_schedule(out, f, &f->schedules[i]);
    judge_zones(out, f);
    for (size_t i = 0; i < f->n_locks; i++)
        judge_lock(out, f, &f->locks[i]);
}

size_t hf_wrong_things(const hf_wrongs *wrongs)
{
    return wrongs->levels[HF_LEVEL_BAD] + wrongs->levels[HF_LEVEL_WARN];
}

size_t hf_wrong_all(const hf_wrongs *wrongs)
{
    return hf_wrong_things(wrongs) + wrongs->levels[HF_LEVEL_NOTE] +
           wrongs->levels[HF_LEVEL_HINT];
}

const char *hf_wrong_verdict_word(const hf_wrongs *wrongs)
{
    return wrongs->levels[HF_LEVEL_BAD] > 0    ? "bad"
           : wrongs->levels[HF_LEVEL_WARN] > 0 ? "warn"
           : wrongs->levels[HF_LEVEL_NOTE] > 0 ? "note"
                                               : "good";
}

const char *hf_wrong_verdict(const hf_wrongs *wrongs, char out[HF_VERDICT_SIZE])
{
    const size_t n = hf_wrong_things(wrongs), notes = wrongs->levels[HF_LEVEL_NOTE];
    if (n > 0)
        (void)snprintf(out, HF_VERDICT_SIZE, "%zu %s wrong", n,
                       n == 1 ? "thing is" : "things are");
    else if (notes > 0)
        (void)snprintf(out, HF_VERDICT_SIZE, "Nothing is wrong; %zu %s to note", notes,
                       notes == 1 ? "thing" : "things");
    else
        (void)snprintf(out, HF_VERDICT_SIZE, "All is well");
    return out;
}
