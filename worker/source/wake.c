/* wake.c - waiting without polling: the batons and their timers.
 *
 * `wake` of each queue holds at most one baton, whose score says when a worker should
 * claim. A worker that has a free slot and nothing to claim blocks on the batons of all
 * its queues, on a connection of its own. A worker that pops a baton owns its time: it
 * claims if that time has come, else keeps a timer and blocks again. A baton that cannot
 * be used (no free slot, quiet, stopping) is given back. After the blocking connection
 * was lost an answer may have been lost with it, so every queue is claimed once before
 * the worker relies on blocking again. The check of every worker finds a wake-up
 * that was lost with a dead worker (check.c). */
#include "worker/source/wake.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/machine.h"
#include "redis/blocking.h"
#include "redis/err.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/queues/bundle.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/runner/runner.h"
#include "worker/source/check.h"
#include "worker/worker.h"

enum { OPEN_MS = 20 /* from one new connection to the next, at most */ };

/* ---- the times of batons ---- */

static void on_due(hf_served *served, int64_t at_ms)
{
    served->wake.due_ms = at_ms == 0 ? 1 : at_ms;
    hf_queue_apply(served, HF_E_BATON);
}

static void on_baton(hf_served *served, int64_t at_ms)
{
    if (hf_site_time_has_come(served->site, at_ms))
        on_due(served, at_ms);
    else if (served->wake.timer_ms == 0 || at_ms < served->wake.timer_ms)
        served->wake.timer_ms = at_ms;
    else if (at_ms > served->wake.timer_ms)
        hf_queue_apply(served, HF_E_DOUBT); /* one of two times would be forgotten */
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

static int64_t sooner(int64_t a_ms, int64_t b_ms) /* 0: none */
{
    return a_ms == 0 || (b_ms != 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static uint64_t backoff_over_ns(const hf_worker *w) /* 0: there is none */
{
    uint64_t first = hf_runner_hold_until_ns(w);
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        first = earlier(first, b->blocking == NULL && !hf_queues_only_shards_in(b) &&
                                       hf_site_can_ask(b->site)
                                   ? w->wake->open_at_ns
                                   : b->wait_hold_until_ns);
    for (size_t i = 0; i < w->queues->n_slots; i++)
        first = earlier(first, w->queues->slots[i].backoff.until_ns);
    return first;
}

static void end_backoffs(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        if (b->wait_hold_until_ns <= now)
            b->wait_hold_until_ns = 0;
    hf_runner_hold_over(w, now);
    hf_queues_hold_over(w, now);
}

/* The earliest of the owned times, on the clock of this Redis; 0: none. */
static int64_t first_time(const hf_site *site)
{
    const hf_queues *k = site->worker->queues;
    int64_t first = 0;
    for (size_t i = 0; i < k->n_served; i++)
        if (k->served[i]->site == site)
            first = sooner(first, k->served[i]->wake.timer_ms);
    return first;
}

/* Sets the one alarm to the earliest of the owned times, and of the ends of backoffs. It
 * may come too early, and is set anew then. */
void hf_wake_timers(hf_worker *w)
{
    hf_wake *k = w->wake;
    uint64_t at_ns = backoff_over_ns(w), boot_ns = hf_boot_ns();
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;) {
        int64_t first = first_time(site);
        uint64_t when_ns = first == 0 ? 0 : hf_server_when(site->base.redis, first);
        if (first != 0)
            at_ns = earlier(at_ns, when_ns < boot_ns ? boot_ns : when_ns);
    }
    if (at_ns == 0 || (k->alarm_ns != 0 && k->alarm_ns <= at_ns))
        return;
    hf_timer_set(k->alarm_fd, at_ns);
    k->alarm_ns = at_ns;
}

/* If no job can start when this time comes, pump() gives the baton back. */
static void on_alarm(uv_poll_t *alarm, int status, int events)
{
    hf_worker *w = alarm->data;
    uint64_t times;
    (void)status;
    (void)events;
    if (read(w->wake->alarm_fd, &times, sizeof times) < 0)
        return; /* it was set anew meanwhile */
    w->wake->alarm_ns = 0;
    end_backoffs(w);
    for (size_t i = 0; i < w->queues->n_served; i++) {
        hf_served *served = w->queues->served[i];
        if (served->wake.timer_ms == 0 ||
            !hf_site_time_has_come(served->site, served->wake.timer_ms))
            continue;
        on_due(served, served->wake.timer_ms);
        served->wake.timer_ms = 0;
    }
    w->turn_due = true;
}

/* ---- blocking ---- */

/* Each time another queue is named first. A queue that cannot be claimed is not named,
 * because Redis would refuse the request for all of them. */
static void choose_waited(hf_bundle *b)
{
    const hf_queues *k = b->site->worker->queues;
    b->n_waiting_on = 0;
    for (size_t i = 0; i < k->n_served; i++) {
        hf_served *served = k->served[(i + b->wait_order) % k->n_served];
        if (served->bundle == b && !hf_queue_is(served, HF_Q_UNHEARD))
            b->waiting_on[b->n_waiting_on++] = served;
    }
    b->wait_order = b->wait_order + 1 < k->n_served ? b->wait_order + 1 : 0;
}

static size_t waiting_queues(const hf_bundle *b, const hf_queue *out[HF_SLOTS_MAX])
{
    for (size_t i = 0; i < b->n_waiting_on; i++)
        out[i] = &b->waiting_on[i]->queue;
    return b->n_waiting_on;
}

static void report_woken(const hf_served *served, int64_t at_ms)
{
    int64_t now_ms = hf_server_now(served->site->base.redis);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "in_ms", .number = at_ms > now_ms ? at_ms - now_ms : 0}};
    hf_report(served->worker, HF_LOG_DEBUG, "woken", fields, HF_COUNT(fields));
}

