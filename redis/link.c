/* link.c - redis/link.h. The only file that knows both hiredis and libuv.
 *
 * With TLS, bytes pass through hf_tls on their way from the socket to the parser, and
 * from the writer to the socket. At most HF_TLS_SEALED_MAX and a little is sealed and not
 * sent; hf_link_write() takes no more until the socket has taken it. */
#include "redis/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

enum {
    READ_SIZE = 16 << 10,
    READS_MAX = 16,       /* before other handles get their turn */
    IDLE_BUFFER = 1 << 20 /* kept by the parser between large answers */
};

typedef enum link_state { CONNECTING, SHAKING, OPEN, LOST, DROPPED } link_state;

struct hf_link {
    uv_poll_t poll;
    redisReader *parser; /* owned */
    hf_link_tls secure;  /* host NULL: plain */
    hf_tls *tls;         /* owned; NULL: plain, or not connected yet */
    int fd;              /* owned */
    const hf_link_hooks *hooks;
    void *owner;
    link_state state;
    bool full;   /* the socket took less than it was given; waiting for room */
    bool broken; /* a write has failed; the reading side will find the end */
    int events;  /* what is polled for */
};

static void on_poll(uv_poll_t *poll, int status, int events);

/* The socket has nothing, or takes nothing, for now. */
static bool is_for_now(int code)
{
    return code == EAGAIN || code == EWOULDBLOCK;
}

static void watch(hf_link *link, int events)
{
    if (link->events == events)
        return;
    link->events = events;
    /* It fails only for a closed handle or a bad mask. */
    HF_ASSERT(uv_poll_start(&link->poll, events, on_poll) == 0);
}

/* Earlier answers of the other side can still be read, so the reading side finds the end,
 * behind the last answer. */
static void write_failed(hf_link *link)
{
    link->broken = true;
    shutdown(link->fd, SHUT_RDWR);
    watch(link, UV_READABLE);
}

/* How many bytes the socket has taken. After 0 it is full, or broken, or was interrupted.
 */
static size_t send_some(hf_link *link, const char *data, size_t len)
{
    ssize_t n = send(link->fd, data, len, MSG_NOSIGNAL);
    if (n >= 0)
        return (size_t)n;
    if (is_for_now(errno)) {
        link->full = true;
        watch(link, UV_READABLE | UV_WRITABLE);
    } else if (errno != EINTR) {
        write_failed(link);
    }
    return 0;
}

static void tell_lost(hf_link *link, hf_err err, const char *why)
{
    link->state = LOST;
    link->hooks->on_lost(link->owner, err, why);
}

/* Sends what TLS has sealed, until the socket is full or broken. */
static void send_sealed(hf_link *link)
{
    hf_bytes sealed = hf_tls_sealed(link->tls);
    while (sealed.len > 0 && !link->full && !link->broken) {
        hf_tls_sent(link->tls, send_some(link, sealed.ptr, sealed.len));
        sealed = hf_tls_sealed(link->tls);
    }
}

/* Decrypts the received bytes, and continues the handshake. Inlined, it would take stack
 * from plain connections as well. */
__attribute__((noinline)) static const char *feed_sealed(hf_link *link, const char *bytes,
                                                         size_t len)
{
    char clear[READ_SIZE];
    size_t n;
    hf_tls_feed(link->tls, bytes, len);
    while ((n = hf_tls_read(link->tls, clear, sizeof clear)) > 0)
        if (redisReaderFeed(link->parser, clear, n) != REDIS_OK)
            return link->parser->errstr;
    send_sealed(link);
    return hf_tls_err(link->tls) == HF_OK ? NULL : hf_tls_why(link->tls);
}

static const char *feed(hf_link *link, const char *bytes, size_t len)
{
    if (link->tls != NULL)
        return feed_sealed(link, bytes, len);
    return redisReaderFeed(link->parser, bytes, len) == REDIS_OK ? NULL
                                                                 : link->parser->errstr;
}

