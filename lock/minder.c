/* minder.c - the worker's side of lock/minder.h.
 *
 * A life is one minder process with its handles; the list of groups belongs to the minder
 * and is told to each new life. `lock` guards the list and the pipe, because the
 * watchdog's thread extends deadlines; everything else belongs to the loop's thread.
 *
 * Invariant: a life's pipe is closed only after its process was reaped, or with an empty
 * list, because a minder that reads the end of its pipe kills every group it knows. */
#include "lock/minder.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
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
#include "lock/minder_life.h"
#include "lock/spawn.h"

enum {
    HELLO_MS = 5000,   /* from fork to the minder's word that it is there */
    PIPE_FULL_MS = 50, /* how long a record waits for room */
    CLOSE_MS = 1000,   /* from the end of the pipe to KILL */
    SETTLED_MS = 2000, /* a life that was this long is no repeated failure */
    RESTART_BASE_MS = 50,
    RESTART_CAP_MS = 2000
};

typedef struct life {
    hf_minder *minder;
    hf_minder_life process; /* pipe_fd: under lock */
    uv_poll_t watch;        /* on pidfd */
    uv_poll_t hello;        /* on hello_fd, while that is open */
    int handles;            /* that are not closed yet */
} life;

struct hf_minder {
    hf_minder_opts opts;
    char path[PATH_MAX];
    char *library_path; /* owned; NULL if there was none */
    uv_mutex_t lock;
    life *life;        /* under lock; NULL between two */
    bool told;         /* under lock: the life has the list, and gets what changes */
    bool broken;       /* under lock: it does not read, and was killed */
    hf_minded *list;   /* under lock */
    size_t n;          /* under lock */
    uint32_t failures; /* in a row */
    hf_rng rng;
    uv_timer_t timer; /* for the next life, its hello, or the end of the last */
    bool closing;
    void (*closed_cb)(void *arg);
    void *closed_arg;
};

/* ---- telling the minder ---- */

bool hf_minder_write(int fd, const hf_minder_record *record)
{
    /* A record is shorter than PIPE_BUF, so it goes whole or not at all. */
    for (bool waited = false;;) {
        if (write(fd, record, sizeof *record) == (ssize_t)sizeof *record)
            return true;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || waited)
            return false;
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        poll(&room, 1, PIPE_FULL_MS);
        waited = true;
    }
}

/* When a group is asked to end; 0: as the minder asks those that say nothing. */
static uint64_t ask_ns(const hf_minded *minded)
{
    if (!minded->own_grace)
        return 0;
    return minded->deadline_ns > minded->grace_ns ? minded->deadline_ns - minded->grace_ns
                                                  : 1;
}

/* Under lock. A minder that does not read is as good as dead: it is killed, and replaced
 * by one that is told everything. `watch` sees it end. */
static void tell(hf_minder *minder, uint32_t op, const hf_minded *minded)
{
    life *l = minder->life;
    if (l == NULL || l->process.pipe_fd < 0 || minder->broken || !minder->told)
        return; /* the next life gets the list as it is then */
    hf_minder_record record = {op, (int32_t)minded->group, minded->deadline_ns,
                               ask_ns(minded)};
    hf_sigpipe state;
    hf_sigpipe_begin(&state);
    if (!hf_minder_write(l->process.pipe_fd, &record)) {
        minder->broken = true;
        hf_minder_life_kill(&l->process);
    }
    hf_sigpipe_end(&state);
}

static void tell_all(hf_minder *minder)
{
    uv_mutex_lock(&minder->lock);
    minder->told = true;
    for (hf_minded *m = minder->list; m != NULL; m = m->next)
        tell(minder, HF_MIND_HOLD, m);
    uv_mutex_unlock(&minder->lock);
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

void hf_minder_add(hf_minder *minder, hf_minded *minded, pid_t group,
                   uint64_t deadline_ns)
{
    uv_mutex_lock(&minder->lock);
    *minded = (hf_minded){.group = group, .deadline_ns = deadline_ns};
    put_in(minder, minded);
    uv_mutex_unlock(&minder->lock);
}

hf_err hf_minder_hold(hf_minder *minder, hf_minded *minded, pid_t group,
                      uint64_t deadline_ns, uint64_t grace_ns)
{
    hf_err err = HF_SYSTEM;
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0) {
        err = HF_INVALID;
    } else if (minder->told && minder->n < HF_MINDER_GROUPS_MAX) {
        *minded = (hf_minded){.group = group,
                              .deadline_ns = deadline_ns,
                              .own_grace = true,
                              .grace_ns = grace_ns};
        put_in(minder, minded);
        tell(minder, HF_MIND_HOLD, minded);
        if (minder->broken)
            take_out(minder, minded);
        else
            err = HF_OK;
    }
    uv_mutex_unlock(&minder->lock);
    return err;
}

