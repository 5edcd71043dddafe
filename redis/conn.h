/* conn.h - the inside of a client, and how its connection ends. The files of a client
 * call only those below them:
 *
 *   client.c   its life, its events, and work that is deferred to `soon`
 *   connect.c  from nothing to a connection: Sentinels, names, addresses, deadlines,
 *              back-off
 *   greet.c    from a connection to READY: login, database, properties of the server
 *   request.c  requests, answers and their deadlines
 *   conn.c     the end of a connection
 *
 * No callback of the user runs inside a call of the user: `soon`, an idle handle, does
 * the work that such a call causes. While an idle handle is active the loop does not
 * wait, wherever in its turn it was started; a prepare handle would miss the work of
 * another client's prepare handle. */
#ifndef HF_REDIS_CONN_H
#define HF_REDIS_CONN_H

#include <uv.h>

#include "base/buf.h"
#include "base/random.h"
#include "redis/client.h"
#include "redis/flight.h"
#include "redis/link.h"
#include "redis/request.h"
#include "redis/resolve.h"
#include "redis/sentinel.h"
#include "redis/server.h"

enum { HF_OLD_IDS_MAX = 8 };

typedef enum hf_client_phase {
    CLIENT_WAIT,    /* for the next try */
    CLIENT_FIND,    /* for the Sentinels to name the primary */
    CLIENT_RESOLVE, /* for the name's addresses */
    CLIENT_CONNECT, /* for one of them to answer */
    CLIENT_GREET,   /* for the answers to our greeting */
    CLIENT_READY,
    CLIENT_DRAIN, /* READONLY was answered: for the other answers, then it is lost */
    CLIENT_CLOSED
} hf_client_phase;

struct hf_client {
    uint32_t magic;
    hf_client_phase phase;
    uv_loop_t *loop; /* borrowed */
    hf_server *redis;
    hf_server_seat seat; /* in the list of that one */
    uint64_t drops;      /* of its address, when this try to connect began */
    hf_sentinel
        *watch;       /* owned; NULL: none, or another connection of its server has it */
    uint64_t answers; /* of the Sentinels, before this try asked them */
    hf_place to;      /* where this try leads; port 0: not known, or a unix socket */
    bool in_vain;     /* it has led to no primary yet */
    char place[HF_URL_PLACE_SIZE]; /* the same for people */
    uint64_t life;                 /* of its server, as of the last READY */
    bool replica_ok, blocks;
    hf_client_event_cb on_event;
    void (*on_push)(hf_client *client, void *arg);
    void *arg;

    uv_idle_t soon;
    uv_idle_cb on_soon; /* of client.c */
    bool lost; /* soon: answer what is in flight, tell the user, and wait for the next try
                */
    hf_err err;
    char detail[HF_DETAIL_SIZE];

    uv_timer_t timer;    /* the end of WAIT, FIND, RESOLVE, CONNECT or GREET */
    uint64_t try_end_ns; /* from the name to READY */
    uint32_t failures;   /* tries since it was READY; in a READY that READONLY led to and
                            that has not lasted: those before it */
    uint64_t ready_ns;   /* when it became READY */
    bool was_idle;       /* when it was lost; no try has failed since */
    hf_rng rng;          /* for jitter */
    hf_resolve *resolve; /* NULL while no look-up runs; one may outlive its try */
    hf_addresses addresses;
    size_t next_address;
    hf_link *link; /* NULL in WAIT, FIND and RESOLVE */

    hf_server_info server;   /* as of the last READY */
    hf_server_info greeting; /* as far as it is known */
    /* Connections of ours that the server may not know to be gone: it could still execute
     * their requests, or send the answer of a blocking call to them. */
    int64_t old_ids[HF_OLD_IDS_MAX];
    size_t n_old_ids;

    hf_flight flight;
    hf_buf out;       /* requests; */
    size_t out_given; /* this many bytes of it have gone to the link */
    uv_timer_t deadline;
    uint64_t deadline_ns;       /* the time of that timer; UINT64_MAX: it does not run */
    bool overdue;               /* a deadline has passed; one last look at the socket */
    const hf_script *repairing; /* being loaded after NOSCRIPT */
    hf_err load_err;            /* why the last one could not be loaded */
    char load_why[HF_DETAIL_SIZE];

    unsigned handles; /* on the loop; the client is freed when the last has closed */
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* It takes requests. */
bool hf_conn_is_ready(const hf_client *client);
/* It is ready, or waits for answers in CLIENT_DRAIN. */
bool hf_conn_was_ready(const hf_client *client);
/* The rest of the work is done at the end of this turn of the loop. */
void hf_conn_soon(hf_client *client);
/* The connection, or the try to get one, has come to its end. */
void hf_conn_lose(hf_client *client, hf_err err, const char *why);
/* READY ends. hf_conn_drained() ends the connection when nothing is in flight. */
void hf_conn_drain(hf_client *client, hf_err err, const char *why);
void hf_conn_drained(hf_client *client);
void hf_conn_drop_link(hf_client *client);
/* One of its handles has closed. The last one frees it. */
void hf_conn_handle_closed(void *client);

#endif
