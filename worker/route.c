/* route.c - the sites of a worker, and which of them each queue has (worker/site.h).
 *
 * The one Redis of a plain URL is there from the start, and has all queues. In a cluster
 * each queue is in one slot, and has the site of the node that serves it. The table of
 * slots changes: then the queue moves to another site. Requests that are under way at its
 * old site are answered there; those without an answer are sent again at the new one. A
 * site that no queue has is closed when everything there was answered.
 *
 * Before the nodes have told the table a queue is nowhere: that is a site, too, which is
 * never connected. Once a queue has been somewhere it stays until another node serves it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/keys.h"
#include "worker/leases.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/site.h"
#include "worker/waking.h"

/* ---- sites come and go ---- */

static void free_site(hf_site *site)
{
    if (site == NULL)
        return;
    hf_leases_site_free(site);
    hf_server_close(site->redis);
    free(site);
}

/* Takes the server over, also if it fails. */
static hf_site *new_site(hf_worker *w, hf_server *server)
{
    hf_site *site = calloc(1, sizeof *site);
    if (site == NULL || hf_leases_site_new(site) != HF_OK) {
        hf_server_close(server);
        free(site);
        return NULL;
    }
    site->worker = w;
    site->redis = server;
    return site;
}

/* The same. NULL: no memory, or no place. */
static hf_site *add_site(hf_worker *w, hf_server *server)
{
    hf_site *site = new_site(w, server);
    if (site == NULL || w->n_sites == HF_SITES_MAX) {
        free_site(site);
        return NULL;
    }
    uv_timer_init(&w->loop, &site->pause_timer);
    site->pause_timer.data = site;
    pthread_mutex_lock(&w->note_lock);
    w->sites[w->n_sites++] = site;
    pthread_mutex_unlock(&w->note_lock);
    return site;
}

static void on_timer_closed(uv_handle_t *timer)
{
    hf_site *site = timer->data;
    site->timer_closed = true;
}

static void close_timer(hf_site *site)
{
    uv_handle_t *timer = (uv_handle_t *)&site->pause_timer;
    if (!uv_is_closing(timer))
        uv_close(timer, on_timer_closed);
}

/* It is freed when its timer and the watchdog's connection are closed. */
static void part_with(hf_worker *w, size_t i)
{
    hf_site *site = w->sites[i];
    pthread_mutex_lock(&w->note_lock);
    w->sites[i] = w->sites[--w->n_sites];
    site->next = w->parting;
    w->parting = site;
    pthread_mutex_unlock(&w->note_lock);
    hf_site_disconnect(site);
    close_timer(site);
    hf_leases_part(site);
}

static void reap(hf_worker *w)
{
    for (hf_site **at = &w->parting; *at != NULL;) {
        hf_site *site = *at;
        if (!site->timer_closed || !hf_leases_parted(site)) {
            at = &site->next;
            continue;
        }
        pthread_mutex_lock(&w->note_lock);
        *at = site->next;
        pthread_mutex_unlock(&w->note_lock);
        free_site(site);
    }
}

static bool is_needed(const hf_worker *w, const hf_site *site)
{
    if (site == w->registry || hf_client_in_flight(site->client) > 0)
        return true;
    for (size_t i = 0, n = hf_queues_slots(w); i < n; i++)
        if (hf_queues_slot(w, i)->site == site)
            return true;
    return false;
}

/* ---- routes ---- */

/* NULL: the table does not tell, or there is no memory. */
static hf_site *site_of(hf_worker *w, unsigned key_slot)
{
    char detail[HF_DETAIL_SIZE];
    hf_server *server = hf_cluster_server(w->cluster, key_slot);
    if (server == NULL)
        return NULL;
    for (size_t i = 0; i < w->n_sites; i++)
        if (w->sites[i]->redis == server) {
            hf_server_close(server);
            return w->sites[i];
        }
    hf_site *site = add_site(w, server);
    if (site == NULL)
        return NULL;
    if (hf_site_connect(site, detail) != HF_OK) {
        part_with(w, w->n_sites - 1);
        return NULL;
    }
    hf_leases_watch(w);
    return site;
}

hf_site *hf_sites_find(hf_worker *w, unsigned key_slot)
{
    if (hf_cluster_is_plain(w->cluster))
        return w->sites[0];
    hf_site *site = site_of(w, key_slot);
    return site == NULL ? w->nowhere : site;
}

