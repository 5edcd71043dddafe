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

typedef struct renewal {
    const hf_served *served; /* the queue of all of them */
    hf_site *site;           /* that was asked */
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

/* How near its end the renewal was. If it was late, a program's minder has acted. */
static void count_margin(const renewal *r)
{
    hf_worker *w = r->site->worker;
    const uint64_t now = hf_boot_ns();
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < r->batch->n; i++) {
        const uint64_t end = hf_lease_deadline_ns(r->batch->leases[i]);
        const uint64_t left = end > now ? end - now : 0;
        if (hf_lease_is_held(r->codes[i]))
            least = left < least ? left : least;
    }
    if (least == UINT64_MAX)
        return;
    hf_counters_margin(w->counters, least, now);
    if (least >= w->opts.kill_grace_ms * HF_MS_NS)
        return;
    pthread_mutex_lock(&w->note_lock);
    r->site->watch.late = true;
    r->site->watch.left_ns = least;
    pthread_mutex_unlock(&w->note_lock);
    uv_async_send(&w->async);
}

static void answer_watchdog(renewal *r, hf_err err)
{
    if (err == HF_OK)
        count_margin(r);
    hf_watchdog_answer(r->batch, err, r->sent_ns, err == HF_OK ? r->codes : NULL,
                       r->notes);
    free_renewal(r);
}

/* A lease whose job is marked as cancelled counts as not renewed, too: its next renewal
 * says again that it is marked. */
static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    renewal *r = arg;
    hf_worker *w = r->site->worker;
    if (r->served->site != r->site)
        err = HF_UNSURE; /* the new site has to confirm it */
    for (size_t i = 0; err != HF_OK && i < r->batch->n; i++)
        if (r->codes[i] == HF_OK || r->codes[i] == HF_CANCEL)
            r->codes[i] = HF_UNCONFIRMED;
    if (err == HF_UNCONFIRMED) {
        pthread_mutex_lock(&w->note_lock);
        r->site->watch.confirm_err = err;
        snprintf(r->site->watch.confirm_detail, sizeof r->site->watch.confirm_detail,
                 "%s", detail);
        pthread_mutex_unlock(&w->note_lock);
        uv_async_send(&w->async);
    }
    answer_watchdog(r, HF_OK);
}

static void confirm(renewal *r)
{
    const hf_worker *w = r->site->worker;
    r->confirm =
        (hf_confirm){.wanted = w->opts.wait_replicas,
                     .until_ns = hf_boot_ns() + w->opts.wait_replicas_ms * HF_MS_NS,
                     .cb = on_confirmed,
                     .arg = r};
    hf_node_second_confirm(&r->site->base, &r->confirm);
}

/* It is renewed in a moment, where the queue is served by then. */
static void note_unserved(hf_site *site)
{
    hf_worker *w = site->worker;
    pthread_mutex_lock(&w->note_lock);
    site->watch.unserved = true;
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
    if (hf_node_answered(&r->site->base, NULL, answer))
        note_unserved(r->site);
    if (err == HF_OK && settled.n != 0 && settled.n != batch->n)
        err = HF_PROTO;
    for (size_t i = 0; err == HF_OK && i < batch->n; i++)
        codes[i] = (hf_err)hf_reply_int(hf_reply_at(settled.codes, i));
    r->sent_ns = answer->sent_ns;
    if (err == HF_OK && r->site->base.second.replicas != NULL) {
        confirm(r);
        return;
    }
    answer_watchdog(r, err);
}

