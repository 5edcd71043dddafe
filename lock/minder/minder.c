/* minder.c - the worker's side of lock/minder/minder.h.
 *
 * A life is one minder process with its handles; the list of groups belongs to the minder
 * and is told to each new life. `lock` guards the list and the pipe, because the
 * watchdog's thread extends deadlines; everything else belongs to the loop's thread.
 *
 * The watchdog's thread waits neither for the lock nor for the pipe: it notes its
 * request. The thread that has the lock tells the minder before it goes on; if the pipe
 * is full, the next tick does it.
 *
 * In each tick a minder with groups is asked for a byte. One that is stopped does not
 * answer: it is killed, and replaced.
 *
 * Invariant: a life's pipe is closed only after its process was reaped, or with an empty
 * list, because a minder that reads the end of its pipe kills every group it knows. */
#include "lock/minder/minder.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/fdlock.h"
#include "lock/lock.h"
#include "lock/minder/family.h"
#include "lock/minder/life.h"
#include "lock/minder/record.h"
#include "lock/minder/spawn.h"

enum {
    HELLO_MS = 30000,  /* from fork to the minder's word that it is there */
    CLOSE_MS = 1000,   /* from the end of the pipe to KILL */
    SETTLED_MS = 2000, /* a life that was this long is no repeated failure */
    TICK_MS = 500,
    TICKS_MAX = 4, /* without an answer, until it is killed: the loop's own time; a worker
    that was stopped must not blame its minder */
    RESTART_BASE_MS = 50,
    RESTART_CAP_MS = 2000
};

typedef struct life {
    hf_minder *minder;
    hf_minder_life process; /* pipe_fd: under lock */
    uv_poll_t watch;        /* on pidfd */
    uv_poll_t words;        /* on words_fd, while that is open */
    bool asked;             /* for a byte, and it has not come */
    unsigned missed;        /* ticks without it */
    int handles;            /* that are not closed yet */
} life;

struct hf_minder {
    hf_minder_opts opts;
    char path[PATH_MAX];
    char *library_path; /* owned; NULL if there was none */
    uv_mutex_t lock;
    atomic_bool behind; /* a thread wanted the lock, and has gone on. Apart from what the
                           lock guards, which may be read several fields at a time */
    life *life;         /* under lock; NULL between two */
    bool has_list;      /* under lock: the life has the list, and gets what changes */
    bool broken;        /* under lock: it does not read, and was killed */
    bool full;          /* under lock: the pipe had no room for a later deadline */
    hf_minded *list;    /* under lock */
    size_t n;           /* under lock */
    uint32_t failures;  /* in a row */
    hf_rng rng;
    uv_timer_t timer; /* for the next life, its hello, or the end of the last */
    uv_timer_t tick;
    int handles; /* of these two, that are not closed yet */
    bool closing;
    void (*closed_cb)(void *arg);
    void *closed_arg;
};

/* ---- telling the minder ---- */

static uint64_t grace_of(const hf_minder *minder, const hf_minded *minded)
{
    return minded->own_grace ? minded->grace_ns : minder->opts.kill_grace_ms * HF_MS_NS;
}

/* When a group is asked to end. */
static uint64_t ask_ns(const hf_minder *minder, const hf_minded *minded)
{
    uint64_t grace_ns = grace_of(minder, minded);
    return minded->deadline_ns > grace_ns ? minded->deadline_ns - grace_ns : 1;
}

/* Under lock. Is there one that gets what changes? Else the next life gets the list as it
 * is then. */
static bool listens(const hf_minder *minder)
{
    const life *l = minder->life;
    return l != NULL && l->process.pipe_fd >= 0 && !minder->broken && minder->has_list;
}

/* Under lock. `watch` sees it end. */
static void give_up(hf_minder *minder)
{
    minder->broken = true;
    hf_minder_life_kill(&minder->life->process);
}

/* Under lock, and it listens. False: the pipe is full, only if `wait` is false. A minder
 * that does not read counts as dead: it is killed, and replaced by one that gets the
 * whole list. */
static bool send_record(hf_minder *minder, const hf_minder_record *record, bool wait)
{
    int fd = minder->life->process.pipe_fd;
    hf_sigpipe state;
    hf_sigpipe_begin(&state);
    bool sent = wait ? hf_minder_record_write(fd, record)
                     : hf_minder_record_write_now(fd, record);
    bool full = !sent && !wait && errno == EAGAIN;
    hf_sigpipe_end(&state);
    if (!sent && !full)
        give_up(minder);
    return !full;
}

