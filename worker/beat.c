/* beat.c - what a worker shows of itself: its heartbeat in Redis, and its pulse for who
 * watches this process.
 *
 * The pulse rises when Redis has answered a claim or a check and the loop came round. An
 * idle worker claims nothing, but its waits end with a check; and whatever it does, a
 * timer sees to it that it checks. */
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "worker/core.h"

/* ---- the heartbeat ---- */

enum { JSON_MAX = 32 << 10, END_ROOM = 32, NOT_NOW_MS = 100 };

static const char *state_of(const hf_worker *w)
{
    if (w->phase != HF_SERVING)
        return "stopping";
    return w->quiet ? "quiet" : "serving";
}

/* C jobs that were claimed ahead wait in the pool while every slot is busy. */
static uint32_t running(const hf_worker *w)
{
    size_t n = w->c_out + w->programs_out;
    return n < w->opts.concurrency ? (uint32_t)n : w->opts.concurrency;
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
    int64_t now_ms = hf_clock_now(w);
    hf_buf_printf(json,
                  "{\"v\":1,\"id\":\"%s\",\"host\":\"%s\",\"pid\":%ld,"
                  "\"version\":\"" HOLDFAST_VERSION "\",\"state\":\"%s\","
                  "\"concurrency\":%u,\"running\":%u,\"started_ms\":%lld,"
                  "\"now_ms\":%lld,\"queues\":[",
                  w->id, w->host, (long)getpid(), state_of(w), w->opts.concurrency,
                  running(w), (long long)w->started_ms, (long long)now_ms);
    for (size_t i = 0; i < w->n_served; i++)
        hf_buf_printf(json, "%s\"%s\"", i == 0 ? "" : ",", w->served[i]->queue.name);
    hf_buf_text(json, "],\"types\":[");
    bool all = add_types(w, json);
    hf_buf_text(json, all ? "]}" : "],\"types_cut\":true}");
}

/* Without heartbeats `holdfast workers` takes this worker for one that went silent. A
 * connection that is away is told elsewhere. */
static void tell_refusal(hf_worker *w, const hf_answer *answer)
{
    hf_err err = answer->err;
    if (err == HF_UNSURE || err == HF_NOSCRIPT || err == HF_CLOSED || err == HF_CONN ||
        err == HF_TIMEOUT)
        return;
    if (err != HF_OK && err != w->beat_refused)
        hf_report_text(w, HF_LOG_WARN, "Redis refuses the heartbeat", "error",
                       answer->detail);
    else if (err == HF_OK && w->beat_refused != HF_OK)
        hf_report_text(w, HF_LOG_INFO, "Redis takes the heartbeat again", NULL, NULL);
    w->beat_refused = err;
}

/* One that Redis did not know the script of is sent again: by now it has it. So is one
 * that was overtaken. */
static void on_beat(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    w->beating = false;
    if (w->phase != HF_ENDED)
        tell_refusal(w, answer);
    if (w->phase != HF_ENDED && (answer->err == HF_NOSCRIPT || w->beat_again))
        hf_beat_send(w);
}

void hf_beat_send(hf_worker *w)
{
    hf_buf json;
    w->beat_again = w->beating;
    if (w->beating || !hf_client_ready(w->client) || hf_clock_now(w) == 0)
        return;
    if (w->started_ms == 0)
        w->started_ms = hf_clock_now(w);
    w->shown = state_of(w);
    hf_buf_init(&json, JSON_MAX);
    write_json(w, &json);
    if (hf_buf_err(&json) == HF_OK &&
        hf_op_heartbeat(w->client, w->ns, w->id, json.data, 3 * HF_BEAT_MS, on_beat, w) ==
            HF_OK)
        w->beating = true;
    hf_buf_done(&json);
}

static void on_beat_timer(uv_timer_t *timer)
{
    hf_beat_send(timer->data);
}

/* ---- the pulse ---- */

/* Who waits for batons checks when the wait is over; but a wait that a baton ended is
 * followed by a whole one. */
static void on_look(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    uint64_t now = hf_boot_ns(), every_ns = hf_wake_longest_ms(w) * HF_MS_NS;
    bool again = w->check_again_ns != 0 && now >= w->check_again_ns;
    if (again)
        w->check_again_ns = 0;
    if (again || now >= w->checked_ns + every_ns)
        hf_check_send(w);
    hf_life_turn(w);
    if (w->phase == HF_ENDED || uv_is_active((uv_handle_t *)timer))
        return;
    uint64_t due = w->checked_ns + every_ns;
    if (w->check_again_ns != 0 && w->check_again_ns < due)
        due = w->check_again_ns;
    uint64_t wait = due > now ? (due - now) / HF_MS_NS + 1 : NOT_NOW_MS;
    uv_update_time(&w->loop);
    uv_timer_start(timer, on_look, wait, 0);
}

void hf_beat_look_in(hf_worker *w, uint32_t ms)
{
    uv_update_time(&w->loop);
    uv_timer_start(&w->look, on_look, ms, 0);
}

/* The first time it means that each queue was asked for jobs, unless this worker wants
 * none: it may be full with those of the first. */
static bool has_looked(const hf_worker *w)
{
    if (w->phase != HF_SERVING || w->quiet || hf_dispatch_slots(w) == 0)
        return true;
    for (size_t i = 0; i < w->n_served; i++)
        if (!w->served[i]->looked)
            return false;
    return true;
}

void hf_beat_turn(hf_worker *w)
{
    atomic_store(&w->running_now, running(w));
    if (w->phase != HF_STARTING && w->shown != state_of(w))
        hf_beat_send(w); /* the first one as soon as Redis's time is known */
    if (!w->heard || !hf_leases_watched(w))
        return;
    w->heard = false;
    if (atomic_load(&w->pulse) > 0 || has_looked(w))
        atomic_fetch_add(&w->pulse, 1);
}

void hf_beat_start(hf_worker *w)
{
    uv_timer_start(&w->beat, on_beat_timer, HF_BEAT_MS, HF_BEAT_MS);
    uv_timer_start(&w->look, on_look, hf_wake_longest_ms(w), 0);
}

uint64_t hf_worker_pulse(const hf_worker *w)
{
    return atomic_load(&w->pulse);
}

uint32_t hf_worker_running(const hf_worker *w)
{
    return atomic_load(&w->running_now);
}
