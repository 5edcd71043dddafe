/* watch_loop.c - see watch_loop.h. */
#include "lock/watchdog/watch_loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/base.h"

hf_err hf_watch_loop_open(hf_watch_loop **out)
{
    hf_watch_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return HF_NOMEM;
    if (uv_loop_init(&loop->uv) != 0) {
        free(loop);
        return HF_SYSTEM;
    }
    atomic_init(&loop->refs, 1);
    *out = loop;
    return HF_OK;
}

static void run_thread(void *arg)
{
    hf_watch_loop *loop = arg;
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

/* The thread inherits the mask of its maker: signals are the host's. */
hf_err hf_watch_loop_start(hf_watch_loop *loop)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return HF_SYSTEM;
    loop->runs = uv_thread_create(&loop->thread, run_thread, loop) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return loop->runs ? HF_OK : HF_SYSTEM;
}

void hf_watch_loop_turn(hf_watch_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_ONCE);
}

bool hf_watch_loop_is_self(const hf_watch_loop *loop)
{
    uv_thread_t self = uv_thread_self();
    return loop->runs && uv_thread_equal(&self, &loop->thread);
}

void hf_watch_loop_ref(hf_watch_loop *loop)
{
    atomic_fetch_add(&loop->refs, 1);
}

void hf_watch_loop_unref(hf_watch_loop *loop)
{
    if (atomic_fetch_sub(&loop->refs, 1) > 1)
        return;
    if (loop->runs)
        HF_ASSERT(uv_thread_join(&loop->thread) == 0);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* until all of it is closed */
    HF_ASSERT(uv_loop_close(&loop->uv) == 0);
    free(loop);
}
