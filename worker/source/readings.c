/* readings.c - see readings.h.
 *
 * A worker that could take over a job reads 14 times in the shortest lease, at least
 * 150 ms apart, and also when a lease may be found over. A worker that has just started
 * reads twice: the second request shows what the first has read, so that it counts even
 * if this worker dies at once. It also reads soon after a claim that brought jobs:
 * before, it did not read a queue in which none ran. */
#include "worker/source/readings.h"

#include "base/base.h"
#include "base/clock.h"
#include "worker/node/site.h"
#include "worker/queues/bundle.h"
#include "worker/queues/queues.h"
#include "worker/runner/runner.h"
#include "worker/source/wake.h"
#include "worker/worker.h"

enum { PER_LEASE = 14, LEAST_MS = 150 };

hf_asker hf_readings_asker(const hf_worker *w)
{
    return hf_asker_now(w->wake->machine[0] != '\0' ? w->wake->machine : w->id);
}

static void plan(hf_bundle *b, uint32_t ms)
{
    b->read_at_ns = hf_boot_ns() + ms * HF_MS_NS;
    hf_bundle_look_in(b, 0); /* sets the timer */
}

static uint32_t every_ms(const hf_bundle *b)
{
    return b->read_ms > LEAST_MS ? b->read_ms : LEAST_MS;
}

/* After a read that could not be sent, or failed. */
static uint32_t again_ms(const hf_bundle *b)
{
    return b->has_read ? every_ms(b) : LEAST_MS;
}

void hf_readings_answered(hf_bundle *b, hf_served *const *queues,
                          const hf_read_queue *read, size_t n, int64_t now_ms,
                          uint32_t shortest_ms)
{
    bool run = false;
    if (shortest_ms != 0)
        b->read_ms = shortest_ms / PER_LEASE;
    uint32_t ms = every_ms(b);
    for (size_t i = 0; i < n; i++) {
        hf_reading_forget(&queues[i]->wake.reading);
        if (read[i].clock_ms == 0)
            continue;
        run = true;
        hf_reading_note(&queues[i]->wake.reading, 0, read[i].number, read[i].clock_ms,
                        now_ms);
        if (read[i].after_ms != 0 && read[i].after_ms < ms)
            ms = read[i].after_ms;
    }
    b->read_at_ns = 0;
    if (run)
        plan(b, b->has_read ? ms : 0);
}

void hf_readings_expect(hf_bundle *b)
{
    if (b->read_at_ns == 0 && b->n_reading == 0)
        plan(b, LEAST_MS);
}

static void on_read(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    hf_site *site = b->read_site;
    hf_worker *w = site->worker;
    hf_read_queue read[HF_SLOTS_MAX];
    int64_t now_ms;
    size_t n = b->n_reading;
    hf_err err = hf_read_read(answer, &now_ms, read, n);
    for (size_t i = 0; i < n; i++)
        b->reading_at[i]->requests--;
    b->n_reading = 0;
    if (w->phase == HF_ENDED)
        return;
    if (err == HF_OK)
        hf_site_clock_read(site, now_ms, answer->sent_ns);
    b->has_read = b->has_read || err == HF_OK;
    if (err == HF_OK && site == b->site)
        hf_readings_answered(b, b->reading_at, read, n, now_ms, 0);
    else
        plan(b, again_ms(b)); /* the next check reports a fault */
}

/* The queues in which jobs ran when they were read last, or run here. */
static size_t choose(hf_bundle *b, const hf_queue *out[HF_SLOTS_MAX],
                     const char *shown[HF_SLOTS_MAX])
{
    const hf_queues *k = b->site->worker->queues;
    size_t n = 0;
    for (size_t i = 0; i < k->n_served; i++) {
        hf_served *served = k->served[i];
        if (served->bundle != b ||
            (served->wake.reading.text[0] == '\0' && served->runs == 0))
            continue;
        b->reading_at[n] = served;
        shown[n] = served->wake.reading.text;
        out[n++] = &served->queue;
    }
    return n;
}

static bool may_read(const hf_bundle *b)
{
    return hf_site_serves(b->site) && hf_site_can_ask(b->site) &&
           hf_runner_slots(b->site->worker) > 0;
}

void hf_readings_send(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    const char *shown[HF_SLOTS_MAX];
    if (b->read_at_ns == 0 || hf_boot_ns() < b->read_at_ns || b->n_reading > 0)
        return;
    b->read_at_ns = 0;
    bool may = may_read(b);
    size_t n = may ? choose(b, queues, shown) : 0;
    hf_asker asker = hf_readings_asker(w);
    if (may && n == 0)
        return;
    if (!may ||
        hf_op_read(b->site->base.client, queues, n, &asker, shown, on_read, b) != HF_OK) {
        b->read_at_ns = hf_boot_ns() + again_ms(b) * HF_MS_NS;
        return;
    }
    b->read_site = b->site;
    b->n_reading = n;
    for (size_t i = 0; i < n; i++)
        b->reading_at[i]->requests++;
}
