/* queues.c - the queues that a worker serves: their slots, their states, and the backoff
 * of each.
 *
 * Held jobs, pending answers and the watchdog's groups name a queue by its slot. A queue
 * that a reload removes is not claimed any more, but keeps its slot until nothing refers
 * to it: its jobs have ended and their verdicts are answered, its claim is accounted for,
 * and its baton, if this worker had it, was given back.
 *
 * The worker backs off from a queue when Redis refuses a request because of that queue (a
 * key of another type, no permission for its keys), longer each time until a request is
 * answered; the other queues go on. After an error of Redis itself (it loads, it is full,
 * it is a replica) all queues wait: hf_site_refused(). */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/shared.h"
#include "worker/site.h"
#include "worker/waking_state.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LONGEST_MS = 1000 };

/* ---- backoff ---- */

uint32_t hf_backoff_longer(uint32_t ms)
{
    ms = ms == 0 ? BACKOFF_FIRST_MS : 2 * ms;
    return ms < BACKOFF_LONGEST_MS ? ms : BACKOFF_LONGEST_MS;
}

void hf_queue_hold(hf_served *served, uint32_t ms)
{
    uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    if (served->hold_until_ns < until_ns)
        served->hold_until_ns = until_ns;
}

static void back_off(hf_served *served)
{
    if (served->hold_until_ns != 0)
        return; /* several requests were under way */
    served->backoff_ms = hf_backoff_longer(served->backoff_ms);
    hf_queue_hold(served, served->backoff_ms);
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

/* Nodes may send a request to each other: only the first answer of that kind is followed
 * at once. */
static bool is_unserved(hf_served *served, hf_site *site, hf_err err, const char *detail)
{
    hf_site_unserved(site, err, detail);
    if (err == HF_MOVED && served->moves++ == 0)
        return false;
    if (served->refused != HF_UNSERVED)
        report_fault(served, "no node serves a queue at the moment", detail);
    served->refused = HF_UNSERVED;
    return true;
}

bool hf_queue_refused(hf_served *served, hf_site *site, hf_err err, const char *detail)
{
    if (err == HF_MOVED || err == HF_UNSERVED)
        return is_unserved(served, site, err, detail);
    bool because_of_it = err == HF_REDIS || err == HF_AUTH || err == HF_PROTO;
    if (!because_of_it || hf_server_now(site->redis) == 0) {
        hf_site_refused(site, err, detail);
        return false;
    }
    if (err != served->refused && served->hold_until_ns == 0) {
        report_fault(served, "Redis refuses the requests of a queue", detail);
        served->refused = err;
    }
    served->looked = true; /* that is an answer as well */
    return true;
}

void hf_queues_hold_over(hf_worker *w, uint64_t now_ns)
{
    for (size_t i = 0; i < w->wake->n_slots; i++) {
        hf_served *served = &w->wake->slots[i];
        if (served->hold_until_ns == 0 || served->hold_until_ns > now_ns)
            continue;
        served->hold_until_ns = 0;
        hf_queue_on(served, HF_E_BACKOFF_OVER);
    }
}

/* ---- bundles ---- */

hf_bundle *hf_bundle_next(const hf_waking *k, hf_bundle *b)
{
    size_t i = b == NULL ? 0 : (size_t)(b - k->bundles) + 1;
    size_t n = k->n_bundles > 1 ? k->n_slots : k->n_bundles;
    while (i < n && k->bundles[i].site == NULL)
        i++;
    return i < n ? &k->bundles[i] : NULL;
}

/* ---- states ---- */

static bool is_waited_for(const hf_served *served)
{
    const hf_bundle *b = served->bundle;
    for (size_t i = 0; b->blocked && i < b->n_waiting_on; i++)
        if (b->waiting_on[i] == served)
            return true;
    return false;
}

static void note_answer(hf_served *served)
{
    HF_ASSERT(served->site != NULL && served->bundle != NULL); /* it was asked */
    served->site->refused = served->refused = HF_OK;
    hf_server_accepted(served->site->redis);
    served->backoff_ms = 0;
    served->moves = 0;
    if (served->bundle->blocked && !hf_queue_is(served->state, HF_Q_GONE) &&
        !is_waited_for(served))
        served->bundle->wait_stale = true;
}

/* Another worker has to get the batons that this worker had of it. A queue that was never
 * claimed from had none, and Redis may not know of it. */
static void owe(hf_served *served)
{
    if (served->looked)
        served->debt = hf_debt_next(served->debt, HF_DEBT_MADE);
    served->asked = 0;
}

void hf_queue_on(hf_served *served, hf_queue_event event)
{
    const hf_queue_cell cell = hf_queue_cell_of(served->state, event);
    HF_ASSERT(cell.possible);
    served->state = cell.next;
    if (cell.actions == 0)
        return;
    if (cell.actions & HF_DO_DROP_TIMER)
        served->timer_ms = 0;
    if (cell.actions & HF_DO_NOTE_DOUBT)
        served->lost_ns = hf_boot_ns();
    if (cell.actions & HF_DO_NOTE_ANSWER)
        note_answer(served);
    if (cell.actions & HF_DO_BACK_OFF)
        back_off(served);
    if (cell.actions & HF_DO_END_BACKOFF)
        served->hold_until_ns = 0;
    if (cell.actions & HF_DO_OWE)
        owe(served);
    if (cell.actions & HF_DO_OWE_NOTHING)
        served->debt = hf_debt_next(served->debt, HF_DEBT_DROPPED);
}

void hf_queue_refund(hf_served *served, uint32_t n)
{
    served->whole->credit += (double)n / served->whole->weight;
    served->credit += n;
}

void hf_queues_drop_timers(hf_worker *w)
{
    for (size_t i = 0; i < w->wake->n_served; i++)
        w->wake->served[i]->timer_ms = 0;
}

bool hf_queues_looked(const hf_worker *w)
{
    for (size_t i = 0; i < w->wake->n_served; i++) {
        const hf_served *served = w->wake->served[i];
        bool away = served->bundle->only != NULL && !hf_site_can_ask(served->site);
        if (!served->looked && !away)
            return false;
    }
    return true;
}

void hf_queues_doubt(hf_site *site)
{
    const hf_waking *k = site->worker->wake;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->site == site)
            hf_queue_on(k->served[i], HF_E_DOUBT);
}

