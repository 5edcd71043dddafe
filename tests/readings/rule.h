/* rule.h - the rule "readings by machine": when a lease is over, whatever Redis's clock
 * does. This is a model of what the scripts do, without Redis.
 *
 * The rule. A line (a queue, or the line of a lock) has a clock H. Only readings move it,
 * and nothing sets it back. A lease begins at max(now, H). A reading is a number c above
 * H and above every start that is there; then H = c. The asker notes b, its
 * CLOCK_BOOTTIME, when it has the answer, and the next request of its machine stores
 * (c, b). A lease of length L is over when the asker's machine has a reading with
 * c > start and t - b >= L, where t is its CLOCK_BOOTTIME before it sends the request.
 *
 * The proof. Let r be the last executed renewal of a lease, with the start s, and let the
 * step q find the lease over by (c, b), which step p gave out.
 *  1. p came after r: a renewal after p starts at H >= c or later, but s < c.
 *  2. No renewal lies between r and q, because Redis executes one script at a time, and q
 *     sees s.
 *  3. The asker noted b after p, and t before q. Between r and q at least t - b >= L has
 *     passed by the clock of one machine.
 *  4. The holder sent that renewal before r. It believes until 0.99 L later, by the clock
 *     of its own machine. If the two clocks agree to 1 %, its belief is over at q.
 * Redis's wall clock does not occur. A request that is late, lost, stopped or executed
 * twice only makes b later or t earlier.
 *  5. If Redis goes back to an older state, leases and readings go back together, and
 *     steps 1 to 3 hold for the history that is left. A reading that is not stored yet
 *     may be of the history that is lost: its asker drops it with its connection. A
 *     renewal that is lost proves nothing, so its holder may believe too long.
 *  6. If a line ends, its clock is lost. The next line of that name has another birth.
 *     No reading from before that birth counts. */
#ifndef HF_TESTS_READINGS_RULE_H
#define HF_TESTS_READINGS_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum { RD_READINGS = 32, RD_LENGTHS = 3 };

/* The rule with a part left out. */
typedef enum rd_break {
    RD_SOUND,
    RD_READINGS_MOVE_NOTHING, /* readings do not move the clock of the line */
    RD_CLOCK_FOLLOWS,         /* the clock of the line goes back with Redis's */
    RD_CLOCK_STALLS,          /* it stands still while Redis's is behind it */
    RD_START_IGNORED,         /* readings are not compared with the start */
    RD_STARTS_AHEAD,          /* a reading need not be past the starts that are there */
    RD_WALL_ENDS,             /* leases end by Redis's clock */
    RD_NOTED_BEFORE,          /* b is taken before the request is sent */
    RD_ONE_LENGTH,            /* all leases of a queue have the shortest length */
    RD_LENGTH_FORGOTTEN,      /* a length is forgotten when its worker is gone */
    RD_RENEWAL_SHORTENS,      /* a hold is as long as its last renewal asked for */
    RD_FORGETS_MIDDLE,        /* a full list keeps its ends, not the next to ripen */
    RD_BIRTH_IGNORED,         /* readings of an earlier line of that name count */
    RD_BIRTH_ABOVE,           /* readings of a queue with a higher birth count */
    RD_OLD_BOOT_STAYS,        /* readings of an earlier boot keep new ones out */
} rd_break;

/* Against machines that share a name but no clock. */
typedef enum rd_guard {
    RD_NO_GUARD,
    RD_ROUGH_GUARD, /* Redis's clock says at least 7/8 of the age, less 1 s */
    RD_BOTH_CLOCKS, /* a reading is as old as the smaller age by two clocks */
} rd_guard;

typedef struct rd_rule {
    rd_break broken;
    rd_guard guard;
} rd_rule;

typedef struct rd_reading {
    int64_t clock;   /* c */
    int64_t boot_ms; /* b, rounded up */
    int64_t wall_ms; /* Redis's TIME of the answer */
    int64_t witness; /* of a queue its birth; of a lock a fence given out by then */
} rd_reading;

/* What one machine has read: from the oldest on, both clocks rising. One more while it is
 * stored. */
typedef struct rd_evidence {
    int machine;
    int64_t until_ms; /* on Redis's clock: then it expires */
    uint64_t asked;   /* the order of use */
    unsigned n;
    rd_reading list[RD_READINGS + 1];
} rd_evidence;

/* The fences of locks rise for ever, because their counter outlives the line. That of a
 * queue is lost with its clock: the next birth is another number, but perhaps a lower
 * one, if Redis's clock was set back. */
typedef struct rd_clock {
    int64_t birth; /* 0: there is no line */
    bool queue;
    int64_t now; /* H, ms */
} rd_clock;

/* The lengths that leases of a queue may have. Of a lock: those of its holds. */
typedef struct rd_lengths {
    unsigned n;
    int64_t ms[RD_LENGTHS];
} rd_lengths;

/* A request, as the script sees it. */
typedef struct rd_asker {
    int64_t now;  /* Redis's TIME, ms */
    int64_t t_ms; /* the boot time before it was sent, rounded down */
} rd_asker;

int64_t rd_shortest(const rd_lengths *lengths);
int64_t rd_longest(const rd_lengths *lengths);

int64_t rd_start(const rd_rule *rule, const rd_clock *line, int64_t now);

/* The next reading. `least`: it is past this. `evidence`: of a queue only; its clock goes
 * on at the usual speed. Does not move the clock, because a reading may be of several
 * lines. */
int64_t rd_next(const rd_rule *rule, const rd_clock *line, const rd_asker *asker,
                int64_t least, const rd_evidence *evidence);
void rd_move(const rd_rule *rule, rd_clock *line, int64_t clock);

/* Readings up to `before` prove nothing more, and only the newest of them stays. */
void rd_store(const rd_rule *rule, const rd_clock *line, rd_evidence *evidence,
              const rd_reading *reading, const rd_lengths *lengths, int64_t before);

/* A hold, whose start and length are known. */
bool rd_hold_over(const rd_rule *rule, const rd_clock *line, const rd_evidence *evidence,
                  const rd_asker *asker, int64_t start, int64_t length);
/* A job, of which only the end is known: its score, start + length. */
bool rd_job_over(const rd_rule *rule, const rd_clock *line, const rd_evidence *evidence,
                 const rd_asker *asker, int64_t end, const rd_lengths *lengths);

/* In how many ms it can be proved that such a lease is over; 0: by no reading yet. */
int64_t rd_hold_after(const rd_rule *rule, const rd_clock *line,
                      const rd_evidence *evidence, const rd_asker *asker, int64_t start,
                      int64_t length);
int64_t rd_job_after(const rd_rule *rule, const rd_clock *line,
                     const rd_evidence *evidence, const rd_asker *asker, int64_t end,
                     const rd_lengths *lengths);

/* How often a process reads while it has anything to wait for. Each request stores what
 * the one before has read. */
int64_t rd_every_ms(const rd_lengths *lengths);

#endif
