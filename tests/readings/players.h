/* players.h - processes that hold leases and ask for them, and all that happens to them.
 */
#ifndef HF_TESTS_READINGS_PLAYERS_H
#define HF_TESTS_READINGS_PLAYERS_H

#include "tests/readings/redis.h"

/* What happens. */
enum {
    RD_STEPS = 1 << 0,      /* Redis's clock is set and slewed, again and again */
    RD_ONE_STEP = 1 << 1,   /* it is set now and then */
    RD_MESSAGES = 1 << 2,   /* messages are late, lost, or come twice */
    RD_STOPS = 1 << 3,      /* processes are stopped for up to 30 s */
    RD_REBOOTS = 1 << 4,    /* machines start again */
    RD_SUSPENDS = 1 << 5,   /* machines sleep; their clocks go on */
    RD_PAUSES = 1 << 6,     /* virtual machines sleep; their clocks stand still */
    RD_FAILOVERS = 1 << 7,  /* Redis goes back to an older state, on another machine */
    RD_REMOVALS = 1 << 8,   /* the queue is removed, or its clock is lost */
    RD_ROAM = 1 << 9,       /* a process may start on any machine */
    RD_SAME_NAME = 1 << 10, /* a machine keeps its name when it starts again */
    RD_GLITCHES = 1 << 11,  /* Redis's clock is days ahead for less than 1 s */
    RD_EVENTS = 1 << 12,    /* the end of these */
    RD_DAY_BACK = 1 << 12,  /* Redis's clock is set back by a day, once */
};

typedef struct rd_setup {
    bool locks;
    unsigned slots, machines;
    bool alone;    /* all want the same lock, each for itself */
    double life_s; /* of a process; 0: 0.5 to 60 s */
    double gap_s;  /* until another one starts in its place */
    rd_lengths lengths;
    unsigned events;
    double step_s;     /* by how much a clock is set at most; 0: by 1 s to a day */
    unsigned patience; /* leases; 0: 100 */
    double clones_s;   /* all machines have one name, and clocks that are so far apart; 0:
                          no */
    rd_rule rule;
} rd_setup;

/* Until this many takeovers, or until leases are stuck. */
rd_figures rd_play(const rd_setup *setup, uint64_t seed, uint64_t takeovers);

#endif
