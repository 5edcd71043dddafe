/* waits.c - many waits for the ends of jobs, on a thread of their own.
 *
 * The thread owns the admin and its loop. Callers only put waits into the inbox, under
 * the lock, and wake it. Each wait is looked at when it comes, when its end is told,
 * every few seconds, and at its deadline.
 *
 * Looks come one after the other, and each deadline is kept while Redis is away: a look
 * ends soon after the first deadline of all waits, a Redis that has not answered is not
 * asked again in the same round, and a wait that is late ends without a look. */
#include "holdfast/job_wait.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/hear.h"
#include "admin/wait.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/structs.h"

enum {
    LOOK_MS = 1000, /* for one look */
    ASK_MS = 1000,  /* again, although an end would be told: an older worker tells none;
                       and 1 ms more for each wait above these thousand */
    POLL_MS = 200,  /* where it cannot be told, or Redis is away */
    LATE_MS = 500, /* a wait ends so long after its deadline, even if nothing was heard */
    LEAST_MS = 50, /* a look after that of another wait */
    TURN_MS = 250  /* of looks, before all deadlines are seen to again */
};

typedef struct entry {
    struct entry *next;
    hf_wait wait;
    char queue[HF_ID_SIZE], id[HF_ID_SIZE];
    uint64_t due_ns;   /* when it is looked at next; 0: at once, its end was told */
    uint64_t round;    /* in which it was looked at */
    uint64_t until_ns; /* its deadline */
    hf_job_end_cb cb;
    void *arg;
} entry;

struct hf_waits {
    hf_admin *admin; /* owned; the thread's */
    entry *entries;  /* owned; the thread's */
    uint64_t round;  /* of looks at all that are due; the thread's, as the next two */
    const hf_server *away[HF_NODES_MAX]; /* did not answer in this round; only compared */
    size_t n_away;
    uv_thread_t thread;
    uv_mutex_t lock;  /* of the rest */
    entry *inbox;     /* owned */
    _Atomic size_t n; /* waits that have not ended; read without it as well */
    bool closing;
};

/* ---- the end of a wait ---- */

static hf_job_outcome outcome_of(hf_err err)
{
    switch (err) {
    case HF_OK:
        return HF_JOB_DONE;
    case HF_DEAD:
        return HF_JOB_DEAD;
    case HF_CANCEL:
        return HF_JOB_CANCELLED;
    case HF_DELETED:
        return HF_JOB_DELETED;
    case HF_EXPIRED:
        return HF_JOB_EXPIRED;
    case HF_GONE:
        return HF_JOB_UNKNOWN;
    default:
        return HF_JOB_NOT_ENDED;
    }
}

static void end(hf_waits *waits, entry *e, hf_err err)
{
    const hf_job_end told = {.size = sizeof told,
                             .err = err,
                             .queue = e->queue,
                             .id = e->id,
                             .detail = err == HF_OK ? "" : waits->admin->detail,
                             .kind = e->wait.kind,
                             .result = e->wait.result,
                             .len = e->wait.len,
                             .outcome = outcome_of(err)};
    e->cb(&told, e->arg);
    uv_mutex_lock(&waits->lock);
    waits->n--;
    uv_mutex_unlock(&waits->lock);
    free(e->wait.result);
    free(e);
}

/* No other wait is for a job of this queue. */
static bool is_last(const hf_waits *waits, const hf_queue *queue)
{
    for (const entry *e = waits->entries; e != NULL; e = e->next)
        if (strcmp(e->wait.queue.prefix, queue->prefix) == 0)
            return false;
    return true;
}

/* ---- looking ---- */

/* The Redis of a queue did not answer another wait of this round; NULL, where none is
 * known, is one as well. */
static bool is_away(const hf_waits *waits, const hf_server *redis)
{
    for (size_t i = 0; i < waits->n_away; i++)
        if (waits->away[i] == redis)
            return true;
    return false;
}

/* Until when a look may last that begins now; soonest_ns is the first deadline. */
static uint64_t end_of_look(uint64_t soonest_ns)
{
    uint64_t now_ns = hf_boot_ns();
    uint64_t most_ns = now_ns + LOOK_MS * HF_MS_NS;
    uint64_t least_ns = now_ns + LEAST_MS * HF_MS_NS;
    if (soonest_ns >= most_ns)
        return most_ns;
    uint64_t late_ns = soonest_ns + LATE_MS * HF_MS_NS;
    return late_ns < least_ns ? least_ns : late_ns < most_ns ? late_ns : most_ns;
}

