/* beat.c - how a worker shows that it lives: its heartbeat in Redis, and its pulse for a
 * supervisor of this process.
 *
 * The pulse rises when Redis has answered a claim or a check and the loop came round. An
 * idle worker claims nothing, but its waits end with a check; and a timer always leads to
 * one (wake.c). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "worker/leases.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/shared.h"
#include "worker/site.h"

/* ---- the heartbeat ---- */

enum {
    BEAT_MS = 10000, /* heartbeats, which hold for three */
    SLOTS_MS = 1000, /* at least between two of them, when slots become busy or free */
    JSON_MAX = 32 << 10,
    END_ROOM = 32
};

typedef struct hf_beat {
    uv_timer_t timer;
    bool beating, beat_again; /* a heartbeat is under way; another one follows */
    hf_err beat_refused;      /* why, as it was logged last */
    const char *shown;        /* the state that was shown last; NULL: none */
    uint32_t shown_running;   /* and how many jobs ran */
    uint64_t sent_ns;         /* the last one */
    bool soon;                /* the timer comes before its time */
    int64_t started_ms;       /* Redis's clock */
    _Atomic uint64_t pulse;
    _Atomic uint32_t running_now;
} hf_beat;

static const char *state_of(const hf_worker *w)
{
    if (w->phase != HF_SERVING)
        return "stopping";
    return w->quiet ? "quiet" : "serving";
}

/* Names are [A-Za-z0-9._:-]: nothing needs escaping. False: some did not fit. */
static bool add_types(const hf_worker *w, hf_buf *json)
{
    for (size_t i = 0; i < w->n_handlers; i++) {
        const char *type = w->handlers[i]->type;
        if (json->len + HF_ID_SIZE + END_ROOM > JSON_MAX)
            return false;
        hf_buf_printf(json, "%s\"%s\"", i == 0 ? "" : ",", type);
    }
    return true;
}

static void write_json(const hf_worker *w, hf_buf *json)
{
    int64_t now_ms = hf_server_now(w->registry->redis);
    hf_buf_printf(json,
                  "{\"v\":1,\"id\":\"%s\",\"host\":\"%s\",\"pid\":%ld,"
                  "\"version\":\"" HOLDFAST_VERSION "\",\"state\":\"%s\","
                  "\"concurrency\":%u,\"running\":%u,\"started_ms\":%lld,"
                  "\"now_ms\":%lld,\"queues\":[",
                  w->id, w->host, (long)getpid(), state_of(w), w->opts.concurrency,
                  hf_running_now(w), (long long)w->beat->started_ms, (long long)now_ms);
    for (size_t i = 0; i < hf_wholes_count(w); i++)
        hf_buf_printf(json, "%s\"%s\"", i == 0 ? "" : ",",
                      hf_whole_name(hf_wholes_at(w, i)));
    hf_buf_text(json, "],\"types\":[");
    bool all = add_types(w, json);
    hf_buf_text(json, all ? "]}" : "],\"types_cut\":true}");
}

/* Without heartbeats `holdfast worker list` takes this worker for one that went silent. A
 * connection that is away is logged elsewhere. */
static void report_refusal(hf_worker *w, const hf_answer *answer)
{
    hf_err err = answer->err;
    if (err == HF_MOVED || err == HF_UNSERVED)
        hf_site_unserved(w->registry, HF_UNSERVED, answer->detail);
    if (err == HF_MOVED || err == HF_UNSERVED || err == HF_UNSURE || err == HF_NOSCRIPT ||
        err == HF_CLOSED || err == HF_CONN || err == HF_TIMEOUT)
        return;
    if (err != HF_OK && err != w->beat->beat_refused)
        hf_report_text(w, HF_LOG_WARN, "Redis refuses the heartbeat", "error",
                       answer->detail);
    else if (err == HF_OK && w->beat->beat_refused != HF_OK)
        hf_report_text(w, HF_LOG_INFO, "Redis takes the heartbeat again", NULL, NULL);
    w->beat->beat_refused = err;
}

/* One that Redis did not know the script of is sent again: by now it has it. So is one
 * that was overtaken. */