void hf_bundle_doubt(hf_bundle *b)
{
    const hf_waking *k = b->site->worker->wake;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->bundle == b)
            hf_queue_on(k->served[i], HF_E_DOUBT);
}

bool hf_bundle_is_quiet(const hf_bundle *b)
{
    const hf_waking *k = b->site->worker->wake;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->bundle == b &&
            hf_queue_is(k->served[i]->state, HF_Q_EAGER | HF_Q_BUSY))
            return false;
    return true;
}

bool hf_queues_quiet(const hf_worker *w)
{
    for (size_t i = 0; i < w->wake->n_served; i++)
        if (hf_queue_is(w->wake->served[i]->state, HF_Q_EAGER | HF_Q_BUSY))
            return false;
    return true;
}

bool hf_queues_under_way(const hf_worker *w, bool away_too)
{
    for (size_t i = 0; i < w->wake->n_slots; i++) {
        const hf_served *served = &w->wake->slots[i];
        if (hf_queue_is(served->state, HF_Q_UNDER_WAY) &&
            (away_too || hf_site_ready(served->site)))
            return true;
    }
    return false;
}

/* ---- slots ---- */

hf_err hf_queues_open(hf_worker *w)
{
    w->wake = calloc(1, sizeof *w->wake);
    if (w->wake == NULL)
        return HF_NOMEM;
    w->wake->alarm_fd = -1;
    w->wake->slots = calloc(HF_SLOTS_MAX, sizeof *w->wake->slots);
    return w->wake->slots == NULL ? HF_NOMEM : HF_OK;
}

void hf_queues_close(hf_worker *w)
{
    if (w->wake == NULL)
        return;
    free(w->wake->bundles);
    free(w->wake->slots);
    free(w->wake);
    w->wake = NULL;
}

