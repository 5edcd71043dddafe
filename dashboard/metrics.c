/* metrics.c - see metrics.h. */
#include "dashboard/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "dashboard/overview.h"
#include "holdfast/version.h"

enum { QUEUES = 500, SCHEDULES = 200, TEXT_MAX = 4 << 20 };

static void begin(hf_buf *out, const char *name, const char *type, const char *help)
{
    hf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(hf_buf *out, const char *name, const char *type, const char *help,
                double value)
{
    begin(out, name, type, help);
    hf_buf_printf(out, "%s %.17g\n", name, value);
}

/* ---- queues: their names have no characters that need an escape ---- */

typedef double (*of_queue)(const hf_facts *f, const hf_facts_queue *q);

static double oldest(const hf_facts *f, const hf_facts_queue *q)
{
    const int64_t since = q->stats.oldest_ready_ms;
    return since == 0 || since > f->now_ms ? 0 : (double)(f->now_ms - since) / 1000;
}

#define FIGURE(name)                                                                     \
    static double name##_of(const hf_facts *f, const hf_facts_queue *q)                  \
    {                                                                                    \
        (void)f;                                                                         \
        return (double)q->stats.name;                                                    \
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
FIGURE(enqueued)
FIGURE(done)
FIGURE(failed)
FIGURE(crashed)
FIGURE(lost)
FIGURE(unsure)
FIGURE(cancelled)
FIGURE(deleted)
FIGURE(expired)

static const struct {
    const char *name, *help;
    of_queue value;
} gauges[] = {
    {"holdfast_queue_oldest_ready_seconds", "How long the oldest ready job has waited.",
     oldest},
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

static const struct {
    const char *name, *help;
    of_queue value;
} counters[] = {
    {"enqueued", "Jobs that were accepted.", enqueued_of},
    {"done", "Jobs that were done.", done_of},
    {"failed", "Attempts that failed.", failed_of},
    {"crashed", "Runs that ended because their worker or process died.", crashed_of},
    {"lost", "Verdicts that came after the lease.", lost_of},
    {"unsure", "Verdicts whose answer was lost.", unsure_of},
    {"cancelled", "Jobs that were cancelled.", cancelled_of},
    {"deleted", "Jobs that were deleted.", deleted_of},
    {"expired", "Jobs that did not start in time.", expired_of},
};

static void put_queues(hf_buf *out, const hf_facts *f)
{
    const size_t n = f->n_queues < QUEUES ? f->n_queues : QUEUES;
    begin(out, "holdfast_queue_jobs", "gauge", "Jobs by state.");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < HF_COUNT(states); k++)
            hf_buf_printf(out, "holdfast_queue_jobs{queue=\"%s\",state=\"%s\"} %.17g\n",
                          f->queues[i].stats.queue, states[k].state,
                          states[k].value(f, &f->queues[i]));
    for (size_t k = 0; k < HF_COUNT(gauges); k++) {
        begin(out, gauges[k].name, "gauge", gauges[k].help);
        for (size_t i = 0; i < n; i++)
            hf_buf_printf(out, "%s{queue=\"%s\"} %.17g\n", gauges[k].name,
                          f->queues[i].stats.queue, gauges[k].value(f, &f->queues[i]));
    }
    for (size_t k = 0; k < HF_COUNT(counters); k++) {
        hf_buf_printf(out,
                      "# HELP holdfast_jobs_%s_total %s\n# TYPE holdfast_jobs_%s_total "
                      "counter\n",
                      counters[k].name, counters[k].help, counters[k].name);
        for (size_t i = 0; i < n; i++)
            hf_buf_printf(out, "holdfast_jobs_%s_total{queue=\"%s\"} %.17g\n",
                          counters[k].name, f->queues[i].stats.queue,
                          counters[k].value(f, &f->queues[i]));
    }
    one(out, "holdfast_exporter_queues_cut", "gauge",
        "Queues that are not shown, because there are more than 500.",
        (double)(f->n_queues - n));
}

/* ---- workers, schedules, locks ---- */

static void put_workers(hf_buf *out, const hf_overview *o)
{
    static const char *const words[] = {"serving", "quiet", "stopping", "silent",
                                        "other"};
    size_t counts[HF_COUNT(words)] = {0}, i;
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
    begin(out, "holdfast_workers", "gauge", "Workers by state.");
    for (i = 0; i < HF_COUNT(words); i++)
        hf_buf_printf(out, "holdfast_workers{worker_state=\"%s\"} %zu\n", words[i],
                      counts[i]);
    begin(out, "holdfast_slots", "gauge", "Slots of the live workers.");
    hf_buf_printf(out,
                  "holdfast_slots{state=\"busy\"} %" PRIu64
                  "\nholdfast_slots{state=\"free\"} %" PRIu64 "\n",
                  busy, slots > busy ? slots - busy : 0);
}

static void put_locks(hf_buf *out, const hf_facts *f)
{
    size_t held = 0, waiting = 0;
    int64_t longest = 0;
    for (size_t i = 0; i < f->n_locks; i++) {
        const hf_facts_lock *l = &f->locks[i];
        held += l->ends_ms != 0 ? 1 : 0;
        waiting += l->waiting;
        if (l->waits_ms != 0 && f->now_ms - l->waits_ms > longest)
            longest = f->now_ms - l->waits_ms;
    }
    one(out, "holdfast_locks_held", "gauge", "Locks that have a holder.", (double)held);
    one(out, "holdfast_locks_waiting", "gauge", "Waiters of all locks.", (double)waiting);
    one(out, "holdfast_lock_longest_wait_seconds", "gauge",
        "How long the first waiter of a lock has waited at most.",
        (double)longest / 1000);
}

static void put_schedules(hf_buf *out, const hf_facts *f)
{
    const size_t n = f->n_schedules < SCHEDULES ? f->n_schedules : SCHEDULES;
    begin(out, "holdfast_schedule_last_tick_timestamp_seconds", "gauge",
          "The last tick that made a job.");
    for (size_t i = 0; i < n; i++)
        if (f->schedules[i].last_ms != 0)
            hf_buf_printf(out,
                          "holdfast_schedule_last_tick_timestamp_seconds{queue=\"%s\",id="
                          "\"%s\"} %.3f\n",
                          f->schedules[i].queue, f->schedules[i].id,
                          (double)f->schedules[i].last_ms / 1000);
    begin(out, "holdfast_schedule_next_tick_timestamp_seconds", "gauge",
          "The next tick.");
    for (size_t i = 0; i < n; i++)
        if (f->schedules[i].next_ms != 0)
            hf_buf_printf(out,
                          "holdfast_schedule_next_tick_timestamp_seconds{queue=\"%s\",id="
                          "\"%s\"} %.3f\n",
                          f->schedules[i].queue, f->schedules[i].id,
                          (double)f->schedules[i].next_ms / 1000);
}

/* ---- the verdict and Redis ---- */

static void put_wrong(hf_buf *out, const hf_wrongs *w)
{
    begin(out, "holdfast_wrong", "gauge", "Things that are wrong, as `holdfast wrong`.");
    for (int rule = 0; rule < HF_WRONG_COUNT; rule++)
        for (int level = HF_LEVEL_BAD; level <= HF_LEVEL_NOTE; level++) {
            size_t n = 0;
            for (size_t i = 0; i < w->n; i++)
                n += (int)w->at[i].rule == rule && (int)w->at[i].level == level ? 1 : 0;
            hf_buf_printf(out, "holdfast_wrong{rule=\"%s\",level=\"%s\"} %zu\n",
                          hf_wrong_rule_word((hf_wrong_rule)rule),
                          hf_wrong_level_word((hf_wrong_level)level), n);
        }
}

static void put_redis(hf_buf *out, const hf_facts *f, const hf_reader *r)
{
    double used = 0, most = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < f->n_redis; i++) {
        used += (double)f->redis[i].info.used_memory;
        most += (double)f->redis[i].info.maxmemory;
    }
    one(out, "holdfast_redis_memory_bytes", "gauge", "Memory of Redis.", used);
    one(out, "holdfast_redis_memory_limit_bytes", "gauge", "maxmemory; 0: no limit.",
        most);
    begin(out, "holdfast_redis_request_seconds", "histogram",
          "How long Redis took to answer what a page or a scrape asked.");
    for (size_t i = 0; i + 1 < HF_POLLER_REQUESTS; i++) {
        sum += r->took[i];
        hf_buf_printf(out,
                      "holdfast_redis_request_seconds_bucket{le=\"%.3f\"} %" PRIu64 "\n",
                      (double)(1 << i) / 1000, sum);
    }
    hf_buf_printf(out,
                  "holdfast_redis_request_seconds_bucket{le=\"+Inf\"} %" PRIu64
                  "\nholdfast_redis_request_seconds_sum %.6f\n"
                  "holdfast_redis_request_seconds_count %" PRIu64 "\n",
                  r->reads, (double)r->took_us / 1e6, r->reads);
    one(out, "holdfast_exporter_reads_total", "counter",
        "Times that Redis was asked for a page or a scrape.", (double)r->reads);
}

/* While Redis is away only that is told: old figures would look like new ones. */
hf_err hf_metrics_get(hf_query *ask, hf_reader *r)
{
    hf_buf out;
    hf_err err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    const hf_overview *o = r->overview;
    const bool away = hf_overview_is_away(o);
    hf_buf_init(&out, TEXT_MAX);
    one(&out, "holdfast_up", "gauge", "1 if Redis answers.", away ? 0 : 1);
    begin(&out, "holdfast_build_info", "gauge", "The version of Holdfast.");
    hf_buf_printf(&out, "holdfast_build_info{version=\"%s\"} 1\n", HOLDFAST_VERSION);
    put_wrong(&out, hf_overview_wrongs(o));
    if (!away) {
        const hf_facts *f = hf_overview_facts(o);
        put_queues(&out, f);
        put_workers(&out, o);
        put_locks(&out, f);
        put_schedules(&out, f);
        put_redis(&out, f, r);
    }
    err = hf_buf_err(&out);
    if (err != HF_OK) {
        hf_buf_done(&out);
        return err;
    }
    (void)hf_ask_bytes(ask, out.data, out.len, "text/plain; version=0.0.4; charset=utf-8",
                       "");
    ask->file[0] = '\0';
    return HF_OK;
}
