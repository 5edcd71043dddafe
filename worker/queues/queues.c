/* queues.c - the queues that a worker serves: their slots, their states, and the backoff
 * of each.
 *
 * Held jobs, pending answers and the watchdog's groups name a queue by its slot. A queue
 * that a reload removes is not claimed any more, but keeps its slot until nothing refers
 * to it: its jobs have ended and their verdicts are answered, its claim is accounted for,
 * and its baton, if this worker had it, was given back. */
#include "worker/queues/queues.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/plan.h"
#include "worker/queues/bundle.h"
#include "worker/queues/claim_state.h"
#include "worker/report.h"
#include "worker/worker.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LONGEST_MS = 1000 };

/* ---- one queue ---- */

bool hf_queue_is(const hf_served *served, unsigned traits)
{
    const unsigned claims = HF_Q_CLAIMABLE | HF_Q_EAGER | HF_Q_PATIENT;
    if (served->paused > 0 && (traits & HF_Q_UNHEARD) != 0)
        return true;
    return hf_claim_state_is(served->state,
                             served->paused > 0 ? traits & ~claims : traits);
}

void hf_queue_pause(hf_served *served)
{
    if (served->paused++ > 0)
        return;
    served->bundle->give_back = served->bundle->wait_stale = true;
    served->wake.timer_ms = served->wake.due_ms = 0;
    served->worker->turn_due = true;
}

void hf_queue_unpause(hf_served *served)
{
    if (--served->paused > 0)
        return;
    served->bundle->wait_stale = true;
    if (!hf_queue_is(served, HF_Q_GONE))
        hf_queue_apply(served, HF_E_DOUBT);
    served->worker->turn_due = true;
}

uint32_t hf_queue_backoff_longer(uint32_t ms)
{
    ms = ms == 0 ? BACKOFF_FIRST_MS : 2 * ms;
    return ms < BACKOFF_LONGEST_MS ? ms : BACKOFF_LONGEST_MS;
}

void hf_queue_debt(hf_served *served, hf_debt_event event)
{
    served->debt = hf_claim_state_debt(served->debt, event);
}

void hf_queue_back_off(hf_served *served, uint32_t ms)
{
    uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    if (served->backoff.until_ns < until_ns)
        served->backoff.until_ns = until_ns;
}

static void back_off(hf_served *served)
{
    if (served->backoff.until_ns != 0)
        return; /* several requests were under way */
    served->backoff.ms = hf_queue_backoff_longer(served->backoff.ms);
    hf_queue_back_off(served, served->backoff.ms);
}

size_t hf_queue_fields(const hf_served *served, hf_log_field out[2])
{
    bool is_shard = served != served->whole->members;
    out[0] = (hf_log_field){.key = "queue", .text = served->queue.name};
    out[1] = (hf_log_field){.key = "shard", .number = served->shard};
    return is_shard ? 2 : 1;
}

static void report_fault(const hf_served *served, const char *what, const char *detail)
{
    hf_log_field fields[3];
    size_t n = hf_queue_fields(served, fields);
    fields[n++] = (hf_log_field){.key = "error", .text = detail};
    hf_report(served->worker, HF_LOG_WARN, what, fields, n);
}

/* False: it goes on at once. */
static bool is_unserved(hf_served *served, hf_site *site, hf_err err,
                        const hf_answer *answer)
{
    hf_node_backoff *of_nodes = &served->backoff.of_nodes;
    if (answer->sent_ns >= of_nodes->began_ns) /* else several were under way */
        hf_node_back_off(&site->base, of_nodes, err);
    if (of_nodes->until_ns <= hf_boot_ns())
        return false;
    if (served->backoff.until_ns < of_nodes->until_ns)
        served->backoff.until_ns = of_nodes->until_ns;
    if (served->backoff.refused != HF_UNSERVED)
        report_fault(served, "no node serves a queue at the moment", answer->detail);
    served->backoff.refused = HF_UNSERVED;
    return true;
}

