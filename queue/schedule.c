/* schedule.c - see schedule.h. */
#include "queue/schedule.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "queue/options.h"
#include "queue/record.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)

static const char *const missed_words[] = {"once", "all", "skip"};
static const char *const overlap_words[] = {"skip", "allow", "cancel"};

/* ---- checking ---- */

static hf_err refuse(const hf_schedule *s, const char *what, const char *found,
                     char detail[HF_DETAIL_SIZE])
{
    return hf_say(detail, HF_INVALID, "schedule '%s': expected %s, found %s",
                  HF_FOUND(s->id == NULL ? "" : s->id), what,
                  found == NULL ? "none" : HF_FOUND(found));
}

static hf_err check_number(const hf_schedule *s, const char *what, int64_t value,
                           int64_t max, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    if (value >= 0 && value <= max)
        return HF_OK;
    snprintf(found, sizeof found, "%lld", (long long)value);
    return refuse(s, what, found, detail);
}

static hf_err check_numbers(const hf_schedule *s, char detail[HF_DETAIL_SIZE])
{
    const struct {
        const char *what;
        int64_t value, max;
    } all[] = {
        {"a period of 100 ms to 10 years", s->every_ms, 3650 * DAY_MS},
        {"a catch_up of at most 30 days", s->catch_up_ms, 30 * DAY_MS},
        {"a jitter of at most 1 day", s->jitter_ms, DAY_MS},
        {"a start before the year 10000", s->start_ms, HF_TIME_MAX_MS},
        {"an end before the year 10000", s->end_ms, HF_TIME_MAX_MS},
        {"a limit of 0 or more", s->limit, INT64_C(1000000000000)},
        {"a rev of 0 or more", s->rev, INT64_C(1000000000000)},
        {"missed: once, all or skip", s->missed, HF_MISSED_SKIP},
        {"overlap: skip, allow or cancel", s->overlap, HF_OVERLAP_CANCEL},
    };
    for (size_t i = 0; i < HF_COUNT(all); i++) {
        hf_err err = check_number(s, all[i].what, all[i].value, all[i].max, detail);
        if (err != HF_OK)
            return err;
    }
    if (s->every_ms != 0 && s->every_ms < HF_EVERY_MIN_MS)
        return refuse(s, all[0].what, "a shorter one", detail);
    return s->end_ms == 0 || s->end_ms > s->start_ms
               ? HF_OK
               : refuse(s, "an end after its start", "an earlier one", detail);
}

static hf_err check_ticks(const hf_schedule *s, char detail[HF_DETAIL_SIZE])
{
    char why[HF_DETAIL_SIZE] = "";
    hf_zone *zone = NULL;
    hf_cron cron;
    int64_t at_s;
    if ((s->cron == NULL) == (s->every_ms == 0))
        return refuse(s, "either cron or every", s->cron == NULL ? NULL : "both", detail);
    if (s->cron == NULL && s->tz != NULL)
        return refuse(s, "a tz only beside cron", s->tz, detail);
    hf_err err = s->cron == NULL ? HF_OK : hf_cron_parse(&cron, s->cron, why);
    if (err == HF_OK && s->tz != NULL)
        err = hf_zone_open(&zone, s->tz, why);
    if (err != HF_OK)
        err = hf_say(detail, err, "schedule '%s': %.180s", HF_FOUND(s->id), why);
    else if (s->cron != NULL && !hf_cron_next(&cron, zone, hf_wall_ms() / 1000, &at_s))
        err = refuse(s, "a tick within 40 years", NULL, detail);
    hf_zone_free(zone);
    return err;
}

/* What its jobs are but for their payload. */
static hf_job job_of(const hf_schedule *s)
{
    return (hf_job){HF_JOB_INIT,
                    .type = s->type,
                    .max_attempts = s->max_attempts,
                    .timeout_ms = s->timeout_ms,
                    .priority = s->priority,
                    .keep_ms = s->keep_ms,
                    .start_within_ms = s->start_within_ms,
                    .expired = s->expired,
                    .on_dead = s->on_dead};
}

