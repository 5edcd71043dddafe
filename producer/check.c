/* check.c - see check.h. */
#include "producer/check.h"

#include <inttypes.h>
#include <string.h>

#include "base/detail.h"
#include "base/mask.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "queue/options.h"
#include "queue/record.h"

enum {
    DEADLINE_DEFAULT_MS = 5000,
    DEADLINE_MAX_MS = 600000,
    BUFFER_JOBS_DEFAULT = 10000,
    BUFFER_BYTES_DEFAULT = 64 << 20
};
#define NAME_RULE "1 to 128 characters of A-Z a-z 0-9 . _ : -"

const char *hf_check_job_queue(const hf_job *job)
{
    return job->queue != NULL ? job->queue : HF_DEFAULT_QUEUE;
}

static hf_err bad_name(char *why, const char *what, const char *name)
{
    if (name == NULL)
        return hf_say(why, HF_INVALID, "the %s is missing", what);
    return hf_say(why, HF_INVALID, "expected as its %s " NAME_RULE ", found '%s'", what,
                  HF_FOUND(name));
}

static hf_err check_when(const hf_job *job, char *why)
{
    if (job->delay_ms != 0 && job->at_ms != 0)
        return hf_say(why, HF_INVALID, "expected delay_ms or at_ms, found both");
    if (job->delay_ms < 0 || job->delay_ms > HF_DELAY_MAX_MS)
        return hf_say(why, HF_INVALID,
                      "expected a delay_ms of 0..%" PRId64 ", found %" PRId64,
                      HF_DELAY_MAX_MS, job->delay_ms);
    if (job->at_ms < 0 || job->at_ms > HF_TIME_MAX_MS)
        return hf_say(why, HF_INVALID,
                      "expected an at_ms of 0..%" PRId64 ", found %" PRId64,
                      HF_TIME_MAX_MS, job->at_ms);
    return HF_OK;
}

/* `like` was checked before: text that is the same is not checked again. */
static hf_err check_job(uint32_t payload_max, const hf_job *job, const hf_job *like,
                        char *why)
{
    const char *queue = hf_check_job_queue(job);
    if ((like == NULL || like->queue != job->queue) && !hf_name_ok(queue))
        return bad_name(why, "queue", queue);
    if ((like == NULL || like->type != job->type) && !hf_name_ok(job->type))
        return bad_name(why, "type", job->type);
    if (job->id != NULL && !hf_name_ok(job->id))
        return bad_name(why, "id", job->id);
    if (job->payload == NULL && job->payload_len != 0)
        return hf_say(why, HF_INVALID, "expected %zu bytes of payload, found NULL",
                      job->payload_len);
    if (job->payload_len > payload_max)
        return hf_say(why, HF_TOOBIG,
                      "expected at most %" PRIu32 " bytes of payload, found %zu",
                      payload_max, job->payload_len);
    hf_err err = check_when(job, why);
    return err == HF_OK ? hf_options_check(job, why) : err;
}

hf_err hf_job_check(const hf_job *theirs, char detail[HF_DETAIL_SIZE])
{
    hf_job job;
    hf_err err = hf_struct_in(&job, sizeof job, theirs, "hf_job", detail);
    return err == HF_OK ? check_job(HF_PAYLOAD_CEILING, &job, NULL, detail) : err;
}

size_t hf_check_job_bytes(const hf_job *job)
{
    size_t id = job->id != NULL ? strlen(job->id) : HF_RUN_ID_SIZE - 1;
    size_t options = hf_record_has_options(job) ? HF_OPTIONS_OVERHEAD : 0;
    if (job->unique != NULL)
        options += HF_UNIQUE_ESCAPED * strlen(job->unique);
    if (job->on_dead != NULL)
        options += strlen(job->on_dead) + HF_ON_DEAD_OVERHEAD;
    if (job->headers != NULL)
        options += strlen(job->headers) + HF_HEADERS_OVERHEAD;
    return id + strlen(job->type) + job->payload_len + HF_JOB_OVERHEAD + options;
}