size_t hf_wholes_count(const hf_worker *w)
{
    return w->wake->n_wholes;
}

hf_whole *hf_wholes_at(const hf_worker *w, size_t i)
{
    return w->wake->wholes[i];
}

const char *hf_whole_name(const hf_whole *whole)
{
    return whole->members->queue.name;
}

bool hf_whole_is_gone(const hf_whole *whole)
{
    return hf_queue_is(whole->members->state, HF_Q_GONE);
}

size_t hf_queues_count(const hf_worker *w)
{
    return w->wake->n_served;
}

hf_served *hf_queues_at(const hf_worker *w, size_t i)
{
    return w->wake->served[i];
}

size_t hf_queues_slots(const hf_worker *w)
{
    return w->wake->n_slots;
}

hf_served *hf_queues_slot(const hf_worker *w, size_t slot)
{
    return &w->wake->slots[slot];
}

hf_whole *hf_wholes_find(const hf_worker *w, const char *name)
{
    for (size_t i = 0; i < w->wake->n_slots; i++)
        if (w->wake->slots[i].state != HF_Q_FREE &&
            strcmp(w->wake->slots[i].queue.name, name) == 0)
            return w->wake->slots[i].whole;
    return NULL;
}

static bool is_referred_to(const hf_served *served)
{
    const hf_whole *whole = served->whole;
    return (served == whole->members && whole->n_members > 1) || served->runs > 0 ||
           served->requests > 0 || served->debt != HF_DEBT_NONE ||
           is_waited_for(served) ||
           (served->bundle->only != NULL && served->bundle->unblocks > 0);
}

static void part(const hf_served *served)
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
    for (size_t i = 0; i < w->wake->n_slots; i++) {
        hf_served *served = &w->wake->slots[i];
        if (served->state != HF_Q_LEAVING || is_referred_to(served))
            continue;
        if (served->claim_number > w->wake->first_number)
            w->wake->first_number = served->claim_number;
        hf_queue_on(served, HF_E_FREED);
        if (served->bundle->only != NULL)
            hf_bundle_end(served->bundle);
        part(served);
        memset(served, 0, sizeof *served);
    }
    while (w->wake->n_slots > 0 &&
           w->wake->slots[w->wake->n_slots - 1].state == HF_Q_FREE)
        w->wake->n_slots--;
}

size_t hf_queues_room(hf_worker *w)
{
    reap(w);
    size_t n = HF_SLOTS_MAX - w->wake->n_slots;
    for (size_t i = 0; i < w->wake->n_slots; i++)
        n += w->wake->slots[i].state == HF_Q_FREE ? 1 : 0;
    return n;
}

/* Its site, and its bundle: in a cluster it is alone in it. */
static void place(hf_served *served)
{
    const hf_worker *w = served->worker;
    hf_waking *k = w->wake;
    bool plain = hf_cluster_is_plain(w->cluster);
    hf_site *site = hf_sites_find(served->worker, served->key_slot);
    served->site = site;
    served->bundle = &k->bundles[plain ? 0 : served->slot];
    hf_bundle_open(served->bundle, site, plain ? NULL : served);
}

static hf_served *take_slot(hf_worker *w, const hf_queue *queue)
{
    size_t i = 0;
    while (w->wake->slots[i].state != HF_Q_FREE)
        i++;
    HF_ASSERT(i < HF_SLOTS_MAX);
    if (i >= w->wake->n_slots)
        w->wake->n_slots = i + 1;
    hf_served *served = &w->wake->slots[i];
    *served = (hf_served){.worker = w,
                          .slot = i,
                          .queue = *queue,
                          .key_slot = hf_slot(queue->prefix, queue->prefix_len),
                          .claim_number = w->wake->first_number};
    hf_queue_on(served, HF_E_TAKEN);
    if (w->wake->bundles != NULL)
        place(served);
    return served;
}

