/* delay.c - a network that takes time: passes bytes between clients and a unix socket,
 * and delivers each a given time after it was read.
 *
 *     delay --from /path/of/its/socket --to /path/of/the/server [--us N]
 *
 * N is the time of one way, so a round trip takes twice as long. It prints `ready` and
 * works until it is killed. One thread: with N = 0 it costs the same processor time, so
 * the two can be compared. */
#define _GNU_SOURCE /* accept4, ppoll */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/programs/tool.h"

enum { LINKS_MAX = 64, PIECE = 65536, PIECES_MAX = 1024 };

typedef struct piece {
    struct piece *next;
    uint64_t due_ns;
    size_t len, written;
    char data[PIECE];
} piece;

/* One way between two sockets. */
typedef struct way {
    int from, to;
    piece *first, **last;
    size_t n;
    bool ended; /* nothing more comes */
} way;

typedef struct network {
    int listener;
    const char *to;
    uint64_t delay_ns;
    way ways[2 * LINKS_MAX]; /* of a link, two that follow each other */
    size_t n_ways;
} network;

static int unix_socket(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path)
        give_up("delay", "a path is too long");
    memcpy(address->sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        give_up("socket", strerror(errno));
    return fd;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address;
    int fd = unix_socket(path, &address);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, LINKS_MAX) != 0)
        give_up(path, strerror(errno));
    return fd;
}

/* A server that is away ends the program: nothing can be measured. */
static void accept_link(network *net)
{
    struct sockaddr_un address;
    int client = accept4(net->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0 || net->n_ways == 2 * LINKS_MAX)
        give_up("delay", "too many connections");
    int server = unix_socket(net->to, &address);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0)
        give_up(net->to, strerror(errno));
    for (int i = 0; i < 2; i++) {
        way *w = &net->ways[net->n_ways++];
        *w = (way){.from = i == 0 ? client : server, .to = i == 0 ? server : client};
        w->last = &w->first;
    }
}

static void read_piece(network *net, way *w)
{
    piece *p = malloc(sizeof *p);
    if (p == NULL)
        give_up("delay", "out of memory");
    ssize_t len = recv(w->from, p->data, sizeof p->data, MSG_DONTWAIT);
    if (len <= 0) {
        w->ended = len == 0 || errno != EAGAIN;
        free(p);
        return;
    }
    p->next = NULL;
    p->len = (size_t)len;
    p->written = 0;
    p->due_ns = hf_boot_ns() + net->delay_ns;
    *w->last = p;
    w->last = &p->next;
    w->n++;
}

/* Writes what is due, as far as the socket takes it. */
static void write_pieces(way *w, uint64_t now_ns)
{
    while (w->first != NULL && w->first->due_ns <= now_ns) {
        piece *p = w->first;
        ssize_t len = send(w->to, p->data + p->written, p->len - p->written,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        if (len < 0 && errno == EAGAIN)
            return;
        p->written = len < 0 ? p->len : p->written + (size_t)len;
        if (p->written < p->len)
            return;
        w->first = p->next;
        if (w->first == NULL)
            w->last = &w->first;
        w->n--;
        free(p);
    }
    if (w->first == NULL && w->ended)
        (void)shutdown(w->to, SHUT_WR);
}

/* Ends the links of which both ways have ended. */
static void drop_ended(network *net)
{
    for (size_t i = net->n_ways; i >= 2; i -= 2) {
        way *a = &net->ways[i - 2], *b = &net->ways[i - 1];
        if (!a->ended || !b->ended || a->first != NULL || b->first != NULL)
            continue;
        (void)close(a->from);
        (void)close(a->to);
        for (size_t j = 0; j < 2; j++) {
            way *moved = &net->ways[net->n_ways - 2 + j];
            net->ways[i - 2 + j] = *moved;
            if (moved->first == NULL)
                net->ways[i - 2 + j].last = &net->ways[i - 2 + j].first;
        }
        net->n_ways -= 2;
    }
}

/* Waits until a socket can be read, or a piece is due and can be written. */
static void turn(network *net)
{
    struct pollfd fds[2 * LINKS_MAX + 1] = {{.fd = net->listener, .events = POLLIN}};
    uint64_t now_ns = hf_boot_ns(), due_ns = now_ns + 1000 * HF_MS_NS;
    for (size_t i = 0; i < net->n_ways; i++) {
        const way *w = &net->ways[i];
        bool reads = !w->ended && w->n < PIECES_MAX;
        fds[i + 1] = (struct pollfd){.fd = reads ? w->from : -1, .events = POLLIN};
        if (w->first != NULL && w->first->due_ns < due_ns)
            due_ns = w->first->due_ns;
    }
    uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 50000; /* a full socket */
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                            .tv_nsec = (long)(wait_ns % 1000000000)};
    int found = ppoll(fds, (nfds_t)(net->n_ways + 1), &wait, NULL);
    size_t n = net->n_ways;
    for (size_t i = 0; found > 0 && i < n; i++)
        if (fds[i + 1].revents != 0)
            read_piece(net, &net->ways[i]);
    now_ns = hf_boot_ns();
    for (size_t i = 0; i < n; i++)
        write_pieces(&net->ways[i], now_ns);
    drop_ended(net);
    if (found > 0 && fds[0].revents != 0)
        accept_link(net);
}

int main(int argc, char **argv)
{
    static network net;
    const char *from = NULL;
    uint32_t us = 0;
    const option_spec specs[] = {
        {"from", &from, NULL}, {"to", &net.to, NULL}, {"us", NULL, &us}, {0}};
    if (read_options(argc, argv, specs) != argc || from == NULL || net.to == NULL)
        misused("--from PATH --to PATH [--us N]");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* ns; else 50 us late */
    net.delay_ns = us * (uint64_t)1000;
    net.listener = listen_at(from);
    printf("ready\n");
    (void)fflush(stdout);
    for (;;)
        turn(&net);
}