void hf_minder_kill(hf_minder *minder)
{
    uv_mutex_lock(&minder->lock);
    while (minder->list != NULL) {
        kill(-minder->list->group, SIGKILL);
        tell(minder, HF_MIND_GONE, minder->list);
        take_out(minder, minder->list);
    }
    uv_mutex_unlock(&minder->lock);
}

void hf_minder_remove(hf_minder *minder, hf_minded *minded)
{
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0) {
        tell(minder, HF_MIND_GONE, minded);
        take_out(minder, minded);
    }
    uv_mutex_unlock(&minder->lock);
}

void hf_minder_extend(hf_minder *minder, hf_minded *minded, uint64_t deadline_ns)
{
    uv_mutex_lock(&minder->lock);
    if (minded->group != 0 && deadline_ns > minded->deadline_ns) {
        uint64_t grace_ns = minder->opts.kill_grace_ms * HF_MS_NS;
        if (hf_boot_ns() + grace_ns >= minded->deadline_ns)
            minded->asked = true;
        minded->deadline_ns = deadline_ns;
        tell(minder, HF_MIND_HOLD, minded);
    }
    uv_mutex_unlock(&minder->lock);
}

int hf_minder_fd(hf_minder *minder)
{
    int fd = -1;
    uv_mutex_lock(&minder->lock);
    if (minder->life != NULL && minder->told && !minder->broken &&
        minder->n < HF_MINDER_GROUPS_MAX)
        fd = minder->life->process.pipe_fd;
    uv_mutex_unlock(&minder->lock);
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
    minder->closed_cb(minder->closed_arg);
}

static void close_hello(life *l)
{
    if (l->process.hello_fd < 0)
        return;
    uv_close((uv_handle_t *)&l->hello, on_life_closed);
    hf_close_fd(&l->process.hello_fd);
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
    bool was_ready = minder->told;
    hf_minder_life_reap(&l->process); /* afterwards its number may be anybody's */
    hf_close_fd(&l->process.pipe_fd);
    minder->life = NULL;
    minder->told = minder->broken = false;
    uv_mutex_unlock(&minder->lock);
    close_hello(l);
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

static void on_hello(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    life *l = poll->data;
    hf_minder *minder = l->minder;
    char byte;
    ssize_t n = read(l->process.hello_fd, &byte, 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close_hello(l);
    if (n != 1) {
        hf_minder_life_kill(
            &l->process); /* no minder, or ended already: `watch` sees it */
        return;
    }
    if (minder->closing)
        return; /* the timer now waits for its end */
    uv_timer_stop(&minder->timer);
    tell_all(minder);
    if (hf_minder_ready(minder) && minder->opts.on_ready != NULL)
        minder->opts.on_ready(true, minder->opts.arg);
}

/* Gives a life its handles, and makes it the minder's. False: it is gone. */
static bool adopt(hf_minder *minder, life *l)
{
    l->minder = minder;
    l->watch.data = l->hello.data = l;
    if (uv_poll_init(minder->opts.loop, &l->watch, l->process.pidfd) != 0) {
        hf_minder_life_kill(&l->process);
        hf_minder_life_reap(&l->process);
        hf_minder_life_close(&l->process);
        free(l);
        return false;
    }
    l->handles = 1;
    if (l->process.hello_fd < 0) {
        /* It said hello already. */
    } else if (uv_poll_init(minder->opts.loop, &l->hello, l->process.hello_fd) == 0) {
        l->handles = 2;
        uv_poll_start(&l->hello, UV_READABLE, on_hello);
    } else {
        hf_close_fd(&l->process.hello_fd);
        hf_minder_life_kill(&l->process); /* `watch` sees it */
    }
    uv_poll_start(&l->watch, UV_READABLE, on_watch);
    uv_mutex_lock(&minder->lock);
    minder->life = l;
    uv_mutex_unlock(&minder->lock);
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
    minder->told = true;
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
    minder->timer.data = minder;
    hf_spawn_find(name, minder->path);
    hf_err err = first_life(minder, name, detail);
    if (err == HF_OK) {
        uv_timer_init(opts->loop, &minder->timer);
        minder->timer.data = minder;
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
    if (minder->life == NULL) {
        uv_close((uv_handle_t *)&minder->timer, on_timer_closed);
        return;
    }
    uv_mutex_lock(&minder->lock);
    hf_close_fd(&minder->life->process.pipe_fd);
    uv_mutex_unlock(&minder->lock);
    start_timer(minder, CLOSE_MS);
}
