/* result.c - see result.h. */
#include "worker/run/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "worker/queues/queues.h"
#include "worker/run/run.h"

enum { LINE_SIZE = HF_ID_SIZE + HF_WORKER_ID_SIZE + 160 };

static void free_result(hf_run *run)
{
    free((void *)(uintptr_t)run->result.ptr);
    run->result = (hf_bytes){NULL, 0};
}

hf_err hf_result_set(hf_run *run, const void *bytes, size_t len, bool is_json)
{
    if (len > HF_RESULT_MAX)
        return HF_TOOBIG;
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return HF_NOMEM;
    if (len > 0)
        memcpy(copy, bytes, len);
    free_result(run);
    run->result = (hf_bytes){copy, len};
    run->result_is_json = is_json;
    return HF_OK;
}

/* ---- for handlers ---- */

hf_err hf_run_set_result(hf_run *run, const void *bytes, size_t len)
{
    return hf_result_set(run, bytes, len, false);
}

hf_err hf_run_set_result_json(hf_run *run, const char *text)
{
    hf_json_fault fault;
    size_t len = strlen(text);
    if (!hf_json_check(text, len, &fault))
        return HF_INVALID;
    char *compact = malloc(len);
    if (compact == NULL)
        return HF_NOMEM;
    hf_err err = hf_result_set(run, compact, hf_json_compact(text, len, compact), true);
    free(compact);
    return err;
}

void hf_run_set_keep(hf_run *run, int64_t keep_ms)
{
    run->keep_ms = keep_ms;
}

/* ---- at its end ---- */

static int64_t keep_ms_of(const hf_run *run)
{
    int64_t ms = run->record.keep_ms;
    if (ms == 0)
        ms = run->keep_ms;
    if (ms == 0)
        ms = run->handler->keep_ms;
    if (ms == 0)
        ms = run->served->whole->limits.keep_ms;
    return ms < HF_DELAY_MAX_MS ? ms : HF_DELAY_MAX_MS;
}

/* Names need no escapes. */
static size_t write_line(const hf_run *run, char out[LINE_SIZE])
{
    const char *result = run->result.ptr == NULL ? ""
                         : run->result_is_json   ? ",\"result\":\"json\""
                                                 : ",\"result\":\"bytes\"";
    int n = snprintf(out, LINE_SIZE,
                     "{\"type\":\"%s\",\"created\":%" PRId64 ",\"attempts\":%" PRIu32
                     ",\"ran\":%" PRId64 ",\"worker\":\"%s\"%s}\n",
                     run->record.type, run->record.created_ms, run->record.attempts,
                     hf_run_ran_ms(run), run->worker->id, result);
    HF_ASSERT(n > 0 && n < LINE_SIZE);
    return (size_t)n;
}

bool hf_result_keep(hf_run *run)
{
    char line[LINE_SIZE];
    int64_t keep_ms = keep_ms_of(run);
    if (keep_ms <= 0)
        return false;
    size_t n = write_line(run, line), len = run->result.len;
    char *words = malloc(n + len);
    if (words == NULL)
        return false;
    memcpy(words, line, n);
    if (len > 0)
        memcpy(words + n, run->result.ptr, len);
    run->words = (hf_bytes){words, n + len};
    run->delay_ms = keep_ms;
    free_result(run);
    return true;
}
