/* sites.c - worker/node/sites.h. A site that no queue has is closed when everything there
 * was answered. */
#include "worker/node/sites.h"

#include "base/base.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/worker.h"

static hf_site *site_of(hf_node *base)
{
    return HF_CONTAINER(base, hf_site, base);
}

/* ---- sites come and go ---- */

static hf_err on_open(hf_node *base)
{
    hf_site *site = site_of(base);
    hf_worker *w = base->nodes->opts.owner;
    hf_err err = w->opts.wait_replicas > 0 ? hf_node_replicas(base) : HF_OK;
    if (err != HF_OK)
        return err;
    site->worker = w;
    uv_timer_init(&w->loop, &site->pause_timer);
    site->pause_timer.data = site;
    base->open++;
    return HF_OK;
}

static void on_timer_closed(uv_handle_t *timer)
{
    hf_site *site = timer->data;
    hf_node_closed(&site->base);
}

static void on_leave(hf_node *base)
{
    uv_close((uv_handle_t *)&site_of(base)->pause_timer, on_timer_closed);
}

/* The table has changed, or why the nodes do not tell it. At the start a reason that
 * waiting does not change ends the worker. */
static void on_change(void *owner)
{
    hf_worker *w = owner;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_cluster_status(w->nodes.cluster, why);
    if (w->phase == HF_STARTING && hf_err_is(err, HF_ERR_LASTS)) {
        w->hooks->on_unusable(w, err, why);
        return;
    }
    w->reroute = w->turn_due = true;
}

static bool needs(void *owner, const hf_node *base)
{
    const hf_worker *w = owner;
    return w->hooks->is_needed(w, HF_CONTAINER(base, hf_site, base));
}

/* ---- the watchdog ---- */

/* Before it runs it is told all when it starts. */
static void call_watchdog(void *owner, uint64_t when_ns)
{
    const hf_worker *w = owner;
    if (w->watchdog != NULL)
        hf_watchdog_call(w->watchdog, when_ns);
}

static void wake(void *owner)
{
    hf_worker *w = owner;
    uv_async_send(&w->async);
}

static void on_watch(hf_node *base, hf_err err, const char *detail)
{
    hf_site *site = site_of(base);
    site->worker->hooks->on_watch(site, err, detail);
}

static const hf_nodes_hooks hooks = {.on_open = on_open,
                                     .on_event = hf_site_on_event,
                                     .on_change = on_change,
                                     .needs = needs,
                                     .on_leave = on_leave,
                                     .call_second = call_watchdog,
                                     .wake = wake,
                                     .on_second = on_watch};

/* ---- which site ---- */

hf_site *hf_sites_find(hf_worker *w, unsigned key_slot)
{
    return site_of(hf_nodes_find(&w->nodes, key_slot));
}

void hf_sites_register(hf_worker *w)
{
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        site->register_due = true;
}

bool hf_sites_ready(const hf_worker *w)
{
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        if (hf_site_ready(site))
            return true;
    return false;
}

/* ---- the start and the end ---- */

/* Its server is never asked: its time is not known. */
static hf_err make_nowhere(hf_worker *w)
{
    hf_site *site = site_of(w->nodes.away);
    hf_err err = hf_server_open(&site->base.redis, &w->server, w->detail);
    if (err != HF_OK)
        return err;
    site->worker = w;
    return HF_OK;
}

hf_err hf_sites_open(hf_worker *w)
{
    const hf_nodes_opts opts = {
        .node_size = sizeof(hf_site), .ns = w->ns, .hooks = &hooks, .owner = w};
    hf_err err = hf_nodes_open(&w->nodes, &w->server, &opts, w->detail);
    if (err != HF_OK)
        return err;
    if (!hf_cluster_is_plain(w->nodes.cluster))
        err = make_nowhere(w);
    if (err == HF_OK)
        err = hf_nodes_start(&w->nodes, &w->loop, w->detail);
    w->registry = site_of(w->nodes.home);
    return err;
}

void hf_sites_close(hf_worker *w)
{
    hf_nodes_close(&w->nodes, NULL, NULL);
}

void hf_sites_free(hf_worker *w)
{
    hf_nodes_free(&w->nodes);
}
