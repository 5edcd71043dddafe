/* leases.c - the worker's requests to the watchdog, and the watchdog's events.
 *
 * The watchdog's thread renews by hf_op_renew(), tells programs' minder the new deadline,
 * and raises the flags of a run at once; everything else it only notes for the loop. It
 * waits for nothing: not for the log, which may be a full pipe, not for a function of a
 * handler's, and for no lock but its own and `note_lock`, under which no thread waits. */
#include "worker/leases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/keys.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/program/programs.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/run.h"
#include "worker/worker.h"

enum { RETRY_MS = 1000, ALL_SITES = 2 * HF_SITES_MAX };

/* The watchdog's connection to one site. */
typedef struct hf_site_leases {
    hf_outage outage;
    /* under note_lock: events of the connection for the loop to log */
    hf_err err; /* the last failure; HF_OK: none */
    bool is_back;
    char detail[HF_DETAIL_SIZE];
    hf_err confirm_err; /* a renewal was not confirmed by replicas; HF_OK: none */
    char confirm_detail[HF_DETAIL_SIZE];
    bool unserved;    /* a renewal was refused: another node may have the queue */
    bool leave, left; /* it has to be closed; it is, and the thread is done with it */
    /* the watchdog's thread: */
    hf_client *client;     /* owned; NULL: not opened yet, or it is being closed */
    hf_replicas *replicas; /* owned; NULL: none were needed so far, or the same */
    unsigned closing;      /* those of the two that are not closed yet */
} hf_site_leases;

/* The watchdog's thread. */
typedef struct hf_leases {
    hf_watchdog *watchdog;
    unsigned closing; /* sites; then `closed` is called */
    void (*closed)(void *arg);
    void *closed_arg;
} hf_leases;

typedef struct renewal {
    hf_site *site;
    hf_renew_batch *batch;
    uint64_t sent_ns;
    hf_confirm confirm;
    hf_lease_note
        *notes; /* of each: what was reported of its run; owned, NULL: nothing */
    hf_err codes[];
} renewal;

static void free_renewal(renewal *r)
{
    if (r != NULL)
        free(r->notes);
    free(r);
}

/* How near its end the renewal was. */
static void count_margin(const renewal *r)
{
    const uint64_t now = hf_boot_ns();
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < r->batch->n; i++) {
        const uint64_t end = hf_lease_deadline_ns(r->batch->leases[i]);
        const uint64_t left = end > now ? end - now : 0;
        least = left < least ? left : least;
    }
    hf_counters_margin(r->site->worker->counters, least, now);
}

/* A lease whose job is marked as cancelled counts as not renewed, too: its next renewal
 * says again that it is marked. */
static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    renewal *r = arg;
    hf_worker *w = r->site->worker;
    hf_site_leases *watch = r->site->leases;
    if (hf_queues_slot(w, r->batch->group)->site != r->site)
        err = HF_UNSURE; /* the new site has to confirm it */
    for (size_t i = 0; err != HF_OK && i < r->batch->n; i++)
        if (r->codes[i] == HF_OK || r->codes[i] == HF_CANCEL)
            r->codes[i] = HF_UNCONFIRMED;
    if (err == HF_UNCONFIRMED) {
        pthread_mutex_lock(&w->note_lock);
        watch->confirm_err = err;
        snprintf(watch->confirm_detail, sizeof watch->confirm_detail, "%s", detail);
        pthread_mutex_unlock(&w->note_lock);
        uv_async_send(&w->async);
    }
    hf_watchdog_answer(r->batch, HF_OK, r->sent_ns, r->codes, r->notes);
    free_renewal(r);
}

static void confirm(renewal *r)
{
    const hf_worker *w = r->site->worker;
    const hf_site_leases *watch = r->site->leases;
    r->confirm =
        (hf_confirm){.life = hf_client_life(watch->client),
                     .wanted = w->opts.wait_replicas,
                     .until_ns = hf_boot_ns() + w->opts.wait_replicas_ms * HF_MS_NS,
                     .cb = on_confirmed,
                     .arg = r};
    hf_replicas_ask(watch->replicas, &r->confirm);
}