bool hf_queue_refused(hf_served *served, hf_site *site, hf_err err,
                      const hf_answer *answer)
{
    const char *detail = answer->detail;
    if (hf_site_unserved(site, err, detail))
        return is_unserved(served, site, err, answer);
    if (!hf_err_is(err, HF_ERR_OF_QUEUE) || hf_server_now(site->base.redis) == 0) {
        hf_site_refused(site, err, detail);
        return false;
    }
    if (err != served->backoff.refused && served->backoff.until_ns == 0) {
        report_fault(served, "Redis refuses the requests of a queue", detail);
        served->backoff.refused = err;
    }
    served->claim.was_answered = true; /* that is an answer as well */
    return true;
}

bool hf_queue_is_waited_for(const hf_served *served)
{
    const hf_bundle *b = served->bundle;
    for (size_t i = 0; b->blocked && i < b->n_waiting_on; i++)
        if (b->waiting_on[i] == served)
            return true;
    return false;
}

/* The queue may have moved since it was asked. */
static void note_answer(hf_served *served)
{
    hf_site *asked = served->claim.site;
    HF_ASSERT(asked != NULL && served->bundle != NULL);
    asked->refused = served->backoff.refused = HF_OK;
    hf_server_accepted(asked->base.redis);
    served->backoff.ms = 0;
    served->backoff.of_nodes.refusals = 0;
    if (served->bundle->blocked && !hf_queue_is(served, HF_Q_GONE) &&
        !hf_queue_is_waited_for(served))
        served->bundle->wait_stale = true;
}

/* Another worker has to get the batons that this worker had of it. A queue that was never
 * claimed from had none, and Redis may not know of it. */
static void owe(hf_served *served)
{
    if (served->claim.was_answered)
        hf_queue_debt(served, HF_DEBT_MADE);
    served->claim.asked = 0;
}

void hf_queue_apply(hf_served *served, hf_queue_event event)
{
    const hf_claim_cell cell = hf_claim_state_cell(served->state, event);
    HF_ASSERT(cell.possible);
    served->state = cell.next;
    if (cell.actions == 0)
        return;
    if (cell.actions & HF_DO_DROP_TIMER)
        served->wake.timer_ms = 0;
    if (cell.actions & HF_DO_NOTE_DOUBT)
        served->claim.lost_ns = hf_boot_ns();
    if (cell.actions & HF_DO_NOTE_ANSWER)
        note_answer(served);
    if (cell.actions & HF_DO_BACK_OFF)
        back_off(served);
    if (cell.actions & HF_DO_END_BACKOFF)
        served->backoff.until_ns = 0;
    if (cell.actions & HF_DO_OWE)
        owe(served);
    if (cell.actions & HF_DO_OWE_NOTHING)
        hf_queue_debt(served, HF_DEBT_DROPPED);
}

void hf_queue_refund(hf_served *served, uint32_t n)
{
    served->whole->credit += (double)n / served->whole->weight;
    served->claim.credit += n;
}

/* A registration or limits that could not be written are written after the next check or
 * reconnect; at once, if Redis only did not know the script. */
void hf_queue_registered(hf_served *served, hf_site *asked, hf_err err,
                         const char *detail)
{
    served->requests--;
    (void)hf_site_unserved(asked, err, detail);
    if (err != HF_OK && err != HF_SHARDED)
        served->registration.done = false;
    if (err == HF_NOSCRIPT)
        served->site->register_due = served->worker->turn_due = true;
}

void hf_queue_forgotten(hf_served *served)
{
    if (!served->registration.present || hf_queue_is(served, HF_Q_GONE))
        return;
    served->registration.present = served->registration.done = false;
    hf_report_text(served->worker, HF_LOG_WARN,
                   "Redis has lost the data of a queue: it is registered again", "queue",
                   served->queue.name);
}

bool hf_queue_is_divided(const hf_served *served)
{
    return served->whole->n_shards > 0 && served == served->whole->members;
}

/* The refusal of its next claim names the shards. */
void hf_queue_recheck(hf_served *served)
{
    if (!hf_queue_is_divided(served) && !hf_queue_is(served, HF_Q_GONE))
        hf_queue_apply(served, HF_E_DOUBT);
}

/* ---- all of them ---- */

