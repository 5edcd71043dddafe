/* wrong.h - the verdict: what is wrong, why, and what helps. Every command and page that
 * judges a system does it here. */
#ifndef HF_SEEN_WRONG_H
#define HF_SEEN_WRONG_H

#include "seen/facts.h"

/* The order of the table in docs/diagnose.md, which explains each. */
#define HF_WRONG_RULES(X)                                                                \
    X(REDIS, "redis")                                                                    \
    X(WORKER_SILENT, "worker_silent")                                                    \
    X(UNSERVED, "unserved")                                                              \
    X(POOL_DOWN, "pool_down")                                                            \
    X(DEATHS, "deaths")                                                                  \
    X(FAILING, "failing")                                                                \
    X(LATE, "late")                                                                      \
    X(GROWS, "grows")                                                                    \
    X(CRASHES, "crashes")                                                                \
    X(LOST, "lost")                                                                      \
    X(SCHEDULE, "schedule")                                                              \
    X(LOCK, "lock")                                                                      \
    X(MEMORY, "memory")                                                                  \
    X(DOCTOR, "doctor")                                                                  \
    X(PAUSED, "paused")                                                                  \
    X(VERSIONS, "versions")                                                              \
    X(ZONES, "zones")                                                                    \
    X(NO_AOF, "no_aof")

#define HF_WRONG_ENUM(name, word) HF_WRONG_##name,
typedef enum hf_wrong_rule { HF_WRONG_RULES(HF_WRONG_ENUM) HF_WRONG_COUNT } hf_wrong_rule;
#undef HF_WRONG_ENUM

/* A note is worth knowing now, but may be deliberate: it is no wrong thing, and not all
 * is well. A hint is about how the system is set up: the verdict does not know it. */
typedef enum hf_wrong_level {
    HF_LEVEL_BAD,
    HF_LEVEL_WARN,
    HF_LEVEL_NOTE,
    HF_LEVEL_HINT,
    HF_LEVELS
} hf_wrong_level;

enum {
    HF_WRONG_MAX = 20,
    HF_WRONG_WHAT = 384,
    HF_WRONG_WHY = HF_REASON_TEXT_SIZE + 320, /* what stands before and behind a reason */
    HF_WRONG_COMMAND = HF_OFFER_SIZE,
    HF_WRONG_PAGE = 160,
    HF_VERDICT_SIZE = 64
};

/* The texts have no control characters. */
typedef struct hf_wrong {
    hf_wrong_level level;
    hf_wrong_rule rule;
    int64_t since_ms;               /* Unix ms on Redis's clock; 0: not known */
    char what[HF_WRONG_WHAT];       /* a sentence */
    char why[HF_WRONG_WHY];         /* one or more; may be "" */
    char command[HF_WRONG_COMMAND]; /* what shows more, or helps */
    char page[HF_WRONG_PAGE];       /* of the dashboard, below its address */
} hf_wrong;

typedef struct hf_wrongs {
    size_t levels[HF_LEVELS];  /* how many there are of each level, */
    size_t n;                  /* and of these the first, */
    hf_wrong at[HF_WRONG_MAX]; /* by level, then by age; an unknown age comes last */
} hf_wrongs;

/* Judges. Nothing is read, and no clock is asked. */
void hf_wrong_judge(const hf_facts *facts, hf_wrongs *out);

const char *hf_wrong_rule_word(hf_wrong_rule rule);
const char *hf_wrong_level_word(hf_wrong_level level); /* "bad", "warn", "note", "hint" */

/* The level of the whole: "bad", "warn", "note" or "good". */
const char *hf_wrong_verdict_word(const hf_wrongs *wrongs);
/* How many things are wrong, without notes and hints. */
size_t hf_wrong_things(const hf_wrongs *wrongs);
/* With notes and hints: more than `n` if not all of them had room. */
size_t hf_wrong_all(const hf_wrongs *wrongs);
/* "3 things are wrong", "Nothing is wrong; 1 thing to note", "All is well". Returns
 * `out`. */
const char *hf_wrong_verdict(const hf_wrongs *wrongs, char out[HF_VERDICT_SIZE]);

#endif