/* It is renewed in a moment, where the queue is served by then. */
static void note_unserved(hf_site *site, hf_err err, const char *words)
{
    hf_worker *w = site->worker;
    if (err == HF_MOVED)
        hf_cluster_moved(w->cluster, site->redis, words);
    pthread_mutex_lock(&w->note_lock);
    site->leases->unserved = true;
    pthread_mutex_unlock(&w->note_lock);
    uv_async_send(&w->async);
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    renewal *r = arg;
    hf_renew_batch *batch = r->batch;
    hf_settled settled;
    hf_err *codes = r->codes;
    hf_err err = hf_settled_read(answer, &settled);
    if (settled.now_ms != 0 &&
        hf_site_clock_sample(r->site, settled.now_ms, answer->sent_ns))
        uv_async_send(&r->site->worker->async);
    if (hf_err_is(err, HF_ERR_OF_CLUSTER))
        note_unserved(r->site, err, answer->detail);
    if (err == HF_OK && settled.n != 0 && settled.n != batch->n)
        err = HF_PROTO;
    for (size_t i = 0; err == HF_OK && i < batch->n; i++)
        codes[i] = (hf_err)hf_reply_int(hf_reply_at(settled.codes, i));
    r->sent_ns = answer->sent_ns;
    if (err == HF_OK)
        count_margin(r);
    if (err == HF_OK && r->site->leases->replicas != NULL) {
        confirm(r);
        return;
    }
    hf_watchdog_answer(batch, err, answer->sent_ns, err == HF_OK ? codes : NULL,
                       r->notes);
    free_renewal(r);
}

/* Whether the connection that waits for replicas is there, if any are wanted. */
static bool has_replicas(hf_site *site)
{
    const hf_worker *w = site->worker;
    hf_site_leases *watch = site->leases;
    char mark[HF_KEY_SIZE];
    if (w->opts.wait_replicas == 0 || watch->replicas != NULL)
        return true;
    hf_key_replicated(mark, w->ns);
    if (hf_replicas_open(&watch->replicas, hf_client_loop(watch->client), site->redis,
                         mark) != HF_OK)
        return false;
    hf_replicas_in_cluster(watch->replicas, w->cluster, w->ns);
    return true;
}

/* NULL: out of memory. */
static renewal *new_renewal(hf_site *site, hf_renew_batch *batch,
                            const hf_notes_taken *taken)
{
    renewal *r = malloc(sizeof *r + batch->n * sizeof r->codes[0]);
    if (r == NULL)
        return NULL;
    *r = (renewal){.site = site, .batch = batch};
    if (taken->n_notes == 0)
        return r;
    r->notes = calloc(batch->n, sizeof *r->notes);
    for (size_t i = 0; r->notes != NULL && i < batch->n; i++)
        r->notes[i].value = taken->numbers[i];
    return r;
}

/* On the watchdog's thread: reads what does not change while the worker runs, and what is
 * atomic. Its not_after keeps a renewal that lay in a buffer from holding a job for a
 * worker that has died meanwhile. */
static void renew(hf_client *none, hf_renew_batch *batch, void *arg)
{
    hf_worker *w = arg;
    hf_served *served = hf_queues_slot(w, batch->group);
    hf_site *site = served->site;
    hf_renew_item items[HF_VERDICTS_MAX];
    hf_run *runs[HF_VERDICTS_MAX];
    hf_notes_taken taken;
    (void)none;
    HF_ASSERT(batch->n > 0 && batch->n <= HF_VERDICTS_MAX);
    for (size_t i = 0; i < batch->n; i++) {
        runs[i] = hf_lease_user(batch->leases[i]);
        items[i] = (hf_renew_item){.id = runs[i]->id, .fence = runs[i]->fence};
    }
    hf_notes_take(&taken, runs, batch->n);
    hf_renew_args args = {.worker = w->id,
                          .lease_ms = w->opts.lease_ms,
                          .not_after = hf_site_not_after(site),
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .notes = taken.notes,
                          .n_notes = taken.n_notes};
    renewal *r = new_renewal(site, batch, &taken);
    hf_err err = r == NULL ? HF_NOMEM : HF_CONN;
    if (r != NULL && site->leases->client != NULL && has_replicas(site)) {
        err = hf_op_renew(site->leases->client, &served->queue, &args, items, batch->n,
                          batch->timeout_ms, on_renewed, r);
    }
    if (err == HF_OK && batch->full)
        hf_client_flush(site->leases->client);
    hf_notes_taken_free(&taken);
    if (err != HF_OK) {
        free_renewal(r);
        hf_watchdog_answer(batch, err, hf_boot_ns(), NULL, NULL);
    }
}

