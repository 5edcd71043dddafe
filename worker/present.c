/* present.c - see present.h.
 *
 * Scripts of a queue see only its own keys, so each queue knows the types of its workers.
 * The heartbeats are for people, and in a cluster on another node. */
#include "worker/present.h"

#include "base/buf.h"
#include "worker/queues.h"
#include "worker/site.h"

enum { TYPES_MAX = HF_TYPES_MAX * HF_ID_SIZE + 1 }; /* bytes */

static void on_told(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->present = answer->err == HF_OK;
    hf_site_registered(served, answer->err, answer->detail);
}

hf_err hf_present_register(hf_served *served)
{
    const hf_worker *w = served->worker;
    hf_buf types;
    hf_buf_init(&types, TYPES_MAX);
    for (size_t i = 0; i < w->n_handlers; i++)
        hf_buf_printf(&types, " %s", w->handlers[i]->type);
    hf_buf_text(&types, " ");
    hf_err err = hf_buf_err(&types);
    if (err == HF_OK)
        err = hf_op_present(served->site->client, &served->queue, w->id,
                            w->opts.lease_ms + HF_ALIVE_MS, types.data, on_told, served);
    hf_buf_done(&types);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
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
