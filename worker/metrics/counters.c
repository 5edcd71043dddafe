/* counters.c - see counters.h. */
#include "worker/metrics/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "holdfast/job.h"

typedef _Atomic uint64_t number; /* one thread at a time writes it */

enum { MARGIN_MS = 60000, POOL_NAME = 80 };

static const uint32_t bounds_ms[] = {1,     5,     10,     25,     50,   100,
                                     250,   500,   1000,   2500,   5000, 10000,
                                     30000, 60000, 300000, 1800000};
enum { BOUNDS = HF_COUNT(bounds_ms) };

static const char *const outcomes[] = {"done",     "retry",     "dead",
                                       "released", "cancelled", "lost",
                                       "crashed",  "put_back",  "no_handler"};

static const char *const reasons[] = {"died",    "start_failed", "left",
                                      "idle",    "max_age",      "max_jobs",
                                      "max_rss", "reload",       "joined"};

typedef struct histogram {
    number counts[BOUNDS + 1], sum_ns;
} histogram;

typedef struct type_counters {
    char type[HF_ID_SIZE];
    uint64_t hash;
    histogram runs, waits;
    number outcomes[HF_COUNT(outcomes)];
} type_counters;

struct hf_queue_counters {
    hf_counters *all;
    char name[HF_ID_SIZE];
    size_t last; /* the type that was found last */
    _Atomic size_t n;
    type_counters *types[HF_COUNTERS_TYPES + 1]; /* owned */
};

typedef struct pool_counters {
    char name[POOL_NAME];
    number ended[HF_COUNT(reasons)];
} pool_counters;

typedef struct pool_now {
    char name[POOL_NAME];
    hf_pool_gauges gauges;
} pool_now;

/* The least of two spans of a minute. */
typedef struct margin {
    number since_ns, least_ns, last_ns; /* of this span, and of the one before it */
} margin;

struct hf_counters {
    size_t n_types; /* of all queues */
    _Atomic size_t n_queues, n_pools;
    hf_queue_counters *queues[HF_COUNTERS_QUEUES + 1]; /* owned */
    pool_counters *pools[HF_COUNTERS_POOLS + 1];       /* owned; as they were seen */
    number claims, dropped;
    histogram requests;
    margin margin;
    pthread_mutex_t lock; /* of what follows. No thread waits under it */
    size_t n_now;
    pool_now now[HF_COUNTERS_POOLS];
};

/* ---- counting ---- */

static uint64_t get(const number *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

static void set(number *n, uint64_t to)
{
    atomic_store_explicit(n, to, memory_order_relaxed);
}

static void add(number *n, uint64_t by)
{
    set(n, get(n) + by); /* without a lock on the bus */
}

static void observe(histogram *h, uint64_t ns)
{
    size_t i = 0;
    while (i < BOUNDS && ns > bounds_ms[i] * HF_MS_NS)
        i++;
    add(&h->counts[i], 1);
    add(&h->sum_ns, ns);
}

static size_t word_of(const char *const *words, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && strcmp(words[i], word) != 0)
        i++;
    HF_ASSERT(i < n);
    return i;
}

/* ---- jobs ---- */

/* NULL: out of memory. */
static hf_queue_counters *add_queue(hf_counters *c, const char *name)
{
    hf_queue_counters *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    const size_t n = atomic_load(&c->n_queues);
    q->all = c;
    (void)snprintf(q->name, sizeof q->name, "%s", name);
    c->queues[n] = q;
    atomic_store(&c->n_queues, n + 1);
    return q;
}

hf_queue_counters *hf_counters_queue(hf_counters *c, const char *name)
{
    const size_t n = atomic_load(&c->n_queues);
    for (size_t i = 0; i < n; i++)
        if (strcmp(c->queues[i]->name, name) == 0)
            return c->queues[i];
    if (n >= HF_COUNTERS_QUEUES && strcmp(name, HF_COUNTERS_OTHER) != 0)
        return hf_counters_queue(c, HF_COUNTERS_OTHER);
    return add_queue(c, name);
}