void hf_queues_hold_over(hf_worker *w, uint64_t now_ns)
{
    for (size_t i = 0; i < w->queues->n_slots; i++) {
        hf_served *served = &w->queues->slots[i];
        if (served->backoff.until_ns == 0 || served->backoff.until_ns > now_ns)
            continue;
        served->backoff.until_ns = 0;
        hf_queue_apply(served, HF_E_BACKOFF_OVER);
    }
}

void hf_queues_drop_timers(hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_served; i++)
        w->queues->served[i]->wake.timer_ms = 0;
}

bool hf_queues_all_claimed(const hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_served; i++) {
        const hf_served *served = w->queues->served[i];
        bool away = served->bundle->only != NULL && !hf_site_can_ask(served->site);
        if (!served->claim.was_answered && !away)
            return false;
    }
    return true;
}

void hf_queues_recheck(hf_site *site)
{
    const hf_queues *k = site->worker->queues;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->site == site)
            hf_queue_apply(k->served[i], HF_E_DOUBT);
}

bool hf_queues_quiet(const hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_served; i++)
        if (hf_queue_is(w->queues->served[i], HF_Q_EAGER | HF_Q_BUSY))
            return false;
    return true;
}

bool hf_queues_under_way(const hf_worker *w, bool away_too)
{
    for (size_t i = 0; i < w->queues->n_slots; i++) {
        const hf_served *served = &w->queues->slots[i];
        if (hf_queue_is(served, HF_Q_UNDER_WAY) &&
            (away_too || hf_site_ready(served->site)))
            return true;
    }
    return false;
}

/* ---- slots ---- */

hf_err hf_queues_open(hf_worker *w)
{
    w->queues = calloc(1, sizeof *w->queues);
    if (w->queues == NULL)
        return HF_NOMEM;
    w->queues->slots = calloc(HF_SLOTS_MAX, sizeof *w->queues->slots);
    return w->queues->slots == NULL ? HF_NOMEM : HF_OK;
}

void hf_queues_close(hf_worker *w)
{
    if (w->queues == NULL)
        return;
    free(w->queues->bundles);
    free(w->queues->slots);
    free(w->queues);
    w->queues = NULL;
}

size_t hf_queues_count(const hf_worker *w)
{
    return w->queues->n_served;
}

hf_served *hf_queues_at(const hf_worker *w, size_t i)
{
    return w->queues->served[i];
}

size_t hf_queues_slots(const hf_worker *w)
{
    return w->queues->n_slots;
}

hf_served *hf_queues_slot(const hf_worker *w, size_t slot)
{
    return &w->queues->slots[slot];
}

static bool is_referred_to(const hf_served *served)
{
    const hf_whole *whole = served->whole;
    return (served == whole->members && whole->n_members > 1) || served->runs > 0 ||
           served->requests > 0 || served->debt != HF_DEBT_NONE || served->paused > 0 ||
           hf_queue_is_waited_for(served);
}

static void unlink_member(const hf_served *served)
{
    hf_whole *whole = served->whole;
    for (hf_served **at = &whole->members; *at != NULL; at = &(*at)->next_member)
        if (*at == served) {
            *at = served->next_member;
            break;
        }
    whole->n_members--;
}

/* Numbers of claims rise for each queue of this worker, also of one that comes back. */
static void reap(hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_slots; i++) {
        hf_served *served = &w->queues->slots[i];
        if (served->state != HF_Q_LEAVING || is_referred_to(served))
            continue;
        if (served->claim.number > w->queues->first_number)
            w->queues->first_number = served->claim.number;
        hf_queue_apply(served, HF_E_FREED);
        if (served->bundle->only != NULL)
            hf_bundle_end(served->bundle);
        unlink_member(served);
        memset(served, 0, sizeof *served);
    }
    while (w->queues->n_slots > 0 &&
           w->queues->slots[w->queues->n_slots - 1].state == HF_Q_FREE)
        w->queues->n_slots--;
}

size_t hf_queues_room(hf_worker *w)
{
    reap(w);
    size_t n = HF_SLOTS_MAX - w->queues->n_slots;
    for (size_t i = 0; i < w->queues->n_slots; i++)
        n += w->queues->slots[i].state == HF_Q_FREE ? 1 : 0;
    return n;
}

