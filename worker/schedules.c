/* schedules.c - see schedules.h.
 *
 * Redis cannot reckon with time zones. So the next tick of each schedule is in Redis, and
 * feeds the wake rule; the claim of a worker that is woken for it tells that ticks are
 * due. The worker asks which (cron_due), reckons which of them lead to jobs and when the
 * next one is, and sends that (cron_tick). The script compares the next tick that the
 * worker knew with the one that is there: of several workers one succeeds. What the
 * others sent changes nothing, and neither does a request that is sent twice. If the
 * worker dies in between, another one is woken a second later. */
#include "worker/schedules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "cron/ticks.h"
#include "queue/schedule.h"
#include "queue/shards.h"
#include "worker/node/site.h"
#include "worker/plan.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/runner/runner.h"
#include "worker/worker.h"

enum {
    JOBS_MAX = 250,      /* of one request, */
    BYTES_MAX = 8 << 20, /* and their records together, but of one job at least */
    KEEP_MS = 60000,     /* how often Redis is told that the file names a schedule */
    NO_ZONE_MS = 60000   /* before a schedule whose zone is missing is looked at again */
};

typedef struct zone {
    struct zone *next;
    hf_zone *zone;
    char name[HF_ZONE_NAME_MAX + 1];
    bool logged; /* that it cannot be read */
} zone;

/* The ticks and states that the answer to one request leads to. */
typedef struct round {
    hf_cron_tick ticks[HF_DUE_SCHEDULES];
    hf_schedule_state states[HF_DUE_SCHEDULES]; /* their gen is sent */
    hf_ticks_due due;
    size_t n, n_jobs;
    int64_t bytes; /* of the records of its jobs */
    char ids[JOBS_MAX][HF_NEW_ID_SIZE];
    const char *id_list[JOBS_MAX];
    int64_t ticks_ms[JOBS_MAX], dues_ms[JOBS_MAX];
} round;

struct hf_schedules {
    hf_plan_schedule *list; /* of the file; owned */
    size_t n;
    hf_plan_schedule *offered; /* of programs; owned; none of them is in `list` */
    size_t n_offered;
    hf_id_maker ids;     /* of jobs */
    zone *zones;         /* owned */
    uint64_t refused_ns; /* when it was logged last that Redis refuses ticks */
    round round;
};

hf_err hf_schedules_new(hf_worker *w)
{
    w->schedules = calloc(1, sizeof *w->schedules);
    return w->schedules == NULL ? HF_NOMEM : hf_id_maker_init(&w->schedules->ids);
}

void hf_schedules_free(hf_worker *w)
{
    struct hf_schedules *s = w->schedules;
    if (s == NULL)
        return;
    hf_plan_schedules_free(s->list, s->n);
    hf_plan_schedules_free(s->offered, s->n_offered);
    while (s->zones != NULL) {
        zone *z = s->zones;
        s->zones = z->next;
        hf_zone_free(z->zone);
        free(z);
    }
    free(s);
    w->schedules = NULL;
}

/* ---- zones ---- */

static void report_zone(hf_worker *w, zone *z, const char *why)
{
    const hf_log_field fields[] = {{.key = "zone", .text = z->name},
                                   {.key = "error", .text = why}};
    if (!z->logged)
        hf_report(w, HF_LOG_ERROR, "a time zone cannot be read: its schedules wait",
                  fields, HF_COUNT(fields));
    z->logged = true;
}

static zone *find_zone(struct hf_schedules *s, const char *name)
{
    zone *z = s->zones;
    while (z != NULL && strcmp(z->name, name) != 0)
        z = z->next;
    if (z != NULL || (z = calloc(1, sizeof *z)) == NULL)
        return z;
    snprintf(z->name, sizeof z->name, "%s", name);
    z->next = s->zones;
    s->zones = z;
    return z;
}

/* The system's zones may be updated while the worker runs. A new file that cannot be read
 * changes nothing. False: there is no such zone. */
static bool get_zone(hf_worker *w, const char *name, const hf_zone **out)
{
    char why[HF_DETAIL_SIZE] = "";
    hf_zone *fresh = NULL;
    *out = NULL;
    if (name[0] == '\0')
        return true; /* UTC */
    zone *z = find_zone(w->schedules, name);
    if (z == NULL)
        return false;
    if (z->zone == NULL || !hf_zone_is_current(z->zone, name)) {
        if (hf_zone_open(&fresh, name, why) == HF_OK) {
            hf_zone_free(z->zone);
            z->zone = fresh;
            z->logged = false;
        } else {
            report_zone(w, z, why);
        }
    }
    *out = z->zone;
    return z->zone != NULL;
}

