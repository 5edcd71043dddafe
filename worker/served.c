/* served.c - the queues that a worker serves, in slots that stay where they are.
 *
 * Jobs that are held, answers that are under way and the watchdog's groups name a queue
 * by its slot. One that a reload takes out is claimed no more, but keeps its slot until
 * nothing refers to it: its jobs have ended and their verdicts are answered, its claim is
 * accounted for, and the baton that this worker may have had of it was given back. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "worker/core.h"

hf_err hf_served_open(hf_worker *w)
{
    w->slots = calloc(HF_SLOTS_MAX, sizeof *w->slots);
    return w->slots == NULL ? HF_NOMEM : HF_OK;
}

hf_served *hf_served_find(const hf_worker *w, const char *name)
{
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used && strcmp(w->slots[i].queue.name, name) == 0)
            return &w->slots[i];
    return NULL;
}

static bool is_referred_to(const hf_worker *w, const hf_served *served)
{
    for (size_t i = 0; w->blocked && i < w->n_waiting_on; i++)
        if (w->waiting_on[i] == served)
            return true;
    return served->runs > 0 || served->claiming || served->peeking || served->checking ||
           served->unsure || served->telling > 0 || served->owes || served->giving;
}

/* Numbers of claims rise for each queue of this worker, also of one that comes back. */
static void reap(hf_worker *w)
{
    for (size_t i = 0; i < w->n_slots; i++) {
        hf_served *served = &w->slots[i];
        if (!served->leaving || is_referred_to(w, served))
            continue;
        if (served->claim_number > w->first_number)
            w->first_number = served->claim_number;
        memset(served, 0, sizeof *served);
    }
    while (w->n_slots > 0 && !w->slots[w->n_slots - 1].used)
        w->n_slots--;
}

size_t hf_served_free_slots(hf_worker *w)
{
    reap(w);
    size_t n = HF_SLOTS_MAX - w->n_slots;
    for (size_t i = 0; i < w->n_slots; i++)
        n += w->slots[i].used ? 0 : 1;
    return n;
}

static hf_served *take_slot(hf_worker *w)
{
    size_t i = 0;
    while (w->slots[i].used)
        i++;
    HF_ASSERT(i < HF_SLOTS_MAX);
    if (i >= w->n_slots)
        w->n_slots = i + 1;
    w->slots[i] = (hf_served){.worker = w,
                              .slot = i,
                              .used = true,
                              .hot = true,
                              .baton = true,
                              .claim_number = w->first_number};
    return &w->slots[i];
}

/* It may still have a claim under way, jobs that run and a baton to give back. */
static void come_back(hf_served *served)
{
    served->leaving = served->owes = served->told = false;
    served->hot = served->baton = true;
    served->again = served->claiming;
    served->credit = 0;
    served->timer_ms = 0;
}

/* The last of what refers to it ends elsewhere. What it had of batons somebody else shall
 * have; one that was never claimed from had none, and Redis may not know of it. */
void hf_served_leave(hf_served *served)
{
    served->leaving = true;
    served->owes = served->looked;
    served->hot = served->again = served->baton = false;
    served->timer_ms = served->due_ms = served->doubt_ms = 0;
    served->asked = 0;
}

static bool same_limits(const hf_worker_queue *a, const hf_worker_queue *b)
{
    return a->has_limits == b->has_limits && a->max_running == b->max_running &&
           a->rate_limit == b->rate_limit && a->rate_per_ms == b->rate_per_ms;
}

hf_served *hf_served_put(hf_worker *w, const hf_plan_queue *queue)
{
    hf_served *served = hf_served_find(w, queue->queue.name);
    if (served == NULL || served->leaving)
        w->alive_at_ns = 0; /* its first claim names this worker and its lease there */
    if (served == NULL) {
        served = take_slot(w);
        served->queue = queue->queue;
    } else if (served->leaving) {
        come_back(served);
    }
    served->weight = queue->settings.weight;
    if (!same_limits(&served->limits, &queue->settings)) {
        served->told = false;
        served->new_limits = queue->settings.has_limits;
    }
    served->limits = queue->settings;
    served->limits.name = NULL;
    return served;
}

void hf_served_order(hf_worker *w, hf_served *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w->served[i] = list[i];
        list[i]->index = i;
    }
    w->n_served = n;
    w->wait_order = 0;
}