static type_counters *add_type(hf_queue_counters *q, const char *type, uint64_t hash)
{
    type_counters *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    const size_t n = atomic_load(&q->n);
    (void)snprintf(t->type, sizeof t->type, "%s", type);
    t->hash = hash;
    q->types[n] = t;
    q->last = n;
    q->all->n_types++;
    atomic_store(&q->n, n + 1);
    return t;
}

/* NULL: out of memory. */
static type_counters *type_of(hf_queue_counters *q, const char *type)
{
    const size_t n = atomic_load_explicit(&q->n, memory_order_relaxed);
    if (n > 0 && strcmp(q->types[q->last]->type, type) == 0)
        return q->types[q->last];
    const uint64_t hash = hf_hash_text(HF_HASH_START, type);
    for (size_t i = 0; i < n; i++)
        if (q->types[i]->hash == hash && strcmp(q->types[i]->type, type) == 0) {
            q->last = i;
            return q->types[i];
        }
    const bool full = n >= HF_COUNTERS_TYPES || q->all->n_types >= HF_COUNTERS_ALL_TYPES;
    if (full && strcmp(type, HF_COUNTERS_OTHER) != 0)
        return type_of(q, HF_COUNTERS_OTHER);
    return add_type(q, type, hash);
}

void hf_counters_outcome(hf_queue_counters *q, const char *type, const char *outcome)
{
    type_counters *t =
        q == NULL ? NULL : type_of(q, type == NULL ? HF_COUNTERS_OTHER : type);
    if (t != NULL)
        add(&t->outcomes[word_of(outcomes, HF_COUNT(outcomes), outcome)], 1);
}

void hf_counters_attempt(hf_queue_counters *q, const char *type, uint64_t wait_ns,
                         uint64_t run_ns)
{
    type_counters *t = q == NULL ? NULL : type_of(q, type);
    if (t == NULL)
        return;
    observe(&t->waits, wait_ns);
    observe(&t->runs, run_ns);
}

/* ---- the worker ---- */

void hf_counters_claim(hf_counters *c)
{
    add(&c->claims, 1);
}

void hf_counters_request(hf_counters *c, uint64_t ns)
{
    observe(&c->requests, ns);
}

void hf_counters_dropped(hf_counters *c, uint64_t attempts)
{
    add(&c->dropped, attempts);
}

void hf_counters_margin(hf_counters *c, uint64_t ns, uint64_t now_ns)
{
    margin *m = &c->margin;
    const uint64_t since = get(&m->since_ns);
    if (since == 0 || now_ns - since > MARGIN_MS * HF_MS_NS) {
        set(&m->last_ns, since == 0 ? ns : get(&m->least_ns));
        set(&m->least_ns, ns);
        set(&m->since_ns, now_ns);
    } else if (ns < get(&m->least_ns)) {
        set(&m->least_ns, ns);
    }
}

/* ---- pools ---- */

void hf_counters_pools(hf_counters *c, const hf_pool_gauges *pools, size_t n)
{
    HF_ASSERT(n <= HF_COUNTERS_POOLS);
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        c->now[i].gauges = pools[i];
        (void)snprintf(c->now[i].name, POOL_NAME, "%s", pools[i].name);
    }
    c->n_now = n;
    pthread_mutex_unlock(&c->lock);
}

size_t hf_counters_pools_up(hf_counters *c, size_t *all)
{
    size_t up = 0;
    pthread_mutex_lock(&c->lock);
    *all = c->n_now;
    for (size_t i = 0; i < c->n_now; i++)
        up += c->now[i].gauges.up ? 1 : 0;
    pthread_mutex_unlock(&c->lock);
    return up;
}

/* NULL: out of memory. */
static pool_counters *pool_of(hf_counters *c, const char *name)
{
    const size_t n = atomic_load(&c->n_pools);
    for (size_t i = 0; i < n; i++)
        if (strcmp(c->pools[i]->name, name) == 0)
            return c->pools[i];
    if (n >= HF_COUNTERS_POOLS && strcmp(name, HF_COUNTERS_OTHER) != 0)
        return pool_of(c, HF_COUNTERS_OTHER);
    pool_counters *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    c->pools[n] = p;
    atomic_store(&c->n_pools, n + 1);
    return p;
}