/* Under lock. */
static bool tell(hf_minder *minder, uint32_t op, const hf_minded *minded, bool wait)
{
    hf_minder_record record = {op, (int32_t)minded->group, minded->deadline_ns,
                               ask_ns(minder, minded)};
    return !listens(minder) || send_record(minder, &record, wait);
}

/* Under lock: the deadline that is wanted. */
static uint64_t wanted_of(const hf_minder *minder, const hf_minded *minded)
{
    uint64_t lost_ns = atomic_load(&minded->lost_ns);
    uint64_t wanted_ns = atomic_load(&minded->wanted_ns);
    uint64_t end_ns = lost_ns + grace_of(minder, minded);
    if (lost_ns == 0)
        return wanted_ns > minded->deadline_ns ? wanted_ns : minded->deadline_ns;
    return end_ns < minded->deadline_ns ? end_ns : minded->deadline_ns;
}

/* Under the lock: sends the last request. Never waits. */
static void catch_up(hf_minder *minder, hf_minded *minded)
{
    uint64_t before_ns = minded->deadline_ns, ask_before_ns = ask_ns(minder, minded);
    bool lost = atomic_load(&minded->lost_ns) != 0;
    uint64_t wanted_ns = wanted_of(minder, minded);
    if (minded->group == 0 || minded->ends || (!lost && wanted_ns == before_ns))
        return;
    minded->deadline_ns = wanted_ns;
    if (!tell(minder, lost ? HF_MIND_END : HF_MIND_HOLD, minded, false)) {
        minded->deadline_ns = before_ns;
        minder->full = true;
        return;
    }
    minded->ends = lost;
    /* Only now: the minder goes by the old deadline until it has read this. */
    if (lost || hf_boot_ns() >= ask_before_ns)
        minded->asked_ns = hf_boot_ns();
}

/* Under lock. */
static void catch_up_all(hf_minder *minder)
{
    for (hf_minded *m = minder->list; m != NULL; m = m->next)
        catch_up(minder, m);
}

/* A request that was noted while another thread had the lock is sent by that thread. */
static void unlock(hf_minder *minder)
{
    uv_mutex_unlock(&minder->lock);
    while (atomic_load(&minder->behind) && uv_mutex_trylock(&minder->lock) == 0) {
        atomic_store(&minder->behind, false);
        catch_up_all(minder);
        uv_mutex_unlock(&minder->lock);
    }
}

/* Under lock: the same, for a new life, which is told all the rest with it. */
static void catch_up_unheard(hf_minder *minder, hf_minded *minded)
{
    bool lost = atomic_load(&minded->lost_ns) != 0;
    if (lost || hf_boot_ns() >= ask_ns(minder, minded))
        minded->asked_ns = hf_boot_ns();
    if (!minded->ends)
        minded->deadline_ns = wanted_of(minder, minded);
    minded->ends = lost;
}

static void tell_all(hf_minder *minder)
{
    uv_mutex_lock(&minder->lock);
    minder->has_list = true;
    for (hf_minded *m = minder->list; m != NULL; m = m->next) {
        catch_up_unheard(minder, m);
        tell(minder, HF_MIND_HOLD, m, true);
    }
    unlock(minder);
}

/* Under lock. */
static void put_in(hf_minder *minder, hf_minded *minded)
{
    minded->prev = NULL;
    minded->next = minder->list;
    if (minder->list != NULL)
        minder->list->prev = minded;
    minder->list = minded;
    minder->n++;
}

/* Under lock. */
static void take_out(hf_minder *minder, hf_minded *minded)
{
    if (minded->prev != NULL)
        minded->prev->next = minded->next;
    else
        minder->list = minded->next;
    if (minded->next != NULL)
        minded->next->prev = minded->prev;
    minded->group = 0;
    minder->n--;
}

static void start_ticking(hf_minder *minder);

void hf_minder_add(hf_minder *minder, hf_minded *minded, pid_t group,
                   uint64_t deadline_ns)
{
    uv_mutex_lock(&minder->lock);
    *minded = (hf_minded){.group = group, .deadline_ns = deadline_ns};
    put_in(minder, minded);
    unlock(minder);
    start_ticking(minder);
}