/* Its site, and its bundle: in a cluster it is alone in it. */
static void place(hf_served *served)
{
    const hf_worker *w = served->worker;
    hf_queues *k = w->queues;
    bool plain = hf_cluster_is_plain(w->nodes.cluster);
    hf_site *site = hf_sites_find(served->worker, served->key_slot);
    served->site = site;
    served->bundle = &k->bundles[plain ? 0 : served->slot];
    hf_bundle_open(served->bundle, site, plain ? NULL : served);
}

hf_served *hf_queues_take_slot(hf_worker *w, const hf_queue *queue)
{
    size_t i = 0;
    while (w->queues->slots[i].state != HF_Q_FREE)
        i++;
    HF_ASSERT(i < HF_SLOTS_MAX);
    if (i >= w->queues->n_slots)
        w->queues->n_slots = i + 1;
    hf_served *served = &w->queues->slots[i];
    *served = (hf_served){.worker = w,
                          .slot = i,
                          .queue = *queue,
                          .key_slot = hf_slot(queue->prefix, queue->prefix_len),
                          .claim.number = w->queues->first_number};
    hf_queue_apply(served, HF_E_SLOT_TAKEN);
    if (w->queues->bundles != NULL)
        place(served);
    return served;
}

hf_err hf_queues_place(hf_worker *w)
{
    hf_queues *k = w->queues;
    k->n_bundles = hf_cluster_is_plain(w->nodes.cluster) ? 1 : HF_SLOTS_MAX;
    k->bundles = calloc(k->n_bundles, sizeof *k->bundles);
    if (k->bundles == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].state != HF_Q_FREE)
            place(&k->slots[i]);
    return HF_OK;
}

/* Clears the times that are by the old node's clock. The new node may not know this
 * worker, so it registers again. The not_after of a lost
 * claim is by the old clock, so the queue waits for the whole HF_NOT_AFTER_MS. Takeovers
 * count no crash for 3 leases. If one of its jobs runs, all leases are renewed. */
void hf_queue_move(hf_served *served, hf_site *site)
{
    const hf_worker *w = served->worker;
    served->site = site;
    served->wake.timer_ms = served->claim.due_ms = 0;
    served->wake.reading = (hf_reading){.epoch = 0};
    served->registration.done = false;
    served->claim.not_after = INT64_MAX / 2;
    served->no_crash_until_ns = hf_boot_ns() + 3 * w->opts.lease_ms * HF_MS_NS;
    if (!hf_queue_is(served, HF_Q_GONE))
        hf_queue_apply(served, HF_E_DOUBT);
    hf_bundle_move(served->bundle, site);
    if (served->runs > 0)
        hf_watchdog_verify(w->watchdog);
}

/* It may still have a claim under way, jobs that run and a baton to give back. */
void hf_queue_come_back(hf_served *served)
{
    hf_queue_apply(served, HF_E_RETURN);
    served->registration.done = false;
    served->claim.alive_at_ns =
        0; /* its next claim names this worker and its lease there */
    hf_bundle_check_at(served->bundle, hf_boot_ns());
}

/* ---- the queues of the plan ---- */

size_t hf_queues_wholes(const hf_worker *w)
{
    return w->queues->n_wholes;
}

hf_whole *hf_queues_whole(const hf_worker *w, size_t i)
{
    return w->queues->wholes[i];
}

const char *hf_queue_whole_name(const hf_whole *whole)
{
    return whole->members->queue.name;
}

bool hf_queue_whole_is_gone(const hf_whole *whole)
{
    return hf_queue_is(whole->members, HF_Q_GONE);
}

hf_whole *hf_queues_find(const hf_worker *w, const char *name)
{
    for (size_t i = 0; i < w->queues->n_slots; i++)
        if (w->queues->slots[i].state != HF_Q_FREE &&
            strcmp(w->queues->slots[i].queue.name, name) == 0)
            return w->queues->slots[i].whole;
    return NULL;
}

/* The first member of a new queue. */
static hf_whole *start_whole(hf_worker *w, const hf_queue *queue)
{
    hf_served *served = hf_queues_take_slot(w, queue);
    served->whole = &served->own;
    served->own = (hf_whole){.members = served, .n_members = 1};
    return served->whole;
}