void hf_counters_process_ended(hf_counters *c, const char *pool, const char *reason)
{
    pool_counters *p = pool_of(c, pool);
    if (p != NULL)
        add(&p->ended[word_of(reasons, HF_COUNT(reasons), reason)], 1);
}

/* ---- the text ---- */

static void write_histogram(hf_prom *out, const hf_prom_label labels[HF_PROM_LABELS],
                            const histogram *h)
{
    uint64_t counts[BOUNDS + 1];
    for (size_t i = 0; i <= BOUNDS; i++)
        counts[i] = get(&h->counts[i]);
    hf_prom_histogram(out, labels, bounds_ms, counts, BOUNDS, get(&h->sum_ns),
                      HF_PROM_NS);
}

static void write_runs(hf_prom *out, const hf_prom_label *labels, const type_counters *t)
{
    write_histogram(out, labels, &t->runs);
}

static void write_waits(hf_prom *out, const hf_prom_label *labels, const type_counters *t)
{
    write_histogram(out, labels, &t->waits);
}

static void write_outcomes(hf_prom *out, const hf_prom_label *labels,
                           const type_counters *t)
{
    for (size_t i = 0; i < HF_COUNT(outcomes); i++) {
        const hf_prom_label with[HF_PROM_LABELS] = {
            labels[0], labels[1], {"outcome", outcomes[i]}};
        hf_prom_value(out, with, get(&t->outcomes[i]), HF_PROM_ONE);
    }
}

static void each_type(const hf_counters *c, hf_prom *out,
                      void (*write)(hf_prom *, const hf_prom_label *,
                                    const type_counters *))
{
    const size_t n = atomic_load(&c->n_queues);
    for (size_t i = 0; i < n; i++) {
        const hf_queue_counters *q = c->queues[i];
        const size_t n_types = atomic_load(&q->n);
        for (size_t k = 0; k < n_types; k++) {
            const hf_prom_label labels[HF_PROM_LABELS] = {{"queue", q->name},
                                                          {"type", q->types[k]->type}};
            write(out, labels, q->types[k]);
        }
    }
}

static void write_jobs(const hf_counters *c, hf_prom *out)
{
    hf_prom_family(out, "holdfast_job_run_seconds", HF_PROM_HISTOGRAM,
                   "How long attempts ran that were done or failed.");
    each_type(c, out, write_runs);
    hf_prom_family(out, "holdfast_job_wait_seconds", HF_PROM_HISTOGRAM,
                   "How long they had waited, from when they were due to their claim.");
    each_type(c, out, write_waits);
    hf_prom_family(out, "holdfast_jobs_ended_total", HF_PROM_COUNTER,
                   "Ends of runs, by the outcome that the log has.");
    each_type(c, out, write_outcomes);
}

static void write_margin(const hf_counters *c, hf_prom *out)
{
    const uint64_t least = get(&c->margin.least_ns), last = get(&c->margin.last_ns);
    hf_prom_family(out, "holdfast_worker_renewal_margin_seconds", HF_PROM_GAUGE,
                   "The least time that a lease had left when it was renewed, in the "
                   "last one to two minutes with renewals.");
    if (get(&c->margin.since_ns) != 0)
        hf_prom_value(out, NULL, least < last ? least : last, HF_PROM_NS);
}

static void write_worker(const hf_counters *c, hf_prom *out)
{
    hf_prom_family(out, "holdfast_worker_claims_total", HF_PROM_COUNTER,
                   "Claims that Redis has answered.");
    hf_prom_value(out, NULL, get(&c->claims), HF_PROM_ONE);
    hf_prom_family(out, "holdfast_worker_redis_request_seconds", HF_PROM_HISTOGRAM,
                   "How long Redis took to answer claims, checks and verdicts.");
    write_histogram(out, NULL, &c->requests);
    write_margin(c, out);
    hf_prom_family(out, "holdfast_worker_history_dropped_total", HF_PROM_COUNTER,
                   "Attempts that the history lacks, because Redis did not take it.");
    hf_prom_value(out, NULL, get(&c->dropped), HF_PROM_ONE);
}

