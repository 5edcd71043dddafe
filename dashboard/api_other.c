/* api_other.c - what this dashboard is, schedules with their ticks, locks with their
 * lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "cli/cron/cron.h"
#include "cli/lock/locks.h"
#include "cli/out.h"
#include "cron/expr.h"
#include "dashboard/api.h"
#include "dashboard/overview.h"
#include "holdfast/version.h"
#include "seen/zones.h"

enum {
    TICKS = 48, /* more are shown as a band */
    MISSED_LOOK = 2000,
    ZONES = 32,
    HOUR_MS = 3600000,
    DAY_MS = 24 * HOUR_MS,
    SCHEDULES = 1000,
    LOCKS = 200,
    LOCKS_MS = 1000,
    ENTRIES = 50,
    URL_SIZE = 1024
};

/* ---- what this dashboard is ---- */

hf_err hf_api_other_about(hf_query *ask, hf_reader *r)
{
    char redis[URL_SIZE];
    const char *version, *url = r->opts->server->url, *ns = r->opts->server->ns;
    (void)hf_version(&version);
    (void)snprintf(redis, sizeof redis, "%s",
                   url == NULL ? "redis://localhost:6379/0" : url);
    hf_mask(redis);
    return hf_ask_give(ask, r,
                       json_pack("{s:o, s:s, s:s, s:b, s:b, s:b}", "redis",
                                 hf_out_text(redis), "namespace", ns == NULL ? "hf" : ns,
                                 "version", version, "changes", (int)ask->may_change,
                                 "payloads", (int)!r->opts->hide_payloads, "tasks",
                                 (int)ask->may_change),
                       0);
}

/* ---- schedules ---- */

typedef struct scheduler {
    json_t *items, *changes;
    const hf_reader *reader;
    int64_t now_ms, until_ms;
    size_t n_zones;
    char zones[ZONES][HF_ZONE_SIZE]; /* the zones in `changes` */
    hf_zones used;
} scheduler;

/* False: this host cannot read the expression or the zone. */
static bool read_cron(const hf_schedule_info *s, hf_cron *cron, hf_zone **zone)
{
    char detail[HF_DETAIL_SIZE];
    *zone = NULL;
    return hf_cron_parse(cron, s->cron, detail) == HF_OK &&
           (s->tz[0] == '\0' || hf_zone_open(zone, s->tz, detail) == HF_OK);
}

/* The next ticks of an expression, behind the one that Redis knows. */
static void add_cron_ticks(const hf_schedule_info *s, int64_t until_ms, json_t *list)
{
    hf_zone *zone;
    hf_cron cron;
    int64_t at = s->next_ms / 1000;
    if (!read_cron(s, &cron, &zone))
        return;
    while (json_array_size(list) <= TICKS && hf_cron_next(&cron, zone, at, &at) &&
           at * 1000 <= until_ms)
        (void)json_array_append_new(list, json_integer(at * 1000));
    hf_zone_free(zone);
}

static json_t *ticks_of(const hf_schedule_info *s, int64_t until_ms)
{
    json_t *list = json_array();
    if (s->next_ms == 0 || s->next_ms > until_ms || s->paused)
        return list;
    (void)json_array_append_new(list, json_integer(s->next_ms));
    if (s->cron[0] != '\0') {
        add_cron_ticks(s, until_ms, list);
        return list;
    }
    for (int64_t at = s->next_ms + s->every_ms;
         s->every_ms > 0 && at <= until_ms && json_array_size(list) <= TICKS;
         at += s->every_ms)
        (void)json_array_append_new(list, json_integer(at));
    return list;
}

/* The ticks of an expression after `from` and before `end`, in seconds. */
static void add_cron_missed(const hf_schedule_info *s, int64_t from, int64_t end,
                            json_t *list)
{
    hf_zone *zone;
    hf_cron cron;
    if (!read_cron(s, &cron, &zone))
        return;
    if (hf_cron_count(&cron, zone, from, end) <= MISSED_LOOK)
        while (hf_cron_next(&cron, zone, from, &from) && from < end)
            (void)json_array_append_new(list, json_integer(from * 1000));
    hf_zone_free(zone);
}

/* The same of an interval. Its ticks are as far apart from the last one that made a job,
 * or from the next one. */