hf_err hf_minder_hold(hf_minder *minder, hf_minded *minded, pid_t group,
                      uint64_t deadline_ns, uint64_t grace_ns)
{
    hf_err err = HF_SYSTEM;
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0) {
        err = HF_INVALID;
    } else if (minder->has_list && minder->n < HF_MINDER_GROUPS_MAX) {
        minded->group = group;
        minded->deadline_ns = deadline_ns;
        minded->asked_ns = 0;
        minded->own_grace = true;
        minded->grace_ns = grace_ns;
        minded->family = hf_family_of(group);
        minded->family.session = 0; /* which may be that of our host */
        minded->ends = false;
        atomic_store(&minded->wanted_ns, 0); /* its owner extends it after this, */
        atomic_store(&minded->lost_ns, 0);   /* and looks whether it is lost */
        put_in(minder, minded);
        tell(minder, HF_MIND_HOLD, minded, true);
        if (minder->broken)
            take_out(minder, minded);
        else
            err = HF_OK;
    }
    unlock(minder);
    return err;
}

bool hf_minder_kill_family(hf_minder *minder, const hf_minded *minded,
                           uint32_t timeout_ms)
{
    uv_mutex_lock(&minder->lock);
    hf_family family = minded->group == 0 ? (hf_family){.mark = 0} : minded->family;
    unlock(minder);
    return hf_family_is_empty(&family) ||
           hf_family_end(&family, 1, hf_boot_ns() + timeout_ms * HF_MS_NS);
}

void hf_minder_kill(hf_minder *minder)
{
    uv_mutex_lock(&minder->lock);
    while (minder->list != NULL) {
        kill(-minder->list->group, SIGKILL);
        tell(minder, HF_MIND_END, minder->list, true); /* what it has started ends too */
        tell(minder, HF_MIND_GONE, minder->list, true);
        take_out(minder, minder->list);
    }
    unlock(minder);
}

void hf_minder_remove(hf_minder *minder, hf_minded *minded)
{
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0) {
        tell(minder, HF_MIND_GONE, minded, true);
        take_out(minder, minded);
    }
    unlock(minder);
}

/* The thread that has the lock sends the noted request. */
static void catch_up_soon(hf_minder *minder, hf_minded *minded)
{
    if (uv_mutex_trylock(&minder->lock) != 0) {
        atomic_store(&minder->behind, true);
        if (uv_mutex_trylock(&minder->lock) != 0)
            return; /* its owner sees that */
    }
    catch_up(minder, minded);
    unlock(minder);
}

void hf_minder_extend(hf_minder *minder, hf_minded *minded, uint64_t deadline_ns)
{
    uint64_t wanted_ns = atomic_load(&minded->wanted_ns);
    while (wanted_ns < deadline_ns &&
           !atomic_compare_exchange_weak(&minded->wanted_ns, &wanted_ns, deadline_ns))
        continue;
    catch_up_soon(minder, minded);
}

void hf_minder_end(hf_minder *minder, hf_minded *minded)
{
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&minded->lost_ns, &none, hf_boot_ns());
    catch_up_soon(minder, minded);
}

int64_t hf_minder_grace_ms(hf_minder *minder, const hf_minded *minded)
{
    uv_mutex_lock(&minder->lock);
    int64_t ms = minded->group == 0 ? -1 : (int64_t)(minded->grace_ns / HF_MS_NS);
    unlock(minder);
    return ms;
}

bool hf_minder_asked(hf_minder *minder, hf_minded *minded)
{
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0 && hf_boot_ns() >= ask_ns(minder, minded))
        minded->asked_ns = hf_boot_ns();
    bool asked = minded->asked_ns != 0;
    unlock(minder);
    return asked;
}

int hf_minder_fd(hf_minder *minder)
{
    int fd = -1;
    uv_mutex_lock(&minder->lock);
    if (minder->life != NULL && minder->has_list && !minder->broken &&
        minder->n < HF_MINDER_GROUPS_MAX)
        fd = minder->life->process.pipe_fd;
    unlock(minder);
    return fd;
}

bool hf_minder_ready(hf_minder *minder)
{
    return hf_minder_fd(minder) >= 0;
}

pid_t hf_minder_pid(const hf_minder *minder)
{
    return minder->life == NULL ? 0 : minder->life->process.pid;
}

/* ---- does it live? ---- */

static bool read_words(life *l);

/* Under lock. */
static void ask(hf_minder *minder)
{
    hf_minder_record record = {.op = HF_MIND_ASK};
    life *l = minder->life;
    bool stuck = l->asked || minder->full;
    l->missed = stuck ? l->missed + 1 : 0;
    if (l->missed >= TICKS_MAX)
        give_up(minder);
    else if (!l->asked && l->process.answers)
        l->asked = send_record(minder, &record, false);
}

