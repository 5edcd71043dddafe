/* http.h - HTTP: libmicrohttpd inside libuv's loop, with the bounds that it lacks.
 *
 * Everything happens on the loop's thread. A connection has one request at a time. A
 * request that is not whole in 5 s, an answer that is not read in 30 s, and a connection
 * that is idle for 10 s end. Above 112 connections a new one ends the oldest that is no
 * stream. */
#ifndef HF_DASHBOARD_HTTP_H
#define HF_DASHBOARD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/buf.h"
#include "holdfast/error.h"

enum {
    HF_HTTP_TARGET_MAX = 2048,  /* bytes of a path with its query */
    HF_HTTP_BODY_MAX = 1 << 16, /* of a request */
    HF_HTTP_CONNECTIONS = 112,
    HF_HTTP_HEADERS = 6 /* that an answer adds to those of every answer */
};

typedef struct hf_http hf_http;
typedef struct hf_conn hf_conn;
typedef struct hf_stream hf_stream;

/* Called with each whole request, which it answers with hf_conn_answer() or
 * hf_conn_stream(), now or later. */
typedef void (*hf_http_cb)(hf_conn *conn, void *arg);

/* fd: a socket that listens, taken over also after a failure; -1: none. HF_NOMEM,
 * HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_http_open(hf_http **out, uv_loop_t *loop, int fd, hf_http_cb cb,
                                 void *arg);
/* Ends all connections. No request may be unanswered but those whose answer will not
 * come. The loop has to turn once more. NULL is fine. */
void hf_http_close(hf_http *http);

/* Serves a connected socket, which it takes over. */
void hf_http_serve(hf_http *http, int fd);

/* ---- a request: all text is borrowed until it is answered ---- */

void *hf_conn_arg(const hf_conn *conn); /* that of hf_http_open() */
const char *hf_conn_method(const hf_conn *conn);
const char *hf_conn_target(const hf_conn *conn); /* the path and the query, as sent */
const char *hf_conn_header(const hf_conn *conn, const char *name); /* NULL: none */
/* Whether the header was sent more than once. */
bool hf_conn_repeats(const hf_conn *conn, const char *name);
const hf_buf *hf_conn_body(const hf_conn *conn);
/* Whether the peer is this machine, by a unix socket or the loopback address. */
bool hf_conn_is_local(const hf_conn *conn);

/* ---- its answer ---- */

typedef struct hf_http_header {
    const char *name, *value;
} hf_http_header;

typedef struct hf_http_answer {
    unsigned status;
    const char *type; /* of the body; NULL: there is none */
    const void *body;
    size_t len;
    bool is_static; /* the body lives for ever; else it is copied */
    bool keep;      /* a browser may keep it, and asks whether it has changed */
    hf_http_header headers[HF_HTTP_HEADERS]; /* up to the first without a name */
} hf_http_answer;

void hf_conn_answer(hf_conn *conn, const hf_http_answer *answer);

/* An answer without an end. `fill` adds the next piece to `out`; false: there is nothing
 * now, and it is asked again after hf_stream_wake(). `gone`: its reader has left,
 * and the stream does not exist. NULL: no memory, and the request is still to be
 * answered. */
typedef struct hf_stream_source {
    bool (*fill)(hf_buf *out, void *arg);
    void (*gone)(void *arg);
    void *arg;
} hf_stream_source;

hf_stream *hf_conn_stream(hf_conn *conn, const char *type,
                          const hf_stream_source *source);
void hf_stream_wake(hf_stream *stream);
void hf_stream_end(hf_stream *stream); /* after what was filled already */

#endif
