/* world.c - see world.h. */
#include "tests/readings/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t rd_wall_ms(const rd_wall *wall, rd_us now)
{
    return (int64_t)floor((wall->at_us + (double)(now - wall->since) * wall->speed) /
                          RD_MS);
}

void rd_wall_set(rd_wall *wall, rd_us now, double step_us, double speed)
{
    wall->at_us += (double)(now - wall->since) * wall->speed + step_us;
    wall->since = now;
    wall->speed = speed;
}

rd_us rd_boot_paused(const rd_boot *boot, rd_us now)
{
    return boot->paused_us + (boot->frozen_since < 0 ? 0 : now - boot->frozen_since);
}

double rd_boot_us(const rd_boot *boot, rd_us now)
{
    rd_us passed = now - boot->since - rd_boot_paused(boot, now);
    return boot->base_us + (double)passed * boot->rate;
}

bool rd_chance(hf_rng *rng, double probability)
{
    return hf_rng_unit(rng) < probability;
}

unsigned rd_below(hf_rng *rng, unsigned n)
{
    return (unsigned)(hf_rng_next(rng) % n);
}

rd_us rd_between(hf_rng *rng, double least, double most)
{
    return (rd_us)(least * exp(hf_rng_unit(rng) * log(most / least)));
}

static char *at(const rd_events *events, size_t i)
{
    return events->heap + i * events->size;
}

static rd_us time_of(const char *event)
{
    rd_us time;
    memcpy(&time, event, sizeof time);
    return time;
}

void rd_events_push(rd_events *events, const void *event)
{
    if (events->n == events->capacity) {
        events->capacity = events->capacity == 0 ? 64 : 2 * events->capacity;
        events->heap = realloc(events->heap, events->capacity * events->size);
        if (events->heap == NULL)
            abort();
    }
    size_t i = events->n++;
    for (; i > 0 && time_of(at(events, (i - 1) / 2)) > time_of(event); i = (i - 1) / 2)
        memcpy(at(events, i), at(events, (i - 1) / 2), events->size);
    memcpy(at(events, i), event, events->size);
}

bool rd_events_pop(rd_events *events, void *event)
{
    if (events->n == 0)
        return false;
    memcpy(event, events->heap, events->size);
    const char *last = at(events, --events->n);
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= events->n)
            break;
        if (child + 1 < events->n &&
            time_of(at(events, child + 1)) < time_of(at(events, child)))
            child++;
        if (time_of(at(events, child)) >= time_of(last))
            break;
        memcpy(at(events, i), at(events, child), events->size);
        i = child;
    }
    memmove(at(events, i), last, events->size);
    return true;
}

void rd_events_free(rd_events *events)
{
    free(events->heap);
    *events = (rd_events){.size = events->size};
}
