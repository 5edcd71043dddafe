/* paused.c - worker/pool/paused.h. */
#include "worker/pool/paused.h"

void hf_paused_add(hf_paused *p, hf_served *served)
{
    if (p->slots[served->slot])
        return;
    p->slots[served->slot] = true;
    p->n++;
    hf_queue_pause(served);
}

void hf_paused_end(hf_paused *p, hf_worker *w)
{
    for (size_t i = 0; p->n > 0 && i < HF_SLOTS_MAX; i++)
        if (p->slots[i]) {
            p->slots[i] = false;
            p->n--;
            hf_queue_unpause(hf_queues_slot(w, i));
        }
    w->turn_due = true;
}