static void add_every_missed(const hf_schedule_info *s, int64_t from_ms, int64_t end_ms,
                             json_t *list)
{
    const int64_t every = s->every_ms, one = s->last_ms != 0 ? s->last_ms : s->next_ms;
    if (one == 0)
        return;
    if (from_ms < end_ms - MISSED_LOOK * every)
        from_ms = end_ms - MISSED_LOOK * every;
    const int64_t since = ((from_ms - one) % every + every) % every;
    for (int64_t at = from_ms - since + every; at < end_ms; at += every)
        (void)json_array_append_new(list, json_integer(at));
}

/* The ticks of the last day that made no job since the last one that did. Redis counts
 * them from a change of the schedule on, also a pause; their times follow from the
 * expression. */
static json_t *missed_of(const hf_schedule_info *s, int64_t now_ms)
{
    json_t *list = json_array();
    const bool whole = s->last_ms > now_ms - DAY_MS;
    const int64_t from_ms = whole ? s->last_ms : now_ms - DAY_MS;
    const int64_t end_ms = s->next_ms != 0 && s->next_ms < now_ms ? s->next_ms : now_ms;
    const size_t passed = (size_t)s->passed;
    if (passed > 0 && s->cron[0] != '\0')
        add_cron_missed(s, from_ms / 1000, end_ms / 1000, list);
    else if (passed > 0 && s->every_ms > 0)
        add_every_missed(s, from_ms, end_ms, list);
    while (json_array_size(list) > passed)
        (void)json_array_remove(list, whole ? json_array_size(list) - 1 : 0);
    while (json_array_size(list) > TICKS)
        (void)json_array_remove(list, 0);
    return list;
}

/* When the clocks of its zone change before the end. */
static void add_changes(scheduler *all, const hf_schedule_info *s)
{
    char detail[HF_DETAIL_SIZE];
    hf_zone *zone = NULL;
    bool known = s->tz[0] == '\0' || all->n_zones == ZONES;
    for (size_t i = 0; i < all->n_zones && !known; i++)
        known = strcmp(all->zones[i], s->tz) == 0;
    if (known || hf_zone_open(&zone, s->tz, detail) != HF_OK)
        return;
    memcpy(all->zones[all->n_zones++], s->tz, sizeof s->tz);
    hf_zone_span now = hf_zone_span_at(zone, all->now_ms / 1000), next;
    for (; now.until <= all->until_ms / 1000; now = next) {
        next = hf_zone_span_at(zone, now.until);
        if (next.offset != now.offset)
            (void)json_array_append_new(
                all->changes, json_pack("{s:s, s:I, s:I}", "tz", s->tz, "at_ms",
                                        (json_int_t)now.until * 1000, "by_ms",
                                        ((json_int_t)next.offset - now.offset) * 1000));
    }
    hf_zone_free(zone);
}

static void on_schedule(const hf_schedule_info *s, void *arg)
{
    scheduler *all = arg;
    json_t *object = hf_cron_json(s);
    const char *zone = hf_zones_of(s);
    hf_zones_add(&all->used, zone);
    (void)json_object_set_new(object, "zone",
                              *zone == '\0' ? json_null() : hf_out_text(zone));
    (void)json_object_set_new(object, "ticks", ticks_of(s, all->until_ms));
    (void)json_object_set_new(object, "missed_ms",
                              missed_of(s, hf_reader_now_ms(all->reader)));
    add_changes(all, s);
    (void)json_array_append_new(all->items, object);
}

static void mark_zones(const scheduler *all)
{
    for (size_t i = 0; i < json_array_size(all->items); i++) {
        json_t *object = json_array_get(all->items, i);
        const char *zone = json_string_value(json_object_get(object, "zone"));
        (void)json_object_set_new(
            object, "zone_differs",
            json_boolean(zone != NULL && hf_zones_differs(&all->used, zone)));
    }
}

hf_err hf_api_other_schedules(hf_query *ask, hf_reader *r)
{
    int64_t hours;
    char **names = NULL;
    size_t n = 0;
    if (!hf_target_number(&ask->target, "hours", 1, 24 * 7, 24, &hours))
        return hf_ask_refuse(ask, 400, "invalid", "hours: expected 1 to 168");
    scheduler all = {.reader = r,
                     .items = json_array(),
                     .changes = json_array(),
                     .now_ms = hf_reader_now_ms(r)};
    all.until_ms = all.now_ms + hours * HOUR_MS;
    hf_zones_host(all.used.host);
    hf_err err = hf_admin_queues(r->admin, &names, &n, r->detail);
    for (size_t i = 0; i < n && err == HF_OK; i++)
        err = hf_admin_schedules(r->admin, names[i], NULL, SCHEDULES, on_schedule, &all,
                                 r->detail);
    free(names);
    const char *usual = hf_zones_usual(&all.used);
    mark_zones(&all);
    if (err == HF_OK)
        return hf_ask_give(ask, r,
                           json_pack("{s:o, s:n, s:I, s:o, s:o}", "items", all.items,
                                     "next", "looked_at",
                                     (json_int_t)json_array_size(all.items), "changes",
                                     all.changes, "usual_zone",
                                     usual == NULL ? json_null() : hf_out_text(usual)),
                           0);
    json_decref(all.items);
    json_decref(all.changes);
    return err;
}