/* ---- the schedules that the worker names ---- */

static size_t named(const struct hf_schedules *s)
{
    return s->n + s->n_offered;
}

static const hf_plan_schedule *at(const struct hf_schedules *s, size_t i)
{
    return i < s->n ? &s->list[i] : &s->offered[i - s->n];
}

static void put_again(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_count(w); i++) {
        hf_served *served = hf_queues_at(w, i);
        served->registration.schedules_put = served->registration.done = false;
    }
}

void hf_schedules_take(hf_worker *w, hf_plan *plan)
{
    struct hf_schedules *s = w->schedules;
    if (s->n > 0 || plan->n_schedules > 0)
        put_again(w);
    hf_plan_schedules_free(s->list, s->n);
    s->list = plan->schedules;
    s->n = plan->n_schedules;
    plan->schedules = NULL;
    plan->n_schedules = 0;
    w->offered_due = true;
}

static const hf_plan_schedule *find(const hf_plan_schedule *list, size_t n,
                                    const hf_plan_schedule *like)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].id, like->id) == 0 && strcmp(list[i].queue, like->queue) == 0)
            return &list[i];
    return NULL;
}

static bool says_the_same(const hf_plan_schedule *a, const hf_plan_schedule *b)
{
    return a->rev == b->rev && a->value.len == b->value.len &&
           memcmp(a->value.data, b->value.data, a->value.len) == 0;
}

void hf_schedules_compare(const hf_worker *w, const hf_plan *plan,
                          void (*differs)(const char *id, const char *now, void *arg),
                          void *arg)
{
    const struct hf_schedules *s = w->schedules;
    for (size_t i = 0; i < s->n; i++)
        if (find(plan->schedules, plan->n_schedules, &s->list[i]) == NULL)
            differs(s->list[i].id, "removed", arg);
    for (size_t i = 0; i < plan->n_schedules; i++) {
        const hf_plan_schedule *now = &plan->schedules[i];
        const hf_plan_schedule *was = find(s->list, s->n, now);
        if (was == NULL)
            differs(now->id, "added", arg);
        else if (!says_the_same(was, now))
            differs(now->id, "changed", arg);
    }
}

/* ---- those of programs ---- */

static void report_offered(hf_worker *w, hf_log_level level, const char *message,
                           const hf_plan_schedule *schedule)
{
    const hf_log_field fields[] = {{.key = "schedule", .text = schedule->id},
                                   {.key = "queue", .text = schedule->queue}};
    hf_report(w, level, message, fields, HF_COUNT(fields));
}

/* Adds one behind the n that are there, unless it is named already. */
static hf_err add_offered(hf_worker *w, hf_plan_schedule *list, size_t *n,
                          const hf_schedule *schedule)
{
    const struct hf_schedules *s = w->schedules;
    hf_plan_schedule *one = &list[*n];
    hf_err err = hf_plan_schedule_of(one, schedule);
    bool in_file = err == HF_OK && find(s->list, s->n, one) != NULL;
    bool twice = err == HF_OK && !in_file && find(list, *n, one) != NULL;
    if (twice)
        report_offered(w, HF_LOG_WARN,
                       "several programs name a schedule: that of the first one counts",
                       one);
    if (err == HF_OK && !in_file && !twice)
        (*n)++;
    else
        hf_buf_done(&one->value);
    return err;
}

static hf_err list_offered(hf_worker *w, const hf_ready *const *offers, size_t n_offers,
                           hf_plan_schedule **out, size_t *n)
{
    const struct hf_schedules *s = w->schedules;
    size_t room = HF_SCHEDULES_MAX - s->n;
    hf_plan_schedule *list = calloc(room + 1, sizeof *list);
    hf_err err = list == NULL ? HF_NOMEM : HF_OK;
    *n = 0;
    for (size_t i = 0; i < n_offers; i++)
        for (size_t k = 0; err == HF_OK && k < offers[i]->n_schedules; k++)
            err = *n > room ? HF_TOOBIG
                            : add_offered(w, list, n, &offers[i]->schedules[k].schedule);
    if (err == HF_OK && *n > room)
        err = HF_TOOBIG;
    if (err == HF_OK)
        *out = list;
    else
        hf_plan_schedules_free(list, *n);
    return err;
}

static bool are_the_same(const struct hf_schedules *s, const hf_plan_schedule *list,
                         size_t n)
{
    if (n != s->n_offered)
        return false;
    for (size_t i = 0; i < n; i++) {
        const hf_plan_schedule *was = find(s->offered, n, &list[i]);
        if (was == NULL || !says_the_same(was, &list[i]))
            return false;
    }
    return true;
}