static void on_beat(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    w->beat->beating = false;
    if (w->phase != HF_ENDED)
        report_refusal(w, answer);
    if (w->phase != HF_ENDED && (answer->err == HF_NOSCRIPT || w->beat->beat_again))
        hf_beat_send(w);
}

void hf_beat_send(hf_worker *w)
{
    hf_site *site = w->registry;
    hf_buf json;
    w->beat->beat_again = w->beat->beating;
    hf_site_learn_time(site);
    if (w->beat->beating || !hf_site_ready(site) || hf_server_now(site->redis) == 0)
        return;
    if (w->beat->started_ms == 0)
        w->beat->started_ms = hf_server_now(site->redis);
    w->beat->shown = state_of(w);
    w->beat->shown_running = hf_running_now(w);
    w->beat->sent_ns = hf_boot_ns();
    hf_buf_init(&json, JSON_MAX);
    write_json(w, &json);
    if (hf_buf_err(&json) == HF_OK &&
        hf_op_heartbeat(site->client, w->ns, w->id, json.data, 3 * BEAT_MS, on_beat, w) ==
            HF_OK)
        w->beat->beating = true;
    hf_buf_done(&json);
}

static void on_beat_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->beat->soon = false;
    hf_beat_send(w);
}

/* `holdfast worker list` shows the slots that are busy: now if the last heartbeat is old,
 * else in a moment. */
static void show_slots(hf_worker *w)
{
    hf_beat *b = w->beat;
    uint64_t next_ns = b->sent_ns + SLOTS_MS * HF_MS_NS, now = hf_boot_ns();
    if (b->soon || b->shown == NULL || w->phase == HF_ENDED)
        return;
    if (now >= next_ns) {
        hf_beat_send(w);
        return;
    }
    b->soon = true;
    uv_update_time(&w->loop);
    uv_timer_start(&b->timer, on_beat_timer, (next_ns - now) / HF_MS_NS + 1, BEAT_MS);
}

/* ---- the pulse ---- */

/* The first time it means that each queue was asked for jobs, unless this worker wants
 * none: it may be full with those of the first. */
static bool has_looked(const hf_worker *w)
{
    return w->phase != HF_SERVING || w->quiet || hf_running_slots(w) == 0 ||
           hf_queues_looked(w);
}

static bool is_watched(const hf_worker *w)
{
    for (size_t i = 0; i < w->n_sites; i++)
        if (hf_leases_watched(w->sites[i]))
            return true;
    return false;
}

void hf_beat_turn(hf_worker *w)
{
    uint32_t running = hf_running_now(w);
    atomic_store(&w->beat->running_now, running);
    if (w->phase != HF_STARTING && w->beat->shown != state_of(w))
        hf_beat_send(w); /* the first one as soon as Redis's time is known */
    else if (running != w->beat->shown_running)
        show_slots(w);
    if (!w->heard || !is_watched(w))
        return;
    w->heard = false;
    if (atomic_load(&w->beat->pulse) > 0 || has_looked(w))
        atomic_fetch_add(&w->beat->pulse, 1);
}

hf_err hf_beat_new(hf_worker *w)
{
    w->beat = calloc(1, sizeof *w->beat);
    return w->beat == NULL ? HF_NOMEM : HF_OK;
}

void hf_beat_free(hf_worker *w)
{
    free(w->beat);
    w->beat = NULL;
}

void hf_beat_open(hf_worker *w)
{
    uv_timer_init(&w->loop, &w->beat->timer);
    w->beat->timer.data = w;
}

void hf_beat_close(hf_worker *w)
{
    if (!uv_is_closing((uv_handle_t *)&w->beat->timer))
        uv_close((uv_handle_t *)&w->beat->timer, NULL);
}

void hf_beat_start(hf_worker *w)
{
    uv_timer_start(&w->beat->timer, on_beat_timer, BEAT_MS, BEAT_MS);
}

uint64_t hf_worker_pulse(const hf_worker *w)
{
    return atomic_load(&w->beat->pulse);
}

uint32_t hf_worker_running(const hf_worker *w)
{
    return atomic_load(&w->beat->running_now);
}
