/* register.c - worker/register.h.
 *
 * Scripts of a queue see only its own keys, so each queue knows the types of its workers,
 * and the schedules that their files name. The heartbeats are for people, and in a
 * cluster on another node. Jobs die in scripts that any client sends: so Redis also has
 * to know which of them report deaths (on_dead of the handlers and of the queues). */
#include "worker/register.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "base/buf.h"
#include "worker/handler.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/plan.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/queues/shards.h"
#include "worker/report.h"
#include "worker/schedules.h"
#include "worker/worker.h"

/* ---- its name, its shards, its limits ---- */

static void on_registered(const hf_answer *answer, hf_served *served)
{
    hf_queue_registered(served, served->site, answer->err, answer->detail);
}

static void on_named(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_queue_registered(served, served->worker->registry, answer->err, answer->detail);
}

static void on_limits(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_whole *whole = served->whole;
    char rate[HF_RATE_SIZE];
    on_registered(answer, served);
    if (answer->err == HF_SHARDED)
        (void)hf_shards_learn(served, answer->detail);
    if (answer->err != HF_OK || !whole->new_limits || hf_queue_is(served, HF_Q_GONE))
        return;
    whole->new_limits = false;
    hf_report_rate(&whole->limits, rate);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "max_running", .number = whole->limits.max_running},
        {.key = "rate", .text = rate}};
    hf_report(served->worker, HF_LOG_INFO, "Redis knows the limits of the file", fields,
              HF_COUNT(fields));
}

