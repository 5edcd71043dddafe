/* record.c - see record.h.
 *
 * The recorded moment is never too early for the beginning of a belief, and never too
 * late for its end: the clock is read after an answer came, and before a release is asked
 * for. A thread of its own looks every few ms how far the local deadlines have moved, and
 * records it, also for a process that is killed later. It also records when it could not
 * look in time. */
#include "tests/history/record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/history/line.h"

enum {
    NAMES_TEXT = HF_LOCK_NAMES_MAX * (HF_LOCK_NAME_MAX + 1),
    LOOK_NS = 3000000,
    LATE_NS = 10000000
};

struct hf_taken {
    hf_taken *next; /* all of the recorder's */
    hf_taken *next_held, **held_at;
    hf_recorder *recorder;
    uint64_t id, until;
    hf_lock *lock;
    pthread_cond_t answered;
    bool done;
    hf_err err;
};

struct hf_recorder {
    int fd;
    unsigned player;
    pthread_mutex_t mutex;
    pthread_t looker;
    atomic_bool stop;
    uint64_t ids;
    hf_taken *all, *held; /* owned; those whose deadlines are looked at */
};

#define WRITE(t, format, ...)                                                            \
    hf_line_write((t)->recorder->fd,                                                     \
                  "{\"t\":%" PRIu64 ",\"player\":%u,\"id\":%" PRIu64 "," format "}",     \
                  hf_boot_ns(), (t)->recorder->player, (t)->id, __VA_ARGS__)

/* ---- deadlines ---- */

static void hold(hf_taken *t)
{
    hf_recorder *r = t->recorder;
    t->next_held = r->held;
    t->held_at = &r->held;
    if (r->held != NULL)
        r->held->held_at = &t->next_held;
    r->held = t;
}

static void let_go(hf_taken *t)
{
    (void)pthread_mutex_lock(&t->recorder->mutex);
    *t->held_at = t->next_held;
    if (t->next_held != NULL)
        t->next_held->held_at = t->held_at;
    (void)pthread_mutex_unlock(&t->recorder->mutex);
}

static void look_at(hf_taken *t)
{
    uint64_t until = hf_lock_deadline_ns(t->lock);
    if (until <= t->until)
        return;
    t->until = until;
    WRITE(t, "\"ev\":\"until\",\"until\":%" PRIu64, until);
}

void hf_record_late(hf_recorder *r, unsigned timer, uint64_t from_ns, uint64_t to_ns)
{
    hf_line_write(
        r->fd, "{\"ev\":\"late\",\"timer\":%u,\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}",
        2 * r->player + timer, from_ns, to_ns);
}

static void *look(void *arg)
{
    hf_recorder *r = arg;
    uint64_t before_ns = hf_boot_ns(), now_ns;
    for (; !atomic_load(&r->stop); before_ns = now_ns) {
        (void)pthread_mutex_lock(&r->mutex);
        for (hf_taken *t = r->held; t != NULL; t = t->next_held)
            look_at(t);
        (void)pthread_mutex_unlock(&r->mutex);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        now_ns = hf_boot_ns();
        if (now_ns - before_ns > LATE_NS)
            hf_record_late(r, 0, before_ns, now_ns);
    }
    return NULL;
}

/* ---- its life ---- */

hf_recorder *hf_recorder_open(const char *path, unsigned player)
{
    hf_recorder *r = calloc(1, sizeof *r);
    HF_ASSERT(r != NULL);
    r->fd = hf_lines_open(path);
    r->player = player;
    HF_ASSERT(pthread_mutex_init(&r->mutex, NULL) == 0);
    HF_ASSERT(pthread_create(&r->looker, NULL, look, r) == 0);
    return r;
}

void hf_recorder_rest(hf_recorder *r)
{
    if (!atomic_exchange(&r->stop, true))
        (void)pthread_join(r->looker, NULL);
}

void hf_recorder_close(hf_recorder *r)
{
    hf_recorder_rest(r);
    for (hf_taken *t = r->all, *next; t != NULL; t = next) {
        next = t->next;
        (void)pthread_cond_destroy(&t->answered);
        free(t);
    }
    (void)pthread_mutex_destroy(&r->mutex);
    (void)close(r->fd);
    free(r);
}

/* ---- taking it ---- */

static const char *reason_name(hf_lock_reason why)
{
    static const char *const names[] = {"NOT_LOST", "RELEASED", "DEADLINE", "REFUSED",
                                        "FORCED",   "MAX_HOLD", "CLOSED"};
    return names[why];
}

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    hf_taken *t = arg;
    if (event == HF_LOCK_EVENT_LOST)
        WRITE(t, "\"ev\":\"lost\",\"why\":\"%s\"", reason_name(hf_lock_why(lock)));
}

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    hf_taken *t = arg;
    (void)detail;
    (void)pthread_mutex_lock(&t->recorder->mutex);
    t->err = err;
    t->lock = lock;
    t->done = true;
    (void)pthread_cond_signal(&t->answered);
    (void)pthread_mutex_unlock(&t->recorder->mutex);
}

