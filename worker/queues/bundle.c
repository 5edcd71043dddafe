/* bundle.c - worker/queues/bundle.h. */
#include "worker/queues/bundle.h"

#include "base/clock.h"
#include "worker/node/site.h"
#include "worker/queues/queues.h"
#include "worker/worker.h"

hf_bundle *hf_bundle_next(const hf_queues *k, hf_bundle *b)
{
    size_t i = b == NULL ? 0 : (size_t)(b - k->bundles) + 1;
    size_t n = k->n_bundles > 1 ? k->n_slots : k->n_bundles;
    while (i < n && k->bundles[i].site == NULL)
        i++;
    return i < n ? &k->bundles[i] : NULL;
}

void hf_bundle_look_in(hf_bundle *b, uint32_t ms)
{
    uv_update_time(&b->site->worker->loop);
    uv_timer_start(&b->look, b->site->worker->queues->on_look, ms, 0);
}

void hf_bundle_close_client(hf_bundle *b)
{
    hf_blocking_close(b->blocking, NULL);
    b->blocking = NULL;
}

void hf_bundle_open(hf_bundle *b, hf_site *site, hf_served *only)
{
    hf_worker *w = site->worker;
    b->site = site;
    b->only = only;
    if (b->look.data == NULL)
        uv_timer_init(&w->loop, &b->look);
    b->look.data = b;
    if (w->phase == HF_SERVING)
        hf_bundle_check_at(b, hf_boot_ns()); /* dead workers may have left jobs there */
}

/* A baton that its connection had is lost, which is a doubt. */
void hf_bundle_move(hf_bundle *b, hf_site *site)
{
    b->site = site;
    hf_bundle_close_client(b);
    hf_bundle_check_at(b, hf_boot_ns());
}

/* Only the timer stays: the slot's next queue has it. */
void hf_bundle_end(hf_bundle *b)
{
    hf_bundle_close_client(b);
    uv_timer_stop(&b->look);
    uv_timer_t look = b->look;
    *b = (hf_bundle){.look = look};
}

void hf_bundle_check_at(hf_bundle *b, uint64_t at_ns)
{
    b->check_again_ns = at_ns;
    hf_bundle_look_in(b, 0); /* plans it */
}

uint32_t hf_bundle_wait_ms(const hf_worker *w)
{
    return w->opts.lease_ms / 2 < HF_WAIT_MS ? w->opts.lease_ms / 2 : HF_WAIT_MS;
}

uint32_t hf_bundle_longest_ms(const hf_worker *w)
{
    return hf_bundle_wait_ms(w) * 11 / 10;
}