/* ---- locks ---- */

static json_t *entry_object(const hf_lock_entry *e)
{
    json_t *object = hf_locks_json(e);
    (void)json_object_set_new(object, "since_ms", hf_out_time(e->since_ms));
    (void)json_object_set_new(object, "lease_ms", json_integer(e->lease_ms));
    return object;
}

static json_t *lock_object(const char *name, const hf_lock_look *look)
{
    int64_t ends_ms = 0;
    json_t *entries = json_array();
    for (size_t i = 0; i < look->n; i++) {
        const hf_lock_entry *e = hf_lock_look_entry(look, i);
        if (e->granted && e->ends_ms > ends_ms)
            ends_ms = e->ends_ms;
        (void)json_array_append_new(entries, entry_object(e));
    }
    const json_t *mode = json_object_get(json_array_get(entries, 0), "mode");
    const bool permits = look->limit > 0;
    return json_pack(
        "{s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name", hf_out_text(name), "mode",
        mode == NULL ? "exclusive" : json_string_value(mode), "holders",
        (json_int_t)look->holders, "waiting", (json_int_t)(look->all - look->holders),
        "ends_ms", hf_out_time(ends_ms), "taken",
        permits ? json_integer(look->taken) : json_null(), "limit",
        permits ? json_integer(look->limit) : json_null(), "entries", entries);
}

typedef struct lock_names {
    size_t n;
    char *at[LOCKS]; /* owned */
} lock_names;

static bool on_name(const char *name, void *arg)
{
    lock_names *list = arg;
    list->at[list->n] = strdup(name);
    list->n += list->at[list->n] == NULL ? 0 : 1;
    return list->n < LOCKS;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static hf_err add_locks(hf_reader *r, const lock_names *list, json_t *items)
{
    hf_err err = HF_OK;
    for (size_t i = 0; i < list->n && err == HF_OK; i++) {
        hf_lock_look look = {HF_LOCK_LOOK_INIT};
        if (i > 0 && strcmp(list->at[i - 1], list->at[i]) == 0)
            continue;
        err = hf_lock_look_at(r->locks, list->at[i], ENTRIES, &look, r->detail);
        if (err == HF_OK && look.all > 0)
            (void)json_array_append_new(items, lock_object(list->at[i], &look));
        hf_lock_look_done(&look);
    }
    return err;
}

hf_err hf_api_other_locks(hf_query *ask, hf_reader *r)
{
    lock_names list = {.n = 0};
    if (r->locks == NULL)
        return hf_ask_refuse(ask, 503, "locks", "locks cannot be read here");
    json_t *items = json_array();
    hf_err err = hf_lock_list_for(r->locks, NULL, LOCKS_MS, on_name, &list, r->detail);
    if (err == HF_TIMEOUT)
        err = HF_OK; /* those that were found in this time */
    qsort(list.at, list.n, sizeof list.at[0], by_text);
    if (err == HF_OK)
        err = add_locks(r, &list, items);
    for (size_t i = 0; i < list.n; i++)
        free(list.at[i]);
    if (err == HF_OK)
        return hf_ask_list(ask, r, items, "", list.n);
    json_decref(items);
    return err;
}

hf_err hf_api_other_lock(hf_query *ask, hf_reader *r)
{
    enum { ALL = 1000 };
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    const char *name = hf_ask_param(ask, "name");
    if (name == NULL)
        return hf_ask_refuse(ask, 400, "invalid", "name: expected the name of a lock");
    if (r->locks == NULL)
        return hf_ask_refuse(ask, 503, "locks", "locks cannot be read here");
    hf_err err = hf_lock_look_at(r->locks, name, ALL, &look, r->detail);
    if (err == HF_OK && look.all > 0)
        err = hf_ask_give(ask, r, lock_object(name, &look), 0);
    else if (err == HF_OK)
        err = hf_ask_refuse(ask, 404, "not_found", "lock '%s' has no holder", name);
    hf_lock_look_done(&look);
    return err;
}