static void write_asked(hf_taken *t, const hf_lock_opts *opts)
{
    static const char modes[] = "xsp";
    char names[NAMES_TEXT];
    int len = 0;
    for (size_t i = 0; i < opts->n_names; i++)
        len += snprintf(names + len, sizeof names - (size_t)len, "%s%s", i ? "," : "",
                        opts->names[i]);
    WRITE(t,
          "\"ev\":\"acquire\",\"names\":\"%s\",\"mode\":\"%c\",\"permits\":%u,"
          "\"limit\":%u,\"lease\":%u,\"wait\":%" PRId64 ",\"form\":\"%s\","
          "\"owner\":\"%s\"",
          names, modes[opts->mode], opts->permits, opts->limit,
          opts->lease_ms == 0 ? (unsigned)HF_LOCK_LEASE_MS : opts->lease_ms,
          opts->wait_ms, opts->form == HF_LOCK_SPIN ? "spin" : "line",
          opts->owner ? opts->owner : "");
}

static void wait_for_it(hf_taken *t, hf_lock *lock, int cancel_ms)
{
    hf_recorder *r = t->recorder;
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += cancel_ms / 1000;
    at.tv_nsec += cancel_ms % 1000 * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&r->mutex);
    while (cancel_ms >= 0 && !t->done)
        if (pthread_cond_timedwait(&t->answered, &r->mutex, &at) != 0) {
            if (!t->done)
                hf_lock_cancel(lock);
            cancel_ms = -1;
        }
    while (!t->done)
        (void)pthread_cond_wait(&t->answered, &r->mutex);
    (void)pthread_mutex_unlock(&r->mutex);
}

/* The clock of fences, where Redis is on this machine. */
static uint64_t wall_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static hf_taken *make(hf_recorder *r)
{
    hf_taken *t = calloc(1, sizeof *t);
    HF_ASSERT(t != NULL && pthread_cond_init(&t->answered, NULL) == 0);
    t->recorder = r;
    (void)pthread_mutex_lock(&r->mutex);
    t->id = ++r->ids;
    t->next = r->all;
    r->all = t;
    (void)pthread_mutex_unlock(&r->mutex);
    return t;
}

hf_taken *hf_record_acquire(hf_recorder *r, hf_lock_client *locks, hf_lock_opts opts,
                            int cancel_ms, hf_err *err)
{
    hf_taken *t = make(r);
    hf_lock *lock;
    opts.on_event = on_event;
    opts.event_arg = t;
    write_asked(t, &opts);
    hf_err asked = hf_lock_acquire(locks, &opts, on_acquired, t, &lock, NULL);
    if (asked == HF_OK)
        wait_for_it(t, lock, cancel_ms); /* it may have been answered already */
    else
        t->err = asked;
    if (err != NULL)
        *err = t->err;
    if (t->err != HF_OK) {
        WRITE(t, "\"ev\":\"acquired\",\"err\":\"%s\"", hf_err_name(t->err));
        return NULL;
    }
    t->until = hf_lock_deadline_ns(t->lock);
    WRITE(t,
          "\"ev\":\"acquired\",\"err\":\"HF_OK\",\"fence\":%" PRIu64 ",\"owner\":\"%s\","
          "\"until\":%" PRIu64 ",\"wall\":%" PRIu64,
          hf_lock_fence(t->lock), hf_lock_owner_of(t->lock), t->until, wall_us());
    (void)pthread_mutex_lock(&r->mutex);
    hold(t);
    (void)pthread_mutex_unlock(&r->mutex);
    return t;
}

hf_lock *hf_taken_lock(const hf_taken *t)
{
    return t->lock;
}

hf_lock_release_result hf_record_release(hf_taken *t)
{
    static const char *const names[] = {"RELEASED", "STILL_HELD", "EXPIRED", "NOT_OWNER",
                                        "UNKNOWN"};
    size_t left = 0;
    let_go(t);
    WRITE(t, "\"ev\":\"release\",\"why\":\"%s\"", reason_name(hf_lock_why(t->lock)));
    hf_lock_release_result result = hf_lock_release_wait(t->lock, &left);
    WRITE(t, "\"ev\":\"released\",\"result\":\"%s\",\"left\":%zu", names[result], left);
    return result;
}

hf_err hf_record_downgrade(hf_taken *t)
{
    WRITE(t, "\"ev\":\"downgrade\",\"fence\":%" PRIu64, hf_lock_fence(t->lock));
    hf_err err = hf_lock_downgrade_wait(t->lock, NULL);
    WRITE(t, "\"ev\":\"downgraded\",\"err\":\"%s\"", hf_err_name(err));
    return err;
}
