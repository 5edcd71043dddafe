/* proxy.c - see proxy.h.
 *
 * One thread moves the bytes; the mutex guards everything in the state but the thread
 * itself, and is not held while the thread waits. A write into `wake` ends that wait. */
#include "tests/support/proxy.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unix_socket.h"

enum { PAIRS = 32, FIXED = 3 /* descriptors beside the pairs' */ };
enum { PIECE = 1 << 16, TEXT = 128 };

struct held {
    char *bytes; /* owned */
    size_t len;
};

/* end[0] is the client's side, end[1] the server's; what is read from end[way] goes to
 * the other one. A pair is free when end[0] is -1. */
struct pair {
    int end[2];
    struct held held[2];
    bool losing;     /* its next answer is the one to lose, */
    bool tearing;    /* but for its first half */
    bool keeping[2]; /* what goes that way is kept */
};

struct hf_proxy_state {
    pthread_mutex_t mutex;
    pthread_t thread;
    char server[108];
    int listeners[2]; /* the socket, the port */
    int wake[2];
    struct pair pairs[PAIRS];
    hf_proxy_mode mode[2];
    bool cutting[2];
    size_t left[2]; /* bytes until the cut */
    char lose[TEXT], keep[2][TEXT], delay[TEXT];
    bool tear;         /* lose the second half only */
    unsigned skip;     /* before `lose` and `delay` */
    struct held late;  /* a request that was delayed */
    char answer[TEXT]; /* to it */
    int64_t shift_ms;
    uint64_t bytes[2];
    unsigned connections;
    unsigned cuts;
    bool refuse;
    bool stop;
    char piece[PIECE];
};

static void end_pair(struct pair *p)
{
    for (int way = 0; way < 2; way++) {
        if (p->end[way] >= 0)
            (void)close(p->end[way]);
        free(p->held[way].bytes);
    }
    *p = (struct pair){.end = {-1, -1}};
}

static void put_away(struct held *h, const char *bytes, size_t len)
{
    char *more = realloc(h->bytes, h->len + len);
    if (more == NULL)
        abort();
    memcpy(more + h->len, bytes, len);
    h->bytes = more;
    h->len += len;
}

static bool contains(const char *bytes, size_t len, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; n > 0 && i + n <= len; i++)
        if (memcmp(bytes + i, text, n) == 0)
            return true;
    return false;
}

/* Whether this request is the one, after those that are skipped. */
static bool is_it(struct hf_proxy_state *s, size_t n, const char *text)
{
    if (!contains(s->piece, n, text))
        return false;
    if (s->skip == 0)
        return true;
    s->skip--;
    return false;
}

/* Passes bytes on, up to the cut; false: the connection is to end. */
static bool pass(struct hf_proxy_state *s, struct pair *p, int way, size_t len,
                 const char *bytes)
{
    bool cut = s->cutting[way] && len >= s->left[way];
    if (cut)
        len = s->left[way];
    if (s->cutting[way])
        s->left[way] -= len;
    if (!hf_socket_send(p->end[1 - way], bytes, len))
        return false;
    if (cut) {
        s->cutting[way] = false;
        s->cuts++;
    }
    return !cut;
}

/* A script's answer begins with its status, 0, and the time in ms; for now, and long from
 * now, that has 13 digits. */
static void shift_clock(char *bytes, size_t len, int64_t ms)
{
    static const char before[] = ":0\r\n:";
    enum { BEFORE = sizeof before - 1, DIGITS = 13 };
    for (size_t i = 0; i + BEFORE + DIGITS < len; i++) {
        char digits[DIGITS + 1] = "", *end;
        if (memcmp(bytes + i, before, BEFORE) != 0)
            continue;
        memcpy(digits, bytes + i + BEFORE, DIGITS);
        int64_t now = strtoll(digits, &end, 10);
        if (end != digits + DIGITS || bytes[i + BEFORE + DIGITS] != '\r')
            continue;
        (void)snprintf(digits, sizeof digits, "%013" PRId64, now + ms);
        memcpy(bytes + i + BEFORE, digits, DIGITS);
    }
}

static void move(struct hf_proxy_state *s, struct pair *p, int way)
{
    ssize_t n = read(p->end[way], s->piece, PIECE);
    if (n <= 0) {
        end_pair(p);
        return;
    }
    s->bytes[way] += (uint64_t)n;
    if (way == PROXY_ANSWERS && s->shift_ms != 0)
        shift_clock(s->piece, (size_t)n, s->shift_ms);
    if (way == PROXY_REQUESTS && is_it(s, (size_t)n, s->lose)) {
        s->lose[0] = '\0';
        p->losing = true;
        p->tearing = s->tear;
    }
    for (int kept = 0; kept < 2; kept++)
        if (way == PROXY_REQUESTS && contains(s->piece, (size_t)n, s->keep[kept])) {
            s->keep[kept][0] = '\0';
            p->keeping[kept] = true;
        }
    if (way == PROXY_REQUESTS && is_it(s, (size_t)n, s->delay)) {
        s->delay[0] = '\0';
        put_away(&s->late, s->piece, (size_t)n);
        end_pair(p);
    } else if (way == PROXY_ANSWERS && p->losing) {
        s->cuts++;
        if (p->tearing)
            (void)hf_socket_send(p->end[0], s->piece, (size_t)n / 2);
        end_pair(p);
    } else if (s->mode[way] == PROXY_HOLD || p->keeping[way]) {
        put_away(&p->held[way], s->piece, (size_t)n);
    } else if (s->mode[way] == PROXY_PASS && !pass(s, p, way, (size_t)n, s->piece)) {
        end_pair(p);
    }
}