/* On the watchdog's thread. */
static void on_event(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    hf_run *run = user;
    (void)arg;
    if (event == HF_LEASE_RENEWED) {
        hf_lease_note note;
        hf_process *process = atomic_load(&run->process);
        if (hf_lease_is_held(hf_lease_answer(lease, &note)))
            hf_notes_answered(run, note.value);
        if (process != NULL)
            hf_program_extend(process, hf_lease_deadline_ns(lease));
    } else {
        atomic_store(event == HF_LEASE_LOST ? &run->lost : &run->cancelled, true);
        atomic_store(&run->stopping, true);
    }
    if (event != HF_LEASE_RENEWED || atomic_exchange(&run->await_renewal, false))
        hf_run_add_event(run, event);
}

/* ---- the watchdog's connections, on its thread ---- */

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_site *site = arg;
    hf_worker *w = site->worker;
    hf_site_leases *watch = site->leases;
    uint64_t connected = 0;
    bool quiet = client != NULL && hf_client_was_idle(client);
    if (err == HF_OK)
        atomic_store(&site->unwatched_ns, 0);
    else
        atomic_compare_exchange_strong(&site->unwatched_ns, &connected, hf_boot_ns());
    pthread_mutex_lock(&w->note_lock);
    watch->is_back = err == HF_OK;
    if (err != HF_OK && !quiet) {
        watch->err = err;
        snprintf(watch->detail, sizeof watch->detail, "%s", detail);
    }
    pthread_mutex_unlock(&w->note_lock);
    uv_async_send(&w->async);
    if (err == HF_OK)
        hf_watchdog_verify(w->leases->watchdog); /* the gap may have ended leases */
}

static void on_closed(void *arg)
{
    hf_site *site = arg;
    hf_worker *w = site->worker;
    hf_leases *leases = w->leases;
    if (--site->leases->closing > 0)
        return;
    pthread_mutex_lock(&w->note_lock);
    site->leases->left = true; /* from here on it may be freed */
    pthread_mutex_unlock(&w->note_lock);
    uv_async_send(&w->async);
    if (leases->closed != NULL && --leases->closing == 0)
        leases->closed(leases->closed_arg);
}

/* It is not known whether requests that are under way were executed. */
static void close_site(hf_site *site)
{
    hf_site_leases *watch = site->leases;
    hf_client *client = watch->client;
    hf_replicas *replicas = watch->replicas;
    if (watch->closing > 0)
        return;
    watch->client = NULL;
    watch->replicas = NULL;
    watch->closing = client == NULL ? 1 : 2;
    if (client != NULL)
        hf_client_close(client, on_closed, site);
    hf_replicas_close(replicas, on_closed, site);
}

static void open_site(hf_site *site, struct uv_loop_s *loop)
{
    hf_leases *leases = site->worker->leases;
    char detail[HF_DETAIL_SIZE];
    const hf_client_opts opts = {
        .loop = loop, .redis = site->redis, .on_event = on_client, .arg = site};
    hf_err err = hf_client_open(&site->leases->client, &opts, detail);
    if (err == HF_OK)
        return;
    on_client(NULL, err, detail, site);
    hf_watchdog_call(leases->watchdog, hf_boot_ns() + RETRY_MS * HF_MS_NS);
}

/* The sites that the thread is not done with. */
static size_t all_sites(hf_worker *w, hf_site *out[ALL_SITES])
{
    size_t n = 0;
    pthread_mutex_lock(&w->note_lock);
    for (size_t i = 0; i < w->n_sites; i++)
        out[n++] = w->sites[i];
    for (hf_site *site = w->leaving; site != NULL && n < ALL_SITES; site = site->next)
        if (!site->leases->left)
            out[n++] = site;
    pthread_mutex_unlock(&w->note_lock);
    return n;
}

static bool has_to_leave(hf_site *site)
{
    pthread_mutex_lock(&site->worker->note_lock);
    bool leave = site->leases->leave;
    pthread_mutex_unlock(&site->worker->note_lock);
    return leave;
}

