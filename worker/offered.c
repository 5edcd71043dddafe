/* offered.c - see offered.h. */
#include "worker/offered.h"

#include <string.h>

#include "base/base.h"
#include "worker/node/sites.h"
#include "worker/pool/supervisors.h"
#include "worker/queues/queues.h"
#include "worker/register.h"
#include "worker/report.h"
#include "worker/schedules.h"

typedef struct offers {
    const hf_ready *list[HF_SUPERVISORS_MAX];
    size_t n;
} offers;

static offers offers_of(const hf_worker *w)
{
    offers all;
    all.n = hf_supervisors_offers(w, all.list);
    return all;
}

/* ---- queues ---- */

/* "" : `default`, which is named by the options. */
static bool names(const hf_ready *ready, const char *queue)
{
    for (size_t i = 0; i < ready->n_types; i++)
        if (strcmp(ready->types[i].queue, queue) == 0)
            return true;
    for (size_t i = 0; i < ready->n_schedules; i++)
        if (strcmp(ready->schedules[i].queue, queue) == 0)
            return true;
    return false;
}

static bool any_names(const offers *all, const char *queue)
{
    for (size_t i = 0; i < all->n; i++)
        if (names(all->list[i], queue))
            return true;
    return false;
}

static hf_err plan_queue(hf_plan_queue *out, const char *ns, const char *name)
{
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = name};
    hf_err err = hf_plan_queue_of(out, ns, &queue, NULL);
    out->offered = true;
    return err;
}

void hf_offered_keep(const hf_worker *w, hf_plan *plan)
{
    for (size_t i = 0; i < hf_queues_wholes(w); i++) {
        const hf_whole *whole = hf_queues_whole(w, i);
        const char *name = hf_queue_whole_name(whole);
        if (whole->offered && plan->opts.offered_queues &&
            plan->n_queues < HF_QUEUES_MAX && hf_plan_find(plan, name) == NULL &&
            plan_queue(&plan->queues[plan->n_queues], plan->ns, name) == HF_OK)
            plan->n_queues++;
    }
}

/* A list of the queues that are served, while it changes. */
typedef struct serving {
    hf_whole *list[HF_QUEUES_MAX];
    size_t n, left, added;
} serving;

static void drop_old(hf_worker *w, const offers *all, serving *to)
{
    for (size_t i = 0; i < hf_queues_wholes(w); i++) {
        hf_whole *whole = hf_queues_whole(w, i);
        if (!whole->offered || any_names(all, hf_queue_whole_name(whole))) {
            to->list[to->n++] = whole;
            continue;
        }
        hf_report_text(w, HF_LOG_INFO, "no program names this queue any more", "queue",
                       hf_queue_whole_name(whole));
        hf_queue_whole_leave(whole);
        to->left++;
    }
}

static void add(hf_worker *w, const char *name, serving *to)
{
    hf_plan_queue queue;
    const hf_whole *known = hf_queues_find(w, name);
    if (name[0] == '\0' || (known != NULL && !hf_queue_whole_is_gone(known)))
        return;
    if (to->n == HF_QUEUES_MAX || (known == NULL && hf_queues_room(w) == 0) ||
        plan_queue(&queue, w->ns, name) != HF_OK) {
        hf_report_text(w, HF_LOG_ERROR,
                       "a queue of a program is not served: there are too many", "queue",
                       name);
        return;
    }
    to->list[to->n++] = hf_queues_put(w, &queue);
    to->added++;
    hf_report_text(w, HF_LOG_INFO, "a program names this queue: it is served", "queue",
                   name);
}

/* True: something has changed. */
static bool take_queues(hf_worker *w, const offers *all)
{
    serving now = {.n = 0};
    drop_old(w, all, &now);
    for (size_t i = 0; w->opts.offered_queues && i < all->n; i++) {
        const hf_ready *ready = all->list[i];
        for (size_t k = 0; k < ready->n_types; k++)
            add(w, ready->types[k].queue, &now);
        for (size_t k = 0; k < ready->n_schedules; k++)
            add(w, ready->schedules[k].queue, &now);
    }
    if (now.left + now.added == 0)
        return false;
    hf_queues_order(w, now.list, now.n);
    hf_queues_changed(w, now.left > 0);
    hf_register_left(w);
    w->heartbeat_due = true;
    return true;
}

/* ---- all of it ---- */

void hf_offered_turn(hf_worker *w)
{
    if (!w->offered_due || (w->phase != HF_STARTING && w->phase != HF_SERVING))
        return;
    w->offered_due = false;
    const offers all = offers_of(w);
    bool queues = take_queues(w, &all);
    bool schedules = hf_schedules_offer(w, all.list, all.n);
    if (queues || schedules)
        hf_sites_register(w);
}
