/* world.h - what surrounds the rule of rule.h: true time, chance, clocks, and events.
 *
 * All of it is virtual. True time is in us; nothing that a script or a process does may
 * depend on it. They see Redis's wall clock and the clock of their own boot. */
#ifndef HF_TESTS_READINGS_WORLD_H
#define HF_TESTS_READINGS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

typedef int64_t rd_us; /* true time */

enum { RD_MS = 1000, RD_S = 1000000, RD_BOOTS = 1024 };

/* A wall clock, which is set and slewed. */
typedef struct rd_wall {
    double at_us; /* what it showed */
    rd_us since;  /* at this true time */
    double speed;
} rd_wall;

/* CLOCK_BOOTTIME of one boot of a machine. It cannot be set. It stands still while a
 * virtual machine is paused, and goes on while a machine is suspended. */
typedef struct rd_boot {
    int name; /* what the machine calls itself: it may be another one's name */
    rd_us since;
    double base_us, rate;
    rd_us paused_us, frozen_since; /* of all pauses before; -1: it is not paused */
} rd_boot;

int64_t rd_wall_ms(const rd_wall *wall, rd_us now);
void rd_wall_set(rd_wall *wall, rd_us now, double step_us, double speed);

double rd_boot_us(const rd_boot *boot, rd_us now);
rd_us rd_boot_paused(const rd_boot *boot, rd_us now); /* how long it has stood still */

/* ---- chance ---- */

bool rd_chance(hf_rng *rng, double probability);
unsigned rd_below(hf_rng *rng, unsigned n);
rd_us rd_between(hf_rng *rng, double least,
                 double most); /* even on a logarithmic scale */

/* ---- events ---- */

/* The first event comes first; the heap owns copies of `size` bytes, which begin with the
 * true time of the event. */
typedef struct rd_events {
    char *heap; /* owned */
    size_t size, n, capacity;
} rd_events;

void rd_events_push(rd_events *events, const void *event);
bool rd_events_pop(rd_events *events, void *event); /* false: there is none */
void rd_events_free(rd_events *events);

#endif