/* Opens and closes connections, as the sites come and go. */
static void on_call(hf_watchdog *watchdog, hf_client *none, struct uv_loop_s *loop,
                    void *arg)
{
    hf_worker *w = arg;
    hf_site *sites[ALL_SITES];
    (void)none;
    w->leases->watchdog = watchdog;
    for (size_t i = 0, n = all_sites(w, sites); i < n; i++)
        if (has_to_leave(sites[i]))
            close_site(sites[i]);
        else if (sites[i]->leases->client == NULL)
            open_site(sites[i], loop);
}

/* No thread but this one is left. */
static void on_stop(void (*closed)(void *arg), void *closed_arg, void *arg)
{
    hf_worker *w = arg;
    hf_leases *leases = w->leases;
    hf_site *sites[ALL_SITES];
    size_t n = all_sites(w, sites);
    if (n == 0) {
        closed(closed_arg);
        return;
    }
    leases->closed = closed;
    leases->closed_arg = closed_arg;
    leases->closing = (unsigned)n;
    for (size_t i = 0; i < n; i++)
        close_site(sites[i]);
}

/* ---- for the other parts ---- */

hf_err hf_leases_new(hf_worker *w)
{
    w->leases = calloc(1, sizeof *w->leases);
    return w->leases == NULL ? HF_NOMEM : HF_OK;
}

void hf_leases_free(hf_worker *w)
{
    free(w->leases);
    w->leases = NULL;
}

hf_err hf_leases_new_site(hf_site *site)
{
    site->leases = calloc(1, sizeof *site->leases);
    return site->leases == NULL ? HF_NOMEM : HF_OK;
}

void hf_leases_free_site(hf_site *site)
{
    free(site->leases);
    site->leases = NULL;
}

hf_err hf_leases_start(hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    hf_watchdog_opts opts = {
        .request_timeout_ms = w->registry->redis->request_timeout_ms,
        .renew = renew,
        .on_event = on_event,
        .on_call = on_call,
        .on_stop = on_stop,
        .arg = w,
    };
    hf_err err = hf_watchdog_start(&w->watchdog, &opts, detail);
    if (err == HF_OK)
        hf_leases_watch(w);
    return err;
}

/* ---- on the loop ---- */

void hf_leases_watch(hf_worker *w)
{
    hf_watchdog_call(w->watchdog, hf_boot_ns());
}

void hf_leases_leave(hf_site *site)
{
    hf_worker *w = site->worker;
    pthread_mutex_lock(&w->note_lock);
    site->leases->leave = true;
    pthread_mutex_unlock(&w->note_lock);
    hf_leases_watch(w);
}

bool hf_leases_has_left(hf_site *site)
{
    pthread_mutex_lock(&site->worker->note_lock);
    bool left = site->leases->left;
    pthread_mutex_unlock(&site->worker->note_lock);
    return left;
}

/* If tries came faster than the loop turned, only the last one is logged. */
void hf_leases_report(hf_site *site)
{
    hf_worker *w = site->worker;
    hf_site_leases *watch = site->leases;
    char detail[HF_DETAIL_SIZE], confirm_detail[HF_DETAIL_SIZE];
    pthread_mutex_lock(&w->note_lock);
    hf_err err = watch->err;
    bool is_back = watch->is_back;
    hf_err confirm_err = watch->confirm_err;
    memcpy(confirm_detail, watch->confirm_detail, sizeof confirm_detail);
    watch->confirm_err = HF_OK;
    memcpy(detail, watch->detail, sizeof detail);
    watch->err = HF_OK;
    watch->is_back = false;
    bool unserved = watch->unserved;
    watch->unserved = false;
    pthread_mutex_unlock(&w->note_lock);
    if (err != HF_OK)
        hf_report_outage(w, &watch->outage, "the watchdog's connection is away", err,
                         detail);
    if (is_back)
        watch->outage = (hf_outage){HF_OK, 0};
    if (unserved || err != HF_OK)
        (void)hf_site_unserved(site, HF_UNSERVED, detail);
    if (confirm_err != HF_OK)
        hf_site_confirm_report(site, confirm_err, confirm_detail);
}