static void on_tick(uv_timer_t *timer)
{
    hf_minder *minder = timer->data;
    if (minder->life != NULL && minder->life->process.said_hello)
        (void)read_words(minder->life); /* before it is judged; its end is seen later */
    uv_mutex_lock(&minder->lock);
    minder->full = false;
    catch_up_all(minder);
    if (minder->list != NULL && listens(minder))
        ask(minder);
    else if (!minder->opts.any_thread)
        uv_timer_stop(timer);
    unlock(minder);
}

/* Where there are groups. */
static void start_ticking(hf_minder *minder)
{
    if (minder->closing || uv_is_active((uv_handle_t *)&minder->tick))
        return;
    if (minder->life != NULL)
        minder->life->missed = 0;
    uv_update_time(minder->opts.loop);
    uv_timer_start(&minder->tick, on_tick, 0, TICK_MS);
}

/* ---- the lives, one after the other ---- */

static void on_timer(uv_timer_t *timer);

static void start_timer(hf_minder *minder, uint64_t ms)
{
    uv_update_time(minder->opts.loop);
    uv_timer_start(&minder->timer, on_timer, ms, 0);
}

/* The first restart is made at once, repeated ones wait longer and longer. */
static void restart(hf_minder *minder, bool settled)
{
    hf_backoff backoff = {HF_SHAPE_EXPONENTIAL, RESTART_BASE_MS, RESTART_CAP_MS, 0.2};
    if (settled)
        minder->failures = 0;
    int64_t wait_ms = minder->failures == 0
                          ? 0
                          : hf_backoff_ms(&backoff, minder->failures, &minder->rng);
    minder->failures++;
    start_timer(minder, (uint64_t)wait_ms);
}

static void on_life_closed(uv_handle_t *handle)
{
    life *l = handle->data;
    if (--l->handles > 0)
        return;
    hf_minder_life_close(&l->process);
    free(l);
}

static void on_timer_closed(uv_handle_t *handle)
{
    hf_minder *minder = handle->data;
    if (--minder->handles == 0)
        minder->closed_cb(minder->closed_arg);
}

static void close_words(life *l)
{
    if (l->process.words_fd < 0)
        return;
    uv_close((uv_handle_t *)&l->words, on_life_closed);
    hf_spawn_close_fd(&l->process.words_fd);
}

static void on_watch(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    life *l = poll->data;
    hf_minder *minder = l->minder;
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)l->process.pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
        info.si_pid == 0)
        return;
    uv_mutex_lock(&minder->lock);
    bool was_ready = minder->has_list;
    hf_minder_life_reap(&l->process); /* afterwards its number may belong to another */
    hf_spawn_close_fd(&l->process.pipe_fd);
    minder->life = NULL;
    minder->has_list = minder->broken = minder->full = false;
    unlock(minder);
    close_words(l);
    uv_close((uv_handle_t *)&l->watch, on_life_closed);
    if (minder->closing) {
        uv_close((uv_handle_t *)&minder->timer, on_timer_closed);
        return;
    }
    uint64_t lived_ns = hf_boot_ns() - l->process.since_ns;
    restart(minder, was_ready && lived_ns > SETTLED_MS * HF_MS_NS);
    if (was_ready && minder->opts.on_ready != NULL)
        minder->opts.on_ready(false, minder->opts.arg);
}

static void on_said_hello(life *l)
{
    hf_minder *minder = l->minder;
    if (minder->closing)
        return; /* the timer now waits for its end */
    uv_timer_stop(&minder->timer);
    tell_all(minder);
    start_ticking(minder);
    if (hf_minder_ready(minder) && minder->opts.on_ready != NULL)
        minder->opts.on_ready(true, minder->opts.arg);
}

/* False: nothing more will come. */
static bool read_words(life *l)
{
    bool said_hello = l->process.said_hello;
    if (!hf_minder_life_read(&l->process))
        return l->process.words_fd >= 0 && (errno == EAGAIN || errno == EINTR);
    if (said_hello)
        l->asked = false;
    else
        on_said_hello(l);
    return true;
}

static void on_words(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    life *l = poll->data;
    if (read_words(l))
        return;
    close_words(l);
    if (!l->process.said_hello) /* no minder, or ended already: `watch` sees it */
        hf_minder_life_kill(&l->process);
}

