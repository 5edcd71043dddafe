/* producer.c - open, enqueue, close: the public face of the engine.
 *
 * The thread of a producer runs nothing but the engine's loop and the callbacks of
 * hf_enqueue(), with every signal blocked. */
#include "holdfast/producer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "producer/handle.h"

bool hf_producer_forked(const hf_producer *producer)
{
    return producer->pid != getpid();
}

const char *hf_producer_id(const hf_producer *producer)
{
    return producer->id;
}

/* ---- life ---- */

static void release(hf_producer *producer)
{
    hf_helm_done(&producer->helm);
    hf_inbox_done(&producer->engine.inbox);
    free(producer);
}

/* On the caller's loop the engine's end is the producer's. */
static void on_end(void *arg)
{
    hf_producer *producer = arg;
    if (producer->threaded)
        return;
    void (*on_closed)(void *arg) = producer->on_closed;
    void *closed_arg = producer->arg;
    release(producer);
    if (on_closed != NULL)
        on_closed(closed_arg);
}

static void run(void *arg)
{
    hf_producer *producer = arg;
    hf_helm_keep(&producer->helm);
}

/* The thread inherits the mask of its maker, so all signals are blocked around the
 * making. */
static hf_err start_thread(hf_producer *producer)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return HF_SYSTEM;
    int made = uv_thread_create(&producer->thread, run, producer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made == 0 ? HF_OK : HF_SYSTEM;
}

static void close_inbox(hf_producer *producer)
{
    hf_inbox *inbox = &producer->engine.inbox;
    uv_mutex_lock(&inbox->lock);
    inbox->closed = true;
    uv_mutex_unlock(&inbox->lock);
}

/* Whoever runs the engine for others. */
static void wake(hf_producer *producer)
{
    if (producer->threaded)
        hf_helm_call(&producer->helm);
    else
        hf_engine_wake(&producer->engine);
}

static hf_err open_threaded(hf_producer *producer, const hf_producer_opts *opts,
                            char *detail)
{
    if (uv_loop_init(&producer->loop) != 0) {
        release(producer);
        return hf_say(detail, HF_SYSTEM, "no event loop could be made");
    }
    hf_err err = hf_engine_start(&producer->engine, &producer->loop, opts, detail);
    if (err == HF_OK) {
        err = hf_helm_init(&producer->helm, &producer->engine);
        if (err == HF_OK)
            err = start_thread(producer);
        if (err == HF_OK)
            return HF_OK;
        (void)hf_say(detail, err, "no thread could be started");
        close_inbox(producer);
        hf_engine_wake(&producer->engine);
    }
    (void)uv_run(&producer->loop, UV_RUN_DEFAULT);
    int closed = uv_loop_close(&producer->loop);
    HF_ASSERT(closed == 0);
    release(producer);
    return err;
}

static hf_err open_on_loop(hf_producer *producer, const hf_producer_opts *opts,
                           char *detail)
{
    hf_err err = hf_engine_start(&producer->engine, opts->loop, opts, detail);
    if (err != HF_OK && producer->engine.client == NULL)
        release(producer); /* else on_end() does */
    return err;
}

static hf_err set_id(hf_producer *producer, const char *run)
{
    producer->run_given = run != NULL;
    if (run == NULL)
        return hf_run_name(producer->id);
    (void)snprintf(producer->id, sizeof producer->id, "%s", run);
    producer->engine.inbox.numbering = HF_NUMBERS_CALLERS;
    return HF_OK;
}

hf_err hf_producer_open(hf_producer **out, const hf_producer_opts *given,
                        char detail[HF_DETAIL_SIZE])
{
    hf_producer_opts opts;
    hf_err err = hf_check_opts(given, &opts, detail);
    if (err != HF_OK)
        return err;
    hf_producer *producer = calloc(1, sizeof *producer);
    if (producer == NULL)
        return hf_say(detail, HF_NOMEM, "out of memory");
    err = hf_inbox_init(&producer->engine.inbox, &opts);
    if (err != HF_OK) {
        free(producer);
        return hf_say(detail, err, "the system refused what a producer needs");
    }
    producer->bounds = (hf_bounds){opts.payload_max, opts.buffer_jobs, opts.buffer_bytes};
    producer->deadline_ms = opts.deadline_ms;
    producer->pid = getpid();
    producer->threaded = opts.loop == NULL;
    producer->engine.id = producer->id;
    producer->engine.on_end = on_end;
    producer->engine.arg = producer;
    err = set_id(producer, opts.run);
    if (err != HF_OK) {
        release(producer);
        return hf_say(detail, err, "the system has no random numbers");
    }
    err = producer->threaded ? open_threaded(producer, &opts, detail)
                             : open_on_loop(producer, &opts, detail);
    if (err == HF_OK)
        *out = producer;
    return err;
}

void hf_producer_close(hf_producer *producer, void (*cb)(void *arg), void *arg)
{
    if (producer == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    if (hf_producer_forked(producer))
        return;
    producer->on_closed = cb;
    producer->arg = arg;
    close_inbox(producer);
    wake(producer);
    if (!producer->threaded)
        return;
    HF_ASSERT(uv_thread_join(&producer->thread) == 0);
    hf_inbox_await_callers(&producer->engine.inbox);
    HF_ASSERT(uv_loop_close(&producer->loop) == 0);
    release(producer);
    if (cb != NULL)
        cb(arg);
}

/* ---- one job ---- */

hf_err hf_enqueue(hf_producer *producer, const hf_job *job, hf_enqueue_cb cb, void *arg)
{
    hf_intake in = {.jobs = job, .n = 1, .numbering = HF_NUMBERS_OURS};
    bool one_queue, ready;
    if (hf_producer_forked(producer))
        return HF_FORKED;
    hf_err err = hf_check_jobs(&producer->bounds, job, 1, &in.bytes, &one_queue, NULL);
    if (err != HF_OK)
        return err;
    in.now_ns = hf_boot_ns();
    in.deadline_ns = in.now_ns + producer->deadline_ms * HF_MS_NS;
    in.created_ms = hf_wall_ms();
    const hf_part part = {.n = 1, .taken_ns = in.now_ns, .cb = cb, .arg = arg};
    err = hf_inbox_join(&producer->engine.inbox, &in, &part, &ready);
    if (err == HF_OK && ready)
        wake(producer);
    return err;
}