static hf_err look_at(hf_waits *waits, entry *e, uint64_t soonest_ns)
{
    hf_admin *admin = waits->admin;
    hf_server *redis = hf_admin_server_of(admin, &e->wait.queue);
    hf_err err = HF_CONN;
    if (is_away(waits, redis)) {
        hf_server_close(redis);
        return hf_admin_fail(admin, err, "it is away");
    }
    e->wait.until_ns = end_of_look(soonest_ns);
    err = hf_wait_look(admin, &e->wait);
    if (hf_wait_goes_on(err) && hf_boot_ns() >= e->wait.until_ns &&
        waits->n_away < HF_NODES_MAX)
        waits->away[waits->n_away++] = redis;
    hf_server_close(redis);
    return err;
}

/* Whether it has ended, and how. */
static bool look(hf_waits *waits, entry *e, uint64_t soonest_ns, hf_err *how)
{
    hf_admin *admin = waits->admin;
    e->due_ns = UINT64_MAX;
    *how = look_at(waits, e, soonest_ns);
    if (*how != HF_RUNNING && !hf_wait_goes_on(*how))
        return true;
    bool told = *how == HF_RUNNING && !e->wait.not_permitted &&
                hf_hearing_has(admin, &e->wait.queue);
    uint64_t now_ns = hf_boot_ns();
    if (now_ns >= e->until_ns) {
        if (*how == HF_RUNNING)
            (void)hf_wait_give_up(admin, &e->wait);
        *how = hf_wait_timed_out(admin, *how);
        return true;
    }
    if (e->due_ns == 0)
        return false; /* it was told during this look, which may have missed the end */
    uint64_t ask_ms = waits->n > ASK_MS ? waits->n : ASK_MS;
    e->due_ns = now_ns + (told ? ask_ms : POLL_MS) * HF_MS_NS;
    if (e->due_ns > e->until_ns)
        e->due_ns = e->until_ns;
    return false;
}

/* Takes it out of the list, and tells its end. */
static void take_out(hf_waits *waits, entry **at, hf_err how)
{
    entry *e = *at;
    const hf_queue queue = e->wait.queue;
    *at = e->next;
    end(waits, e, how);
    if (is_last(waits, &queue))
        hf_hearing_drop(waits->admin, &queue);
}

/* Ends those whose deadline is over for too long. The first deadline of the others. */
static uint64_t end_late(hf_waits *waits)
{
    uint64_t soonest_ns = UINT64_MAX, now_ns = hf_boot_ns();
    for (entry **at = &waits->entries; *at != NULL;) {
        entry *e = *at;
        if (now_ns > LATE_MS * HF_MS_NS && e->until_ns <= now_ns - LATE_MS * HF_MS_NS) {
            take_out(
                waits, at,
                hf_admin_fail(waits->admin, HF_TIMEOUT, "Redis did not say in time"));
            continue;
        }
        if (e->until_ns < soonest_ns)
            soonest_ns = e->until_ns;
        at = &e->next;
    }
    return soonest_ns;
}

/* Looks at those that are due, for a turn. When to go on. */
static uint64_t look_at_all(hf_waits *waits)
{
    uint64_t next_ns = UINT64_MAX;
    char detail[HF_DETAIL_SIZE];
    hf_admin_begin(waits->admin, detail);
    uint64_t soonest_ns = end_late(waits), stop_ns = hf_boot_ns() + TURN_MS * HF_MS_NS;
    for (entry **at = &waits->entries; *at != NULL;) {
        entry *e = *at;
        hf_err how = HF_RUNNING;
        if (e->due_ns <= hf_boot_ns() && e->round != waits->round) {
            if (hf_boot_ns() > stop_ns)
                return 0; /* at once: the round is not over */
            e->round = waits->round;
            if (look(waits, e, soonest_ns, &how)) {
                take_out(waits, at, how);
                continue;
            }
        }
        if (e->due_ns < next_ns)
            next_ns = e->due_ns;
        at = &e->next;
    }
    waits->round++;
    waits->n_away = 0;
    return next_ns;
}

/* ---- the thread ---- */

static void on_told(const hf_queue *queue, const char *id, void *arg)
{
    hf_waits *waits = arg;
    for (entry *e = waits->entries; e != NULL; e = e->next)
        if (strcmp(e->id, id) == 0 && strcmp(e->wait.queue.prefix, queue->prefix) == 0)
            e->due_ns = e->round = 0;
}

/* Takes what callers have put in. False: it is closed. */
static bool take(hf_waits *waits)
{
    uv_mutex_lock(&waits->lock);
    entry *list = waits->inbox;
    waits->inbox = NULL;
    bool closing = waits->closing;
    uv_mutex_unlock(&waits->lock);
    while (list != NULL) {
        entry *e = list;
        list = e->next;
        e->next = waits->entries;
        waits->entries = e;
    }
    return !closing;
}