hf_err hf_check_jobs(const hf_bounds *bounds, const hf_job *jobs, size_t n, size_t *bytes,
                     bool *one_queue, char detail[HF_DETAIL_SIZE])
{
    if (jobs == NULL || n == 0)
        return hf_say(detail, HF_INVALID, "expected at least one job, found none");
    if (n > HF_BATCH_JOBS)
        return hf_say(detail, HF_TOOBIG, "expected at most %d jobs, found %zu",
                      HF_BATCH_JOBS, n);
    if (n > bounds->buffer_jobs)
        return hf_say(detail, HF_TOOBIG,
                      "expected at most the buffer's %" PRIu32 " jobs, found %zu",
                      bounds->buffer_jobs, n);
    size_t max =
        bounds->buffer_bytes < HF_BATCH_BYTES ? bounds->buffer_bytes : HF_BATCH_BYTES;
    *bytes = 0;
    *one_queue = true;
    for (size_t i = 0; i < n; i++) {
        const hf_job *job = &jobs[i];
        char why[HF_DETAIL_SIZE];
        hf_err err = check_job(bounds->payload_max, job, i == 0 ? NULL : job - 1, why);
        if (err != HF_OK)
            return hf_say(detail, err, "job %zu: %.*s", i, HF_DETAIL_SIZE - 32, why);
        *bytes += hf_check_job_bytes(job);
        if (*bytes > max)
            return hf_say(detail, HF_TOOBIG,
                          "job %zu: expected at most %zu bytes of jobs in "
                          "one call, found more",
                          i, max);
        if (*one_queue && job->queue != jobs[0].queue)
            *one_queue =
                strcmp(hf_check_job_queue(job), hf_check_job_queue(&jobs[0])) == 0;
    }
    return HF_OK;
}

static hf_err check_ranges(const hf_producer_opts *o, char *detail)
{
    if (o->deadline_ms > DEADLINE_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a deadline_ms of 1..%d, found %" PRIu32, DEADLINE_MAX_MS,
                      o->deadline_ms);
    if (o->payload_max > HF_PAYLOAD_CEILING)
        return hf_say(detail, HF_INVALID,
                      "expected a payload_max of 1..%d, found %" PRIu32,
                      HF_PAYLOAD_CEILING, o->payload_max);
    if (o->remember_ms < 0 || o->remember_ms > HF_DELAY_MAX_MS)
        return hf_say(detail, HF_INVALID,
                      "expected a remember_ms of 0..%" PRId64 ", found %" PRId64,
                      HF_DELAY_MAX_MS, o->remember_ms);
    if (o->wait_replicas > HF_REPLICAS_MAX)
        return hf_say(detail, HF_INVALID,
                      "expected a wait_replicas of 0..%d, found %" PRIu32,
                      HF_REPLICAS_MAX, o->wait_replicas);
    if (o->wait_replicas_ms > DEADLINE_MAX_MS ||
        (o->wait_replicas_ms != 0 && o->wait_replicas == 0))
        return hf_say(
            detail, HF_INVALID,
            "expected a wait_replicas_ms of 0..%d, and only with wait_replicas, "
            "found %" PRIu32,
            DEADLINE_MAX_MS, o->wait_replicas_ms);
    return HF_OK;
}

hf_err hf_check_opts(const hf_producer_opts *in, hf_producer_opts *out,
                     hf_server_opts *server, char detail[HF_DETAIL_SIZE])
{
    hf_err err = hf_struct_in(out, sizeof *out, in, "hf_producer_opts", detail);
    if (err != HF_OK)
        return err;
    if (out->deadline_ms == 0)
        out->deadline_ms = DEADLINE_DEFAULT_MS;
    if (out->payload_max == 0)
        out->payload_max = HF_PAYLOAD_DEFAULT;
    if (out->buffer_jobs == 0)
        out->buffer_jobs = BUFFER_JOBS_DEFAULT;
    if (out->buffer_bytes == 0)
        out->buffer_bytes = BUFFER_BYTES_DEFAULT;
    err = hf_server_opts_in(server, out->server, detail);
    if (err != HF_OK)
        return err;
    out->server = server;
    if (out->run != NULL && !hf_name_ok(out->run))
        return hf_say(detail, HF_INVALID, "expected as run " NAME_RULE ", found '%s'",
                      HF_FOUND(out->run));
    return check_ranges(out, detail);
}
