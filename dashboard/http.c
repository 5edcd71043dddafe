/* http.c - see http.h. */
#include "dashboard/http.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

enum {
    CONNECTIONS_HARD = 128, /* the room above the bound is for those that are ending */
    MEMORY = 24 * 1024,     /* of a connection: its headers, and what it is sent */
    WHOLE_MS = 5000,
    IDLE_MS = 10000,
    STALLED_MS = 30000,
    SWEEP_MS = 500,
    PIECE = 16 * 1024,
    PIECE_MAX = 512 * 1024
};

typedef enum conn_phase {
    PHASE_IDLE,    /* no byte of a request is known yet */
    PHASE_READING, /* its first line is there */
    PHASE_WAITING, /* it is whole, and the answer is not there */
    PHASE_SENDING, /* the answer is on its way */
    PHASE_STREAM
} conn_phase;

struct hf_conn {
    hf_conn *older, *newer;
    hf_http *http;
    struct MHD_Connection *mhd;
    int fd;
    conn_phase phase;
    bool cut, served, begun, suspended, local;
    uint64_t until_ns; /* it is cut then, unless it waits */
    unsigned refused;  /* the status for a request that is not read; 0: none */
    char *target;      /* owned */
    const char *method;
    hf_buf body;
    struct MHD_Response *response; /* owned, until it is queued */
    unsigned status;
    hf_stream *stream; /* NULL: the answer is none */
};

struct hf_stream {
    hf_conn *conn;
    hf_stream_source source;
    hf_buf out;
    size_t at; /* bytes of `out` that are sent */
    bool asleep, ended;
};

struct hf_http {
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t next, sweep;
    unsigned open_handles;
    hf_conn *oldest, *newest;
    size_t n; /* connections that are not cut */
    hf_http_cb cb;
    void *arg;
    bool closing;
};

static uint64_t after_ms(uint64_t ms)
{
    return hf_boot_ns() + ms * HF_MS_NS;
}

/* ---- connections ---- */