bool hf_schedules_offer(hf_worker *w, const hf_ready *const *offers, size_t n_offers)
{
    struct hf_schedules *s = w->schedules;
    hf_plan_schedule *list = NULL;
    size_t n = 0;
    hf_err err = list_offered(w, offers, n_offers, &list, &n);
    if (err != HF_OK) {
        hf_report_text(w, HF_LOG_ERROR,
                       "the schedules of programs are not taken: those of before stay",
                       "error",
                       err == HF_TOOBIG ? "expected at most 1000 with those of the file"
                                        : hf_err_text(err));
        return false;
    }
    bool same = are_the_same(s, list, n);
    hf_plan_schedules_free(same ? list : s->offered, same ? n : s->n_offered);
    if (same)
        return false;
    s->offered = list;
    s->n_offered = n;
    put_again(w);
    for (size_t i = 0; i < n; i++)
        if (hf_queues_find(w, list[i].queue) == NULL)
            report_offered(w, HF_LOG_WARN,
                           "a schedule of a program is in a queue that is not served",
                           &list[i]);
    return true;
}

/* It and its jobs are in the shard of its id. */
static bool is_here(const hf_served *served, const hf_plan_schedule *schedule)
{
    const hf_whole *whole = served->whole;
    if (strcmp(hf_queue_whole_name(whole), schedule->queue) != 0)
        return false;
    return whole->n_shards == 0 ||
           hf_shard_of_id(schedule->id, whole->n_shards) == served->shard;
}

void hf_schedules_add_names(const hf_served *served, hf_buf *out)
{
    const struct hf_schedules *s = served->worker->schedules;
    if (hf_queue_is_divided(served))
        return;
    for (size_t i = 0; i < named(s); i++)
        if (is_here(served, at(s, i)))
            hf_buf_printf(out, "@%s ", at(s, i)->id);
}

/* One request; its schedule may have left the file when the answer comes. */
typedef struct put_call {
    hf_served *served;
    char id[HF_ID_SIZE];
} put_call;

static void report_written(hf_served *served, const char *id)
{
    const hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                   {.key = "schedule", .text = id}};
    if (served->worker->phase != HF_ENDED)
        hf_report(served->worker, HF_LOG_INFO, "Redis knows a schedule of the file",
                  fields, HF_COUNT(fields));
}

static void on_put(const hf_answer *answer, void *arg)
{
    put_call *call = arg;
    hf_served *served = call->served;
    bool written = false;
    hf_err err = hf_cron_put_read(answer, &written);
    if (err != HF_OK && err != HF_SHARDED)
        served->registration.puts_err = err;
    if (err != HF_OK)
        served->registration.schedules_put = false;
    if (--served->registration.puts > 0) {
        served->requests--;
    } else { /* the last one tells the fate of all: each of them would be sent again */
        err = served->registration.puts_err;
        served->registration.puts_err = HF_OK;
        hf_queue_registered(served, served->site, err, answer->detail);
    }
    if (written)
        report_written(served, call->id);
    free(call);
}

static hf_err put(hf_served *served, const hf_plan_schedule *schedule, const char *file)
{
    hf_worker *w = served->worker;
    hf_schedule_def def;
    hf_cron_put_args args = {.id = schedule->id,
                             .value = {schedule->value.data, schedule->value.len},
                             .file = file,
                             .rev = schedule->rev};
    const char *nl = memchr(schedule->value.data, '\n', schedule->value.len);
    size_t len = nl == NULL ? 0 : (size_t)(nl - schedule->value.data);
    if (hf_schedule_read(&def, NULL, (hf_bytes){schedule->value.data, len}) != HF_OK ||
        !get_zone(w, def.tz, &def.ticks.zone))
        return HF_OK; /* it was checked: its zone has gone since, and that is logged */
    if (!hf_ticks_next(&def.ticks, hf_server_now(served->site->base.redis),
                       &args.next_ms))
        args.next_ms = 0;
    put_call *call = malloc(sizeof *call);
    if (call == NULL)
        return HF_NOMEM;
    call->served = served;
    snprintf(call->id, sizeof call->id, "%s", schedule->id);
    hf_err err =
        hf_op_cron_put(served->site->base.client, &served->queue, &args, on_put, call);
    served->requests += err == HF_OK ? 1 : 0;
    served->registration.puts += err == HF_OK ? 1 : 0;
    if (err != HF_OK)
        free(call);
    return err;
}

