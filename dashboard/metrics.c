/* metrics.c - see metrics.h. docs/metrics.md has each name. */
#include "dashboard/metrics.h"

#include <string.h>

#include "base/base.h"
#include "base/prometheus.h"
#include "dashboard/overview.h"
#include "seen/figures.h"

enum {
    QUEUES = 500,
    SCHEDULES = 200,
    TEXT_MAX = 8 << 20,
    RUNNING_EACH = 1000, /* jobs of a queue, whose longest run is looked for, */
    RUNNING_ALL = 5000   /* and of all queues */
};

typedef hf_prom_label label;

static uint64_t positive(int64_t n)
{
    return n < 0 ? 0 : (uint64_t)n;
}

static void count(hf_prom *out, const label *labels, int64_t n)
{
    hf_prom_value(out, labels, positive(n), HF_PROM_ONE);
}

static void gauge(hf_prom *out, const char *name, const char *help, int64_t n)
{
    hf_prom_family(out, name, HF_PROM_GAUGE, help);
    count(out, NULL, n);
}

/* ---- queues ---- */

typedef int64_t (*of_queue)(const hf_queue_stats *s);

#define FIGURE(name)                                                                     \
    static int64_t name##_of(const hf_queue_stats *s)                                    \
    {                                                                                    \
        return (int64_t)s->name;                                                         \
    }
FIGURE(ready)
FIGURE(delayed)
FIGURE(running)
FIGURE(dead)
FIGURE(parked)
FIGURE(kept)
FIGURE(paused)
FIGURE(max_running)
FIGURE(workers)

typedef struct family {
    const char *name, *help;
    of_queue value;
} family;

static const family gauges[] = {
    {"holdfast_queue_paused", "1 while the queue is paused.", paused_of},
    {"holdfast_queue_max_running", "The most jobs that may run; 0: no limit.",
     max_running_of},
    {"holdfast_queue_workers", "Live workers of the queue.", workers_of},
};

static const struct {
    const char *state;
    of_queue value;
} states[] = {{"ready", ready_of}, {"delayed", delayed_of}, {"running", running_of},
              {"dead", dead_of},   {"parked", parked_of},   {"kept", kept_of}};

static size_t shown(const hf_facts *f)
{
    return f->n_queues < QUEUES ? f->n_queues : QUEUES;
}

static void put_gauge(hf_prom *out, const hf_facts *f, const family *of)
{
    hf_prom_family(out, of->name, HF_PROM_GAUGE, of->help);
    for (size_t i = 0; i < shown(f); i++) {
        const label labels[HF_PROM_LABELS] = {{"queue", f->queues[i].stats.queue}};
        count(out, labels, of->value(&f->queues[i].stats));
    }
}

static void put_counter(hf_prom *out, const hf_facts *f, const hf_figure *of)
{
    hf_prom_family(out, of->metric, HF_PROM_COUNTER, of->help);
    for (size_t i = 0; i < shown(f); i++) {
        const label labels[HF_PROM_LABELS] = {{"queue", f->queues[i].stats.queue}};
        count(out, labels, hf_figures_of(of, &f->queues[i].stats));
    }
}

static void put_states(hf_prom *out, const hf_facts *f)
{
    hf_prom_family(out, "holdfast_queue_jobs", HF_PROM_GAUGE, "Jobs by state.");
    for (size_t i = 0; i < shown(f); i++)
        for (size_t k = 0; k < HF_COUNT(states); k++) {
            const label labels[HF_PROM_LABELS] = {{"queue", f->queues[i].stats.queue},
                                                  {"state", states[k].state}};
            count(out, labels, states[k].value(&f->queues[i].stats));
        }
}

static void put_oldest(hf_prom *out, const hf_facts *f)
{
    hf_prom_family(out, "holdfast_queue_oldest_ready_seconds", HF_PROM_GAUGE,
                   "How long the oldest ready job has waited.");
    for (size_t i = 0; i < shown(f); i++) {
        const hf_queue_stats *s = &f->queues[i].stats;
        const label labels[HF_PROM_LABELS] = {{"queue", s->queue}};
        const int64_t since = s->oldest_ready_ms;
        hf_prom_value(out, labels, since == 0 ? 0 : positive(f->now_ms - since),
                      HF_PROM_MS);
    }
}

/* ---- the longest run ---- */

typedef struct look {
    int64_t first_ms; /* when a job that runs was claimed */
    size_t n;
} look;

static void on_running(const hf_job_info *info, void *arg)
{
    look *l = arg;
    const int64_t claimed_ms = (int64_t)(info->fence / 1000);
    l->n++;
    if (claimed_ms > 0 && claimed_ms < l->first_ms)
        l->first_ms = claimed_ms;
}

