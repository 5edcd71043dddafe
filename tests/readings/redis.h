/* redis.h - what a Redis keeps of a queue or of locks, and what its scripts do. */
#ifndef HF_TESTS_READINGS_REDIS_H
#define HF_TESTS_READINGS_REDIS_H

#include "tests/readings/rule.h"
#include "tests/readings/world.h"

enum { RD_LINES = 3, RD_HOLDS = 8, RD_MACHINES = 12, RD_TOKENS = 1 << 12 };

/* What only the test knows: until when an executed request allows its sender to believe.
 */
typedef struct rd_belief {
    const rd_boot *boot; /* NULL: it allows nothing */
    double until_us;     /* by the clock of this boot */
    rd_us paused_us;     /* how long it had stood still when the request was sent */
} rd_belief;

typedef enum rd_state { RD_FREE, RD_HELD, RD_OVER } rd_state;

typedef struct rd_hold {
    rd_state state;
    uint64_t token, owner;
    bool shared;
    int64_t start, length;
    /* For the test only. */
    rd_belief belief; /* by the requests of this history */
    rd_us renewed, watched;
} rd_hold;

/* A queue, whose holds are its jobs; or the line of a lock. */
typedef struct rd_line {
    rd_clock clock;
    rd_hold holds[RD_HOLDS];
    rd_evidence evidence[RD_MACHINES];
} rd_line;

typedef struct rd_redis {
    bool up;
    unsigned life;
    rd_wall wall;
    int64_t fence;
    uint64_t asked;
    rd_lengths lengths; /* of a queue */
    rd_line lines[RD_LINES];
} rd_redis;

typedef enum rd_verb { RD_READ, RD_TAKE, RD_RENEW, RD_RELEASE } rd_verb;

/* A request, and then its answer. */
typedef struct rd_message {
    rd_verb verb;
    unsigned slot, life;
    uint64_t process;
    const rd_boot *boot;
    int machine; /* its name */
    double sent_us;
    rd_us paused_us;
    unsigned names; /* lines: a bit for each */
    uint64_t token, owner;
    bool shared;
    int64_t length;
    unsigned ack_names; /* 0: no reading comes with it */
    rd_reading ack;
    /* The answer. */
    bool ok, work;
    rd_reading reading; /* without b */
    int64_t after_ms;
} rd_message;

/* What is known of each token, in all histories. */
typedef struct rd_token {
    uint64_t token;
    rd_belief belief;
    rd_us died; /* -1: its process lives */
} rd_token;

/* The figures of a run. */
typedef struct rd_figures {
    uint64_t takeovers, requests, reads;
    uint64_t early;        /* the holder could still believe: never */
    uint64_t early_lost;   /* the same, by a renewal that Redis has lost */
    uint64_t early_paused; /* the same, as its machine was paused */
    uint64_t stuck;        /* times that a lease was not judged for all the patience */
    rd_us earliest;        /* of `early` */
    double process_leases; /* how many processes there were, in longest leases */
    /* Of the takeovers that came when the first three leases were over. */
    uint64_t timed;
    double renewal_sum, renewal_worst; /* leases since the last renewal */
    double death_sum, death_worst;     /* since the death of the holder */
    uint64_t deaths;
    double step_worst; /* since the later one of renewal and step */
} rd_figures;

/* All that the scripts need. */
typedef struct rd_scripts {
    rd_rule rule;
    bool locks;
    rd_us now;        /* true time, for the test only */
    rd_us warm;       /* from then on the lateness of takeovers counts */
    rd_us last_step;  /* of a wall clock; -1: none */
    rd_us patience;   /* for a lease that is neither renewed nor judged */
    rd_token *tokens; /* owned */
    rd_figures figures;
} rd_scripts;

rd_token *rd_token_of(rd_scripts *scripts, uint64_t token);

/* Executes a request. It becomes its answer. */
void rd_execute(rd_scripts *scripts, rd_redis *redis, rd_message *message);

/* What happens to a queue by hand. */
void rd_remove_queue(const rd_scripts *scripts, rd_redis *redis);
void rd_lose_clock(const rd_scripts *scripts, rd_redis *redis); /* its leases stay */

#endif