static hf_err put_all(hf_served *served, const char *file)
{
    const struct hf_schedules *s = served->worker->schedules;
    hf_err err = HF_OK;
    if (hf_queue_is_divided(served))
        return HF_OK;
    for (size_t i = 0; i < named(s) && err == HF_OK; i++)
        if (is_here(served, at(s, i)))
            err = put(served, at(s, i), file);
    served->registration.kept_ns = hf_boot_ns();
    return err;
}

/* Not after a reconnect: a newer file may have changed them meanwhile. */
hf_err hf_schedules_register(hf_served *served)
{
    if (named(served->worker->schedules) == 0)
        return HF_OK;
    if (hf_server_now(served->site->base.redis) == 0)
        return HF_CONN; /* its time is not known yet: after the next check */
    hf_err err = put_all(served, served->registration.schedules_put ? "keep" : "start");
    served->registration.schedules_put = err == HF_OK;
    return err;
}

/* ---- ticks ---- */

static void ask_due(hf_served *served);

/* The ticks stay due: a worker is woken for them each second. */
static void report_refused(hf_served *served, const char *detail)
{
    struct hf_schedules *s = served->worker->schedules;
    const hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                   {.key = "error", .text = detail}};
    uint64_t now = hf_boot_ns();
    if (s->refused_ns != 0 && now - s->refused_ns < HF_REMIND_MS * HF_MS_NS)
        return;
    s->refused_ns = now;
    hf_report(served->worker, HF_LOG_WARN, "Redis refuses the ticks of schedules", fields,
              HF_COUNT(fields));
}

/* Redis reports each once, also if its ticks are asked for again. */
static void report_held(hf_served *served, const hf_cron_due *due)
{
    char id[HF_ID_SIZE];
    const hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                   {.key = "schedule", .text = id}};
    for (size_t i = 0; i < due->n; i++) {
        hf_cron_due_one one;
        hf_cron_due_at(due, i, &one);
        if (!one.held)
            continue;
        (void)snprintf(id, sizeof id, "%.*s", (int)one.id.len, (const char *)one.id.ptr);
        hf_report(served->worker, HF_LOG_WARN,
                  "a schedule makes no jobs: no live worker names it", fields,
                  HF_COUNT(fields));
    }
}

static void on_ticked(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    const hf_reply *codes;
    bool more = false;
    served->requests--;
    served->registration.reckoning = false;
    hf_err err = hf_cron_tick_read(answer, &more, &codes);
    if (served->worker->phase == HF_ENDED)
        return;
    if (err == HF_NOSCRIPT ||
        (err == HF_OK && (more || served->registration.reckon_again)))
        ask_due(served);
    else if (!hf_site_unserved(served->site, err, answer->detail) && err != HF_OK &&
             err != HF_UNSURE)
        report_refused(served, answer->detail);
}

static int64_t due_of(hf_worker *w, int64_t tick_ms, int64_t jitter_ms)
{
    return tick_ms +
           (jitter_ms == 0 ? 0 : (int64_t)(hf_rng_unit(&w->rng) * (double)jitter_ms));
}

/* If there are more ticks than one request may have, the next request goes on with the
 * first one that is left. */
static void cut(hf_ticks_due *due, size_t room)
{
    if (due->n <= room)
        return;
    due->n = room;
    due->from_ms = due->at_ms[room - 1];
    due->next_ms = due->at_ms[room];
}

static void add_jobs(hf_worker *w, const hf_schedule_def *def, hf_cron_tick *tick)
{
    round *r = &w->schedules->round;
    tick->n = r->due.n;
    tick->ids = &r->id_list[r->n_jobs];
    tick->ticks_ms = &r->ticks_ms[r->n_jobs];
    tick->dues_ms = &r->dues_ms[r->n_jobs];
    for (size_t k = 0; k < r->due.n; k++) {
        size_t at = r->n_jobs++;
        hf_id_next(&w->schedules->ids, r->ids[at]);
        r->id_list[at] = r->ids[at];
        r->ticks_ms[at] = r->due.at_ms[k];
        r->dues_ms[at] = due_of(w, r->due.at_ms[k], def->jitter_ms);
    }
}

/* For how many jobs of this schedule one request has room. */
static size_t room_for(const round *r, const hf_cron_due_one *one)
{
    size_t places = JOBS_MAX - r->n_jobs;
    int64_t left = BYTES_MAX - r->bytes, fit = left <= 0 ? 0 : JOBS_MAX;
    if (left > 0 && one->bytes > 0)
        fit = left / one->bytes;
    if (r->n_jobs == 0 && fit == 0)
        fit = 1;
    return fit < (int64_t)places ? (size_t)fit : places;
}

