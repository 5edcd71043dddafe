/* module.c - see module.h: the thread that sends, and what it does when it cannot. */
#define _GNU_SOURCE /* pthread_setname_np() */
#include "trace/module.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/text.h"
#include "holdfast/version.h"
#include "trace/otlp.h"
#include "trace/post.h"
#include "trace/ring.h"

enum {
    TRIES = 3,
    REST_MS = 1000,          /* after the first try, and twice as long after the next, */
    LONGEST_REST_MS = 30000, /* unless the collector says how long; at most this */
    REMIND_MS = 60000,
    BODY_MAX = 4 << 20,
    GZIP = 15 + 16, /* zlib's window of 2^15 bytes, and the form of gzip */
    GZIP_MEMORY = 8 /* zlib's default */
};

struct hf_trace_sender {
    hf_ring *ring;
    hf_post *post;
    hf_buf body, zipped;
    bool gzip;
    char service[HF_TRACE_SERVICE_MAX + 1];
    void (*on_loss)(uint64_t dropped, const char *why, void *arg);
    void *arg;
    uint64_t told, told_ns; /* what on_loss() was told last */
    char why[HF_DETAIL_SIZE];
    hf_post_answer answer;
    pthread_t thread;
};

/* ---- a batch ---- */

static void write_body(hf_trace_sender *s, size_t n)
{
    hf_buf_clear(&s->body);
    hf_otlp_begin(&s->body, s->service);
    for (size_t i = 0; i < n; i++)
        hf_otlp_add(&s->body, hf_ring_at(s->ring, i), i == 0);
    hf_otlp_end(&s->body);
}

static bool zip(hf_trace_sender *s)
{
    z_stream z = {.next_in = (Bytef *)s->body.data, .avail_in = (uInt)s->body.len};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t room = deflateBound(&z, (uLong)s->body.len);
    hf_buf_clear(&s->zipped);
    char *out = hf_buf_room(&s->zipped, room);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    bool done = out != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (done)
        hf_buf_took(&s->zipped, room - z.avail_out);
    (void)deflateEnd(&z);
    return done;
}

static bool is_passing(long status)
{
    return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

static int64_t rest_ms(const hf_post_answer *answer, int tries)
{
    int64_t ms = answer->retry_after_ms != 0 ? answer->retry_after_ms
                                             : (int64_t)REST_MS << (tries - 1);
    return ms < LONGEST_REST_MS ? ms : LONGEST_REST_MS;
}

/* Returns how many of the n spans were lost. */
static uint64_t send_body(hf_trace_sender *s, const hf_buf *body, size_t n)
{
    hf_post_answer *answer = &s->answer;
    if (hf_post_is_over(s->post))
        (void)snprintf(s->why, sizeof s->why, "no time was left");
    for (int tries = 1; !hf_post_is_over(s->post); tries++) {
        hf_post_send(s->post, body->data, body->len, answer);
        if (answer->status >= 200 && answer->status < 300) {
            uint64_t rejected = hf_otlp_rejected(answer->body, answer->len);
            if (rejected > 0)
                (void)snprintf(s->why, sizeof s->why, "the collector rejected spans");
            return rejected < n ? rejected : n;
        }
        (void)snprintf(s->why, sizeof s->why, "%s", answer->why);
        if (!is_passing(answer->status) || tries == TRIES ||
            !hf_post_rest(s->post, rest_ms(answer, tries)))
            break;
    }
    return n;
}

static uint64_t send_batch(hf_trace_sender *s, size_t n)
{
    write_body(s, n);
    if (hf_buf_err(&s->body) != HF_OK || (s->gzip && !zip(s))) {
        (void)snprintf(s->why, sizeof s->why, "%s", hf_err_text(HF_NOMEM));
        return n;
    }
    return send_body(s, s->gzip ? &s->zipped : &s->body, n);
}

/* ---- the thread ---- */

static void tell_loss(hf_trace_sender *s, bool last)
{
    uint64_t dropped = hf_ring_dropped(s->ring), now = hf_boot_ns();
    bool soon = s->told_ns != 0 && now - s->told_ns < REMIND_MS * HF_MS_NS;
    if (dropped == s->told || (soon && !last))
        return;
    if (s->on_loss != NULL)
        s->on_loss(dropped, s->why[0] != '\0' ? s->why : "too many waited", s->arg);
    s->told = dropped;
    s->told_ns = now;
}

static void *serve(void *arg)
{
    hf_trace_sender *s = arg;
    size_t n;
    while ((n = hf_ring_take(s->ring)) > 0) {
        uint64_t lost = send_batch(s, n);
        hf_ring_release(s->ring, n);
        if (lost > 0)
            hf_ring_drop(s->ring, lost);
        tell_loss(s, false);
        if (lost == 0)
            s->why[0] = '\0';
    }
    tell_loss(s, true);
    return NULL;
}

/* Signals are for the other threads. */
static bool start(hf_trace_sender *s)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&s->thread, NULL, serve, s) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        (void)pthread_setname_np(s->thread, "traces");
    return started;
}