typedef struct pool_family {
    const char *name, *help;
    uint64_t (*of)(const hf_pool_gauges *gauges);
} pool_family;

static uint64_t up_of(const hf_pool_gauges *g)
{
    return g->up ? 1 : 0;
}

static uint64_t processes_of(const hf_pool_gauges *g)
{
    return g->processes;
}

static uint64_t slots_of(const hf_pool_gauges *g)
{
    return g->slots;
}

static uint64_t running_of(const hf_pool_gauges *g)
{
    return g->running;
}

static uint64_t memory_of(const hf_pool_gauges *g)
{
    return g->memory;
}

static const pool_family pool_families[] = {
    {"holdfast_pool_up", "1 if the pool takes jobs, 0 while it starts or is down.",
     up_of},
    {"holdfast_pool_processes", "Processes of the pool that take jobs.", processes_of},
    {"holdfast_pool_slots", "Jobs that these can run at a time.", slots_of},
    {"holdfast_pool_running", "Jobs that run in the pool.", running_of},
    {"holdfast_pool_memory_bytes", "Resident memory of all processes of the pool.",
     memory_of},
};

/* Of pools with one name the values are added: a series may not come twice. */
static void write_gauges(hf_prom *out, const pool_family *f, const pool_now *now,
                         size_t n)
{
    hf_prom_family(out, f->name, HF_PROM_GAUGE, f->help);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        bool first = true;
        for (size_t k = 0; k < n; k++) {
            const bool same = strcmp(now[k].name, now[i].name) == 0;
            first = first && !(same && k < i);
            sum += same ? f->of(&now[k].gauges) : 0;
        }
        const hf_prom_label labels[HF_PROM_LABELS] = {{"pool", now[i].name}};
        if (first)
            hf_prom_value(out, labels, sum, HF_PROM_ONE);
    }
}

static void write_ends(const hf_counters *c, hf_prom *out)
{
    const size_t n = atomic_load(&c->n_pools);
    hf_prom_family(out, "holdfast_pool_process_ends_total", HF_PROM_COUNTER,
                   "Processes of the pool that have ended, by reason.");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < HF_COUNT(reasons); k++) {
            const hf_prom_label labels[HF_PROM_LABELS] = {{"pool", c->pools[i]->name},
                                                          {"reason", reasons[k]}};
            hf_prom_value(out, labels, get(&c->pools[i]->ended[k]), HF_PROM_ONE);
        }
}

static void write_pools(hf_counters *c, hf_prom *out)
{
    pool_now *now = malloc(sizeof c->now);
    if (now == NULL) {
        out->buf.err = HF_NOMEM;
        return;
    }
    pthread_mutex_lock(&c->lock);
    const size_t n = c->n_now;
    memcpy(now, c->now, n * sizeof *now);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; n > 0 && i < HF_COUNT(pool_families); i++)
        write_gauges(out, &pool_families[i], now, n);
    free(now);
    write_ends(c, out);
}

void hf_counters_write(hf_counters *c, hf_prom *out)
{
    write_worker(c, out);
    write_pools(c, out);
    write_jobs(c, out);
}

/* ---- for life ---- */

hf_err hf_counters_new(hf_counters **out)
{
    hf_counters *c = calloc(1, sizeof *c);
    if (c == NULL)
        return HF_NOMEM;
    (void)pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return HF_OK;
}

void hf_counters_free(hf_counters *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < atomic_load(&c->n_queues); i++) {
        hf_queue_counters *q = c->queues[i];
        for (size_t k = 0; k < atomic_load(&q->n); k++)
            free(q->types[k]);
        free(q);
    }
    for (size_t i = 0; i < atomic_load(&c->n_pools); i++)
        free(c->pools[i]);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