static void release(struct hf_proxy_state *s, struct pair *p, int way)
{
    struct held h = p->held[way];
    if (h.len == 0 || s->mode[way] != PROXY_PASS || p->keeping[way])
        return;
    p->held[way] = (struct held){.len = 0};
    if (!pass(s, p, way, h.len, h.bytes))
        end_pair(p);
    free(h.bytes);
}

static void admit(struct hf_proxy_state *s, int listener)
{
    int client = hf_socket_accept(listener);
    int server = s->refuse || client < 0 ? -1 : hf_socket_connect(s->server);
    s->connections++;
    for (int i = 0; server >= 0 && i < PAIRS; i++)
        if (s->pairs[i].end[0] < 0) {
            s->pairs[i] = (struct pair){.end = {client, server}};
            return;
        }
    if (client >= 0)
        (void)close(client);
    if (server >= 0)
        (void)close(server);
}

static void after_poll(struct hf_proxy_state *s, const struct pollfd *fds)
{
    char ignored[16];
    if (fds[0].revents != 0)
        (void)!read(s->wake[0], ignored, sizeof ignored);
    for (int i = 0; i < PAIRS; i++)
        for (int way = 0; way < 2; way++) {
            struct pair *p = &s->pairs[i];
            const struct pollfd *fd = &fds[FIXED + 2 * i + way];
            /* What was held goes first, so that the order is kept. Another thread may
             * have ended the pair while this one waited. */
            if (p->end[way] >= 0)
                release(s, p, way);
            if (p->end[way] >= 0 && fd->fd == p->end[way] && fd->revents != 0)
                move(s, p, way);
        }
    for (int i = 0; i < 2; i++)
        if (fds[1 + i].revents != 0)
            admit(s, s->listeners[i]);
}

static void *serve(void *arg)
{
    struct hf_proxy_state *s = arg;
    (void)pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        struct pollfd fds[FIXED + 2 * PAIRS] = {
            {.fd = s->wake[0], .events = POLLIN},
            {.fd = s->listeners[0], .events = POLLIN},
            {.fd = s->listeners[1], .events = POLLIN}};
        for (int i = 0; i < 2 * PAIRS; i++)
            fds[FIXED + i] =
                (struct pollfd){.fd = s->pairs[i / 2].end[i % 2], .events = POLLIN};
        (void)pthread_mutex_unlock(&s->mutex);
        int ready = poll(fds, FIXED + 2 * PAIRS, -1);
        (void)pthread_mutex_lock(&s->mutex);
        if (ready > 0)
            after_poll(s, fds);
    }
    (void)pthread_mutex_unlock(&s->mutex);
    return NULL;
}

void hf_proxy_start(hf_proxy *p, const char *server)
{
    struct hf_proxy_state *s = calloc(1, sizeof *s);
    uint16_t port = 0;
    hf_tempdir_make(p->dir);
    (void)snprintf(p->socket, sizeof p->socket, "%s/s", p->dir);
    (void)snprintf(p->url, sizeof p->url, "unix://%s", p->socket);
    if (s == NULL || pipe(s->wake) != 0 ||
        (s->listeners[0] = hf_socket_listen(p->socket)) < 0 ||
        (s->listeners[1] = hf_socket_listen_tcp(&port)) < 0) {
        perror(p->socket);
        exit(1);
    }
    (void)snprintf(p->tcp_url, sizeof p->tcp_url, "redis://localhost:%u", (unsigned)port);
    (void)snprintf(s->server, sizeof s->server, "%s", server);
    for (int i = 0; i < PAIRS; i++)
        s->pairs[i].end[0] = s->pairs[i].end[1] = -1;
    p->state = s;
    p->tls.state = NULL;
    const char *tls = getenv("HF_TLS");
    if (tls != NULL && strcmp(tls, "1") == 0) {
        hf_tls_front_start(&p->tls, p->socket);
        (void)snprintf(p->url, sizeof p->url, "%s", p->tls.url);
    }
    if (pthread_mutex_init(&s->mutex, NULL) != 0 ||
        pthread_create(&s->thread, NULL, serve, s) != 0) {
        perror("proxy");
        exit(1);
    }
}

static struct hf_proxy_state *enter(hf_proxy *p)
{
    (void)pthread_mutex_lock(&p->state->mutex);
    return p->state;
}

static void leave(struct hf_proxy_state *s)
{
    (void)!write(s->wake[1], "", 1);
    (void)pthread_mutex_unlock(&s->mutex);
}