/* NULL: out of memory. */
static renewal *new_renewal(const hf_served *served, hf_site *site, hf_renew_batch *batch,
                            const hf_notes_taken *taken)
{
    renewal *r = malloc(sizeof *r + batch->n * sizeof r->codes[0]);
    if (r == NULL)
        return NULL;
    *r = (renewal){.served = served, .site = site, .batch = batch};
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
static void renew(hf_renew_batch *batch, void *arg)
{
    hf_worker *w = arg;
    hf_renew_item items[HF_VERDICTS_MAX];
    hf_run *runs[HF_VERDICTS_MAX];
    hf_notes_taken taken;
    HF_ASSERT(batch->n > 0 && batch->n <= HF_VERDICTS_MAX);
    for (size_t i = 0; i < batch->n; i++) {
        runs[i] = hf_lease_user(batch->leases[i]);
        items[i] = (hf_renew_item){.id = runs[i]->id, .fence = runs[i]->fence};
    }
    const hf_served *served = runs[0]->served;
    hf_site *site = served->site;
    hf_client *client = site->base.second.client;
    hf_notes_take(&taken, runs, batch->n);
    hf_renew_args args = {.worker = w->id,
                          .lease_ms = w->opts.lease_ms,
                          .not_after = hf_site_not_after(site),
                          .alive_ms = w->opts.lease_ms + HF_ALIVE_MS,
                          .notes = taken.notes,
                          .n_notes = taken.n_notes};
    renewal *r = new_renewal(served, site, batch, &taken);
    hf_err err = r == NULL ? HF_NOMEM : HF_CONN;
    if (r != NULL && client != NULL &&
        (w->opts.wait_replicas == 0 || hf_node_second_replicas(&site->base) == HF_OK)) {
        err = hf_op_renew(client, &served->queue, &args, items, batch->n,
                          batch->timeout_ms, on_renewed, r);
    }
    if (err == HF_OK && batch->full)
        hf_client_flush(client);
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

void hf_leases_on_watch(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    const hf_client *client = site->base.second.client;
    uint64_t connected = 0;
    bool quiet = client != NULL && hf_client_was_idle(client);
    if (err == HF_OK)
        atomic_store(&site->unwatched_ns, 0);
    else
        atomic_compare_exchange_strong(&site->unwatched_ns, &connected, hf_boot_ns());
    pthread_mutex_lock(&w->note_lock);
    site->watch.is_back = err == HF_OK;
    if (err != HF_OK && !quiet) {
        site->watch.err = err;
        snprintf(site->watch.detail, sizeof site->watch.detail, "%s", detail);
    }
    pthread_mutex_unlock(&w->note_lock);
    uv_async_send(&w->async);
    if (err == HF_OK)
        hf_watchdog_verify(w->watchdog); /* the gap may have ended leases */
}

/* The sites come and go. */
static void on_call(hf_watchdog *watchdog, uv_loop_t *loop, void *arg)
{
    hf_worker *w = arg;
    (void)watchdog;
    hf_nodes_second_turn(&w->nodes, loop);
}

/* No thread but this one is left. */
static void on_stop(void (*closed)(void *arg), void *closed_arg, void *arg)
{
    hf_worker *w = arg;
    hf_nodes_second_close(&w->nodes, closed, closed_arg);
}

/* ---- for the other parts ---- */

hf_err hf_leases_start(hf_worker *w)
{
    hf_watchdog_opts opts = {
        .request_timeout_ms = w->registry->base.redis->request_timeout_ms,
        .renew = renew,
        .on_event = on_event,
        .on_call = on_call,
        .on_stop = on_stop,
        .arg = w,
    };
    hf_err err = hf_watchdog_start(&w->watchdog, &opts);
    if (err == HF_OK)
        hf_watchdog_call(w->watchdog, hf_boot_ns());
    return err;
}

static void report_late(hf_site *site, uint64_t left_ns)
{
    const uint64_t now = hf_boot_ns();
    if (site->watch.late_logged_ns != 0 &&
        now - site->watch.late_logged_ns < HF_REMIND_MS * HF_MS_NS)
        return;
    site->watch.late_logged_ns = now;
    hf_report(
        site->worker, HF_LOG_WARN, "leases were renewed late",
        (hf_log_field[]){{.key = "left_ms", .number = (int64_t)(left_ns / HF_MS_NS)}}, 1);
}

/* If tries came faster than the loop turned, only the last one is logged. */
void hf_leases_report(hf_site *site)
{
    hf_worker *w = site->worker;
    char detail[HF_DETAIL_SIZE], confirm_detail[HF_DETAIL_SIZE];
    pthread_mutex_lock(&w->note_lock);
    hf_err err = site->watch.err;
    bool is_back = site->watch.is_back;
    hf_err confirm_err = site->watch.confirm_err;
    memcpy(confirm_detail, site->watch.confirm_detail, sizeof confirm_detail);
    site->watch.confirm_err = HF_OK;
    memcpy(detail, site->watch.detail, sizeof detail);
    site->watch.err = HF_OK;
    site->watch.is_back = false;
    bool unserved = site->watch.unserved;
    site->watch.unserved = false;
    const bool late = site->watch.late;
    const uint64_t left_ns = site->watch.left_ns;
    site->watch.late = false;
    pthread_mutex_unlock(&w->note_lock);
    if (late)
        report_late(site, left_ns);
    if (err != HF_OK)
        hf_report_outage(w, &site->watch.outage, "the watchdog's connection is away", err,
                         detail);
    if (is_back)
        site->watch.outage = (hf_outage){HF_OK, 0};
    if (unserved || err != HF_OK)
        (void)hf_site_unserved(site, HF_UNSERVED, detail);
    if (confirm_err != HF_OK)
        hf_site_confirm_report(site, confirm_err, confirm_detail);
}
