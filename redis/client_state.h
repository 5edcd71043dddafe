/* client_state.h - the inside of a client, shared by the files that it is spread over:
 *
 *   client.c   its life, its events, and what is done soon instead of at once
 *   connect.c  from nothing to a connection: names, addresses, deadlines, back-off
 *   greet.c    from a connection to READY: login, database, what the server is
 *   call.c     requests, answers and their deadlines
 *
 * Nothing of the user's is called from inside a call of the user's: whatever such a call
 * brings about is done by `soon`, an idle handle. While one is active the loop does not
 * wait, wherever in its turn it was started; a prepare handle would miss what the prepare
 * handle of another client does. */
#ifndef HF_REDIS_CLIENT_STATE_H
#define HF_REDIS_CLIENT_STATE_H

#include <uv.h>

#include "base/buf.h"
#include "base/random.h"
#include "redis/call.h"
#include "redis/connection.h"
#include "redis/flight.h"
#include "redis/link.h"
#include "redis/resolve.h"
#include "redis/url.h"

enum { HF_OLD_IDS_MAX = 8 };

typedef enum hf_client_phase {
    CLIENT_WAIT,    /* for the next try */
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
    hf_url url;
    hf_tls_opts *tls; /* owned; NULL: the defaults */
    char place[HF_URL_PLACE_SIZE];
    uint32_t connect_timeout_ms, request_timeout_ms;
    bool replica_ok;
    hf_client_event_cb on_event;
    void *arg;

    uv_idle_t soon;
    bool lost; /* soon: answer what is in flight, tell the user, and wait for the next try
                */
    hf_err err;
    char detail[HF_DETAIL_SIZE];

    uv_timer_t timer;    /* the end of WAIT, RESOLVE, CONNECT or GREET */
    uint64_t try_end_ns; /* from the name to READY */
    uint32_t failures;   /* tries since it was READY; in a READY that READONLY led to and
                            that has not lasted: those before it */
    uint64_t ready_ns;   /* when it became READY */
    hf_rng rng;          /* for jitter */
    hf_resolve *resolve; /* NULL while no look-up runs; one may outlive its try */
    hf_addresses addresses;
    size_t next_address;
    hf_link *link; /* NULL in WAIT and RESOLVE */

    hf_server_info server;   /* as of the last READY */
    hf_server_info greeting; /* as far as it is known */
    /* Connections of ours that the server may not know to be gone: it could still execute
     * what they sent, or answer a blocking call to nobody. */
    int64_t old_ids[HF_OLD_IDS_MAX];
    size_t n_old_ids;

    hf_flight flight;
    hf_buf out;       /* requests; */
    size_t out_given; /* so many bytes of it have gone to the link */
    uv_timer_t deadline;
    uint64_t
        deadline_ns; /* what that timer was started for; UINT64_MAX: it does not run */
    bool overdue;    /* a deadline has passed; one last look at the socket */
    const hf_script *repairing; /* being loaded after NOSCRIPT */
    hf_err load_err;            /* why the last one could not be loaded */
    char load_why[HF_DETAIL_SIZE];
    unsigned lacks; /* HF_LACKS_... */

    unsigned handles; /* on the loop; the client is freed when the last has closed */
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* client.c */
void hf_client_soon(hf_client *client);
/* The connection, or the try to get one, has come to its end. */
void hf_client_lose(hf_client *client, hf_err err, const char *why);
/* READY ends. hf_client_drained() ends the connection when nothing is in flight. */
void hf_client_drain(hf_client *client, hf_err err, const char *why);
void hf_client_drained(hf_client *client);
void hf_client_drop_link(hf_client *client);
void hf_client_handle_closed(void *client);

/* connect.c */
void hf_connect_begin(hf_client *client);
void hf_connect_wait(hf_client *client);
void hf_connect_on_timer(uv_timer_t *timer);

/* greet.c: sends the greeting; in the end the client is READY, or lost. */
void hf_greet_begin(hf_client *client);

/* call.c */
enum { HF_NO_DEADLINE = 0 }; /* somebody else watches the time */
HF_MUSTCHECK hf_err hf_call_put(hf_client *client, const hf_call *call,
                                uint32_t timeout_ms);
void hf_call_on_reply(void *client, const redisReply *reply);
void hf_call_flush(hf_client *client);
void hf_call_on_deadline(uv_timer_t *timer);
/* Answers everything that is in flight with HF_UNSURE. */
void hf_call_fail_all(hf_client *client, const char *why);

#endif
