/* metrics_main.c - `holdfast-metrics`: the HTTP of one worker, which starts this process
 * (cli/worker/metrics_server.h).
 *
 * The worker makes every text. Of each format one request is under way to it, and the
 * next one follows 100 ms later. An answer goes to all readers that have asked meanwhile,
 * so a worker makes ten texts of a kind in a second at most, however many ask. Ends when
 * the worker does. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/prometheus.h"
#include "cli/exit.h"
#include "cli/worker/metrics_server.h"
#include "dashboard/http.h"

enum {
    LATE_MS = 5000, /* then a reader is told that the worker does not answer */
    LOOK_MS = 500,
    PAUSE_MS = 100,    /* between two requests of a kind */
    WAITING_MAX = 128, /* connections; http.c has no more */
    MEMORY_MAX = 192 << 20
};

typedef struct kind {
    char ask; /* hf_metrics_ask */
    const char *path, *type;
    hf_conn *waiting[WAITING_MAX];
    size_t n;
    uint64_t since_ns; /* the first of them came */
    uint64_t asked_ns; /* 0: not yet */
    bool asked;
} kind;

static kind kinds[] = {
    {HF_METRICS_ASK_TEXT, "/metrics", HF_PROM_TEXT, {NULL}, 0, 0, 0, false},
    {HF_METRICS_ASK_OPEN, "/metrics", HF_PROM_OPEN, {NULL}, 0, 0, 0, false},
    {HF_METRICS_ASK_ALIVE, "/healthz", "text/plain", {NULL}, 0, 0, 0, false},
    {HF_METRICS_ASK_READY, "/readyz", "text/plain", {NULL}, 0, 0, 0, false},
};
enum { KINDS = HF_COUNT(kinds) };

typedef struct server {
    uv_loop_t loop;
    uv_pipe_t pair;
    uv_timer_t timer, pause;
    hf_http *http;
    hf_buf in;          /* of the worker's answer */
    kind *asked[KINDS]; /* in the order of their answers */
    size_t n_asked;
    char room[64 * 1024];
} server;

/* ---- readers ---- */

static void give(hf_conn *conn, unsigned status, const char *type, const char *text,
                 size_t len)
{
    hf_conn_answer(conn, &(hf_http_answer){
                             .status = status, .type = type, .body = text, .len = len});
}

static void say(hf_conn *conn, unsigned status, const char *text)
{
    give(conn, status, "text/plain", text, strlen(text));
}

/* To all readers that wait for it. */
static void answer(kind *k, unsigned status, const char *type, const char *text,
                   size_t len)
{
    const size_t n = k->n;
    k->n = 0;
    for (size_t i = 0; i < n; i++)
        give(k->waiting[i], status, type, text, len);
}

static kind *kind_of(const hf_conn *conn)
{
    const char *target = hf_conn_target(conn);
    const size_t len = strcspn(target, "?");
    const bool open = hf_prom_wants_open(hf_conn_header(conn, "Accept"));
    for (size_t i = 0; i < KINDS; i++)
        if (strlen(kinds[i].path) == len && memcmp(kinds[i].path, target, len) == 0)
            return kinds[i].ask == HF_METRICS_ASK_TEXT && open ? &kinds[i + 1]
                                                               : &kinds[i];
    return NULL;
}

static void on_pause_over(uv_timer_t *timer);

/* Whether it is too early for the next request of this kind; then the timer comes. */
static bool pauses(server *s, const kind *k, uint64_t now)
{
    const uint64_t due = k->asked_ns + PAUSE_MS * HF_MS_NS;
    if (k->asked_ns == 0 || now >= due)
        return false;
    if (!uv_is_active((uv_handle_t *)&s->pause))
        (void)uv_timer_start(&s->pause, on_pause_over, (due - now) / HF_MS_NS + 1, 0);
    return true;
}

static void ask_next(server *s)
{
    const uint64_t now = hf_boot_ns();
    for (size_t i = 0; i < KINDS; i++) {
        kind *k = &kinds[i];
        const uv_buf_t byte = uv_buf_init(&k->ask, 1);
        if (k->n == 0 || k->asked || pauses(s, k, now))
            continue;
        if (uv_try_write((uv_stream_t *)&s->pair, &byte, 1) != 1) {
            uv_stop(&s->loop);
            return;
        }
        k->asked = true;
        k->asked_ns = now;
        s->asked[s->n_asked++] = k;
    }
}