/* Gives a life its handles, and makes it the minder's. False: it is gone. */
static bool adopt(hf_minder *minder, life *l)
{
    l->minder = minder;
    l->watch.data = l->words.data = l;
    if (uv_poll_init(minder->opts.loop, &l->watch, l->process.pidfd) != 0) {
        hf_minder_life_kill(&l->process);
        hf_minder_life_reap(&l->process);
        hf_minder_life_close(&l->process);
        free(l);
        return false;
    }
    l->handles = 1;
    if (uv_poll_init(minder->opts.loop, &l->words, l->process.words_fd) == 0) {
        l->handles = 2;
        uv_poll_start(&l->words, UV_READABLE, on_words);
    } else {
        hf_spawn_close_fd(&l->process.words_fd);
        hf_minder_life_kill(&l->process); /* `watch` sees it */
    }
    uv_poll_start(&l->watch, UV_READABLE, on_watch);
    uv_mutex_lock(&minder->lock);
    minder->life = l;
    unlock(minder);
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    hf_minder *minder = timer->data;
    if (minder->life != NULL) { /* neither its hello nor its end came in time */
        hf_minder_life_kill(&minder->life->process);
        return;
    }
    life *l = calloc(1, sizeof *l);
    if (l == NULL || hf_minder_life_start(&l->process, minder->path, minder->library_path,
                                          minder->opts.kill_grace_ms) != HF_OK) {
        free(l);
        restart(minder, false);
    } else if (adopt(minder, l)) {
        start_timer(minder, HELLO_MS);
    } else {
        restart(minder, false);
    }
}

/* ---- life of the whole ---- */

static hf_err first_life(hf_minder *minder, const char *name, char detail[HF_DETAIL_SIZE])
{
    life *l = calloc(1, sizeof *l);
    if (l == NULL)
        return HF_NOMEM;
    hf_err err = hf_minder_life_start(&l->process, minder->path, minder->library_path,
                                      minder->opts.kill_grace_ms);
    if (err != HF_OK) {
        snprintf(detail, HF_DETAIL_SIZE, "cannot start the minder: %s", strerror(errno));
        free(l);
        return err;
    }
    if (!hf_minder_life_wait(&l->process, name, HELLO_MS, detail)) {
        hf_minder_life_kill(&l->process);
        hf_minder_life_reap(&l->process);
        hf_minder_life_close(&l->process);
        free(l);
        return HF_CONFIG;
    }
    if (!adopt(minder, l)) {
        snprintf(detail, HF_DETAIL_SIZE, "the loop cannot watch the minder");
        return HF_SYSTEM;
    }
    minder->has_list = true;
    return HF_OK;
}

hf_err hf_minder_start(hf_minder **out, const hf_minder_opts *opts,
                       char detail[HF_DETAIL_SIZE])
{
    char unread[HF_DETAIL_SIZE];
    detail = detail == NULL ? unread : detail;
    snprintf(detail, HF_DETAIL_SIZE, "%s", hf_err_text(HF_NOMEM));
    hf_minder *minder = calloc(1, sizeof *minder);
    if (minder == NULL || uv_mutex_init(&minder->lock) != 0) {
        free(minder);
        return HF_NOMEM;
    }
    const char *name = opts->path == NULL ? "holdfast" : opts->path;
    const char *library_path = getenv("LD_LIBRARY_PATH");
    minder->opts = *opts;
    minder->opts.path = NULL; /* not ours to keep */
    minder->rng.state = hf_boot_ns();
    minder->library_path = library_path == NULL ? NULL : strdup(library_path);
    hf_spawn_find(name, minder->path);
    hf_err err = hf_spawn_check(detail);
    if (err == HF_OK)
        err = first_life(minder, name, detail);
    if (err == HF_OK) {
        uv_timer_init(opts->loop, &minder->timer);
        uv_timer_init(opts->loop, &minder->tick);
        minder->timer.data = minder->tick.data = minder;
        minder->handles = 2;
        if (opts->any_thread)
            start_ticking(minder);
        *out = minder;
        return HF_OK;
    }
    hf_minder_free(minder);
    return err;
}

void hf_minder_free(hf_minder *minder)
{
    uv_mutex_destroy(&minder->lock);
    free(minder->library_path);
    free(minder);
}

void hf_minder_close(hf_minder *minder, void (*cb)(void *arg), void *arg)
{
    HF_ASSERT(minder->list == NULL && !minder->closing && cb != NULL);
    minder->closing = true;
    minder->closed_cb = cb;
    minder->closed_arg = arg;
    uv_close((uv_handle_t *)&minder->tick, on_timer_closed);
    if (minder->life == NULL) {
        uv_close((uv_handle_t *)&minder->timer, on_timer_closed);
        return;
    }
    uv_mutex_lock(&minder->lock);
    hf_spawn_close_fd(&minder->life->process.pipe_fd);
    unlock(minder);
    start_timer(minder, CLOSE_MS);
}
