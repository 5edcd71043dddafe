/* api_redis.c - Redis itself: its servers, the time of its answers, its clock, the data
 * of each queue, and the changes that were made here. */
#include "dashboard/api_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/out.h"
#include "dashboard/api.h"
#include "dashboard/changelog.h"
#include "dashboard/overview.h"

enum {
    NODES = 64, /* whose rates are known */
    PLACE = 96,
    RATE_MS = 1000,      /* a rate is of at least so long */
    STEP_US = 500000,    /* a clock that moved more was set */
    DATA_MS = 60000,     /* for so long the data of the queues are not looked at again */
    DATA_QUEUES = 100,   /* with the most jobs; the others are not estimated */
    DATA_LOOK_MS = 1000, /* nor those that this time is not enough for */
    US_NS = 1000
};

/* A server, when its counters were read. */
typedef struct node {
    char place[PLACE];
    char run_id[48];
    uint64_t at_ns;
    int64_t commands, cpu_ms;
    double per_s, cpu; /* from then until the last reading; below 0: not known */
    int64_t ahead_us;  /* its clock minus the time since this host was started */
    int64_t steps;     /* of its clock, since this dashboard looks */
} node;

struct hf_redis_seen {
    size_t n;
    node nodes[NODES];
    json_t *queues; /* owned: as the answer has them */
    uint64_t queues_ns;
};

typedef struct answer {
    hf_reader *r;
    hf_redis_seen *seen;
    json_t *servers;
    hf_round_trip trip; /* of the first server that answers */
    bool timed;
} answer;

void hf_api_redis_free(hf_redis_seen *seen)
{
    if (seen != NULL)
        json_decref(seen->queues);
    free(seen);
}

/* ---- servers ---- */

/* NULL: there are too many. */
static node *node_at(hf_redis_seen *seen, const char *place)
{
    for (size_t i = 0; i < seen->n; i++)
        if (strcmp(seen->nodes[i].place, place) == 0)
            return &seen->nodes[i];
    if (seen->n == NODES)
        return NULL;
    node *new = &seen->nodes[seen->n++];
    *new = (node){.per_s = -1, .cpu = -1};
    (void)snprintf(new->place, sizeof new->place, "%s", place);
    return new;
}

static void note_rates(node *n, const hf_server_info *s)
{
    const uint64_t now = hf_boot_ns();
    const bool same = strcmp(n->run_id, s->run_id) == 0 && n->at_ns != 0;
    const double seconds = (double)(now - n->at_ns) / 1e9;
    if (same && now - n->at_ns < RATE_MS * HF_MS_NS)
        return;
    n->per_s = same ? (double)(s->commands - n->commands) / seconds : -1;
    n->cpu = same ? (double)(s->cpu_ms - n->cpu_ms) / 1000 / seconds : -1;
    n->at_ns = now;
    n->commands = s->commands;
    n->cpu_ms = s->cpu_ms;
    (void)snprintf(n->run_id, sizeof n->run_id, "%s", s->run_id);
}

/* A step of this host's clock is none of Redis's: the time since the start of the host
 * has no steps. */
static void note_clock(node *n, const hf_round_trip *trip)
{
    const int64_t ahead_us =
        hf_wall_us() + trip->ahead_us - (int64_t)(hf_boot_ns() / US_NS);
    const int64_t moved = ahead_us - n->ahead_us;
    if (n->ahead_us != 0 && llabs(moved) > STEP_US + trip->unsure_us)
        n->steps++;
    n->ahead_us = ahead_us;
}

static json_t *real_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *number_or_null(int64_t value, bool known)
{
    return known ? json_integer((json_int_t)value) : json_null();
}

static void add_facts(json_t *object, const hf_server_info *s)
{
    const bool told = s->clients > 0; /* this dashboard is one of them */
    (void)json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:b}",
                  "version", hf_out_text(s->version), "role", hf_out_text(s->role),
                  "policy", hf_out_text(s->policy), "aof", (int)s->aof, "rdb",
                  (int)s->rdb, "loading", (int)s->loading, "aof_failed",
                  (int)s->aof_failed, "rdb_failed", (int)s->rdb_failed, "used_memory",
                  (json_int_t)s->used_memory, "maxmemory", (json_int_t)s->maxmemory,
                  "replicas", (json_int_t)s->replicas, "good_replicas",
                  (json_int_t)s->good_replicas, "in_cluster", (int)s->in_cluster));
    (void)json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:o}", "uptime_ms", number_or_null(s->uptime_ms, told),
                  "clients", number_or_null(s->clients, told), "blocked_clients",
                  number_or_null(s->blocked_clients, told)));
}

static void add_rates(json_t *object, const node *n, const hf_round_trip *trip)
{
    (void)json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:I, s:I, s:I}", "ops_per_s", real_or_null(n->per_s), "cpu",
                  real_or_null(n->cpu), "clock_steps", (json_int_t)n->steps,
                  "round_trip_us", (json_int_t)trip->took_us, "ahead_us",
                  (json_int_t)trip->ahead_us));
}