/* A queue that could not be asked has no value, and then the others are not asked. */
static void put_longest(hf_prom *out, const hf_facts *f, hf_reader *r)
{
    size_t left = RUNNING_ALL;
    hf_prom_family(out, "holdfast_queue_longest_run_seconds", HF_PROM_GAUGE,
                   "How long the job has run that runs longest, since its claim.");
    for (size_t i = 0; i < shown(f); i++) {
        const hf_queue_stats *s = &f->queues[i].stats;
        const label labels[HF_PROM_LABELS] = {{"queue", s->queue}};
        const size_t most = left < RUNNING_EACH ? left : RUNNING_EACH;
        look l = {.first_ms = f->now_ms};
        if (s->running > 0 && most == 0)
            continue;
        if (s->running > 0 &&
            hf_reader_note(r, hf_admin_list(r->admin, s->queue, HF_STATE_RUNNING, NULL,
                                            most, on_running, &l, NULL, r->detail)) !=
                HF_OK) {
            left = 0;
            continue;
        }
        left -= l.n;
        hf_prom_value(out, labels, positive(f->now_ms - l.first_ms), HF_PROM_MS);
    }
}

static void put_queues(hf_prom *out, const hf_facts *f, hf_reader *r)
{
    put_states(out, f);
    put_oldest(out, f);
    put_longest(out, f, r);
    for (size_t k = 0; k < HF_COUNT(gauges); k++)
        put_gauge(out, f, &gauges[k]);
    for (const hf_figure *of = hf_figures; of->name != NULL; of++)
        put_counter(out, f, of);
    gauge(out, "holdfast_exporter_queues_cut",
          "Queues that are not shown, because there are more than 500.",
          (int64_t)(f->n_queues - shown(f)));
}

/* ---- workers, locks ---- */

static void put_workers(hf_prom *out, const hf_overview *o)
{
    static const char *const words[] = {"serving", "quiet", "stopping", "silent",
                                        "other"};
    int64_t counts[HF_COUNT(words)] = {0};
    size_t i;
    uint64_t busy, slots = hf_overview_slots(o, &busy);
    json_t *worker;
    json_array_foreach((json_t *)(uintptr_t)hf_overview_worker_objects(o), i, worker)
    {
        const char *state = json_string_value(json_object_get(worker, "state"));
        size_t k = 0;
        while (k + 1 < HF_COUNT(words) && strcmp(words[k], state) != 0)
            k++;
        counts[k]++;
    }
    hf_prom_family(out, "holdfast_workers", HF_PROM_GAUGE, "Workers by state.");
    for (i = 0; i < HF_COUNT(words); i++) {
        const label labels[HF_PROM_LABELS] = {{"worker_state", words[i]}};
        count(out, labels, counts[i]);
    }
    const label is_busy[HF_PROM_LABELS] = {{"state", "busy"}},
                is_free[HF_PROM_LABELS] = {{"state", "free"}};
    hf_prom_family(out, "holdfast_slots", HF_PROM_GAUGE, "Slots of the live workers.");
    count(out, is_busy, (int64_t)busy);
    count(out, is_free, slots > busy ? (int64_t)(slots - busy) : 0);
}

static void put_locks(hf_prom *out, const hf_facts *f)
{
    int64_t held = 0, waiting = 0, longest = 0;
    for (size_t i = 0; i < f->n_locks; i++) {
        const hf_facts_lock *l = &f->locks[i];
        held += l->ends_ms != 0 ? 1 : 0;
        waiting += (int64_t)l->waiting;
        if (l->waits_ms != 0 && f->now_ms - l->waits_ms > longest)
            longest = f->now_ms - l->waits_ms;
    }
    gauge(out, "holdfast_locks_held", "Locks that have a holder.", held);
    gauge(out, "holdfast_locks_waiting", "Waiters of all locks.", waiting);
    hf_prom_family(out, "holdfast_lock_longest_wait_seconds", HF_PROM_GAUGE,
                   "How long the first waiter of a lock has waited at most.");
    hf_prom_value(out, NULL, positive(longest), HF_PROM_MS);
}

/* ---- schedules ---- */

static size_t shown_schedules(const hf_facts *f)
{
    return f->n_schedules < SCHEDULES ? f->n_schedules : SCHEDULES;
}

static int64_t last_of(const hf_facts_schedule *s)
{
    return s->last_ms;
}

static int64_t next_of(const hf_facts_schedule *s)
{
    return s->next_ms;
}

static void put_times(hf_prom *out, const hf_facts *f, const char *name, const char *help,
                      int64_t (*time_of)(const hf_facts_schedule *s))
{
    hf_prom_family(out, name, HF_PROM_GAUGE, help);
    for (size_t i = 0; i < shown_schedules(f); i++) {
        const hf_facts_schedule *s = &f->schedules[i];
        const label labels[HF_PROM_LABELS] = {{"queue", s->queue}, {"id", s->id}};
        if (time_of(s) != 0)
            hf_prom_value(out, labels, positive(time_of(s)), HF_PROM_MS);
    }
}

