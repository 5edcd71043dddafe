/* dispatch.c - what starts when.
 *
 * `concurrency` slots are shared by C handlers and programs. C jobs go to the pool as
 * they come, also those claimed ahead, so that a thread finds its next job without a turn
 * of the loop; but not past a program that waits for a slot.
 *
 * A suspect (one crash short of being dead) that a C handler takes is started when this
 * worker holds nothing else but programs that are no suspects, and nothing is started
 * beside it: if it ends the process, the crash is its own, and it alone is buried. While
 * it waits nothing else is started, so it waits for a while only: then it is put back,
 * for somebody who is less busy. Each time it may wait an eighth of the time since it was
 * put back first, and then stays away for four times as long: it takes at most a fifth of
 * somebody's time, and it comes to run however long the others take. */
#include "base/clock.h"
#include "worker/core.h"
#include "worker/pool.h"

static bool is_c(const hf_run *run)
{
    return run->handler->fn != NULL;
}

/* How many more could be started now. */
static size_t free_slots(const hf_worker *w)
{
    size_t busy = w->c_out + w->programs_out;
    return busy < w->opts.concurrency ? w->opts.concurrency - busy : 0;
}

static bool suspect_waits(const hf_worker *w)
{
    for (const hf_run *run = w->waiting.head; run != NULL; run = run->next)
        if (run->suspect && is_c(run))
            return true;
    return false;
}

/* Programs alone, and the minder is away; or the last program could not be started. */
static bool cannot_start(const hf_worker *w)
{
    return w->spawn_hold_until_ns != 0 ||
           (w->only_programs && (w->programs == NULL || !hf_programs_ready(w->programs)));
}

/* None beside a suspect, so that a baton goes to somebody who can claim. */
uint32_t hf_dispatch_slots(const hf_worker *w)
{
    size_t busy = w->c_out + w->programs_out + w->waiting.n + w->held_back.n;
    if (w->exclusive || suspect_waits(w) || cannot_start(w))
        return 0;
    return busy < w->opts.concurrency ? w->opts.concurrency - (uint32_t)busy : 0;
}

/* So much is claimed ahead that no slot waits for a round trip: a few milliseconds of
 * work. */
static size_t ahead(const hf_worker *w)
{
    if (w->mean_run_ns <= 0)
        return 0;
    double n = w->opts.concurrency * (HF_AHEAD_MS * 1e6) / w->mean_run_ns;
    return n > HF_AHEAD_MAX ? HF_AHEAD_MAX : (size_t)n;
}

/* Not one by one while many are held: a quarter of what would be held is worth a request.
 */
uint32_t hf_dispatch_wanted(const hf_worker *w)
{
    size_t target = w->opts.concurrency + ahead(w);
    size_t have = w->held - w->settling - w->struck.n;
    if (w->exclusive || have >= target || suspect_waits(w) || cannot_start(w))
        return 0;
    size_t want = target - have;
    if (have > w->opts.concurrency && want * 4 < target)
        return 0;
    return (uint32_t)want;
}

/* ---- C handlers ---- */

static void hand_over(hf_worker *w, hf_run *run, hf_run_list *batch)
{
    hf_run_remove(&w->waiting, run);
    run->state = HF_STARTED;
    hf_run_push(batch, run);
    w->c_out++;
}

/* It was claimed for nothing. */
static void release_unstarted(hf_worker *w, hf_run *run)
{
    hf_claim_refund(run->served, 1);
    hf_run_release(w, run);
}

/* Everything else that is held has to go first: what waits is released, so that a crash
 * is not counted against it, and what was finished must be answered. */
static void try_suspect(hf_worker *w, hf_run *suspect)
{
    hf_run_list batch = {.n = 0};
    for (hf_run *run = w->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (run != suspect) {
            hf_run_remove(&w->waiting, run);
            release_unstarted(w, run);
        }
    }
    if (w->c_out > 0 || w->suspects_out > 0 || w->held != w->programs_out + 1 ||
        free_slots(w) == 0)
        return;
    w->exclusive = true;
    hand_over(w, suspect, &batch);
    hf_pool_push(w->pool, &batch);
}

/* In their order. A program waits for a slot, and what is behind it waits as well, or C
 * jobs would take every slot as it comes. */
static void start_all(hf_worker *w)
{
    hf_run_list batch = {.n = 0};
    bool program_waits = false;
    for (hf_run *run = w->waiting.head, *next; run != NULL; run = next) {
        next = run->next;
        if (is_c(run)) {
            if (!program_waits)
                hand_over(w, run, &batch);
        } else if (w->spawn_hold_until_ns == 0 && hf_programs_ready(w->programs)) {
            if (free_slots(w) == 0)
                program_waits = true;
            else if (!hf_dispatch_program(w, run))
                break;
        }
    }
    if (!hf_lead_take(w, &batch))
        hf_pool_push(w->pool, &batch);
}

void hf_dispatch(hf_worker *w)
{
    hf_run *suspect = NULL;
    for (hf_run *run = w->waiting.head; run != NULL && suspect == NULL; run = run->next)
        if (run->suspect && is_c(run))
            suspect = run;
    if (w->exclusive || w->phase != HF_SERVING)
        return;
    if (suspect != NULL)
        try_suspect(w, suspect);
    else
        start_all(w);
}

void hf_dispatch_learn(hf_worker *w, uint64_t total_ns, size_t n)
{
    double mean = (double)total_ns / (double)n;
    double share = n >= 16 ? 0.5 : (double)n / 32;
    w->mean_run_ns =
        w->mean_run_ns <= 0 ? mean : w->mean_run_ns * (1 - share) + mean * share;
}