static void on_server(const char *place, hf_err err, const char *detail, void *arg)
{
    answer *a = arg;
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    json_t *object = json_pack("{s:o, s:s, s:o}", "place",
                               place == NULL ? json_null() : hf_out_text(place), "state",
                               err == HF_OK ? "up" : hf_err_text(err), "detail",
                               hf_out_text(detail == NULL ? "" : detail));
    node *n = node_at(a->seen, place == NULL ? "" : place);
    if (err == HF_OK)
        add_facts(object, hf_admin_server(a->r->admin));
    if (err == HF_OK && n != NULL &&
        hf_admin_round_trip(a->r->admin, &trip, NULL) == HF_OK) {
        note_rates(n, hf_admin_server(a->r->admin));
        note_clock(n, &trip);
        add_rates(object, n, &trip);
        a->trip = a->timed ? a->trip : trip;
        a->timed = true;
    }
    (void)json_array_append_new(a->servers, object);
}

static json_t *requests_of(const hf_reader *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < HF_POLLER_REQUESTS; i++)
        (void)json_array_append_new(
            list,
            json_pack("[o, I]",
                      i + 1 == HF_POLLER_REQUESTS ? json_null() : json_integer(1 << i),
                      (json_int_t)r->took[i]));
    return list;
}

/* ---- the data of each queue ---- */

static int64_t jobs_of(const hf_queue_stats *s)
{
    return s->ready + s->delayed + s->running + s->dead + s->kept + s->parked;
}

static int by_jobs(const void *a, const void *b)
{
    const hf_queue_stats *const *x = a, *const *y = b;
    const int64_t more = jobs_of(*y) - jobs_of(*x);
    return more > 0 ? 1 : more < 0 ? -1 : strcmp((*x)->queue, (*y)->queue);
}

/* What one queue has; null where Redis does not say it. A user that may not ask is not
 * asked for again. */
static json_t *data_of(hf_reader *r, const hf_queue_stats *s, bool *asks)
{
    char detail[HF_DETAIL_SIZE];
    int64_t bytes = 0;
    hf_err err = *asks ? hf_admin_memory(r->admin, s->queue, &bytes, detail) : HF_AUTH;
    *asks = *asks && err != HF_AUTH;
    return json_pack("{s:s, s:I, s:o}", "queue", s->queue, "jobs", (json_int_t)jobs_of(s),
                     "bytes", number_or_null(bytes, err == HF_OK));
}

static hf_err read_data(hf_reader *r, hf_redis_seen *seen)
{
    if (seen->queues != NULL && hf_boot_ns() - seen->queues_ns < DATA_MS * HF_MS_NS)
        return HF_OK;
    hf_err err = hf_overview_read(r);
    if (err == HF_OK)
        err = hf_reader_open(r);
    if (err != HF_OK)
        return err;
    const hf_facts *f = hf_overview_facts(r->overview);
    if (f == NULL)
        return HF_NOMEM;
    const hf_queue_stats **list = calloc(f->n_queues + 1, sizeof *list);
    if (list == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < f->n_queues; i++)
        list[i] = &f->queues[i].stats;
    qsort(list, f->n_queues, sizeof list[0], by_jobs);
    json_decref(seen->queues);
    seen->queues = json_array();
    seen->queues_ns = hf_boot_ns();
    bool asks = true;
    for (size_t i = 0; i < f->n_queues; i++) {
        asks = asks && i < DATA_QUEUES &&
               hf_boot_ns() - seen->queues_ns < DATA_LOOK_MS * HF_MS_NS;
        (void)json_array_append_new(seen->queues, data_of(r, list[i], &asks));
    }
    free(list);
    return HF_OK;
}

/* ---- the answer ---- */

static hf_redis_seen *seen_of(hf_reader *r)
{
    if (r->redis == NULL)
        r->redis = calloc(1, sizeof *r->redis);
    r->free_redis = hf_api_redis_free;
    return r->redis;
}

hf_err hf_api_redis(hf_query *ask, hf_reader *r)
{
    answer a = {.r = r, .seen = seen_of(r), .trip = {HF_ROUND_TRIP_INIT}};
    if (a.seen == NULL)
        return HF_NOMEM;
    hf_err err = read_data(r, a.seen);
    a.servers = json_array();
    if (err == HF_OK)
        err = hf_admin_servers(r->admin, on_server, &a, r->detail);
    if (err != HF_OK) {
        json_decref(a.servers);
        return err;
    }
    return hf_ask_give(ask, r,
                       json_pack("{s:o, s:I, s:I, s:I, s:o, s:O, s:o}", "servers",
                                 a.servers, "round_trip_us", (json_int_t)a.trip.took_us,
                                 "ahead_us", (json_int_t)a.trip.ahead_us, "unsure_us",
                                 (json_int_t)a.trip.unsure_us, "tasks", requests_of(r),
                                 "queues", a.seen->queues, "changes",
                                 hf_changelog_objects(r->opts->changelog, r->ahead_ms)),
                       0);
}
