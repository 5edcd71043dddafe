/* parts.h - the parts of a history: the beliefs of the players, the steps of the server,
 * the writes to the file. See history.h. */
#ifndef HF_TESTS_HISTORY_PARTS_H
#define HF_TESTS_HISTORY_PARTS_H

#include "holdfast/lock.h"
#include "tests/history/history.h"
#include "tests/history/table.h"

enum { HF_NAMES_TEXT = 256 };

void hf_broken(hf_report *r, hf_rule rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One acquisition, as its process told about it. Times in ns of CLOCK_BOOTTIME; 0: never.
 */
typedef struct hf_hold {
    unsigned player;
    uint64_t id;
    char names[HF_NAMES_TEXT]; /* with commas */
    char mode;                 /* x, s, p */
    unsigned permits, limit, lease_ms;
    char owner[HF_LOCK_OWNER_SIZE];
    uint64_t asked, answered, until, lost, downgraded, release, released;
    uint64_t fence;
    uint64_t wall_us; /* Unix time of the answer, on the clock of fences; 0: not told */
    bool had;         /* it was acquired */
    char err[24], why[24], result[24];
} hf_hold;

typedef struct hf_took {
    char name[HF_LOCK_NAME_MAX + 1]; /* "*": all */
    uint64_t from, to;               /* it happened in between */
} hf_took;

typedef struct hf_disturbed {
    unsigned player; /* 0: all */
    uint64_t from, to;
} hf_disturbed;

typedef struct hf_late {
    unsigned timer; /* each player has two */
    uint64_t from, to;
} hf_late;

typedef struct hf_players {
    hf_hold *holds; /* owned */
    size_t n_holds, holds_capacity;
    hf_took *took; /* owned */
    size_t n_took, took_capacity;
    hf_disturbed *disturbed; /* owned */
    size_t n_disturbed, disturbed_capacity;
    hf_late *late; /* owned */
    size_t n_late, late_capacity;
    unsigned timers;  /* more than the greatest of them */
    uint64_t *killed; /* owned; of each player, when it was surely dead */
    size_t killed_capacity;
    hf_table ids;
} hf_players;

void hf_players_line(const char *line, void *players);
void hf_players_done(hf_players *p);
/* The end of a belief. */
uint64_t hf_hold_end(const hf_players *p, const hf_hold *hold);
/* Was it taken away by what the test did, at some moment in this time? The last time. */
const hf_took *hf_players_took(const hf_players *p, const char *name, uint64_t from,
                               uint64_t to);

/* belief.c: S1; verdict.c: S3, S4, S12, O3 by what players were told */
void hf_check_belief(const hf_players *p, hf_report *r);
void hf_check_verdicts(const hf_players *p, hf_report *r);

/* server.c */
typedef struct hf_server hf_server;
hf_server *hf_server_new(void);
void hf_server_free(hf_server *s);
void hf_server_line(const char *line, void *server);
void hf_server_check(hf_server *s, hf_report *r);
/* Did it grant this? */
bool hf_server_granted(const hf_server *s, const char *name, uint64_t fence,
                       const char *owner);

#endif