static void report_moved(const hf_served *served)
{
    hf_log_field fields[3];
    size_t n = hf_queue_fields(served, fields);
    fields[n++] = (hf_log_field){.key = "to", .text = served->site->redis->place};
    hf_report(served->worker, HF_LOG_INFO, "another node serves a queue", fields, n);
}

static void route_queue(hf_served *served)
{
    hf_site *site = site_of(served->worker, served->key_slot);
    bool moved = served->site != served->worker->nowhere;
    if (site == NULL || site == served->site)
        return;
    hf_queue_move(served, site);
    if (moved)
        report_moved(served);
}

static void route_registry(hf_worker *w)
{
    char prefix[HF_KEY_SIZE];
    hf_key_registry(prefix, w->ns);
    hf_site *site = site_of(w, hf_slot(prefix, strlen(prefix)));
    if (site == NULL || site == w->registry)
        return;
    w->registry = site;
    hf_beat_send(w);
}

static void route_all(hf_worker *w)
{
    for (size_t i = 0, n = hf_queues_slots(w); i < n; i++)
        if (hf_queues_slot(w, i)->state != HF_Q_FREE)
            route_queue(hf_queues_slot(w, i));
    route_registry(w);
}

void hf_sites_turn(hf_worker *w)
{
    if (hf_cluster_is_plain(w->cluster))
        return;
    if (w->reroute) {
        w->reroute = false;
        route_all(w);
    }
    for (size_t i = w->n_sites; i-- > 0;)
        if (!is_needed(w, w->sites[i]))
            part_with(w, i);
    reap(w);
}

void hf_site_unserved(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    if (w->phase == HF_ENDED)
        return;
    if (err == HF_MOVED)
        hf_cluster_moved(w->cluster, site->redis, detail);
    else
        hf_cluster_doubt(w->cluster);
    w->reroute = true;
}

/* The table has changed, or why the nodes do not tell it. At the start a reason that
 * waiting does not change ends the worker. */
static void on_change(void *arg)
{
    hf_worker *w = arg;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_cluster_status(w->cluster, why);
    if (w->phase == HF_STARTING &&
        (err == HF_AUTH || err == HF_CONFIG || err == HF_UNSUPPORTED)) {
        hf_life_refuse(w, err, why);
        return;
    }
    w->reroute = true;
    hf_life_turn(w);
}

/* ---- the start and the end ---- */

static hf_err open_nowhere(hf_worker *w)
{
    hf_server *server;
    hf_err err = hf_server_open_any(&server, &w->server, w->detail);
    if (err != HF_OK)
        return err;
    w->nowhere = w->registry = new_site(w, server);
    return w->nowhere == NULL ? HF_NOMEM : HF_OK;
}

hf_err hf_sites_open(hf_worker *w)
{
    hf_err err = hf_cluster_open(&w->cluster, &w->server, w->detail);
    if (err != HF_OK)
        return err;
    w->table_open = true;
    (void)hf_cluster_share(w->cluster); /* for the watchdog */
    if (!hf_cluster_is_plain(w->cluster))
        err = open_nowhere(w);
    else if ((w->registry = add_site(w, hf_cluster_server(w->cluster, 0))) == NULL)
        err = HF_NOMEM;
    return err == HF_OK ? hf_queues_place(w) : err;
}

hf_err hf_sites_connect(hf_worker *w)
{
    if (!hf_cluster_is_plain(w->cluster))
        return hf_cluster_watch(w->cluster, &w->loop, on_change, w);
    hf_err err = hf_site_connect(w->sites[0], w->detail);
    return err == HF_OK ? hf_wake_connect(w) : err;
}

void hf_sites_close(hf_worker *w)
{
    bool open = w->table_open;
    w->table_open = false;
    for (size_t i = 0; i < w->n_sites; i++) {
        hf_site_disconnect(w->sites[i]);
        close_timer(w->sites[i]);
    }
    if (open)
        hf_cluster_close(w->cluster, NULL, NULL);
}

void hf_sites_free(hf_worker *w)
{
    for (size_t i = 0; i < w->n_sites; i++)
        free_site(w->sites[i]);
    w->n_sites = 0;
    for (hf_site *site; (site = w->parting) != NULL;) {
        w->parting = site->next;
        free_site(site);
    }
    free_site(w->nowhere);
    w->nowhere = NULL;
    hf_cluster_unshare(w->cluster);
}
