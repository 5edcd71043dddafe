/* proxy.h - stands between the code under test and a real server, and loses things.
 *
 * It listens on a unix socket of its own and at a TCP port of 127.0.0.1, and passes bytes
 * to the server's socket. hf_proxy_move() makes it a service address that leads to
 * another server from then on, while the connections that exist stay where they are. What
 * it does can be changed at any moment, from the test's thread. An answer that was lost
 * after its request was executed is the case that matters most: hf_proxy_lose_answer().
 *
 *     hf_proxy_start(&proxy, redis.socket);
 *     ... the client connects to proxy.url ...
 *     hf_proxy_lose_answer(&proxy, hf_lua_queue_complete.sha1);
 *     ... the client's complete is executed, and its answer never comes ... */
#ifndef HF_TESTS_PROXY_H
#define HF_TESTS_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/tempdir.h"
#include "tests/support/tls_front.h"

typedef enum hf_proxy_way { PROXY_REQUESTS, PROXY_ANSWERS } hf_proxy_way;

typedef enum hf_proxy_mode {
    PROXY_PASS, /* and what was held goes on its way */
    PROXY_HOLD, /* keep it, in its order, until PASS */
    PROXY_DROP  /* read it and forget it */
} hf_proxy_mode;

struct hf_proxy_state;

typedef struct hf_proxy {
    char dir[HF_TEMPDIR_SIZE];
    char socket[HF_TEMPDIR_SIZE + 8];
    char url[HF_TEMPDIR_SIZE + 32]; /* with HF_TLS=1 in the environment: by TLS */
    char tcp_url[48];               /* by the name localhost */
    hf_tls_front tls;               /* its state is NULL without HF_TLS=1 */
    struct hf_proxy_state *state;   /* owned */
} hf_proxy;

/* `server` is the path of the server's socket. Ends the test program on failure. */
void hf_proxy_start(hf_proxy *p, const char *server);
void hf_proxy_stop(hf_proxy *p);

/* What happens from now on to one direction of every connection. */
void hf_proxy_set(hf_proxy *p, hf_proxy_way way, hf_proxy_mode mode);

/* After `bytes` more bytes that way, counted over all connections, the connection that
 * carries them is closed on both sides. Once. */
void hf_proxy_cut_after(hf_proxy *p, hf_proxy_way way, size_t bytes);

/* The next request that contains the text (in one piece, as one write sends it) is passed
 * on; as soon as the server has answered anything, the connection is closed without it.
 * Once. */
void hf_proxy_lose_answer(hf_proxy *p, const char *text);

/* The same, but the first half of what the server answers still comes. */
void hf_proxy_tear_answer(hf_proxy *p, const char *text);
/* This many requests that contain the text of the call above, or of hf_proxy_delay(),
 * pass untouched before. */
void hf_proxy_skip(hf_proxy *p, unsigned n);

/* The next request that contains the text is passed on; what its connection is answered
 * from then on is kept until hf_proxy_let_go(), while others are served. Once. */
void hf_proxy_keep_answer(hf_proxy *p, const char *text);
/* The same for requests: the next one that contains the text is kept, and what its
 * connection asks after it. Once. */
void hf_proxy_keep_request(hf_proxy *p, const char *text);
void hf_proxy_let_go(hf_proxy *p);
bool hf_proxy_keeps_request(hf_proxy *p);
/* How many connections have answers that are kept. */
unsigned hf_proxy_kept(hf_proxy *p);

/* The next request that contains the text is not passed on, and its connection is closed.
 * hf_proxy_deliver() then sends it to the server on a connection of its own, and gives
 * the beginning of the answer: "" if there was none, or no such request. Once. */
void hf_proxy_delay(hf_proxy *p, const char *text);
bool hf_proxy_delayed(hf_proxy *p); /* it came, and was not delivered yet */
const char *hf_proxy_deliver(hf_proxy *p);

/* From now on what scripts answer as Redis's time is this much later. */
void hf_proxy_shift_clock(hf_proxy *p, int64_t ms);

/* New connections go to this server. */
void hf_proxy_move(hf_proxy *p, const char *server);

/* Closes every connection now. */
void hf_proxy_close_all(hf_proxy *p);

/* While true, new connections are closed as soon as they are made. */
void hf_proxy_refuse(hf_proxy *p, bool refuse);

/* Since the start: bytes that came in that way, and connections made. */
uint64_t hf_proxy_bytes(hf_proxy *p, hf_proxy_way way);
unsigned hf_proxy_connections(hf_proxy *p);
/* How many cuts and lost answers have happened. */
unsigned hf_proxy_cuts(hf_proxy *p);

#endif
