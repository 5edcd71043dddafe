/* options.c - see options.h. */
#include "queue/options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "queue/error_text.h"
#include "queue/headers.h"

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

static hf_err needs(char *why, const char *what, const char *with)
{
    return hf_say(why, HF_INVALID, "%s needs %s", with, what);
}

static hf_err excludes(char *why, const char *what, const char *with)
{
    return hf_say(why, HF_INVALID, "expected no %s with %s, found one", what, with);
}

/* Which options go together; lib/options.lua has the same rules. */
static hf_err check_together(const hf_job *job, char *why)
{
    const char *other = job->unique_until != HF_UNIQUE_UNTIL_END  ? "unique_until"
                        : job->unique_for_ms != 0                 ? "unique_for"
                        : job->on_conflict != HF_ON_CONFLICT_SKIP ? "on_conflict"
                        : job->throttle_ms != 0                   ? "throttle"
                                                                  : NULL;
    bool skips = job->on_conflict == HF_ON_CONFLICT_SKIP ||
                 job->on_conflict == HF_ON_CONFLICT_NEXT;
    if (job->unique == NULL && other != NULL)
        return needs(why, "a unique key", other);
    if (job->debounce_ms == 0 && job->max_wait_ms != 0)
        return needs(why, "debounce", "max_wait");
    if (job->debounce_ms != 0 && job->unique == NULL)
        return needs(why, "a unique key", "debounce");
    if (job->debounce_ms != 0 && job->max_wait_ms == 0)
        return needs(why, "max_wait", "debounce");
    if (job->debounce_ms != 0 && other != NULL)
        return excludes(why, other, "debounce");
    if (job->debounce_ms != 0 && (job->delay_ms != 0 || job->at_ms != 0))
        return excludes(why, "delay and no time", "debounce");
    if (job->throttle_ms != 0 && job->unique_for_ms != 0)
        return excludes(why, "unique_for", "throttle");
    if (job->throttle_ms != 0 && !skips)
        return excludes(why, "on_conflict but skip and next", "throttle");
    return HF_OK;
}

static hf_err check_unique(const hf_job *job, char why[HF_DETAIL_SIZE])
{
    const char *key = job->unique;
    if (key != NULL && (key[0] == '\0' || strlen(key) > HF_UNIQUE_MAX ||
                        !hf_error_text_fits((hf_bytes){key, strlen(key)})))
        return hf_say(why, HF_INVALID,
                      "expected as its unique key 1 to %d bytes of UTF-8, found '%s'",
                      HF_UNIQUE_MAX, HF_FOUND(key));
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
    return check_together(job, why);
}

hf_err hf_options_check(const hf_job *job, char why[HF_DETAIL_SIZE])
{
    if (job->on_dead != NULL && !hf_name_ok(job->on_dead))
        return hf_say(why, HF_INVALID,
                      "expected as its on_dead 1 to 128 characters of A-Z a-z 0-9 . _ : "
                      "-, found '%s'",
                      HF_FOUND(job->on_dead));
    if (job->headers != NULL && !hf_headers_ok(job->headers, strlen(job->headers)))
        return hf_say(why, HF_INVALID,
                      "expected as its headers " HF_HEADERS_RULE ", found '%s'",
                      HF_FOUND(job->headers));
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
