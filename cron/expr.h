/* expr.h - cron expressions: which local times they name, and which instants these are.
 *
 * Five or six fields, the seconds first: [second] minute hour day month weekday. Beside
 * numbers, names, lists, ranges and steps the day may be L (the last of the month) or LW
 * (its last Monday to Friday), and the weekday 5L (the last Friday) or 5#2 (the second
 * one). Where neither day field begins with '*' one of them is enough.
 *
 * When the clocks change, the rules are those of Debian's cron. An expression whose
 * minute or hour begins with '*' follows real time. Any other one runs at the end of a
 * gap of less than 3 hours if the gap swallowed one of its times, and only once where
 * times repeat. A larger jump is a new calendar: nothing is made up for, nothing
 * suppressed. */
#ifndef HF_CRON_EXPR_H
#define HF_CRON_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "cron/zone.h"
#include "holdfast/error.h"

enum { HF_CRON_TEXT_MAX = 256, HF_CRON_YEARS = 40 };

typedef struct hf_cron {
    uint64_t seconds, minutes; /* bit n: n */
    uint32_t hours, days, months;
    uint8_t weekdays;        /* bit 0: Sunday */
    uint8_t weekdays_last;   /* "5L" */
    uint8_t weekdays_nth[6]; /* "5#2": bit 5 of [2] */
    bool last_day;           /* "L" */
    bool last_workday;       /* "LW" */
    bool both_days;          /* a day field begins with '*': both must match */
    bool real_time;          /* minute or hour begins with '*' */
} hf_cron;

/* HF_INVALID, and `detail` says in which field what was expected and what was found. */
HF_MUSTCHECK hf_err hf_cron_parse(hf_cron *out, const char *text,
                                  char detail[HF_DETAIL_SIZE]);

/* The first tick after a time, in Unix seconds, by the clocks of the zone (NULL: UTC).
 * False: there is none within HF_CRON_YEARS and until HF_TIME_MAX_MS. */
bool hf_cron_next(const hf_cron *cron, const hf_zone *zone, int64_t after_s,
                  int64_t *out_s);

/* How many ticks there are after a time until another one. The time that it takes grows
 * with the number of days, not of ticks. */
int64_t hf_cron_count(const hf_cron *cron, const hf_zone *zone, int64_t after_s,
                      int64_t until_s);

#endif