/* True: this worker may have a baton that it has no use for. */
static bool owes(hf_served *served)
{
    if (!hf_queue_is(served, HF_Q_GONE))
        return false;
    hf_queue_debt(served, HF_DEBT_MADE);
    return true;
}

/* Until Redis lets it wait again it claims everything now and then. Logged once. */
static void on_wait_refused(hf_bundle *b, const char *detail)
{
    if (!b->wait_refused)
        hf_report_text(b->site->worker, HF_LOG_WARN,
                       "Redis does not let this worker wait for jobs", "error", detail);
    b->wait_refused = true;
    b->wait_backoff_ms = hf_queue_backoff_longer(b->wait_backoff_ms);
    b->wait_hold_until_ns = hf_boot_ns() + b->wait_backoff_ms * HF_MS_NS;
}

static void on_woken(const hf_answer *answer, void *arg)
{
    hf_bundle *b = arg;
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    size_t which, n = waiting_queues(b, queues);
    int64_t at_ms;
    hf_err err = hf_wait_read(answer, queues, n, &which, &at_ms);
    b->blocked = b->wait_stale = false;
    if (w->phase == HF_ENDED)
        return;
    if (b->blocking != NULL)
        hf_blocking_answered(b->blocking);
    if (err != HF_OK) {
        /* A baton may have been popped and lost with the answer. */
        b->wake_doubt = true;
        for (size_t i = 0; i < b->n_waiting_on; i++)
            b->give_back = owes(b->waiting_on[i]) || b->give_back;
        if (hf_err_is(err, HF_ERR_OF_CLUSTER))
            hf_queues_unserved_in(b, b->site, err, answer);
        else if (err != HF_UNSURE && err != HF_READONLY)
            on_wait_refused(b, answer->detail);
        return;
    }
    b->wait_refused = false;
    b->wait_backoff_ms = 0;
    if (which < n) {
        hf_served *served = b->waiting_on[which];
        report_woken(served, at_ms);
        if (owes(served) || served->paused > 0 || !hf_site_serves(b->site) ||
            hf_runner_slots(w) == 0)
            hf_check_bundle(b, true);
        else
            on_baton(served, at_ms);
    }
    if (hf_boot_ns() >= b->check_at_ns)
        hf_check_bundle(b, false);
    w->turn_due = true;
}

static bool is_ready(const hf_bundle *b)
{
    return b->blocking != NULL && hf_client_ready(b->blocking->client);
}

/* The blocked call could not be ended. The clock of the look may be a part of a
 * millisecond behind. */
static void on_pause(void *arg)
{
    hf_bundle *b = arg;
    hf_bundle_look_in(b, b->blocking->pause_ms + 1);
}

/* A full worker would keep a baton from workers that could use it. */
static void unblock(hf_bundle *b)
{
    if (!b->blocked || b->blocking == NULL || !hf_site_ready(b->site))
        return;
    if (!hf_blocking_end(b->blocking, b->site->base.client))
        on_pause(b);
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_bundle *b = arg;
    hf_worker *w = b->site->worker;
    if (err == HF_OK) {
        b->wake_doubt = b->waited;
        b->wait_away = false;
        hf_site_report_lacks(b->site);
        w->turn_due = true;
    } else if (w->phase == HF_SERVING) {
        hf_cluster_doubt(w->nodes.cluster);
        if (!b->wait_away && !hf_client_was_idle(client))
            hf_report_text(w, HF_LOG_WARN, "the waiting connection is away", "error",
                           detail);
        b->wait_away = b->wait_away || !hf_client_was_idle(client);
        /* It may stay away while the other serves (too many clients): without it nothing
         * is heard of, so each failed try to connect is a time to look. */
        hf_queues_recheck_in(b);
        w->turn_due = true;
    }
}

static hf_err open_client(hf_bundle *b, char detail[HF_DETAIL_SIZE])
{
    return hf_blocking_open(&b->blocking, &b->site->worker->loop, b->site->base.redis,
                            on_client, on_pause, b, detail);
}