hf_served *hf_queue_add_member(hf_whole *whole, const hf_queue *queue)
{
    hf_served *served = hf_queues_take_slot(whole->members->worker, queue),
              *last = whole->members;
    while (last->next_member != NULL)
        last = last->next_member;
    last->next_member = served;
    served->whole = whole;
    whole->n_members++;
    return served;
}

void hf_queue_whole_leave(hf_whole *whole)
{
    for (hf_served *member = whole->members; member != NULL; member = member->next_member)
        if (!hf_queue_is(member, HF_Q_GONE))
            hf_queue_apply(member, HF_E_LEAVE);
}

static bool same_limits(const hf_worker_queue *a, const hf_worker_queue *b)
{
    return a->has_limits == b->has_limits && a->max_running == b->max_running &&
           a->rate_limit == b->rate_limit && a->rate_per_ms == b->rate_per_ms;
}

static void register_again(hf_whole *whole)
{
    for (hf_served *member = whole->members; member != NULL; member = member->next_member)
        member->registration.done = false;
}

static void set_limits(hf_whole *whole, const hf_worker_queue *limits)
{
    if (!same_limits(&whole->limits, limits)) {
        register_again(whole);
        whole->new_limits = limits->has_limits;
    }
    whole->limits = *limits;
    whole->limits.name = NULL;
}

hf_whole *hf_queues_put(hf_worker *w, const hf_plan_queue *queue)
{
    hf_whole *whole = hf_queues_find(w, queue->queue.name);
    if (whole == NULL) {
        whole = start_whole(w, &queue->queue);
    } else if (hf_queue_whole_is_gone(whole)) {
        hf_queue_come_back(whole->members);
        whole->credit = 0;
    }
    whole->counters = hf_counters_queue(w->counters, queue->queue.name);
    if (whole->limits.shards != queue->settings.shards)
        whole->members->registration.done = false;
    whole->weight = queue->settings.weight;
    whole->offered = queue->offered;
    set_limits(whole, &queue->settings);
    if (strcmp(whole->on_dead, queue->on_dead) != 0)
        register_again(whole);
    memcpy(whole->on_dead, queue->on_dead, sizeof whole->on_dead);
    if (whole->unserved && whole->members->backoff.until_ns != 0) /* they may fit now */
        whole->members->backoff.until_ns = hf_boot_ns();
    return whole;
}

void hf_queues_order(hf_worker *w, hf_whole *const *list, size_t n)
{
    w->queues->n_served = 0;
    for (size_t i = 0; i < n; i++) {
        w->queues->wholes[i] = list[i];
        list[i]->index = i;
        for (hf_served *member = list[i]->members; member != NULL;
             member = member->next_member)
            if (!hf_queue_is(member, HF_Q_GONE))
                w->queues->served[w->queues->n_served++] = member;
    }
    w->queues->n_wholes = n;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        b->wait_order = 0;
}

/* ---- those of a bundle ---- */

bool hf_queues_quiet_in(const hf_bundle *b)
{
    const hf_queues *k = b->site->worker->queues;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->bundle == b &&
            hf_queue_is(k->served[i], HF_Q_EAGER | HF_Q_BUSY))
            return false;
    return true;
}

void hf_queues_recheck_in(hf_bundle *b)
{
    const hf_queues *k = b->site->worker->queues;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->bundle == b)
            hf_queue_apply(k->served[i], HF_E_DOUBT);
}

void hf_queues_unserved_in(hf_bundle *b, hf_site *site, hf_err err,
                           const hf_answer *answer)
{
    if (hf_queue_refused(b->only, site, err, answer))
        hf_queue_apply(b->only, HF_E_OTHER_REFUSED);
}

bool hf_queues_only_shards_in(const hf_bundle *b)
{
    return b->only != NULL && hf_queue_is_divided(b->only);
}

void hf_queues_changed(hf_worker *w, bool some_left)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;) {
        if (b->only != NULL && !hf_queue_is(b->only, HF_Q_GONE))
            continue;
        b->give_back = b->give_back || some_left;
        b->wait_stale = b->blocked;
    }
}