static hf_err check_options(const hf_schedule *s, char detail[HF_DETAIL_SIZE])
{
    char why[HF_DETAIL_SIZE];
    hf_job job = job_of(s);
    hf_err err = hf_options_check(&job, why);
    return err == HF_OK
               ? HF_OK
               : hf_say(detail, err, "schedule '%s': %.180s", HF_FOUND(s->id), why);
}

hf_err hf_schedule_check(const hf_schedule *s, char detail[HF_DETAIL_SIZE])
{
    if (s->id == NULL || !hf_name_ok(s->id))
        return refuse(s, "an id of 1 to 128 of A-Z a-z 0-9 . _ : -", s->id, detail);
    if (s->queue != NULL && !hf_name_ok(s->queue))
        return refuse(s, "a queue's name", s->queue, detail);
    if (s->type == NULL || !hf_name_ok(s->type))
        return refuse(s, "a type (1 to 128 of A-Z a-z 0-9 . _ : -)", s->type, detail);
    if (s->payload_len > HF_PAYLOAD_CEILING)
        return refuse(s, "a payload of at most 64 MiB", "a larger one", detail);
    hf_err err = check_numbers(s, detail);
    if (err == HF_OK)
        err = check_options(s, detail);
    return err == HF_OK ? check_ticks(s, detail) : err;
}

/* ---- writing ---- */

static void put_int(json_t *line, const char *name, int64_t value)
{
    if (value != 0)
        (void)json_object_set_new(line, name, json_integer(value));
}

/* The line of the records of its jobs, or NULL. */
static json_t *job_line(const hf_schedule *s)
{
    hf_job job = job_of(s);
    hf_buf record;
    hf_buf_init(&record, 4096);
    hf_record_write(&record, &job, 0);
    json_t *line = hf_buf_err(&record) == HF_OK
                       ? json_loadb(record.data, record.len, 0, NULL)
                       : NULL;
    hf_buf_done(&record);
    return line;
}

void hf_schedule_write(hf_buf *out, const hf_schedule *s)
{
    json_t *line = json_object();
    if (s->cron != NULL)
        (void)json_object_set_new(line, "cron", json_string(s->cron));
    put_int(line, "every", s->every_ms);
    if (s->tz != NULL)
        (void)json_object_set_new(line, "tz", json_string(s->tz));
    if (s->missed != HF_MISSED_ONCE)
        (void)json_object_set_new(line, "missed", json_string(missed_words[s->missed]));
    if (s->overlap != HF_OVERLAP_SKIP)
        (void)json_object_set_new(line, "overlap",
                                  json_string(overlap_words[s->overlap]));
    put_int(line, "catch_up", s->catch_up_ms);
    put_int(line, "jitter", s->jitter_ms);
    put_int(line, "start", s->start_ms);
    put_int(line, "end", s->end_ms);
    put_int(line, "limit", s->limit);
    bool whole = json_object_set_new(line, "job", job_line(s)) == 0;
    char *text = whole ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (text == NULL) {
        out->err = HF_NOMEM;
        return;
    }
    hf_buf_text(out, text);
    hf_buf_text(out, "\n");
    if (s->payload_len > 0)
        hf_buf_add(out, s->payload, s->payload_len);
    free(text);
}

/* ---- reading ---- */

/* False, and "" : it is something else. */
static bool take_text(const json_t *object, const char *name, char *out, size_t size)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    out[0] = '\0';
    if (value == NULL)
        return true;
    if (text == NULL || strlen(text) >= size)
        return false;
    snprintf(out, size, "%s", text);
    return true;
}

/* cjson writes large numbers as it likes: 1e+15 is one. */
static bool take_int(const json_t *object, const char *name, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);
    *out = 0;
    if (value == NULL)
        return true;
    if (!json_is_number(value) || !(number >= 0 && number <= 1e15))
        return false;
    *out = (int64_t)number;
    return true;
}

/* An option of its jobs. Another program may have written something else: that is none.
 */
static int64_t option_of(const json_t *job, const char *name, int64_t max)
{
    int64_t value;
    return take_int(job, name, &value) && value <= max ? value : 0;
}