void hf_proxy_stop(hf_proxy *p)
{
    if (p->tls.state != NULL)
        hf_tls_front_stop(&p->tls);
    struct hf_proxy_state *s = enter(p);
    s->stop = true;
    leave(s);
    (void)pthread_join(s->thread, NULL);
    for (int i = 0; i < PAIRS; i++)
        end_pair(&s->pairs[i]);
    free(s->late.bytes);
    (void)close(s->listeners[0]);
    (void)close(s->listeners[1]);
    (void)close(s->wake[0]);
    (void)close(s->wake[1]);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
    p->state = NULL;
    hf_tempdir_remove(p->dir);
}

void hf_proxy_shift_clock(hf_proxy *p, int64_t ms)
{
    struct hf_proxy_state *s = enter(p);
    s->shift_ms = ms;
    leave(s);
}

void hf_proxy_set(hf_proxy *p, hf_proxy_way way, hf_proxy_mode mode)
{
    struct hf_proxy_state *s = enter(p);
    s->mode[way] = mode;
    leave(s);
}

void hf_proxy_cut_after(hf_proxy *p, hf_proxy_way way, size_t bytes)
{
    struct hf_proxy_state *s = enter(p);
    s->cutting[way] = true;
    s->left[way] = bytes;
    leave(s);
}

static void lose(hf_proxy *p, const char *text, bool half)
{
    struct hf_proxy_state *s = enter(p);
    (void)snprintf(s->lose, sizeof s->lose, "%s", text);
    s->tear = half;
    leave(s);
}

void hf_proxy_lose_answer(hf_proxy *p, const char *text)
{
    lose(p, text, false);
}

void hf_proxy_tear_answer(hf_proxy *p, const char *text)
{
    lose(p, text, true);
}

void hf_proxy_skip(hf_proxy *p, unsigned n)
{
    struct hf_proxy_state *s = enter(p);
    s->skip = n;
    leave(s);
}

static void keep(hf_proxy *p, hf_proxy_way way, const char *text)
{
    struct hf_proxy_state *s = enter(p);
    (void)snprintf(s->keep[way], sizeof s->keep[way], "%s", text);
    leave(s);
}

void hf_proxy_keep_answer(hf_proxy *p, const char *text)
{
    keep(p, PROXY_ANSWERS, text);
}

void hf_proxy_keep_request(hf_proxy *p, const char *text)
{
    keep(p, PROXY_REQUESTS, text);
}

void hf_proxy_delay(hf_proxy *p, const char *text)
{
    struct hf_proxy_state *s = enter(p);
    (void)snprintf(s->delay, sizeof s->delay, "%s", text);
    leave(s);
}

bool hf_proxy_delayed(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    bool delayed = s->late.len > 0;
    leave(s);
    return delayed;
}

const char *hf_proxy_deliver(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    int server = s->late.len == 0 ? -1 : hf_socket_connect(s->server);
    s->answer[0] = '\0';
    if (server >= 0 && hf_socket_send(server, s->late.bytes, s->late.len)) {
        ssize_t n = read(server, s->answer, sizeof s->answer - 1);
        s->answer[n < 0 ? 0 : n] = '\0';
    }
    if (server >= 0)
        (void)close(server);
    free(s->late.bytes);
    s->late = (struct held){.len = 0};
    leave(s);
    return s->answer;
}

void hf_proxy_let_go(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    for (int i = 0; i < PAIRS; i++)
        s->pairs[i].keeping[0] = s->pairs[i].keeping[1] = false;
    leave(s);
}

static unsigned kept(hf_proxy *p, hf_proxy_way way)
{
    unsigned n = 0;
    struct hf_proxy_state *s = enter(p);
    for (int i = 0; i < PAIRS; i++)
        n += s->pairs[i].keeping[way] && s->pairs[i].held[way].len > 0;
    leave(s);
    return n;
}

unsigned hf_proxy_kept(hf_proxy *p)
{
    return kept(p, PROXY_ANSWERS);
}

bool hf_proxy_keeps_request(hf_proxy *p)
{
    return kept(p, PROXY_REQUESTS) > 0;
}

void hf_proxy_move(hf_proxy *p, const char *server)
{
    struct hf_proxy_state *s = enter(p);
    (void)snprintf(s->server, sizeof s->server, "%s", server);
    leave(s);
}

void hf_proxy_close_all(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    for (int i = 0; i < PAIRS; i++)
        end_pair(&s->pairs[i]);
    leave(s);
}

void hf_proxy_refuse(hf_proxy *p, bool refuse)
{
    struct hf_proxy_state *s = enter(p);
    s->refuse = refuse;
    leave(s);
}

uint64_t hf_proxy_bytes(hf_proxy *p, hf_proxy_way way)
{
    struct hf_proxy_state *s = enter(p);
    uint64_t bytes = s->bytes[way];
    leave(s);
    return bytes;
}

unsigned hf_proxy_connections(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    unsigned n = s->connections;
    leave(s);
    return n;
}

unsigned hf_proxy_cuts(hf_proxy *p)
{
    struct hf_proxy_state *s = enter(p);
    unsigned n = s->cuts;
    leave(s);
    return n;
}