/* A tick without room stays due: the answer says so. */
static void decide(hf_worker *w, const hf_cron_due_one *one, int64_t now_ms)
{
    round *r = &w->schedules->round;
    size_t room = room_for(r, one);
    hf_schedule_state *state = &r->states[r->n];
    hf_schedule_def def;
    if (room == 0 || hf_schedule_read_state(state, one->state) != HF_OK)
        return;
    hf_cron_tick tick = {.id = one->id,
                         .next = one->next,
                         .gen = state->gen,
                         .from_ms = state->from_ms,
                         .new_next_ms = now_ms + NO_ZONE_MS};
    if (hf_schedule_read(&def, NULL, one->line) == HF_OK &&
        get_zone(w, def.tz, &def.ticks.zone)) {
        hf_ticks_decide(&def.ticks, def.missed, def.catch_up_ms, state->from_ms, now_ms,
                        &r->due);
        tick.dropped = r->due.dropped;
        cut(&r->due, room);
        r->bytes += (int64_t)r->due.n * one->bytes;
        tick.from_ms = r->due.from_ms;
        tick.new_next_ms = r->due.next_ms;
        add_jobs(w, &def, &tick);
    }
    r->ticks[r->n++] = tick;
}

/* True: the next request for this queue is a claim. */
static bool will_claim(hf_served *served)
{
    if (hf_runner_slots(served->worker) == 0 || hf_queue_is(served, HF_Q_GONE))
        return false;
    served->wake.due_ms = 1;
    hf_queue_apply(served, HF_E_BATON);
    return hf_queue_is(served, HF_Q_CLAIMABLE);
}

static void send_ticks(hf_served *served)
{
    hf_site *site = served->site;
    const round *r = &served->worker->schedules->round;
    if (r->n == 0 || site == NULL || !hf_site_can_ask(site))
        return;
    const hf_cron_tick_args args = {.not_after = hf_site_not_after(site),
                                    .claims = will_claim(served),
                                    .ticks = r->ticks,
                                    .n = r->n};
    if (hf_op_cron_tick(site->base.client, &served->queue, &args, on_ticked, served) !=
        HF_OK)
        return;
    served->requests++;
    served->registration.reckoning = true;
}

static void reckon(hf_served *served, const hf_cron_due *due)
{
    round *r = &served->worker->schedules->round;
    r->n = r->n_jobs = 0;
    r->bytes = 0;
    for (size_t i = 0; i < due->n && i < HF_DUE_SCHEDULES && r->n_jobs < JOBS_MAX; i++) {
        hf_cron_due_one one;
        hf_cron_due_at(due, i, &one);
        if (!one.held)
            decide(served->worker, &one, due->now_ms);
    }
    send_ticks(served);
}

static void on_due(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_cron_due due;
    hf_err err = hf_cron_due_read(answer, &due);
    served->requests--;
    served->registration.reckoning = false;
    if (served->worker->phase == HF_ENDED)
        return;
    if (err == HF_NOSCRIPT) {
        ask_due(served);
    } else if (err == HF_OK) {
        report_held(served, &due);
        reckon(served, &due);
    } else { /* a worker is woken for them again */
        (void)hf_site_unserved(served->site, err, answer->detail);
    }
}

static void ask_due(hf_served *served)
{
    hf_site *site = served->site;
    served->registration.reckon_again = served->registration.reckoning;
    if (served->registration.reckoning || site == NULL || !hf_site_can_ask(site) ||
        hf_op_cron_due(site->base.client, &served->queue, served->worker->id, on_due,
                       served) != HF_OK)
        return;
    served->requests++;
    served->registration.reckoning = true;
}

void hf_schedules_claimed(hf_served *served, const hf_reply *ticks, int64_t now_ms)
{
    hf_cron_due due;
    hf_cron_due_claimed(ticks, now_ms, &due);
    report_held(served, &due);
    served->registration.reckon_again = served->registration.reckon_again ||
                                        (served->registration.reckoning && due.n > 0);
    if (due.n > 0 && !served->registration.reckoning)
        reckon(served, &due);
}

void hf_schedules_checked(hf_served *served, bool ticks)
{
    if (ticks)
        ask_due(served);
    if (served->registration.schedules_put && served->registration.puts == 0 &&
        !hf_queue_is(served, HF_Q_GONE) &&
        hf_boot_ns() - served->registration.kept_ns >= KEEP_MS * HF_MS_NS &&
        put_all(served, "keep") != HF_OK)
        served->registration.kept_ns = 0;
}