static void run(void *arg)
{
    hf_waits *waits = arg;
    char detail[HF_DETAIL_SIZE];
    bool answers = true;
    while (take(waits)) {
        uint64_t next_ns = look_at_all(waits);
        hf_hearing_wait(waits->admin, next_ns);
    }
    while (waits->entries != NULL) {
        entry *e = waits->entries;
        waits->entries = e->next;
        hf_admin_begin(waits->admin, detail);
        answers = answers && hf_wait_give_up(waits->admin, &e->wait);
        end(waits, e,
            hf_admin_fail(waits->admin, HF_CLOSED, "%s", hf_err_text(HF_CLOSED)));
    }
    hf_hearing_close(waits->admin);
    hf_admin_close(waits->admin);
}

/* ---- for callers ---- */

static hf_err start(hf_waits *waits, char *detail)
{
    sigset_t all, before;
    hf_err err = hf_hearing_open(waits->admin, on_told, waits);
    if (err != HF_OK)
        return hf_say_err(detail, err);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = uv_thread_create(&waits->thread, run, waits);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? HF_OK : hf_say(detail, HF_SYSTEM, "no thread could be made");
}

hf_err hf_waits_open(hf_waits **out, const hf_waits_opts *theirs,
                     char detail[HF_DETAIL_SIZE])
{
    hf_waits_opts opts;
    hf_err err = hf_struct_in(&opts, sizeof opts, theirs, "hf_waits_opts", detail);
    if (err != HF_OK)
        return err;
    hf_waits *waits = calloc(1, sizeof *waits);
    if (waits == NULL)
        return hf_say_err(detail, HF_NOMEM);
    waits->round = 1; /* 0 is no round */
    if (uv_mutex_init(&waits->lock) != 0) {
        free(waits);
        return hf_say(detail, HF_SYSTEM, "no mutex could be made");
    }
    const hf_admin_opts admin = {HF_ADMIN_OPTS_INIT, .server = opts.server,
                                 .deadline_ms = LOOK_MS};
    err = hf_admin_open(&waits->admin, &admin, detail);
    if (err == HF_OK)
        err = start(waits, detail);
    if (err != HF_OK) {
        if (waits->admin != NULL)
            hf_hearing_close(waits->admin);
        hf_admin_close(waits->admin);
        uv_mutex_destroy(&waits->lock);
        free(waits);
        return err;
    }
    *out = waits;
    return HF_OK;
}

static hf_err put(hf_waits *waits, entry *e, char *detail)
{
    uv_mutex_lock(&waits->lock);
    hf_err err = waits->closing ? HF_CLOSED : waits->n >= HF_WAITS_MAX ? HF_FULL : HF_OK;
    if (err == HF_OK) {
        e->next = waits->inbox;
        waits->inbox = e;
        waits->n++;
        hf_hearing_wake(waits->admin); /* under the lock: the thread is still there */
    }
    uv_mutex_unlock(&waits->lock);
    return err == HF_OK ? err : hf_say_err(detail, err);
}

hf_err hf_job_wait(hf_waits *waits, const char *queue, const char *id,
                   int64_t accepted_ms, uint32_t deadline_ms, hf_job_end_cb cb, void *arg,
                   char detail[HF_DETAIL_SIZE])
{
    if (queue == NULL || !hf_name_ok(queue) || id == NULL || !hf_name_ok(id) ||
        cb == NULL)
        return hf_say(detail, HF_INVALID,
                      "expected a queue's name, a job's id and a callback");
    entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return hf_say_err(detail, HF_NOMEM);
    (void)snprintf(e->queue, sizeof e->queue, "%s", queue);
    (void)snprintf(e->id, sizeof e->id, "%s", id);
    e->wait.id = e->id;
    e->wait.accepted_ms = e->wait.alive_ms = accepted_ms;
    e->until_ns = deadline_ms == 0 ? UINT64_MAX : hf_boot_ns() + deadline_ms * HF_MS_NS;
    e->cb = cb;
    e->arg = arg;
    hf_err err = hf_queue_init(&e->wait.queue, waits->admin->ns, queue);
    if (err == HF_OK)
        err = put(waits, e, detail);
    if (err != HF_OK)
        free(e);
    return err;
}

void hf_waits_close(hf_waits *waits)
{
    if (waits == NULL)
        return;
    uv_mutex_lock(&waits->lock);
    waits->closing = true;
    hf_hearing_wake(waits->admin);
    uv_mutex_unlock(&waits->lock);
    (void)uv_thread_join(&waits->thread);
    uv_mutex_destroy(&waits->lock);
    free(waits);
}