/* ---- the module ---- */

static void free_sender(hf_trace_sender *s)
{
    hf_post_free(s->post);
    hf_ring_free(s->ring);
    hf_buf_done(&s->body);
    hf_buf_done(&s->zipped);
    free(s);
}

static bool is_utf8(const char *text, size_t left)
{
    for (size_t len = 0; left > 0; text += len, left -= len)
        if ((len = hf_utf8_len(text, left)) == 0)
            return false;
    return true;
}

/* A part of a name would be another service. */
static hf_err name_service(hf_trace_sender *s, const char *otherwise, char *detail)
{
    const char *given = getenv("OTEL_SERVICE_NAME");
    const bool is_given = given != NULL && *given != '\0';
    const char *name = is_given ? given : otherwise;
    const size_t len = strlen(name);
    if (len > HF_TRACE_SERVICE_MAX || !is_utf8(name, len))
        return hf_say(detail, HF_CONFIG,
                      "%s: expected at most %d bytes of UTF-8, found %zu bytes%s",
                      is_given ? "OTEL_SERVICE_NAME" : "the service of hf_trace_opts",
                      HF_TRACE_SERVICE_MAX, len,
                      is_utf8(name, len) ? "" : " that are not UTF-8");
    memcpy(s->service, name, len + 1);
    return HF_OK;
}

static hf_err open_sender(hf_trace_sender **out, const hf_trace_opts *opts,
                          char detail[HF_DETAIL_SIZE])
{
    hf_trace_sender *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hf_say_err(detail, HF_NOMEM);
    hf_buf_init(&s->body, BODY_MAX);
    hf_buf_init(&s->zipped, BODY_MAX);
    s->gzip = opts->gzip;
    s->on_loss = opts->on_loss;
    s->arg = opts->arg;
    s->ring = hf_ring_new();
    hf_err err = s->ring == NULL ? hf_say_err(detail, HF_NOMEM)
                                 : name_service(s, opts->service, detail);
    if (err == HF_OK)
        err =
            hf_post_new(&s->post, opts->endpoint, opts->headers_file, opts->gzip, detail);
    if (err == HF_OK && !start(s))
        err = hf_say(detail, HF_SYSTEM, "no thread could be started");
    if (err == HF_OK)
        *out = s;
    else
        free_sender(s);
    return err;
}

static void on_span(const hf_span *span, void *sender)
{
    hf_ring_put(((hf_trace_sender *)sender)->ring, span);
}

static uint64_t dropped(void *sender)
{
    return hf_ring_dropped(((hf_trace_sender *)sender)->ring);
}

static void close_sender(hf_trace_sender *s, uint32_t deadline_ms)
{
    hf_post_end_at(s->post, hf_boot_ns() + deadline_ms * HF_MS_NS);
    hf_ring_close(s->ring);
    (void)pthread_join(s->thread, NULL);
    free_sender(s);
}

const hf_trace_module hf_trace_functions = {
    .version = HF_VERSION,
    .open = open_sender,
    .on_span = on_span,
    .dropped = dropped,
    .close = close_sender,
};
