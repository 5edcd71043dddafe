/* sweeper.c - see sweeper.h. `lock` guards the lists and the flags. A sweep belongs to
 * the thread while it is in `wanted`, and to the loop again when it is in `done`. */
#include "lock/minder/sweeper.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/minder/family.h"

enum { AT_ONCE = 256, PAUSE_LEAST_MS = 1, PAUSE_MOST_MS = 16 };

/* Families that are asked to end; those beyond wait for KILL. */
enum { ASKS_MAX = 256 };

struct hf_sweeper {
    uv_async_t async;
    uv_mutex_t lock;
    uv_cond_t changed;
    uv_thread_t thread;
    bool has_thread, closing;
    hf_sweep *wanted, *done;
    size_t asks_n;
    hf_family asks[ASKS_MAX];
    void (*closed_cb)(void *arg);
    void *closed_arg;
};

/* ---- the thread ---- */

/* Under lock. Takes those that are over out of `wanted`. */
static void sort_out(hf_sweeper *s, uint64_t now_ns)
{
    bool any = false;
    for (hf_sweep **at = &s->wanted, *sweep; (sweep = *at) != NULL;) {
        bool gone = hf_family_is_gone(&sweep->family);
        if (!gone && now_ns < atomic_load(&sweep->until_ns)) {
            at = &sweep->next;
            continue;
        }
        *at = sweep->next;
        sweep->left = !gone;
        sweep->next = s->done;
        s->done = sweep;
        any = true;
    }
    if (any)
        (void)uv_async_send(&s->async);
}

/* A pass over the first ones, without the lock. True: some of them live. */
static bool make_pass(hf_sweeper *s)
{
    hf_sweep *sweeps[AT_ONCE];
    hf_family list[AT_ONCE];
    size_t n = 0;
    bool alive = false;
    for (hf_sweep *sweep = s->wanted; sweep != NULL && n < AT_ONCE; sweep = sweep->next) {
        list[n] = sweep->family;
        sweeps[n++] = sweep;
    }
    uv_mutex_unlock(&s->lock);
    hf_family_kill(list, n);
    for (size_t i = 0; i < n; i++) {
        sweeps[i]->family = list[i];
        alive |= list[i].alive > 0;
    }
    uv_mutex_lock(&s->lock);
    return alive;
}

static void ask_all(hf_sweeper *s)
{
    hf_family list[ASKS_MAX];
    size_t n = s->asks_n;
    for (size_t i = 0; i < n; i++)
        list[i] = s->asks[i];
    s->asks_n = 0;
    uv_mutex_unlock(&s->lock);
    hf_family_ask(list, n);
    uv_mutex_lock(&s->lock);
}

static void run_thread(void *arg)
{
    hf_sweeper *s = arg;
    uint64_t pause_ms = PAUSE_LEAST_MS;
    uv_mutex_lock(&s->lock);
    while (!s->closing) {
        if (s->asks_n > 0)
            ask_all(s);
        bool alive = s->wanted != NULL && make_pass(s);
        sort_out(s, hf_boot_ns());
        if (s->closing || s->asks_n > 0)
            continue;
        if (s->wanted == NULL) {
            pause_ms = PAUSE_LEAST_MS;
            uv_cond_wait(&s->changed, &s->lock);
        } else if (alive) {
            (void)uv_cond_timedwait(&s->changed, &s->lock, pause_ms * HF_MS_NS);
            pause_ms = pause_ms < PAUSE_MOST_MS ? 2 * pause_ms : pause_ms;
        }
    }
    uv_mutex_unlock(&s->lock);
}

/* ---- the loop ---- */

static void on_async(uv_async_t *async)
{
    hf_sweeper *s = async->data;
    uv_mutex_lock(&s->lock);
    hf_sweep *done = s->done;
    s->done = NULL;
    uv_mutex_unlock(&s->lock);
    while (done != NULL) {
        hf_sweep *sweep = done;
        done = done->next;
        sweep->cb(sweep);
    }
}

hf_err hf_sweeper_new(hf_sweeper **out, struct uv_loop_s *loop)
{
    hf_sweeper *s = calloc(1, sizeof *s);
    if (s == NULL)
        return HF_NOMEM;
    if (uv_mutex_init(&s->lock) == 0) {
        if (uv_cond_init(&s->changed) == 0) {
            if (uv_async_init(loop, &s->async, on_async) == 0) {
                s->async.data = s;
                *out = s;
                return HF_OK;
            }
            uv_cond_destroy(&s->changed);
        }
        uv_mutex_destroy(&s->lock);
    }
    free(s);
    return HF_SYSTEM;
}

/* Under lock. Signals are not for this thread. */
static void start_thread(hf_sweeper *s)
{
    sigset_t all, before;
    if (s->has_thread)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->has_thread = uv_thread_create(&s->thread, run_thread, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hf_sweeper_kill(hf_sweeper *s, hf_sweep *sweep)
{
    sweep->family.none = 0;
    sweep->left = false;
    uv_mutex_lock(&s->lock);
    start_thread(s);
    if (s->has_thread) {
        sweep->next = s->wanted;
        s->wanted = sweep;
        uv_cond_signal(&s->changed);
    } else { /* the system has no thread now: one pass is better than none */
        hf_family_kill(&sweep->family, 1);
        sweep->left = sweep->family.alive > 0;
        sweep->next = s->done;
        s->done = sweep;
        (void)uv_async_send(&s->async);
    }
    uv_mutex_unlock(&s->lock);
}

void hf_sweeper_ask(hf_sweeper *s, const hf_family *family)
{
    uv_mutex_lock(&s->lock);
    start_thread(s);
    if (s->has_thread && s->asks_n < ASKS_MAX)
        s->asks[s->asks_n++] = *family;
    uv_cond_signal(&s->changed);
    uv_mutex_unlock(&s->lock);
}

static void on_closed(uv_handle_t *handle)
{
    hf_sweeper *s = handle->data;
    void (*cb)(void *) = s->closed_cb;
    void *arg = s->closed_arg;
    uv_cond_destroy(&s->changed);
    uv_mutex_destroy(&s->lock);
    free(s);
    cb(arg);
}

void hf_sweeper_close(hf_sweeper *s, void (*cb)(void *arg), void *arg)
{
    uv_mutex_lock(&s->lock);
    HF_ASSERT(s->wanted == NULL && s->done == NULL);
    s->closing = true;
    s->closed_cb = cb;
    s->closed_arg = arg;
    uv_cond_signal(&s->changed);
    uv_mutex_unlock(&s->lock);
    if (s->has_thread)
        uv_thread_join(&s->thread);
    uv_close((uv_handle_t *)&s->async, on_closed);
}