void hf_dispatch_returned(hf_worker *w)
{
    hf_run_list done;
    hf_run *run;
    uint64_t total_ns = 0;
    hf_pool_collect(w->pool, &done);
    if (done.n == 0)
        return;
    size_t n = done.n;
    while ((run = hf_run_pop(&done)) != NULL) {
        total_ns += run->ended_ns - run->started_ns;
        w->c_out--;
        if (run->suspect)
            w->exclusive = false;
        if (atomic_load(&run->begun_ns) != 0)
            hf_run_finish(w, run);
        else if (atomic_load(&run->cancelled))
            hf_run_cancel(w, run);
        else
            hf_run_release(w, run);
    }
    hf_dispatch_learn(w, total_ns, n);
}

/* On a pool thread. What was lost or cancelled while it waited for a thread is never
 * started. */
void hf_dispatch_work(hf_run *run)
{
    run->started_ns = run->ended_ns = hf_boot_ns();
    if (hf_lease_lost(run->lease) || atomic_load(&run->cancelled))
        return;
    atomic_store(&run->begun_ns, run->started_ns);
    run->verdict = run->handler->fn(run, run->handler->arg);
    run->ended_ns = hf_boot_ns();
    pthread_mutex_lock(&run->worker->stop_lock);
    run->stop_fn = NULL;
    pthread_mutex_unlock(&run->worker->stop_lock);
}

/* ---- the end ---- */

static void ask_one(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_ask_to_stop(run);
}

void hf_dispatch_ask_all(hf_worker *w)
{
    hf_pool_running(w->pool, ask_one, NULL);
}

static void add_shadow(hf_run *run, void *arg)
{
    hf_run *shadow = hf_run_shadow(run);
    if (shadow != NULL)
        hf_run_push(arg, shadow);
}

/* The handler stops believing before its job can start elsewhere. */
void hf_dispatch_abandon(hf_worker *w)
{
    hf_run_list shadows = {.n = 0};
    hf_run *shadow;
    hf_pool_running(w->pool, add_shadow, &shadows);
    while ((shadow = hf_run_pop(&shadows)) != NULL) {
        hf_run *run = shadow->shadow_of;
        hf_watchdog_end(w->watchdog, run->lease);
        if (!run->lost_told)
            hf_report_run(w, run, "released");
        run->lost_told = true; /* that is what was told of it */
        w->held++;
        hf_run_release(w, shadow);
    }
}

/* ---- what time does to them ---- */

/* How long a suspect may keep others from being started here. */
static int64_t patience_ms(const hf_run *run)
{
    int64_t since = run->record.refused_ms;
    int64_t passed = since > 0 ? hf_clock_now(run->worker) - since : 0;
    return HF_AHEAD_KEEP_MS + (passed > 0 ? passed / 8 : 0);
}

void hf_dispatch_release_waiting(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    while ((run = hf_run_pop(&w->waiting)) != NULL)
        hf_run_release(w, run);
    while ((run = hf_run_pop(&w->held_back)) != NULL)
        hf_run_release(w, run);
    hf_pool_take_back(w->pool, UINT64_MAX, &back);
    w->c_out -= back.n;
    while ((run = hf_run_pop(&back)) != NULL)
        hf_run_release(w, run);
}

static void on_running(hf_run *run, void *arg)
{
    uint64_t begun = atomic_load(&run->begun_ns), now = *(uint64_t *)arg;
    if (begun != 0 && run->timeout_ms != 0 && begun + run->timeout_ms * HF_MS_NS <= now &&
        !atomic_exchange(&run->timed_out, true))
        hf_run_ask_to_stop(run);
}

/* A suspect that cannot run alone here. */
static void put_suspect_back(hf_worker *w, hf_run *run)
{
    static const char text[] = "it waits for a worker to run alone: one crash more and "
                               "it is dead";
    int64_t delay = 4 * patience_ms(run);
    delay = delay > HF_SUSPECT_AWAY_MAX_MS ? HF_SUSPECT_AWAY_MAX_MS : delay;
    hf_run_set_text(run, text, sizeof text - 1);
    hf_claim_refund(run->served, 1);
    hf_run_put_back(w, run, delay < HF_SUSPECT_AWAY_MS ? HF_SUSPECT_AWAY_MS : delay);
    hf_report_run(w, run, "put_back");
}

/* A job claimed ahead is not kept from others for long. While as many as there are slots
 * were claimed, and none ahead, they only wait for a program's start or a suspect's end.
 */
static void release_stale(hf_worker *w, uint64_t now)
{
    for (hf_run *run = w->waiting.head, *next; run != NULL; run = next) {
        bool suspect = run->suspect && is_c(run);
        uint64_t keep_ms = suspect ? (uint64_t)patience_ms(run) : HF_AHEAD_KEEP_MS;
        next = run->next;
        if (run->claimed_ns + keep_ms * HF_MS_NS >= now)
            continue;
        hf_run_remove(&w->waiting, run);
        if (!is_c(run))
            w->mean_run_ns = HF_AHEAD_KEEP_MS * (double)HF_MS_NS; /* none ahead for now */
        if (suspect)
            put_suspect_back(w, run);
        else
            release_unstarted(w, run);
    }
}

void hf_dispatch_tick(hf_worker *w)
{
    hf_run_list back;
    hf_run *run;
    uint64_t now = hf_boot_ns(), keep = HF_AHEAD_KEEP_MS * HF_MS_NS;
    hf_pool_take_back(w->pool, now - keep, &back);
    w->c_out -= back.n;
    if (back.n > 0)
        w->mean_run_ns = (double)keep; /* they are not short: claim none ahead for now */
    while ((run = hf_run_pop(&back)) != NULL) {
        if (run->suspect)
            w->exclusive = false;
        release_unstarted(w, run);
    }
    release_stale(w, now);
    hf_pool_running(w->pool, on_running, &now);
    hf_dispatch_struck(w);
}
