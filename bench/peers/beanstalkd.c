/* beanstalkd.c - a client of beanstalkd, by its protocol: 32 requests in flight on one
 * connection, or spread over several. The client must not be the bottleneck. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/peers/client.h"

enum {
    IN_FLIGHT = 32,
    BUFFER = 32 * 1024, /* more than IN_FLIGHT requests or answers */
    LINE_MAX_BYTES = 256,
    DEFAULT_TTR_S = 10,
    DELAY_S = 1
};

typedef struct wire {
    int fd;
    char out[BUFFER], in[BUFFER];
    size_t out_len, in_start, in_end;
} wire;

typedef struct many {
    uint64_t n, asked, done, since_ns; /* since the warm-up was over */
    void (*ask)(wire *w);
    bool (*finished)(wire *w, const char *line);
} many;

/* ---- the connection ---- */

static wire *open_wire(const peer_args *args)
{
    static wire wires[IN_FLIGHT];
    static size_t opened;
    wire *w = &wires[opened++];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(args->server) >= sizeof address.sun_path)
        peer_fail("the socket's path is too long");
    memcpy(address.sun_path, args->server, strlen(args->server));
    w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (w->fd < 0 || connect(w->fd, (struct sockaddr *)&address, sizeof address) != 0)
        peer_fail(strerror(errno));
    return w;
}

static void put(wire *w, const char *bytes, size_t len)
{
    if (len > sizeof w->out - w->out_len)
        peer_fail("too much in flight");
    memcpy(w->out + w->out_len, bytes, len);
    w->out_len += len;
}

static void put_text(wire *w, const char *text)
{
    put(w, text, strlen(text));
}