hf_err hf_queues_place(hf_worker *w)
{
    hf_waking *k = w->wake;
    k->n_bundles = hf_cluster_is_plain(w->cluster) ? 1 : HF_SLOTS_MAX;
    k->bundles = calloc(k->n_bundles, sizeof *k->bundles);
    if (k->bundles == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].state != HF_Q_FREE)
            place(&k->slots[i]);
    return HF_OK;
}

/* What was known by another clock, or of other data, is void. A lost claim may be
 * executed at the old site for as long as any request. */
void hf_queue_move(hf_served *served, hf_site *site)
{
    const hf_worker *w = served->worker;
    served->site = site;
    served->timer_ms = served->sent_due_ms = 0;
    served->reading = (hf_reading){.epoch = 0};
    served->registered = false;
    served->claim_not_after = INT64_MAX / 2;
    served->forgive_until_ns = hf_boot_ns() + 3 * w->opts.lease_ms * HF_MS_NS;
    if (!hf_queue_is(served->state, HF_Q_GONE))
        hf_queue_on(served, HF_E_DOUBT);
    hf_bundle_move(served->bundle, site);
    if (served->runs > 0)
        hf_watchdog_verify(w->watchdog);
}

/* It may still have a claim under way, jobs that run and a baton to give back. */
void hf_queue_come_back(hf_served *served)
{
    hf_queue_on(served, HF_E_RETURN);
    served->registered = false;
    served->alive_at_ns = 0; /* its next claim names this worker and its lease there */
}

/* The first member of a new queue. */
static hf_whole *start_whole(hf_worker *w, const hf_queue *queue)
{
    hf_served *served = take_slot(w, queue);
    served->whole = &served->own;
    served->own = (hf_whole){.members = served, .n_members = 1};
    return served->whole;
}

hf_served *hf_whole_add(hf_whole *whole, const hf_queue *queue)
{
    hf_served *served = take_slot(whole->members->worker, queue), *last = whole->members;
    while (last->next_member != NULL)
        last = last->next_member;
    last->next_member = served;
    served->whole = whole;
    whole->n_members++;
    return served;
}

void hf_whole_leave(hf_whole *whole)
{
    for (hf_served *member = whole->members; member != NULL; member = member->next_member)
        if (!hf_queue_is(member->state, HF_Q_GONE))
            hf_queue_on(member, HF_E_LEAVE);
}

static bool same_limits(const hf_worker_queue *a, const hf_worker_queue *b)
{
    return a->has_limits == b->has_limits && a->max_running == b->max_running &&
           a->rate_limit == b->rate_limit && a->rate_per_ms == b->rate_per_ms;
}

static void register_again(hf_whole *whole)
{
    for (hf_served *member = whole->members; member != NULL; member = member->next_member)
        member->registered = false;
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

hf_whole *hf_wholes_put(hf_worker *w, const hf_plan_queue *queue)
{
    hf_whole *whole = hf_wholes_find(w, queue->queue.name);
    if (whole == NULL) {
        whole = start_whole(w, &queue->queue);
    } else if (hf_whole_is_gone(whole)) {
        hf_queue_come_back(whole->members);
        whole->credit = 0;
    }
    if (whole->limits.shards != queue->settings.shards)
        whole->members->registered = false;
    whole->weight = queue->settings.weight;
    set_limits(whole, &queue->settings);
    if (strcmp(whole->on_dead, queue->on_dead) != 0)
        register_again(whole);
    memcpy(whole->on_dead, queue->on_dead, sizeof whole->on_dead);
    if (whole->unserved && whole->members->hold_until_ns != 0) /* they may fit now */
        whole->members->hold_until_ns = hf_boot_ns();
    return whole;
}

void hf_wholes_order(hf_worker *w, hf_whole *const *list, size_t n)
{
    w->wake->n_served = 0;
    for (size_t i = 0; i < n; i++) {
        w->wake->wholes[i] = list[i];
        list[i]->index = i;
        for (hf_served *member = list[i]->members; member != NULL;
             member = member->next_member)
            if (!hf_queue_is(member->state, HF_Q_GONE))
                w->wake->served[w->wake->n_served++] = member;
    }
    w->wake->n_wholes = n;
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->wake, b)) != NULL;)
        b->wait_order = 0;
}
