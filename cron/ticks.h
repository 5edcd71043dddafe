/* ticks.h - the ticks of a schedule, and what happens to those that have come.
 *
 * All times are Unix ms. */
#ifndef HF_CRON_TICKS_H
#define HF_CRON_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cron/expr.h"
#include "holdfast/schedule.h"

enum {
    HF_TICKS_MAX = 1000,    /* that are made up for at a time */
    HF_TICK_LATE_MS = 60000 /* one that is later was missed */
};

typedef struct hf_ticks {
    int64_t every_ms;         /* 0: `cron` */
    int64_t start_ms, end_ms; /* 0: no bound */
    hf_cron cron;
    const hf_zone *zone; /* borrowed; NULL: UTC */
} hf_ticks;

/* The first tick after a time. False: there is none until HF_TIME_MAX_MS (of cron,
 * within HF_CRON_YEARS). */
bool hf_ticks_next(const hf_ticks *ticks, int64_t after_ms, int64_t *out_ms);

typedef struct hf_ticks_due {
    size_t n;
    int64_t at_ms[HF_TICKS_MAX]; /* for which there are jobs, rising */
    int64_t dropped;             /* how many there are not for */
    int64_t from_ms;             /* all ticks until then are decided on */
    int64_t next_ms;             /* the first one after it; 0: none */
} hf_ticks_due;

/* Decides on the ticks after from_ms until now_ms. A from_ms in the future says that the
 * clock was set back: then fixed times do not repeat, unless it was by more than 3 hours;
 * `every`, and an expression that follows real time, go on after a period. */
void hf_ticks_decide(const hf_ticks *ticks, hf_missed missed, int64_t catch_up_ms,
                     int64_t from_ms, int64_t now_ms, hf_ticks_due *out);

#endif
