/* options.c - see options.h. */
#include "queue/options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/detail.h"
#include "base/id.h"
#include "queue/error_text.h"

static bool is_duration(int64_t ms)
{
    return ms >= 0 && ms <= HF_DELAY_MAX_MS;
}

static hf_err check_duration(const char *name, int64_t ms, char why[HF_DETAIL_SIZE])
{
    return is_duration(ms) ? HF_OK
                           : hf_say(why, HF_INVALID,
                                    "expected a %s of 0..%" PRId64 ", found %" PRId64,
                                    name, HF_DELAY_MAX_MS, ms);
}

/* Which of them go together; lib/unique_rules.lua has the same rules. */
static const char *unique_rule(const hf_job *job)
{
    bool others = job->unique_until != HF_UNIQUE_UNTIL_END || job->unique_for_ms != 0 ||
                  job->on_conflict != HF_ON_CONFLICT_SKIP;
    if (job->unique == NULL)
        return others || job->debounce_ms != 0 || job->max_wait_ms != 0 ||
                       job->throttle_ms != 0
                   ? "a unique key for its other options"
                   : NULL;
    if ((job->debounce_ms != 0) != (job->max_wait_ms != 0))
        return "a debounce and a max_wait, or neither";
    if (job->debounce_ms != 0 && (others || job->throttle_ms != 0))
        return "no unique_until, unique_for, on_conflict and throttle with a debounce";
    if (job->debounce_ms != 0 && (job->delay_ms != 0 || job->at_ms != 0))
        return "no delay and no time with a debounce";
    if (job->throttle_ms != 0 &&
        (job->unique_for_ms != 0 || (job->on_conflict != HF_ON_CONFLICT_SKIP &&
                                     job->on_conflict != HF_ON_CONFLICT_NEXT)))
        return "no unique_for, and no on_conflict but next, with a throttle";
    return NULL;
}

static hf_err check_unique(const hf_job *job, char why[HF_DETAIL_SIZE])
{
    const char *key = job->unique;
    if (key != NULL && (key[0] == '\0' || strlen(key) > HF_UNIQUE_MAX ||
                        !hf_error_text_fits((hf_bytes){key, strlen(key)})))
        return hf_say(why, HF_INVALID,
                      "expected as its unique key 1 to %d bytes of UTF-8, found '%.64s'",
                      HF_UNIQUE_MAX, key);
    if ((unsigned)job->unique_until > HF_UNIQUE_UNTIL_DONE ||
        (unsigned)job->on_conflict > HF_ON_CONFLICT_CANCEL)
        return hf_say(why, HF_INVALID,
                      "expected a unique_until and an on_conflict of their enums, found "
                      "%u and %u",
                      (unsigned)job->unique_until, (unsigned)job->on_conflict);
    if (!is_duration(job->unique_for_ms) || !is_duration(job->debounce_ms) ||
        !is_duration(job->max_wait_ms) || !is_duration(job->throttle_ms))
        return hf_say(why, HF_INVALID,
                      "expected times of its unique key of 0..%" PRId64 ", found others",
                      HF_DELAY_MAX_MS);
    const char *rule = unique_rule(job);
    return rule == NULL ? HF_OK : hf_say(why, HF_INVALID, "expected %s", rule);
}

hf_err hf_options_check(const hf_job *job, char why[HF_DETAIL_SIZE])
{
    if (job->on_dead != NULL && !hf_name_ok(job->on_dead))
        return hf_say(why, HF_INVALID,
                      "expected as its on_dead 1 to 128 characters of A-Z a-z 0-9 . _ : "
                      "-, found '%.64s'",
                      job->on_dead);
    if ((unsigned)job->priority > HF_PRIORITY_LOW)
        return hf_say(why, HF_INVALID, "expected a priority of hf_priority, found %u",
                      (unsigned)job->priority);
    hf_err err = check_duration("keep_ms", job->keep_ms, why);
    if (err == HF_OK)
        err = check_duration("start_within_ms", job->start_within_ms, why);
    if (err != HF_OK)
        return err;
    if ((unsigned)job->expired > HF_EXPIRED_DEAD ||
        (job->expired != HF_EXPIRED_DROP && job->start_within_ms == 0))
        return hf_say(why, HF_INVALID,
                      "expected HF_EXPIRED_DEAD only with start_within_ms, found %u",
                      (unsigned)job->expired);
    return check_unique(job, why);
}
