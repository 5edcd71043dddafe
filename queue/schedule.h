/* schedule.h - a schedule as Redis keeps it: one line of JSON, a newline, the payload.
 *
 *   {"cron":"0 3 * * *","tz":"Europe/Berlin","job":{"type":"report"}}\n<payload>
 *
 * Fields (docs/keys.md): cron or every (ms), tz, missed, overlap, catch_up, jitter (ms),
 * start, end (Unix ms), limit; job: the line of each record, with the options of the
 * jobs. */
#ifndef HF_QUEUE_SCHEDULE_H
#define HF_QUEUE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cron/ticks.h"
#include "holdfast/admin.h"
#include "holdfast/schedule.h"
#include "queue/ops.h"

enum { HF_EVERY_MIN_MS = 100, HF_DUE_SCHEDULES = 100 };

/* HF_OK, or HF_INVALID with a sentence: whether all of it is valid, its zone is there,
 * and its expression has ticks. */
HF_MUSTCHECK hf_err hf_schedule_check(const hf_schedule *schedule,
                                      char detail[HF_DETAIL_SIZE]);

/* Appends it as Redis keeps it. */
void hf_schedule_write(hf_buf *out, const hf_schedule *schedule);

/* A schedule as Redis has it. */
typedef struct hf_schedule_def {
    hf_ticks ticks; /* the caller sets its zone, from: */
    char tz[HF_ZONE_NAME_MAX + 1];
    char cron[HF_CRON_TEXT_MAX + 1]; /* "" : every */
    char type[HF_ID_SIZE];
    hf_missed missed;
    hf_overlap overlap;
    int64_t catch_up_ms, jitter_ms, limit;
} hf_schedule_def;

typedef struct hf_schedule_state {
    char gen[24];
    char job[HF_ID_SIZE]; /* of the last tick; "" : none */
    int64_t from_ms, tick_ms, accepted, skipped, dropped, rev;
    bool paused;
} hf_schedule_state;

/* HF_PROTO: another program wrote something else; HF_NOMEM. `info` gets the options of
 * its jobs; NULL: they are not wanted. */
HF_MUSTCHECK hf_err hf_schedule_read(hf_schedule_def *out, hf_schedule_info *info,
                                     hf_bytes line);
HF_MUSTCHECK hf_err hf_schedule_read_state(hf_schedule_state *out, hf_bytes text);

/* ---- the scripts ---- */

typedef struct hf_cron_put_args {
    const char *id;
    hf_bytes value;
    int64_t next_ms;  /* 0: none */
    const char *file; /* "" : an order; "start" or "keep": of a worker's file */
    int64_t rev, not_after;
} hf_cron_put_args;
HF_MUSTCHECK hf_err hf_op_cron_put(hf_client *client, const hf_queue *queue,
                                   const hf_cron_put_args *args, hf_answer_cb cb,
                                   void *arg);
HF_MUSTCHECK hf_err hf_cron_put_read(const hf_answer *answer, bool *written);

HF_MUSTCHECK hf_err hf_op_cron_due(hf_client *client, const hf_queue *queue,
                                   const char *worker, hf_answer_cb cb, void *arg);
typedef struct hf_cron_due {
    int64_t now_ms;
    size_t n;
    const hf_reply *reply_;
    size_t head_;
} hf_cron_due;
typedef struct hf_cron_due_one {
    hf_bytes id, next, line, state; /* borrowed from the answer */
    int64_t bytes;                  /* of the record of a job, about */
    bool held; /* from now on: no live worker names it; the rest is empty */
} hf_cron_due_one;
HF_MUSTCHECK hf_err hf_cron_due_read(const hf_answer *answer, hf_cron_due *out);
/* The same, of the answer to a claim. */
void hf_cron_due_claimed(const hf_reply *ticks, int64_t now_ms, hf_cron_due *out);
void hf_cron_due_at(const hf_cron_due *due, size_t i, hf_cron_due_one *out);

/* Text is borrowed until the request was made. */
typedef struct hf_cron_tick {
    hf_bytes id, next;
    const char *gen;
    int64_t new_next_ms, from_ms, dropped;
    size_t n;               /* jobs: these */
    const char *const *ids; /* of new jobs */
    const int64_t *ticks_ms, *dues_ms;
} hf_cron_tick;
typedef struct hf_cron_tick_args {
    int64_t not_after;
    bool claims; /* the next request is a claim of this worker */
    const hf_cron_tick *ticks;
    size_t n;
} hf_cron_tick_args;
HF_MUSTCHECK hf_err hf_op_cron_tick(hf_client *client, const hf_queue *queue,
                                    const hf_cron_tick_args *args, hf_answer_cb cb,
                                    void *arg);
/* *more: others are due by now. *codes: an integer for each schedule. */
HF_MUSTCHECK hf_err hf_cron_tick_read(const hf_answer *answer, bool *more,
                                      const hf_reply **codes);

#endif
