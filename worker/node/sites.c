/* sites.c - worker/node/sites.h. A site that no queue has is closed when everything there
 * was answered. */
#include "worker/node/sites.h"

#include <stdlib.h>

#include "base/base.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/worker.h"

/* ---- sites come and go ---- */

static void free_site(hf_site *site)
{
    if (site == NULL)
        return;
    site->worker->hooks->free_watch(site);
    hf_server_close(site->redis);
    free(site);
}

/* Takes the server over, also if it fails. */
static hf_site *new_site(hf_worker *w, hf_server *server)
{
    hf_site *site = calloc(1, sizeof *site);
    if (site != NULL)
        site->worker = w;
    if (site == NULL || w->hooks->new_watch(site) != HF_OK) {
        hf_server_close(server);
        free(site);
        return NULL;
    }
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
static void leave_site(hf_worker *w, size_t i)
{
    hf_site *site = w->sites[i];
    pthread_mutex_lock(&w->note_lock);
    w->sites[i] = w->sites[--w->n_sites];
    site->next = w->leaving;
    w->leaving = site;
    pthread_mutex_unlock(&w->note_lock);
    hf_site_disconnect(site);
    close_timer(site);
    w->hooks->leave(site);
}

/* ---- which site ---- */

/* NULL: the table does not tell, or there is no memory. */
hf_site *hf_sites_of_slot(hf_worker *w, unsigned key_slot)
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
        leave_site(w, w->n_sites - 1);
        return NULL;
    }
    w->hooks->watch(w);
    return site;
}

hf_site *hf_sites_find(hf_worker *w, unsigned key_slot)
{
    if (hf_cluster_is_plain(w->cluster))
        return w->sites[0];
    hf_site *site = hf_sites_of_slot(w, key_slot);
    return site == NULL ? w->nowhere : site;
}

/* The table has changed, or why the nodes do not tell it. At the start a reason that
 * waiting does not change ends the worker. */
static void on_change(void *arg)
{
    hf_worker *w = arg;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_cluster_status(w->cluster, why);
    if (w->phase == HF_STARTING && hf_err_is(err, HF_ERR_LASTS)) {
        w->hooks->on_unusable(w, err, why);
        return;
    }
    w->reroute = w->turn_due = true;
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
    return err;
}

hf_err hf_sites_connect(hf_worker *w)
{
    if (!hf_cluster_is_plain(w->cluster))
        return hf_cluster_watch(w->cluster, &w->loop, on_change, w);
    return hf_site_connect(w->sites[0], w->detail);
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
    for (hf_site *site; (site = w->leaving) != NULL;) {
        w->leaving = site->next;
        free_site(site);
    }
    free_site(w->nowhere);
    w->nowhere = NULL;
    hf_cluster_unshare(w->cluster);
}

bool hf_sites_ready(const hf_worker *w)
{
    for (size_t i = 0; i < w->n_sites; i++)
        if (hf_site_ready(w->sites[i]))
            return true;
    return false;
}

static void reap(hf_worker *w)
{
    for (hf_site **at = &w->leaving; *at != NULL;) {
        hf_site *site = *at;
        if (!site->timer_closed || !w->hooks->has_left(site)) {
            at = &site->next;
            continue;
        }
        pthread_mutex_lock(&w->note_lock);
        *at = site->next;
        pthread_mutex_unlock(&w->note_lock);
        free_site(site);
    }
}

void hf_sites_reap(hf_worker *w, bool (*is_needed)(const hf_worker *w, const hf_site *s))
{
    for (size_t i = w->n_sites; i-- > 0;)
        if (!is_needed(w, w->sites[i]))
            leave_site(w, i);
    reap(w);
}
