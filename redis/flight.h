/* flight.h - the requests of a connection that wait for an answer, in the order in which
 * they were made: Redis answers in that order, so the oldest is always the next. */
#ifndef HF_REDIS_FLIGHT_H
#define HF_REDIS_FLIGHT_H

#include "redis/request.h"

enum { HF_FLIGHT_MAX = 1 << 16 };

typedef struct hf_flight_item {
    hf_answer_cb cb;
    void *arg;
    const hf_script *script; /* NULL: a command */
    uint64_t sent_ns;
    uint64_t deadline_ns; /* UINT64_MAX: none */
} hf_flight_item;

/* A ring. All zero is empty. */
typedef struct hf_flight {
    hf_flight_item *items; /* owned */
    size_t cap;            /* a power of two, or 0 */
    size_t head, n;
} hf_flight;

void hf_flight_done(hf_flight *flight);

/* HF_NOMEM, also when HF_FLIGHT_MAX are waiting. */
HF_MUSTCHECK hf_err hf_flight_push(hf_flight *flight, const hf_flight_item *item);

/* Takes the oldest out; false: there is none. */
bool hf_flight_pop(hf_flight *flight, hf_flight_item *out);

/* The earliest deadline of all; UINT64_MAX if there is none. */
uint64_t hf_flight_deadline_ns(const hf_flight *flight);

#endif
