/* present.c - see present.h.
 *
 * Scripts of a queue see only its own keys, so each queue knows the types of its workers,
 * and the schedules that their files name.
 * The heartbeats are for people, and in a cluster on another node. */
#include "worker/present.h"

#include "base/buf.h"
#include "worker/queues.h"
#include "worker/schedules.h"
#include "worker/site.h"

enum { SAID_MAX = (HF_TYPES_MAX + HF_SCHEDULES_MAX) * (HF_ID_SIZE + 1) + 1 }; /* bytes */

static void on_told(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->present = answer->err == HF_OK;
    hf_site_registered(served, answer->err, answer->detail);
}

hf_err hf_present_register(hf_served *served)
{
    const hf_worker *w = served->worker;
    hf_buf said;
    hf_buf_init(&said, SAID_MAX);
    hf_buf_text(&said, " ");
    for (size_t i = 0; i < w->n_handlers; i++)
        hf_buf_printf(&said, "%s ", w->handlers[i]->type);
    hf_schedules_add_names(served, &said);
    hf_err err = hf_buf_err(&said);
    if (err == HF_OK)
        err = hf_op_present(served->site->client, &served->queue, w->id,
                            w->opts.lease_ms + HF_ALIVE_MS, said.data, on_told, served);
    hf_buf_done(&said);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* It may still run jobs of the queue, so it stays one of its workers. */
static void send_left(hf_served *served);

static void on_left(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->requests--;
    if (answer->err == HF_NOSCRIPT && hf_queue_is(served->state, HF_Q_GONE))
        send_left(served);
}

static void send_left(hf_served *served)
{
    const hf_worker *w = served->worker;
    if (hf_site_ready(served->site) &&
        hf_op_present(served->site->client, &served->queue, w->id,
                      w->opts.lease_ms + HF_ALIVE_MS, " ", on_left, served) == HF_OK)
        served->requests++;
}

void hf_present_left(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_slots(w); i++) {
        hf_served *served = hf_queues_slot(w, i);
        if (hf_queue_is(served->state, HF_Q_GONE) && served->present)
            send_left(served);
        served->present = served->present && !hf_queue_is(served->state, HF_Q_GONE);
    }
}

size_t hf_present_goodbye(hf_worker *w, hf_answer_cb cb, void *arg)
{
    size_t sent = 0;
    for (size_t i = 0; i < hf_queues_count(w); i++) {
        const hf_served *served = hf_queues_at(w, i);
        if (hf_site_ready(served->site) &&
            hf_op_present(served->site->client, &served->queue, w->id, 0, NULL, cb,
                          arg) == HF_OK)
            sent++;
    }
    return sent;
}
