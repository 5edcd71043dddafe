/* client.h - what the clients in C of this folder share. Each is one program with the
 * same verbs, which README.md beside this file describes. */
#ifndef HF_BENCH_PEERS_CLIENT_H
#define HF_BENCH_PEERS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

/* A job's payload: a mark of this many digits, then filling. */
enum { PEER_PAYLOAD = 100, PEER_MARK = 20 };

typedef struct peer_args {
    const char *server; /* the path of a unix socket */
    uint64_t n;         /* jobs */
    uint32_t ms;        /* a lease; of `delay`, how long jobs go on to be due */
    size_t connections; /* of fill and drain, where a client can use several */
} peer_args;

/* The parts of each client. A verb returns when its work is done; those of workers (work,
 * hold) do not return. A verb that cannot continue calls peer_fail(). */
typedef struct peer_client {
    const char *name;
    void (*fill)(const peer_args *args);
    void (*drain)(const peer_args *args);
    void (*work)(const peer_args *args);
    void (*hold)(const peer_args *args);
    void (*trickle)(const peer_args *args);
    void (*delay)(const peer_args *args);
} peer_client;

/* What main() of each client does. Returns its exit status. */
int peer_main(const peer_client *client, int argc, char **argv);

/* Says why on standard error and ends the process. */
_Noreturn void peer_fail(const char *why);

void peer_payload(char payload[PEER_PAYLOAD + 1], uint64_t mark);

uint64_t peer_now_ns(void);  /* the clock that every language can read: CLOCK_MONOTONIC */
uint64_t peer_wall_ns(void); /* Unix time */

/* This many of n jobs warm up, and are not counted. */
uint64_t peer_warm_up(uint64_t n);

/* Jobs beyond the warm-up took from then until now: one object on standard output. */
void peer_say_rate(uint64_t n, uint64_t since_ns);
/* A worker waits for jobs. */
void peer_say_ready(void);
/* A job with this payload starts, now. From any thread. */
void peer_say_start(const void *payload, uint64_t now_ns);

void peer_pause_us(uint64_t us);
/* A random distance between two jobs that come alone: 2 to 8 ms. */
void peer_pause_between(void);
uint64_t peer_random(uint64_t below);

#endif