static void put_schedules(hf_prom *out, const hf_facts *f)
{
    put_times(out, f, "holdfast_schedule_last_tick_timestamp_seconds",
              "The last tick that made a job.", last_of);
    put_times(out, f, "holdfast_schedule_next_tick_timestamp_seconds", "The next tick.",
              next_of);
    hf_prom_family(out, "holdfast_schedule_ticks_total", HF_PROM_COUNTER,
                   "Ticks: accepted made a job, skipped did not because of the last job, "
                   "dropped was missed.");
    for (size_t i = 0; i < shown_schedules(f); i++) {
        const hf_facts_schedule *s = &f->schedules[i];
        const char *const words[] = {"accepted", "skipped", "dropped"};
        const int64_t counts[] = {s->accepted, s->skipped, s->dropped};
        for (size_t k = 0; k < HF_COUNT(words); k++) {
            const label labels[HF_PROM_LABELS] = {
                {"queue", s->queue}, {"id", s->id}, {"outcome", words[k]}};
            count(out, labels, counts[k]);
        }
    }
}

/* ---- the verdict and Redis ---- */

static void put_wrong(hf_prom *out, const hf_wrongs *w)
{
    hf_prom_family(out, "holdfast_wrong", HF_PROM_GAUGE,
                   "Things that are wrong, as `holdfast wrong` tells them.");
    for (int rule = 0; rule < HF_WRONG_COUNT; rule++)
        for (int level = HF_LEVEL_BAD; level < HF_LEVELS; level++) {
            const label labels[HF_PROM_LABELS] = {
                {"rule", hf_wrong_rule_word((hf_wrong_rule)rule)},
                {"level", hf_wrong_level_word((hf_wrong_level)level)}};
            int64_t n = 0;
            for (size_t i = 0; i < w->n; i++)
                n += (int)w->at[i].rule == rule && (int)w->at[i].level == level ? 1 : 0;
            count(out, labels, n);
        }
}

static void put_redis(hf_prom *out, const hf_facts *f, const hf_reader *r)
{
    int64_t used = 0, most = 0;
    uint32_t bounds[HF_POLLER_REQUESTS - 1];
    for (size_t i = 0; i < f->n_redis; i++) {
        used += (int64_t)f->redis[i].info.used_memory;
        most += (int64_t)f->redis[i].info.maxmemory;
    }
    gauge(out, "holdfast_redis_memory_bytes", "Memory of Redis.", used);
    gauge(out, "holdfast_redis_memory_limit_bytes", "maxmemory; 0: no limit.", most);
    for (size_t i = 0; i < HF_COUNT(bounds); i++)
        bounds[i] = UINT32_C(1) << i;
    hf_prom_family(out, "holdfast_redis_request_seconds", HF_PROM_HISTOGRAM,
                   "How long Redis took to answer what a page or a scrape asked.");
    hf_prom_histogram(out, NULL, bounds, r->took, HF_COUNT(bounds), r->took_us,
                      HF_PROM_US);
    hf_prom_family(out, "holdfast_exporter_reads_total", HF_PROM_COUNTER,
                   "Times that Redis was asked for a page or a scrape.");
    count(out, NULL, (int64_t)r->reads);
}

static void put_head(hf_prom *out, const hf_overview *o)
{
    const label version[HF_PROM_LABELS] = {{"version", HOLDFAST_VERSION}};
    gauge(out, "holdfast_up", "1 if Redis answers.", hf_overview_is_away(o) ? 0 : 1);
    hf_prom_family(out, "holdfast_build_info", HF_PROM_GAUGE, "The version of Holdfast.");
    count(out, version, 1);
    put_wrong(out, hf_overview_wrongs(o));
}

/* While Redis is away only that is told: old figures would look like new ones. */
hf_err hf_metrics_get(hf_query *ask, hf_reader *r)
{
    hf_prom out;
    hf_err err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    const hf_overview *o = r->overview;
    const hf_facts *f = hf_overview_facts(o);
    hf_prom_begin(&out, ask->open_metrics, TEXT_MAX);
    put_head(&out, o);
    if (!hf_overview_is_away(o)) {
        put_queues(&out, f, r);
        put_workers(&out, o);
        put_locks(&out, f);
        put_schedules(&out, f);
        put_redis(&out, f, r);
    }
    err = hf_prom_end(&out);
    if (err != HF_OK) {
        hf_buf_done(&out.buf);
        return err;
    }
    (void)hf_ask_bytes(ask, out.buf.data, out.buf.len,
                       ask->open_metrics ? HF_PROM_OPEN : HF_PROM_TEXT, "");
    ask->file[0] = '\0';
    return HF_OK;
}