static const char *no_more(hf_link *link)
{
    if (link->tls == NULL)
        return "Server closed the connection";
    hf_tls_cut(link->tls);
    return hf_tls_why(link->tls);
}

/* Feeds the parser with what is there. A read that filled the buffer suggests more. The
 * answer is NULL, or why nothing more will come. */
static const char *read_all(hf_link *link)
{
    char bytes[READ_SIZE];
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = recv(link->fd, bytes, sizeof bytes, 0);
        if (n == 0)
            return no_more(link);
        if (n < 0)
            return is_for_now(errno) || errno == EINTR ? NULL : uv_strerror(-errno);
        const char *why = feed(link, bytes, (size_t)n);
        if (why != NULL)
            return why;
        if (n < READ_SIZE)
            return NULL;
    }
    return NULL;
}

/* Hands out every whole answer. False: the bytes are no answer. */
static bool deliver(hf_link *link)
{
    while (link->state == OPEN) {
        void *reply = NULL;
        if (redisReaderGetReply(link->parser, &reply) != REDIS_OK)
            return false;
        if (reply == NULL)
            return true;
        link->hooks->on_reply(link->owner, reply);
        freeReplyObject(reply);
    }
    return true;
}

static hf_err reason(const hf_link *link)
{
    hf_err err = link->tls == NULL ? HF_OK : hf_tls_err(link->tls);
    return err == HF_OK ? HF_CONN : err;
}

static void on_readable(hf_link *link)
{
    const char *why = read_all(link); /* bytes before the end are still answers */
    if (!deliver(link))
        tell_lost(link, HF_PROTO, link->parser->errstr);
    else if (why != NULL && link->state == OPEN)
        tell_lost(link, reason(link), why);
}

static void tell_opened(hf_link *link, hf_err err, const char *why)
{
    link->state = err == HF_OK ? OPEN : LOST;
    link->hooks->on_open(link->owner, err, why);
}

static void on_shaking(hf_link *link)
{
    const char *why = read_all(link);
    if (why != NULL)
        tell_opened(link, reason(link), why);
    else if (hf_tls_is_open(link->tls))
        tell_opened(link, HF_OK, NULL);
    if (link->state == OPEN && !deliver(link))
        tell_lost(link, HF_PROTO, link->parser->errstr);
}

static void on_connected(hf_link *link)
{
    int code = 0;
    socklen_t len = sizeof code;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
        code = errno;
    if (code != 0) {
        tell_opened(link, HF_CONN, uv_strerror(-code));
        return;
    }
    watch(link, UV_READABLE);
    char detail[HF_DETAIL_SIZE] = "";
    const hf_link_tls *secure = &link->secure;
    hf_err err = secure->host == NULL
                     ? HF_OK
                     : hf_tls_open(&link->tls, secure->opts, secure->host, detail);
    if (link->tls == NULL) {
        tell_opened(link, err, detail);
        return;
    }
    link->state = SHAKING;
    send_sealed(link);
}

/* The socket has room again. */
static void on_writable(hf_link *link)
{
    link->full = false;
    if (link->tls != NULL)
        send_sealed(link);
    if (link->state == OPEN && !link->full)
        link->hooks->on_room(link->owner);
    if ((link->state == OPEN || link->state == SHAKING) && !link->full)
        watch(link, UV_READABLE);
}

/* After an error libuv names no events and polls no more. The socket is read and written
 * all the same, until its end is found behind the last answer. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    hf_link *link = poll->data;
    if (status < 0) {
        events = link->events;
        link->events = 0;
        watch(link, events);
    }
    if (link->state == CONNECTING) {
        on_connected(link);
        return;
    }
    if (link->state == OPEN && (events & UV_READABLE))
        on_readable(link);
    else if (link->state == SHAKING && (events & UV_READABLE))
        on_shaking(link);
    if ((link->state == OPEN || link->state == SHAKING) && link->full &&
        (events & UV_WRITABLE))
        on_writable(link);
}

/* Nothing comes out of TLS although all it had was sent: it has failed, maybe behind an
 * answer whose callback writes this. The reading side tells why. */