/* The library sees the end of it, and closes it. */
static void cut(hf_conn *c)
{
    if (c->cut)
        return;
    c->cut = true;
    c->http->n--;
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void cut_oldest(hf_http *h)
{
    for (hf_conn *c = h->oldest; c != NULL; c = c->newer) {
        if (!c->cut && c->phase != PHASE_STREAM && c->phase != PHASE_WAITING) {
            cut(c);
            return;
        }
    }
}

static bool is_local(int fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
        return false;
    if (peer.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == 127;
    if (peer.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&peer)->sin6_addr);
    return peer.ss_family == AF_UNIX;
}

static hf_conn *conn_begin(hf_http *h, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    hf_conn *c = info == NULL ? NULL : calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (hf_conn){.http = h,
                   .mhd = mhd,
                   .fd = info->connect_fd,
                   .local = is_local(info->connect_fd),
                   .until_ns = after_ms(WHOLE_MS),
                   .older = h->newest};
    hf_buf_init(&c->body, HF_HTTP_BODY_MAX);
    *(h->newest == NULL ? &h->oldest : &h->newest->newer) = c;
    h->newest = c;
    if (++h->n > HF_HTTP_CONNECTIONS)
        cut_oldest(h);
    return c;
}

static void request_end(hf_conn *c)
{
    if (c->response != NULL)
        MHD_destroy_response(c->response);
    free(c->target);
    hf_buf_clear(&c->body);
    c->response = NULL;
    c->target = NULL;
    c->method = NULL;
    c->stream = NULL;
    c->refused = 0;
    c->begun = false;
    c->served = true;
    c->phase = PHASE_IDLE;
    c->until_ns = after_ms(IDLE_MS);
}

static void conn_end(hf_conn *c)
{
    hf_http *h = c->http;
    request_end(c);
    hf_buf_done(&c->body);
    *(c->older == NULL ? &h->oldest : &c->older->newer) = c->newer;
    *(c->newer == NULL ? &h->newest : &c->newer->older) = c->older;
    h->n -= c->cut ? 0 : 1;
    free(c);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *context = conn_begin(arg, mhd);
    else if (*context != NULL)
        conn_end(*context);
}

static hf_conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static void on_sweep(uv_timer_t *timer)
{
    hf_http *h = timer->data;
    const uint64_t now = hf_boot_ns();
    for (hf_conn *c = h->oldest; c != NULL; c = c->newer) {
        if (c->phase != PHASE_WAITING && now >= c->until_ns &&
            (c->stream == NULL || !c->stream->asleep))
            cut(c);
    }
}

/* ---- requests ---- */

/* The first line is there. What is returned is the handler's context. */
static void *on_target(void *arg, const char *target, struct MHD_Connection *mhd)
{
    (void)arg;
    hf_conn *c = conn_of(mhd);
    if (c == NULL)
        return NULL;
    if (c->served)
        c->until_ns = after_ms(WHOLE_MS);
    c->phase = PHASE_READING;
    if (strlen(target) > HF_HTTP_TARGET_MAX)
        c->refused = 414;
    free(c->target);
    c->target = strdup(c->refused != 0 ? "/" : target);
    return c;
}

/* Addresses are decoded elsewhere, by segments: the library would decode "%00". */
static size_t unescape_nothing(void *arg, struct MHD_Connection *mhd, char *text)
{
    (void)arg;
    (void)mhd;
    return strlen(text);
}

/* What is known before the body comes. */
static unsigned refusal_of(const hf_conn *c)
{
    const char *length = hf_conn_header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (c->refused != 0)
        return c->refused;
    if (hf_conn_header(c, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
        (length != NULL && strtoull(length, NULL, 10) > HF_HTTP_BODY_MAX))
        return 413;
    return 0;
}

static enum MHD_Result queue_answer(hf_conn *c)
{
    struct MHD_Response *response = c->response;
    c->response = NULL;
    c->phase = c->stream != NULL ? PHASE_STREAM : PHASE_SENDING;
    c->until_ns = after_ms(STALLED_MS);
    enum MHD_Result queued = MHD_queue_response(c->mhd, c->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result refuse(hf_conn *c, unsigned status)
{
    static const char too_long[] = "{\"error\":\"the address is too long\","
                                   "\"code\":\"too_long\"}\n",
                      too_large[] = "{\"error\":\"the body is too large\","
                                    "\"code\":\"too_large\"}\n";
    const char *text = status == 414 ? too_long : too_large;
    hf_conn_answer(c, &(hf_http_answer){.status = status,
                                        .type = "application/json",
                                        .body = text,
                                        .len = strlen(text),
                                        .is_static = true});
    return c->response == NULL ? MHD_NO : queue_answer(c);
}

/* It is called for the headers, for each piece of the body, for the end, and again after
 * a pause. */
static enum MHD_Result on_access(void *arg, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version,
                                 const char *upload, size_t *n_upload, void **context)
{
    hf_http *h = arg;
    hf_conn *c = *context;
    (void)mhd;
    (void)url;
    (void)version;
    if (c == NULL || c->target == NULL || h->closing)
        return MHD_NO;
    c->suspended = false;
    if (!c->begun) {
        unsigned status = refusal_of(c);
        c->begun = true;
        return status == 0 ? MHD_YES : refuse(c, status);
    }
    if (*n_upload > 0) {
        hf_buf_add(&c->body, upload, *n_upload);
        *n_upload = 0;
        return hf_buf_err(&c->body) == HF_OK ? MHD_YES : MHD_NO;
    }
    if (c->phase == PHASE_READING) {
        c->method = method;
        c->phase = PHASE_WAITING;
        h->cb(c, h->arg);
    }
    if (c->response != NULL)
        return queue_answer(c);
    if (c->target == NULL)
        return MHD_NO; /* it was answered, without memory for the answer */
    c->suspended = true;
    MHD_suspend_connection(mhd);
    return MHD_YES;
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)mhd;
    (void)code;
    if (*context != NULL)
        request_end(*context);
}

void *hf_conn_arg(const hf_conn *c)
{
    return c->http->arg;
}

const char *hf_conn_method(const hf_conn *c)
{
    return c->method;
}

const char *hf_conn_target(const hf_conn *c)
{
    return c->target;
}

const char *hf_conn_header(const hf_conn *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

typedef struct header_count {
    const char *name;
    size_t n;
} header_count;

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    header_count *count = arg;
    (void)kind;
    (void)value;
    count->n += strcasecmp(name, count->name) == 0 ? 1 : 0;
    return MHD_YES;
}

bool hf_conn_repeats(const hf_conn *c, const char *name)
{
    header_count count = {.name = name};
    (void)MHD_get_connection_values(c->mhd, MHD_HEADER_KIND, on_header, &count);
    return count.n > 1;
}

const hf_buf *hf_conn_body(const hf_conn *c)
{
    return &c->body;
}

bool hf_conn_is_local(const hf_conn *c)
{
    return c->local;
}

/* ---- answers ---- */

static const hf_http_header common[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
     "connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static void add_headers(struct MHD_Response *response, const char *type, bool keep)
{
    for (size_t i = 0; i < HF_COUNT(common); i++)
        (void)MHD_add_response_header(response, common[i].name, common[i].value);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                  keep ? "no-cache" : "no-store");
    if (type != NULL)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

static void on_next(uv_timer_t *timer);

/* The library looks at it in its next turn, for which nothing else may come. */
static void resume(hf_conn *c)
{
    MHD_resume_connection(c->mhd);
    (void)uv_timer_start(&c->http->next, on_next, 0, 0);
}

static void give(hf_conn *c, struct MHD_Response *response, unsigned status)
{
    HF_ASSERT(c->response == NULL);
    c->response = response;
    c->status = status;
    if (c->suspended)
        resume(c);
}

/* Without memory for an answer the connection ends. */
void hf_conn_answer(hf_conn *c, const hf_http_answer *answer)
{
    /* The library takes what it only reads as something to write. */
    union {
        const void *given;
        void *taken;
    } body = {.given = answer->body};
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->len, answer->len == 0 ? NULL : body.taken,
        answer->is_static || answer->len == 0 ? MHD_RESPMEM_PERSISTENT
                                              : MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        free(c->target); /* by this on_access() knows that it ends the connection */
        c->target = NULL;
        if (c->suspended)
            resume(c);
        return;
    }
    add_headers(response, answer->type, answer->keep);
    for (size_t i = 0; i < HF_HTTP_HEADERS && answer->headers[i].name != NULL; i++)
        (void)MHD_add_response_header(response, answer->headers[i].name,
                                      answer->headers[i].value);
    give(c, response, answer->status);
}

/* ---- streams ---- */

static ssize_t on_room(void *arg, uint64_t at, char *out, size_t room)
{
    hf_stream *s = arg;
    (void)at;
    if (s->at == s->out.len) {
        hf_buf_clear(&s->out);
        s->at = 0;
        if (s->ended || s->conn->http->closing)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!s->source.fill(&s->out, s->source.arg) || s->out.len == 0) {
            s->asleep = true;
            s->conn->suspended = true;
            MHD_suspend_connection(s->conn->mhd);
            return 0;
        }
    }
    size_t n = s->out.len - s->at < room ? s->out.len - s->at : room;
    memcpy(out, s->out.data + s->at, n);
    s->at += n;
    s->conn->until_ns = after_ms(STALLED_MS);
    return (ssize_t)n;
}

static void on_stream_gone(void *arg)
{
    hf_stream *s = arg;
    s->source.gone(s->source.arg);
    hf_buf_done(&s->out);
    free(s);
}

hf_stream *hf_conn_stream(hf_conn *c, const char *type, const hf_stream_source *source)
{
    hf_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    *s = (hf_stream){.conn = c, .source = *source};
    hf_buf_init(&s->out, PIECE_MAX);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, PIECE, on_room, s, on_stream_gone);
    if (response == NULL) {
        free(s);
        return NULL;
    }
    add_headers(response, type, false);
    (void)MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* nginx */
    c->stream = s;
    give(c, response, 200);
    return s;
}

void hf_stream_wake(hf_stream *s)
{
    if (!s->asleep)
        return;
    s->asleep = false;
    s->conn->suspended = false;
    s->conn->until_ns = after_ms(STALLED_MS);
    resume(s->conn);
}

void hf_stream_end(hf_stream *s)
{
    s->ended = true;
    hf_stream_wake(s);
}

/* ---- the loop ---- */

static void turn(hf_http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;
    (void)MHD_run(h->daemon);
    if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        (void)uv_timer_start(&h->next, on_next, ms, 0);
    else
        (void)uv_timer_stop(&h->next);
}

static void on_next(uv_timer_t *timer)
{
    turn(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    turn(poll->data);
}

static void on_handle_closed(uv_handle_t *handle)
{
    hf_http *h = handle->data;
    if (--h->open_handles == 0)
        free(h);
}

static struct MHD_Daemon *start_daemon(hf_http *h, int fd)
{
    const struct MHD_OptionItem listening[] = {
        {fd < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(
        fd < 0 ? flags | MHD_USE_NO_LISTEN_SOCKET : flags, 0, NULL, NULL, on_access, h,
        MHD_OPTION_ARRAY, listening, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_HARD, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, h, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, h, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_END);
}

hf_err hf_http_open(hf_http **out, uv_loop_t *loop, int fd, hf_http_cb cb, void *arg)
{
    hf_http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return HF_NOMEM;
    }
    *h = (hf_http){.loop = loop, .cb = cb, .arg = arg};
    h->daemon = start_daemon(h, fd);
    const union MHD_DaemonInfo *info =
        h->daemon == NULL ? NULL
                          : MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || uv_poll_init(loop, &h->poll, info->epoll_fd) != 0) {
        if (h->daemon != NULL)
            MHD_stop_daemon(h->daemon);
        else if (fd >= 0)
            (void)close(fd);
        free(h);
        return HF_SYSTEM;
    }
    (void)uv_timer_init(loop, &h->next);
    (void)uv_timer_init(loop, &h->sweep);
    h->open_handles = 3;
    h->poll.data = h->next.data = h->sweep.data = h;
    (void)uv_poll_start(&h->poll, UV_READABLE, on_readable);
    (void)uv_timer_start(&h->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    *out = h;
    return HF_OK;
}

void hf_http_serve(hf_http *h, int fd)
{
    (void)MHD_add_connection(h->daemon, fd, NULL, 0); /* closes it when it cannot */
    turn(h);
}

void hf_http_close(hf_http *h)
{
    if (h == NULL)
        return;
    h->closing = true;
    for (hf_conn *c = h->oldest; c != NULL; c = c->newer) {
        if (c->suspended)
            MHD_resume_connection(c->mhd);
        c->suspended = false;
        cut(c);
    }
    (void)MHD_run(h->daemon); /* what is suspended cannot be ended */
    (void)uv_poll_stop(&h->poll);
    MHD_stop_daemon(h->daemon);
    uv_close((uv_handle_t *)&h->poll, on_handle_closed);
    uv_close((uv_handle_t *)&h->next, on_handle_closed);
    uv_close((uv_handle_t *)&h->sweep, on_handle_closed);
}
