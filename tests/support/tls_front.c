/* tls_front.c - see tls_front.h. A thread for each connection, which ends with it. */
#include "tests/support/tls_front.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/certs.h"
#include "tests/support/tempdir.h"
#include "tests/support/tls_peer.h"
#include "tests/support/unix_socket.h"

enum { PAIRS = 64, PIECE = 1 << 14 };

struct pair {
    struct hf_tls_front_state *front;
    pthread_t thread;
    bool used, over; /* a thread is to be joined; it has ended */
    int client, server;
};

struct hf_tls_front_state {
    pthread_mutex_t mutex; /* over the pairs and `stop` */
    pthread_t thread;
    int listener;
    bool stop;
    char server[108];
    struct pair pairs[PAIRS];
};

static char certificates[HF_TEMPDIR_SIZE];
static pthread_once_t certificates_once = PTHREAD_ONCE_INIT;

static void remove_certificates(void)
{
    hf_tempdir_remove(certificates);
}

static void make_certificates(void)
{
    hf_tempdir_make(certificates);
    hf_certs_make(certificates);
    char *ca = hf_certs_path(certificates, "ca.pem");
    if (setenv("SSL_CERT_FILE", ca, 1) != 0 || atexit(remove_certificates) != 0) {
        perror("TLS front");
        exit(1);
    }
    free(ca);
}

static bool send_sealed(struct pair *p, hf_tls_peer *peer)
{
    char sealed[PIECE];
    size_t n;
    while ((n = hf_tls_peer_sealed(peer, sealed, sizeof sealed)) > 0)
        if (!hf_socket_send(p->client, sealed, n))
            return false;
    return true;
}

static bool from_client(struct pair *p, hf_tls_peer *peer)
{
    char bytes[PIECE];
    ssize_t got = recv(p->client, bytes, sizeof bytes, 0);
    if (got <= 0)
        return false;
    hf_tls_peer_feed(peer, bytes, (size_t)got);
    size_t n;
    while ((n = hf_tls_peer_read(peer, bytes, sizeof bytes)) > 0)
        if (!hf_socket_send(p->server, bytes, n))
            return false;
    return send_sealed(p, peer) && SSL_get_shutdown(peer->ssl) == 0;
}

static bool from_server(struct pair *p, hf_tls_peer *peer)
{
    char bytes[PIECE];
    ssize_t got = recv(p->server, bytes, sizeof bytes, 0);
    if (got <= 0)
        return false;
    hf_tls_peer_write(peer, bytes, (size_t)got);
    return send_sealed(p, peer);
}

static void *pair_main(void *arg)
{
    struct pair *p = arg;
    hf_tls_peer peer;
    hf_tls_peer_start(&peer, &(hf_tls_peer_opts){.dir = certificates});
    bool going = true;
    while (going) {
        struct pollfd ends[] = {{p->client, POLLIN, 0}, {p->server, POLLIN, 0}};
        if (poll(ends, 2, -1) < 0)
            continue;
        if (ends[0].revents != 0)
            going = from_client(p, &peer);
        if (going && ends[1].revents != 0)
            going = from_server(p, &peer);
    }
    hf_tls_peer_stop(&peer);
    (void)pthread_mutex_lock(&p->front->mutex);
    (void)close(p->client);
    (void)close(p->server);
    p->over = true;
    (void)pthread_mutex_unlock(&p->front->mutex);
    return NULL;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* A place without a thread; NULL: all are taken. */
static struct pair *free_pair(struct hf_tls_front_state *s)
{
    for (size_t i = 0; i < PAIRS; i++) {
        struct pair *p = &s->pairs[i];
        if (p->used && p->over) {
            (void)pthread_join(p->thread, NULL);
            p->used = false;
        }
        if (!p->used)
            return p;
    }
    return NULL;
}

static void begin(struct hf_tls_front_state *s, int client)
{
    int server = connect_to(s->server);
    (void)pthread_mutex_lock(&s->mutex);
    struct pair *p = server < 0 || s->stop ? NULL : free_pair(s);
    if (p != NULL) {
        *p = (struct pair){.front = s, .client = client, .server = server, .used = true};
        p->used = pthread_create(&p->thread, NULL, pair_main, p) == 0;
    }
    if (p == NULL || !p->used) {
        (void)close(client);
        if (server >= 0)
            (void)close(server);
    }
    (void)pthread_mutex_unlock(&s->mutex);
}

static void *accept_main(void *arg)
{
    struct hf_tls_front_state *s = arg;
    int client;
    while ((client = accept(s->listener, NULL, NULL)) >= 0)
        begin(s, client);
    return NULL;
}

void hf_tls_front_start(hf_tls_front *f, const char *server)
{
    uint16_t port = 0;
    struct hf_tls_front_state *s = calloc(1, sizeof *s);
    if (s == NULL || (s->listener = hf_socket_listen_tcp(&port)) < 0) {
        perror("TLS front");
        exit(1);
    }
    (void)pthread_once(&certificates_once, make_certificates);
    (void)snprintf(s->server, sizeof s->server, "%s", server);
    (void)snprintf(f->url, sizeof f->url, "rediss://127.0.0.1:%u", (unsigned)port);
    f->state = s;
    if (pthread_mutex_init(&s->mutex, NULL) != 0 ||
        pthread_create(&s->thread, NULL, accept_main, s) != 0) {
        perror("TLS front");
        exit(1);
    }
}

void hf_tls_front_stop(hf_tls_front *f)
{
    struct hf_tls_front_state *s = f->state;
    (void)pthread_mutex_lock(&s->mutex);
    s->stop = true;
    for (size_t i = 0; i < PAIRS; i++)
        if (s->pairs[i].used && !s->pairs[i].over)
            (void)shutdown(s->pairs[i].client, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->mutex);
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    for (size_t i = 0; i < PAIRS; i++)
        if (s->pairs[i].used)
            (void)pthread_join(s->pairs[i].thread, NULL);
    (void)close(s->listener);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
    f->state = NULL;
}