static hf_err send_limits(hf_served *served)
{
    if (!served->whole->limits.has_limits || hf_queue_is_divided(served))
        return HF_OK;
    const hf_shard_limits limits = hf_shards_limits_of(served);
    hf_err err =
        hf_op_file_limits(served->site->base.client, &served->queue, limits.max_running,
                          limits.rate_limit, limits.rate_per_ms, on_limits, served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* The name is that of the whole queue. */
static hf_err send_name(hf_served *served)
{
    const hf_site *registry = served->worker->registry;
    hf_err err = HF_CONN;
    if (served != served->whole->members)
        return HF_OK;
    if (hf_site_ready(registry))
        err = hf_op_register(registry->base.client, &served->queue, on_named, served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* It is divided first of all: it cannot be after its first job. */
static hf_err send_shards(hf_served *served)
{
    if (served != served->whole->members || served->whole->limits.shards == 0)
        return HF_OK;
    hf_err err = hf_shards_divide(served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* ---- what the worker handles and names there ---- */

enum { SAID_MAX = (HF_TYPES_MAX + HF_SCHEDULES_MAX) * (HF_ID_SIZE + 1) + 1 }; /* bytes */

static void on_present(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_bytes born = hf_present_born(answer);
    served->registration.present = answer->err == HF_OK;
    if (born.len > 0)
        (void)snprintf(served->born, sizeof served->born, "%.*s", (int)born.len,
                       (const char *)born.ptr);
    on_registered(answer, served);
}

static hf_err send_present(hf_served *served)
{
    const hf_worker *w = served->worker;
    hf_buf said;
    hf_buf_init(&said, SAID_MAX);
    hf_buf_text(&said, " ");
    for (size_t i = 0; i < w->n_handlers; i++)
        hf_buf_printf(&said, "%s ", w->handlers[i]->type);
    hf_schedules_add_names(served, &said);
    hf_err err = hf_buf_err(&said);
    if (err == HF_OK)
        err =
            hf_op_present(served->site->base.client, &served->queue, w->id,
                          w->opts.lease_ms + HF_ALIVE_MS, said.data, on_present, served);
    hf_buf_done(&said);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* ---- which jobs report deaths ---- */

static const char *about(const hf_handler *handler, const char *queues)
{
    return handler->on_dead[0] != '\0' ? handler->on_dead : queues;
}

/* Of the types with a handler of their own those that differ from all others. */
static json_t *types_of(const hf_worker *w, const char *queues)
{
    const hf_handler *rest = hf_handlers_find(w->handlers, w->n_handlers, "*");
    const char *others = rest == NULL ? queues : about(rest, queues);
    json_t *types = json_object();
    bool good = types != NULL;
    if (others[0] != '\0')
        good = good && json_object_set_new(types, "*", json_string(others)) == 0;
    for (size_t i = 0; i < w->n_handlers && good; i++) {
        const hf_handler *handler = w->handlers[i];
        const char *own = about(handler, queues);
        if (handler != rest && strcmp(own, others) != 0)
            good = json_object_set_new(types, handler->type,
                                       own[0] == '\0' ? json_false()
                                                      : json_string(own)) == 0;
    }
    if (good)
        return types;
    json_decref(types);
    return NULL;
}

/* Owned by the caller; "" : of no job. NULL: out of memory. */
static char *text_of(const hf_served *served)
{
    json_t *types = types_of(served->worker, served->whole->on_dead);
    if (types == NULL)
        return NULL;
    char *text = json_object_size(types) == 0
                     ? calloc(1, 1)
                     : json_dumps(types, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(types);
    return text;
}

/* Of a queue with shards its first claim learns them, and then they are told. */
static void on_deaths(const hf_answer *answer, void *arg)
{
    on_registered(answer, arg);
}

static hf_err send_deaths(hf_served *served)
{
    if (hf_queue_is_divided(served))
        return HF_OK;
    char *text = text_of(served);
    hf_err err = text == NULL
                     ? HF_NOMEM
                     : hf_op_file_on_dead(served->site->base.client, &served->queue, text,
                                          on_deaths, served);
    free(text);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* ---- all of it ---- */

static void register_queue(hf_served *served)
{
    hf_err (*const steps[])(hf_served *) = {send_shards, send_name,
                                            send_limits, send_present,
                                            send_deaths, hf_schedules_register};
    hf_err err = HF_OK;
    for (size_t i = 0; i < HF_COUNT(steps) && err == HF_OK; i++)
        err = steps[i](served);
    served->registration.done = err == HF_OK;
}

void hf_register_site(hf_site *site)
{
    const hf_worker *w = site->worker;
    site->register_due = false;
    for (size_t i = 0; i < hf_queues_count(w) && hf_site_ready(site); i++)
        if (hf_queues_at(w, i)->site == site && !hf_queues_at(w, i)->registration.done)
            register_queue(hf_queues_at(w, i));
}

/* It may still run jobs of the queue, so it stays one of its workers. */
static void send_left(hf_served *served);

static void on_left(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->requests--;
    if (answer->err == HF_NOSCRIPT && hf_queue_is(served, HF_Q_GONE))
        send_left(served);
}

static void send_left(hf_served *served)
{
    const hf_worker *w = served->worker;
    if (hf_site_ready(served->site) &&
        hf_op_present(served->site->base.client, &served->queue, w->id,
                      w->opts.lease_ms + HF_ALIVE_MS, " ", on_left, served) == HF_OK)
        served->requests++;
}

void hf_register_left(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_slots(w); i++) {
        hf_served *served = hf_queues_slot(w, i);
        if (hf_queue_is(served, HF_Q_GONE) && served->registration.present)
            send_left(served);
        served->registration.present =
            served->registration.present && !hf_queue_is(served, HF_Q_GONE);
    }
}

size_t hf_register_goodbye(hf_worker *w, hf_answer_cb cb, void *arg)
{
    size_t sent = 0;
    for (size_t i = 0; i < hf_queues_count(w); i++) {
        const hf_served *served = hf_queues_at(w, i);
        if (hf_site_ready(served->site) &&
            hf_op_present(served->site->base.client, &served->queue, w->id, 0, NULL, cb,
                          arg) == HF_OK)
            sent++;
    }
    return sent;
}

bool hf_register_same_deaths(const hf_worker *w, const hf_plan *plan)
{
    size_t n = 0;
    if (!w->has_programs)
        return true; /* its handlers stay */
    for (size_t i = 0; i < w->n_handlers; i++) {
        const hf_handler *was = w->handlers[i];
        const hf_handler *now =
            hf_handlers_find(plan->programs, plan->n_programs, was->type);
        if (was->fn != NULL || was->pool != NULL)
            continue;
        if (now == NULL || strcmp(was->on_dead, now->on_dead) != 0)
            return false;
        n++;
    }
    return n == plan->n_programs;
}

void hf_register_turn(hf_worker *w)
{
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        if (site->register_due)
            hf_register_site(site);
}