static size_t write_sealed(hf_link *link, const char *data, size_t len)
{
    size_t taken = 0;
    while (taken < len && link->state == OPEN && !link->full && !link->broken) {
        size_t n = hf_tls_write(link->tls, data + taken, len - taken);
        taken += n;
        send_sealed(link);
        if (n == 0)
            write_failed(link);
    }
    return taken;
}

size_t hf_link_write(hf_link *link, const char *data, size_t len)
{
    if (link->tls != NULL)
        return write_sealed(link, data, len);
    size_t taken = 0;
    while (taken < len && link->state == OPEN && !link->full && !link->broken)
        taken += send_some(link, data + taken, len - taken);
    return taken;
}

/* A request waits for its answer, never for the next request to share a packet with. And
 * a connection on which one waits for long is looked after by the kernel: when the other
 * side has gone without a word, the wait ends within half a minute. */
static bool set_up_tcp(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 15},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3}};
    for (size_t i = 0; i < HF_COUNT(options); i++)
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                       sizeof options[i].value) != 0)
            return false;
    return true;
}

/* A socket that is on its way to the address, or a negative number of libuv's. */
static int start_to_connect(const hf_address *address)
{
    int fd =
        socket(address->any.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (address->any.ss_family != AF_UNIX && !set_up_tcp(fd))
        goto fail;
    if (connect(fd, (const struct sockaddr *)&address->any, address->len) == 0 ||
        errno == EINPROGRESS)
        return fd;
fail:;
    int code = -errno;
    close(fd);
    return code;
}

static hf_err refuse(char *detail, hf_err err, const char *why)
{
    snprintf(detail, HF_DETAIL_SIZE, "%s", why);
    return err;
}

static void end(hf_link *link)
{
    redisReaderFree(link->parser);
    hf_tls_free(link->tls);
    close(link->fd);
    free(link);
}

hf_err hf_link_open(hf_link **out, uv_loop_t *loop, const hf_address *address,
                    const hf_link_tls *tls, const hf_link_hooks *hooks, void *owner,
                    char detail[HF_DETAIL_SIZE])
{
    int fd = start_to_connect(address);
    if (fd < 0)
        return refuse(detail, HF_CONN, uv_strerror(fd));
    hf_link *link = calloc(1, sizeof *link);
    redisReader *parser = link == NULL ? NULL : redisReaderCreate();
    if (parser == NULL) {
        free(link);
        close(fd);
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    }
    parser->maxbuf = IDLE_BUFFER;
    *link = (hf_link){.parser = parser,
                      .secure = tls == NULL ? (hf_link_tls){NULL, NULL} : *tls,
                      .fd = fd,
                      .hooks = hooks,
                      .owner = owner,
                      .state = CONNECTING};
    int code = uv_poll_init(loop, &link->poll, fd);
    if (code != 0) {
        end(link);
        return refuse(detail, HF_SYSTEM, uv_strerror(code));
    }
    link->poll.data = link;
    watch(link, UV_WRITABLE);
    *out = link;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    hf_link *link = handle->data;
    const hf_link_hooks *hooks = link->hooks;
    void *owner = link->owner;
    end(link);
    hooks->on_closed(owner);
}

void hf_link_drop(hf_link *link)
{
    HF_ASSERT(link->state != DROPPED);
    if (link->tls != NULL && link->state == OPEN) {
        hf_tls_close(link->tls); /* if the socket takes it at once */
        send_sealed(link);
    }
    link->state = DROPPED;
    /* The parser may be at work further up the stack: its memory goes when nothing runs.
     */
    uv_close((uv_handle_t *)&link->poll, on_closed);
}

bool hf_link_is_shaking(const hf_link *link)
{
    return link->state == SHAKING;
}
