/* flight.c - redis/flight.h. */
#include "redis/flight.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 16 };

void hf_flight_done(hf_flight *flight)
{
    free(flight->items);
    *flight = (hf_flight){.cap = 0};
}

static hf_err grow(hf_flight *flight)
{
    if (flight->n >= HF_FLIGHT_MAX)
        return HF_NOMEM;
    size_t cap = flight->cap == 0 ? FIRST_CAP : flight->cap * 2;
    hf_flight_item *items = malloc(cap * sizeof *items);
    if (items == NULL)
        return HF_NOMEM;
    /* It is full, so it is the part from the head on, and then the part before it. */
    size_t to_end = flight->cap - flight->head;
    if (flight->n > 0) {
        memcpy(items, flight->items + flight->head, to_end * sizeof *items);
        memcpy(items + to_end, flight->items, flight->head * sizeof *items);
    }
    free(flight->items);
    flight->items = items;
    flight->cap = cap;
    flight->head = 0;
    return HF_OK;
}

hf_err hf_flight_push(hf_flight *flight, const hf_flight_item *item)
{
    if (flight->n == flight->cap) {
        hf_err err = grow(flight);
        if (err != HF_OK)
            return err;
    }
    flight->items[(flight->head + flight->n) & (flight->cap - 1)] = *item;
    flight->n++;
    return HF_OK;
}

bool hf_flight_pop(hf_flight *flight, hf_flight_item *out)
{
    if (flight->n == 0)
        return false;
    *out = flight->items[flight->head];
    flight->head = (flight->head + 1) & (flight->cap - 1);
    flight->n--;
    return true;
}

uint64_t hf_flight_deadline_ns(const hf_flight *flight)
{
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < flight->n; i++) {
        const hf_flight_item *item =
            &flight->items[(flight->head + i) & (flight->cap - 1)];
        if (item->deadline_ns < earliest)
            earliest = item->deadline_ns;
    }
    return earliest;
}
