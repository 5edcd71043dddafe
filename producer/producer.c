/* producer.c - open, enqueue, close: the public face of the requests.
 *
 * The service thread of a producer runs only the run loop and the callbacks of
 * hf_enqueue(). */
#include "holdfast/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/structs.h"
#include "producer/producer.h"
#include "producer/traced.h"

bool hf_producer_forked(const hf_producer *producer)
{
    return producer->pid != getpid();
}

const char *hf_producer_id(const hf_producer *producer)
{
    return producer->id;
}

hf_err hf_producer_refuse(hf_err err, char detail[HF_DETAIL_SIZE])
{
    if (err == HF_INVALID)
        return hf_say(detail, err,
                      "expected only calls with numbers or only calls without "
                      "them on one producer (with `run`: with numbers), found both");
    return hf_say_err(detail, err);
}

/* ---- life ---- */

static void release(hf_producer *producer)
{
    hf_run_loop_close(&producer->run);
    hf_submit_done(&producer->requests.queue);
    hf_producer_nodes_free(&producer->requests.nodes);
    free(producer);
}

/* On the caller's loop the end of the requests is the producer's. */
static void on_end(void *arg)
{
    hf_producer *producer = arg;
    if (producer->run.owned)
        return;
    void (*on_closed)(void *arg) = producer->on_closed;
    void *closed_arg = producer->arg;
    release(producer);
    if (on_closed != NULL)
        on_closed(closed_arg);
}

static hf_err start(hf_producer *producer, const hf_producer_opts *opts, char *detail)
{
    hf_err err = hf_requests_start(&producer->requests, opts, detail);
    if (err == HF_OK && hf_run_loop_start(&producer->run) != HF_OK)
        err = hf_say(detail, HF_SYSTEM, "no thread could be started");
    if (err != HF_OK)
        release(producer);
    return err;
}

static hf_err set_id(hf_producer *producer, const char *run)
{
    producer->run_given = run != NULL;
    if (run == NULL)
        return hf_run_name(producer->id);
    (void)snprintf(producer->id, sizeof producer->id, "%s", run);
    producer->requests.queue.numbering = HF_NUMBERS_CALLERS;
    return HF_OK;
}

/* The spans name the Redis. */
static hf_err set_tracer(hf_producer *producer, const hf_producer_opts *opts,
                         char detail[HF_DETAIL_SIZE])
{
    hf_url url;
    hf_err err = hf_tracer_in(&producer->tracer, opts->tracer, detail);
    if (err != HF_OK || !hf_tracer_is_on(&producer->tracer) || opts->server->url == NULL)
        return err;
    if (hf_url_parse(&url, opts->server->url, detail) == HF_OK) /* else start() says */
        hf_span_server_set(&producer->server, &url);
    hf_url_wipe(&url);
    return HF_OK;
}

hf_err hf_producer_open(hf_producer **out, const hf_producer_opts *given,
                        char detail[HF_DETAIL_SIZE])
{
    hf_producer_opts opts;
    hf_server_opts server;
    hf_err err = hf_check_opts(given, &opts, &server, detail);
    if (err != HF_OK)
        return err;
    hf_producer *producer = calloc(1, sizeof *producer);
    if (producer == NULL)
        return hf_say_err(detail, HF_NOMEM);
    err = set_tracer(producer, &opts, detail);
    if (err != HF_OK) {
        free(producer);
        return err;
    }
    producer->bounds = (hf_bounds){opts.payload_max, opts.buffer_jobs, opts.buffer_bytes};
    producer->deadline_ms = opts.deadline_ms;
    producer->pid = getpid();
    producer->requests.run = &producer->run;
    producer->requests.id = producer->id;
    producer->requests.on_end = on_end;
    producer->requests.arg = producer;
    err = hf_submit_init(&producer->requests.queue, &producer->run, &opts);
    if (err == HF_OK)
        err = set_id(producer, opts.run);
    if (err == HF_OK)
        err = hf_run_loop_open(&producer->run, opts.loop, &hf_requests_hooks,
                               &producer->requests);
    if (err != HF_OK) {
        free(producer);
        return hf_say(detail, err, "the system refused a resource for the producer");
    }
    err = start(producer, &opts, detail);
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
    hf_run_loop_retire(&producer->run);
    if (!producer->run.owned)
        return;
    release(producer);
    if (cb != NULL)
        cb(arg);
}

/* ---- one job ---- */

/* With its headers for the trace, unless it is too large then. */
static hf_err measure(hf_producer *producer, hf_traced *traced, hf_intake *in,
                      char *detail)
{
    bool one_queue;
    const hf_job *job = in->jobs;
    hf_err err = hf_check_jobs(&producer->bounds, job, 1, &in->bytes, &one_queue, detail);
    if (err != HF_OK)
        return err;
    in->jobs = hf_traced_begin(traced, producer, job, 1);
    if (in->jobs == job || hf_check_jobs(&producer->bounds, in->jobs, 1, &in->bytes,
                                         &one_queue, detail) == HF_OK)
        return HF_OK;
    hf_traced_give_up(traced);
    in->jobs = job;
    return hf_check_jobs(&producer->bounds, job, 1, &in->bytes, &one_queue, detail);
}

static hf_err join(hf_producer *producer, const hf_traced *traced, const hf_intake *in,
                   hf_enqueue_cb cb, void *arg, bool *ready)
{
    struct hf_traced_cb *with_span = hf_traced_cb_new(traced, cb, arg);
    hf_batch_call call = {.n = 1, .taken_ns = in->now_ns, .cb = cb, .arg = arg};
    if (with_span != NULL) {
        call.cb = hf_traced_cb;
        call.arg = with_span;
    }
    hf_err err = hf_submit_join(&producer->requests.queue, in, &call, ready);
    if (err != HF_OK)
        free(with_span);
    return err;
}

hf_err hf_enqueue(hf_producer *producer, const hf_job *theirs, hf_enqueue_cb cb,
                  void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_job job;
    hf_intake in = {.jobs = &job, .n = 1, .numbering = HF_NUMBERS_OURS};
    hf_traced traced;
    bool ready;
    if (hf_producer_forked(producer))
        return hf_say_err(detail, HF_FORKED);
    hf_err err = hf_struct_in(&job, sizeof job, theirs, "hf_job", detail);
    if (err == HF_OK)
        err = measure(producer, &traced, &in, detail);
    if (err != HF_OK)
        return err;
    in.now_ns = hf_boot_ns();
    in.deadline_ns = in.now_ns + producer->deadline_ms * HF_MS_NS;
    in.created_ms = hf_wall_ms();
    err = join(producer, &traced, &in, cb, arg, &ready);
    hf_traced_give_up(&traced); /* the callback makes the span */
    if (err != HF_OK)
        return hf_producer_refuse(err, detail);
    if (ready)
        hf_run_loop_wake(&producer->run);
    return HF_OK;
}
