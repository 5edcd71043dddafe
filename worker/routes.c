/* routes.c - worker/routes.h. */
#include "worker/routes.h"

#include <string.h>

#include "base/base.h"
#include "queue/keys.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/worker.h"

bool hf_routes_need(const hf_worker *w, const hf_site *site)
{
    if (site == w->registry)
        return true;
    for (size_t i = 0, n = hf_queues_slots(w); i < n; i++)
        if (hf_queues_slot(w, i)->site == site)
            return true;
    return false;
}

static void report_moved(const hf_served *served)
{
    hf_log_field fields[3];
    size_t n = hf_queue_fields(served, fields);
    fields[n++] = (hf_log_field){.key = "to", .text = served->site->base.redis->place};
    hf_report(served->worker, HF_LOG_INFO, "another node serves a queue", fields, n);
}

static void route_queue(hf_served *served)
{
    const hf_node *nowhere = served->worker->nodes.away;
    hf_site *site = hf_sites_find(served->worker, served->key_slot);
    bool moved = &served->site->base != nowhere;
    if (&site->base == nowhere || site == served->site)
        return;
    hf_queue_move(served, site);
    if (moved)
        report_moved(served);
}

static void route_registry(hf_worker *w)
{
    char prefix[HF_KEY_SIZE];
    hf_key_registry(prefix, w->ns);
    hf_site *site = hf_sites_find(w, hf_slot(prefix, strlen(prefix)));
    if (&site->base == w->nodes.away || site == w->registry)
        return;
    w->registry = site;
    w->heartbeat_due = true;
}

static void route_all(hf_worker *w)
{
    for (size_t i = 0, n = hf_queues_slots(w); i < n; i++)
        if (hf_queues_slot(w, i)->state != HF_Q_FREE)
            route_queue(hf_queues_slot(w, i));
    route_registry(w);
}

void hf_routes_turn(hf_worker *w)
{
    if (hf_cluster_is_plain(w->nodes.cluster))
        return;
    if (w->reroute) {
        w->reroute = false;
        route_all(w);
    }
    hf_nodes_tidy(&w->nodes);
}