static void flush(wire *w)
{
    for (size_t sent = 0; sent < w->out_len;) {
        ssize_t n = send(w->fd, w->out + sent, w->out_len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            peer_fail(strerror(errno));
        sent += n > 0 ? (size_t)n : 0;
    }
    w->out_len = 0;
}

/* Waits for more bytes from the server. */
static void receive(wire *w)
{
    memmove(w->in, w->in + w->in_start, w->in_end - w->in_start);
    w->in_end -= w->in_start;
    w->in_start = 0;
    ssize_t n = recv(w->fd, w->in + w->in_end, sizeof w->in - w->in_end, 0);
    if (n == 0)
        peer_fail("the server has closed the connection");
    if (n < 0 && errno != EINTR)
        peer_fail(strerror(errno));
    w->in_end += n > 0 ? (size_t)n : 0;
}

/* One answer: its line without the end, and the body that a job has. False: it has not
 * come whole. Both stay until receive(). */
static bool answer(wire *w, char line[LINE_MAX_BYTES], const char **body)
{
    const char *start = w->in + w->in_start;
    size_t left = w->in_end - w->in_start;
    const char *end = left > 0 ? memchr(start, '\n', left) : NULL;
    unsigned long long id;
    size_t bytes = 0, len;
    if (end == NULL)
        return false;
    len = (size_t)(end - start);
    if (len < 1 || len > LINE_MAX_BYTES)
        peer_fail("an answer has no end");
    memcpy(line, start, len - 1);
    line[len - 1] = '\0';
    if (sscanf(line, "RESERVED %llu %zu", &id, &bytes) == 2) {
        if (left < len + 1 + bytes + 2)
            return false;
        *body = end + 1;
        bytes += 2;
    }
    w->in_start += len + 1 + bytes;
    return true;
}

static void wait_answer(wire *w, char line[LINE_MAX_BYTES], const char **body)
{
    flush(w);
    while (!answer(w, line, body))
        receive(w);
}

static void expect(const char *line, const char *begin)
{
    if (strncmp(line, begin, strlen(begin)) != 0)
        peer_fail(line);
}

/* ---- messages ---- */

static void put_job(wire *w, uint64_t mark, unsigned delay_s, uint32_t ttr_ms)
{
    char payload[PEER_PAYLOAD + 1], command[64];
    unsigned ttr_s = ttr_ms == 0 ? DEFAULT_TTR_S : (ttr_ms + 999) / 1000;
    (void)snprintf(command, sizeof command, "put 0 %u %u %d\r\n", delay_s, ttr_s,
                   PEER_PAYLOAD);
    peer_payload(payload, mark);
    put_text(w, command);
    put(w, payload, PEER_PAYLOAD);
    put_text(w, "\r\n");
}

static uint64_t id_of(const char *line)
{
    expect(line, "RESERVED ");
    return strtoull(line + strlen("RESERVED "), NULL, 10);
}

static void put_with_id(wire *w, const char *verb, uint64_t id)
{
    char command[64];
    (void)snprintf(command, sizeof command, "%s %" PRIu64 "\r\n", verb, id);
    put_text(w, command);
}

/* ---- many jobs ---- */

/* Takes the answers that have come, and begins as many jobs as they end. */
static void go_on(wire *w, many *m)
{
    char line[LINE_MAX_BYTES];
    const char *body;
    receive(w);
    while (answer(w, line, &body)) {
        if (!m->finished(w, line))
            continue;
        if (++m->done == peer_warm_up(m->n))
            m->since_ns = peer_now_ns();
        if (m->asked < m->n) {
            m->ask(w);
            m->asked++;
        }
    }
    flush(w);
}

/* IN_FLIGHT jobs at a time until n are done. `ask` begins one; `finished` is told each
 * answer and says whether it ends one. */
static void do_many(const peer_args *args, void (*ask)(wire *w),
                    bool (*finished)(wire *w, const char *line))
{
    struct pollfd polled[IN_FLIGHT];
    wire *wires[IN_FLIGHT];
    size_t n_wires = args->connections;
    many m = {.n = args->n, .ask = ask, .finished = finished};
    if (n_wires < 1 || n_wires > IN_FLIGHT)
        peer_fail("expected 1 to 32 connections");
    for (size_t i = 0; i < n_wires; i++) {
        wires[i] = open_wire(args);
        polled[i] = (struct pollfd){.fd = wires[i]->fd, .events = POLLIN};
        for (size_t k = 0; k < IN_FLIGHT / n_wires && m.asked < m.n; k++, m.asked++)
            ask(wires[i]);
        flush(wires[i]);
    }
    while (m.done < m.n) {
        if (n_wires > 1 && poll(polled, (nfds_t)n_wires, -1) < 0)
            peer_fail(strerror(errno));
        for (size_t i = 0; i < n_wires; i++)
            if (n_wires == 1 || polled[i].revents != 0)
                go_on(wires[i], &m);
    }
    peer_say_rate(m.n, m.since_ns);
}

/* ---- producers ---- */

static void ask_put(wire *w)
{
    put_job(w, 0, 0, 0);
}

static bool is_put(wire *w, const char *line)
{
    (void)w;
    expect(line, "INSERTED ");
    return true;
}

static void fill(const peer_args *args)
{
    do_many(args, ask_put, is_put);
}

static void put_alone(wire *w, uint64_t mark, unsigned delay_s, uint32_t ttr_ms)
{
    char line[LINE_MAX_BYTES];
    const char *body;
    put_job(w, mark, delay_s, ttr_ms);
    wait_answer(w, line, &body);
    expect(line, "INSERTED ");
}

static void trickle(const peer_args *args)
{
    wire *w = open_wire(args);
    for (uint64_t i = 0; i < args->n; i++) {
        peer_pause_between();
        put_alone(w, peer_now_ns(), 0, args->ms);
    }
}

/* It counts delays in whole seconds, from when it gets a job. So the jobs are put at
 * random moments, each for one second later. */
static void delay(const peer_args *args)
{
    wire *w = open_wire(args);
    uint64_t gap_us = (uint64_t)args->ms * 1000 / args->n;
    uint64_t next_ns = peer_now_ns();
    for (uint64_t i = 0; i < args->n; i++) {
        uint64_t now_ns = peer_now_ns();
        if (next_ns > now_ns)
            peer_pause_us((next_ns - now_ns) / 1000);
        put_alone(w, peer_wall_ns() + DELAY_S * UINT64_C(1000000000), DELAY_S, 0);
        next_ns += peer_random(2 * gap_us) * 1000;
    }
}

/* ---- workers ---- */

static void ask_reserve(wire *w)
{
    put_text(w, "reserve\r\n");
}

/* A reserved job is deleted; then it is done. */
static bool is_done(wire *w, const char *line)
{
    if (line[0] == 'R') {
        put_with_id(w, "delete", id_of(line));
        return false;
    }
    expect(line, "DELETED");
    return true;
}

static void drain(const peer_args *args)
{
    do_many(args, ask_reserve, is_done);
}

static uint64_t reserve_and_say(wire *w)
{
    char line[LINE_MAX_BYTES];
    const char *body = NULL;
    put_text(w, "reserve\r\n");
    wait_answer(w, line, &body);
    uint64_t now_ns = peer_now_ns(), id = id_of(line);
    peer_say_start(body, now_ns);
    return id;
}

static void work(const peer_args *args)
{
    wire *w = open_wire(args);
    char line[LINE_MAX_BYTES];
    const char *body;
    peer_say_ready();
    for (;;) {
        put_with_id(w, "delete", reserve_and_say(w));
        wait_answer(w, line, &body);
        expect(line, "DELETED");
    }
}

static void hold(const peer_args *args)
{
    wire *w = open_wire(args);
    char line[LINE_MAX_BYTES];
    const char *body;
    peer_say_ready();
    uint64_t id = reserve_and_say(w);
    for (;;) {
        peer_pause_us((uint64_t)args->ms * 500);
        put_with_id(w, "touch", id);
        wait_answer(w, line, &body);
        expect(line, "TOUCHED");
    }
}

int main(int argc, char **argv)
{
    const peer_client client = {.name = "beanstalkd",
                                .fill = fill,
                                .drain = drain,
                                .work = work,
                                .hold = hold,
                                .trickle = trickle,
                                .delay = delay};
    return peer_main(&client, argc, argv);
}