static void on_pause_over(uv_timer_t *timer)
{
    ask_next(timer->data);
}

static void on_request(hf_conn *conn, void *arg)
{
    server *s = arg;
    const char *method = hf_conn_method(conn);
    kind *k = kind_of(conn);
    if (k == NULL) {
        say(conn, 404, "here are /metrics, /healthz and /readyz\n");
    } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        say(conn, 405, "GET only\n");
    } else if (k->n == WAITING_MAX) {
        say(conn, 503, "too many requests\n");
    } else {
        k->since_ns = k->n == 0 ? hf_boot_ns() : k->since_ns;
        k->waiting[k->n++] = conn;
        ask_next(s);
    }
}

/* ---- the worker ---- */

static void on_answer(server *s, const hf_metrics_head *head, const char *text)
{
    kind *k = s->asked[0];
    memmove(s->asked, s->asked + 1, --s->n_asked * sizeof s->asked[0]);
    k->asked = false;
    answer(k, head->status, head->status == 200 ? k->type : "text/plain", text,
           head->len);
}

static bool take_answers(server *s)
{
    hf_metrics_head head;
    while (s->in.len >= sizeof head) {
        memcpy(&head, s->in.data, sizeof head);
        if (s->n_asked == 0 || head.len > HF_METRICS_ANSWER_MAX)
            return false;
        if (s->in.len < sizeof head + head.len)
            return true;
        on_answer(s, &head, s->in.data + sizeof head);
        hf_buf_cut(&s->in, sizeof head + head.len);
        ask_next(s);
    }
    return true;
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *out)
{
    server *s = handle->data;
    (void)size;
    *out = uv_buf_init(s->room, sizeof s->room);
}

/* Without the worker there is nothing to serve. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    server *s = stream->data;
    if (n > 0)
        hf_buf_add(&s->in, buf->base, (size_t)n);
    if (n < 0 || hf_buf_err(&s->in) != HF_OK || !take_answers(s))
        uv_stop(&s->loop);
}

static void on_time(uv_timer_t *timer)
{
    static const char late[] = "the worker does not answer\n";
    const uint64_t now = hf_boot_ns();
    (void)timer;
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].n > 0 && now - kinds[i].since_ns > LATE_MS * HF_MS_NS)
            answer(&kinds[i], 503, "text/plain", late, sizeof late - 1);
}

/* ---- the process ---- */

/* Many readers of large texts who do not read are refused, and harm nobody else. */
static void bound_memory(void)
{
#ifndef HF_SANITIZED
    const struct rlimit most = {.rlim_cur = MEMORY_MAX, .rlim_max = MEMORY_MAX};
    (void)setrlimit(RLIMIT_DATA, &most);
#endif
}

static bool is_socket(int fd)
{
    int type;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

static hf_err start(server *s)
{
    hf_buf_init(&s->in, sizeof(hf_metrics_head) + HF_METRICS_ANSWER_MAX + sizeof s->room);
    (void)uv_timer_init(&s->loop, &s->timer);
    (void)uv_timer_init(&s->loop, &s->pause);
    s->pair.data = s->pause.data = s;
    if (uv_pipe_init(&s->loop, &s->pair, 0) != 0 ||
        uv_pipe_open(&s->pair, HF_METRICS_PAIR_FD) != 0 ||
        uv_read_start((uv_stream_t *)&s->pair, on_room, on_read) != 0 ||
        uv_timer_start(&s->timer, on_time, LOOK_MS, LOOK_MS) != 0)
        return HF_SYSTEM;
    return hf_http_open(&s->http, &s->loop, HF_METRICS_LISTEN_FD, on_request, s);
}

int main(void)
{
    static server s;
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGPIPE, &action,
                    NULL); /* a reader that has gone is no reason to end */
    if (!is_socket(HF_METRICS_PAIR_FD) || !is_socket(HF_METRICS_LISTEN_FD)) {
        (void)fputs("holdfast-metrics: `holdfast worker` starts this program "
                    "(metrics.listen)\n",
                    stderr);
        return HF_EXIT_USAGE;
    }
    bound_memory();
    if (uv_loop_init(&s.loop) != 0 || start(&s) != HF_OK) {
        (void)fputs("holdfast-metrics: it cannot serve\n", stderr);
        return HF_EXIT_SYSTEM;
    }
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    return HF_EXIT_OK; /* the kernel closes what is open */
}