/* In a cluster, where each queue has one. Without memory: later. */
static void open_next_client(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    char detail[HF_DETAIL_SIZE];
    uint64_t now = hf_boot_ns();
    if (now < w->wake->open_at_ns || !hf_site_can_ask(b->site))
        return;
    (void)open_client(b, detail);
    w->wake->open_at_ns = now + (uint64_t)(hf_rng_unit(&w->rng) * OPEN_MS * HF_MS_NS);
}

/* ---- a turn ---- */

/* A worker that cannot claim leaves what is due to those that can, in whatever state the
 * queue is. */
static void give_back_due(hf_bundle *b)
{
    const hf_queues *k = b->site->worker->queues;
    for (size_t i = 0; i < k->n_served; i++) {
        hf_served *served = k->served[i];
        if (served->bundle != b || served->wake.due_ms == 0)
            continue;
        served->wake.due_ms = 0;
        b->give_back = true;
    }
}

static void pump(hf_bundle *b)
{
    hf_worker *w = b->site->worker;
    const hf_queue *queues[HF_SLOTS_MAX];
    bool can = hf_site_serves(b->site) && hf_runner_slots(w) > 0;
    if (b->blocking == NULL && !hf_queues_only_shards_in(b))
        open_next_client(b);
    if (!can)
        give_back_due(b);
    if (b->give_back && !b->checking)
        hf_check_bundle(b, true);
    if (!can) {
        unblock(b);
        return;
    }
    if (b->blocked && b->wait_stale)
        unblock(b);
    if (b->blocked || b->wait_hold_until_ns != 0 || !hf_site_can_ask(b->site) ||
        !is_ready(b))
        return;
    if (b->wake_doubt) {
        b->wake_doubt = false;
        hf_queues_recheck_in(b);
        w->turn_due = true; /* this turn has sent its claims: another one */
    }
    if (!hf_queues_quiet_in(b))
        return;
    if (w->opts.burst && w->in_hand == 0)
        hf_check_bundle(b, false);
    choose_waited(b);
    size_t n = waiting_queues(b, queues);
    if (n == 0)
        return;
    uint32_t ms = hf_blocking_ms(b->blocking, b->site->base.client, hf_check_ms(w));
    if (hf_op_wait(b->blocking->client, queues, n, ms, on_woken, b) == HF_OK)
        b->blocked = b->waited = true;
}

void hf_wake_pump(hf_worker *w)
{
    if (w->opts.burst && w->in_hand > 0)
        w->wake->worked_ns = hf_boot_ns();
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        pump(b);
}

/* ---- for the other parts ---- */

hf_err hf_wake_new(hf_worker *w)
{
    w->wake = calloc(1, sizeof *w->wake);
    if (w->wake == NULL)
        return HF_NOMEM;
    w->wake->alarm_fd = -1;
    return HF_OK;
}

void hf_wake_free(hf_worker *w)
{
    free(w->wake);
    w->wake = NULL;
}

hf_err hf_wake_open(hf_worker *w)
{
    hf_wake *k = w->wake;
    hf_machine_id(k->machine);
    k->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->alarm_fd < 0)
        return HF_SYSTEM;
    k->alarm.data = w;
    if (uv_poll_init(&w->loop, &k->alarm, k->alarm_fd) != 0) {
        (void)close(k->alarm_fd);
        k->alarm_fd = -1;
        return HF_SYSTEM;
    }
    return uv_poll_start(&k->alarm, UV_READABLE, on_alarm) == 0 ? HF_OK : HF_SYSTEM;
}

hf_err hf_wake_connect(hf_worker *w)
{
    if (!hf_cluster_is_plain(w->nodes.cluster))
        return HF_OK;
    return open_client(&w->queues->bundles[0], w->detail);
}

void hf_wake_start(hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        hf_bundle_look_in(b, hf_bundle_longest_ms(w));
}

void hf_wake_close(hf_worker *w)
{
    for (size_t i = 0; i < w->queues->n_bundles; i++) {
        hf_bundle *b = &w->queues->bundles[i];
        hf_bundle_close_client(b);
        if (b->look.data != NULL && !uv_is_closing((uv_handle_t *)&b->look))
            uv_close((uv_handle_t *)&b->look, NULL);
    }
    if (w->wake->alarm_fd >= 0) {
        uv_close((uv_handle_t *)&w->wake->alarm, NULL);
        (void)close(w->wake->alarm_fd);
        w->wake->alarm_fd = -1;
    }
}

bool hf_wake_blocks(const hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        if (!b->blocked && !hf_queues_only_shards_in(b) &&
            (b->only == NULL || hf_site_can_ask(b->site)))
            return false;
    return true;
}

/* A site without a connection for the rest answers nothing. */
static bool is_idle(const hf_bundle *b)
{
    bool waits = b->blocked && is_ready(b);
    return !hf_site_ready(b->site) || (!b->checking && !b->give_back && !waits);
}

bool hf_wake_idle(const hf_worker *w)
{
    for (hf_bundle *b = NULL; (b = hf_bundle_next(w->queues, b)) != NULL;)
        if (!is_idle(b))
            return false;
    return true;
}
