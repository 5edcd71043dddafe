/* offer.c - worker/pool/offer.h. */
#include "worker/pool/offer.h"

#include <stdlib.h>

#include "base/detail.h"
#include "worker/node/sites.h"
#include "worker/queues/queues.h"
#include "worker/report.h"

static hf_pool_type said_of(const hf_ready_type *type)
{
    uint32_t timeout_ms = type->timeout_ms;
    if (type->has_timeout && timeout_ms == 0)
        timeout_ms = HF_TIMEOUT_NONE;
    return (hf_pool_type){HF_POOL_TYPE_INIT,
                          .type = type->type,
                          .timeout_ms = timeout_ms,
                          .max_attempts = type->max_attempts,
                          .keep_ms = type->keep_ms,
                          .on_dead = type->on_dead[0] == '\0' ? NULL : type->on_dead,
                          .has_backoff = type->has_backoff,
                          .backoff = type->backoff,
                          .backoff_base_ms = type->backoff_base_ms,
                          .backoff_cap_ms = type->backoff_cap_ms,
                          .backoff_jitter = type->backoff_jitter};
}

static void free_handlers(hf_handler **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_handler_unref(list[i]);
    free(list);
}

static hf_err make(hf_handler ***out, const hf_worker *w, const hf_pool_spec *spec,
                   struct hf_supervisor *pool, const hf_ready *ready, char *detail)
{
    hf_handler **list = calloc(ready->n_types + 1, sizeof(hf_handler *));
    if (list == NULL)
        return hf_say_err(detail, HF_NOMEM);
    for (size_t i = 0; i < ready->n_types; i++) {
        hf_pool_type said = said_of(&ready->types[i]);
        hf_pool_type options = hf_pool_spec_options(spec, &said);
        hf_err err = hf_handler_of_pool(&list[i], &options, &spec->pool, pool, detail);
        if (err != HF_OK) {
            free_handlers(list, i);
            return err;
        }
        list[i]->backoff = hf_pool_spec_backoff(spec, &said, &w->backoff);
        list[i]->has_backoff = true;
    }
    *out = list;
    return HF_OK;
}

static const char *owner_of(const hf_handler *handler)
{
    return handler->pool != NULL ? "another pool" : "a handler of its own";
}

static hf_err check(const hf_worker *w, const struct hf_supervisor *pool,
                    hf_handler *const *list, size_t n, char *detail)
{
    size_t others = 0;
    for (size_t i = 0; i < w->n_handlers; i++)
        others += w->handlers[i]->pool != pool ? 1 : 0;
    if (others + n > HF_TYPES_MAX)
        return hf_say(detail, HF_INVALID, "expected at most %d handlers, found %zu",
                      HF_TYPES_MAX, others + n);
    for (size_t i = 0; i < n; i++) {
        const hf_handler *other =
            hf_handlers_find(w->handlers, w->n_handlers, list[i]->type);
        if (other != NULL && other->pool != pool)
            return hf_say(detail, HF_INVALID, "its type '%s' has %s already",
                          list[i]->type, owner_of(other));
    }
    return HF_OK;
}

/* The table is read by other threads, under plan_lock, and changed by the loop alone.
 * The worker registers its types again. */
static void put(hf_worker *w, const struct hf_supervisor *pool, hf_handler *const *list,
                size_t n_list)
{
    size_t n = 0;
    pthread_mutex_lock(&w->plan_lock);
    for (size_t i = 0; i < w->n_handlers; i++) {
        if (w->handlers[i]->pool == pool)
            hf_handler_unref(w->handlers[i]);
        else
            w->handlers[n++] = w->handlers[i];
    }
    for (size_t i = 0; i < n_list; i++)
        w->handlers[n++] = hf_handler_ref(list[i]);
    w->n_handlers = n;
    w->only_programs = hf_handlers_only_programs(w->handlers, n);
    pthread_mutex_unlock(&w->plan_lock);
    for (size_t i = 0; i < hf_queues_count(w); i++)
        hf_queues_at(w, i)->registration.done = false;
    hf_sites_register(w);
    w->offered_due = w->heartbeat_due = w->turn_due = true;
}

hf_err hf_offer_take(hf_offer *offer, hf_worker *w, const hf_pool_spec *spec,
                     struct hf_supervisor *pool, hf_ready *ready,
                     char detail[HF_DETAIL_SIZE])
{
    hf_handler **list = NULL;
    hf_err err = make(&list, w, spec, pool, ready, detail);
    if (err == HF_OK)
        err = check(w, pool, list, ready->n_types, detail);
    if (err != HF_OK) {
        free_handlers(list, list == NULL ? 0 : ready->n_types);
        hf_ready_free(ready);
        return err;
    }
    put(w, pool, list, ready->n_types);
    free_handlers(offer->handlers, offer->n);
    if (offer->ready != ready)
        hf_ready_free(offer->ready);
    *offer = (hf_offer){ready, list, ready->n_types};
    return HF_OK;
}

void hf_offer_report(const hf_offer *offer, hf_worker *w, const char *pool)
{
    for (size_t i = 0; i < offer->ready->n_types; i++) {
        const hf_ready_type *type = &offer->ready->types[i];
        const hf_log_field fields[] = {{.key = "pool", .text = pool},
                                       {.key = "queue", .text = type->queue},
                                       {.key = "type", .text = type->type}};
        if (!w->opts.offered_queues && type->queue[0] != '\0' &&
            hf_queues_find(w, type->queue) == NULL)
            hf_report(w, HF_LOG_WARN, "a type of a pool is in a queue that is not served",
                      fields, 3);
    }
}

void hf_offer_renew(hf_offer *offer, hf_worker *w, const hf_pool_spec *spec,
                    struct hf_supervisor *pool)
{
    char detail[HF_DETAIL_SIZE];
    hf_handler **list = NULL;
    if (offer->ready == NULL || make(&list, w, spec, pool, offer->ready, detail) != HF_OK)
        return;
    put(w, pool, list, offer->n);
    free_handlers(offer->handlers, offer->n);
    offer->handlers = list;
}

void hf_offer_drop(hf_offer *offer, hf_worker *w)
{
    if (offer->n > 0)
        put(w, offer->handlers[0]->pool, NULL, 0);
    hf_offer_free(offer);
}

void hf_offer_free(hf_offer *offer)
{
    free_handlers(offer->handlers, offer->n);
    hf_ready_free(offer->ready);
    *offer = (hf_offer){.n = 0};
}