static void take_options(hf_schedule_info *out, const json_t *job)
{
    char priority[8], expired[8];
    (void)take_text(job, "priority", priority, sizeof priority);
    (void)take_text(job, "expired", expired, sizeof expired);
    (void)take_text(job, "on_dead", out->on_dead, sizeof out->on_dead);
    out->priority = strcmp(priority, "high") == 0  ? HF_PRIORITY_HIGH
                    : strcmp(priority, "low") == 0 ? HF_PRIORITY_LOW
                                                   : HF_PRIORITY_NORMAL;
    out->expired = strcmp(expired, "dead") == 0 ? HF_EXPIRED_DEAD : HF_EXPIRED_DROP;
    out->max_attempts = (uint32_t)option_of(job, "max_attempts", UINT32_MAX);
    out->timeout_ms = (uint32_t)option_of(job, "timeout", UINT32_MAX);
    out->keep_ms = option_of(job, "keep", HF_DELAY_MAX_MS);
    out->start_within_ms = option_of(job, "start_within", HF_DELAY_MAX_MS);
}

static bool take_word(const json_t *object, const char *name, const char *const words[3],
                      int *out)
{
    const char *word = json_string_value(json_object_get(object, name));
    *out = 0;
    for (int i = 0; word != NULL && i < 3; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return true;
        }
    return word == NULL;
}

static bool take_def(hf_schedule_def *out, const json_t *line)
{
    const json_t *job = json_object_get(line, "job");
    int missed = 0, overlap = 0;
    bool ok = take_text(line, "cron", out->cron, sizeof out->cron) &&
              take_int(line, "every", &out->ticks.every_ms) &&
              take_text(line, "tz", out->tz, sizeof out->tz) &&
              take_word(line, "missed", missed_words, &missed) &&
              take_word(line, "overlap", overlap_words, &overlap) &&
              take_int(line, "catch_up", &out->catch_up_ms) &&
              take_int(line, "jitter", &out->jitter_ms) &&
              take_int(line, "start", &out->ticks.start_ms) &&
              take_int(line, "end", &out->ticks.end_ms) &&
              take_int(line, "limit", &out->limit) &&
              take_text(job, "type", out->type, sizeof out->type);
    out->missed = (hf_missed)missed;
    out->overlap = (hf_overlap)overlap;
    if (out->catch_up_ms == 0)
        out->catch_up_ms = HOUR_MS;
    if (!ok || (out->cron[0] == '\0') == (out->ticks.every_ms == 0))
        return false;
    return out->cron[0] == '\0' ||
           hf_cron_parse(&out->ticks.cron, out->cron, NULL) == HF_OK;
}

hf_err hf_schedule_read(hf_schedule_def *out, hf_schedule_info *info, hf_bytes line)
{
    *out = (hf_schedule_def){.jitter_ms = 0};
    json_t *root = json_loadb(line.ptr, line.len, 0, NULL);
    bool ok = json_is_object(root) && take_def(out, root);
    if (ok && info != NULL)
        take_options(info, json_object_get(root, "job"));
    json_decref(root);
    return ok ? HF_OK : HF_PROTO;
}

hf_err hf_schedule_read_state(hf_schedule_state *out, hf_bytes text)
{
    *out = (hf_schedule_state){.from_ms = 0};
    json_t *root = json_loadb(text.ptr, text.len, 0, NULL);
    bool ok =
        json_is_object(root) && take_text(root, "gen", out->gen, sizeof out->gen) &&
        take_text(root, "job", out->job, sizeof out->job) &&
        take_int(root, "from", &out->from_ms) && take_int(root, "tick", &out->tick_ms) &&
        take_int(root, "accepted", &out->accepted) &&
        take_int(root, "skipped", &out->skipped) &&
        take_int(root, "dropped", &out->dropped) && take_int(root, "rev", &out->rev);
    out->paused = json_object_get(root, "paused") != NULL;
    json_decref(root);
    return ok ? HF_OK : HF_PROTO;
}
