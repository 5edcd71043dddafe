/* changes.c - the changes of the API: each is one call of the command that does it. */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "cli/common/priority.h"
#include "cli/common/rate.h"
#include "cli/out.h"
#include "dashboard/api.h"

static hf_err give_done(hf_query *ask, hf_reader *r, const char *name, json_t *value)
{
    return hf_ask_give(ask, r, json_pack("{s:o}", name, value), 0);
}

/* NULL: it is none, and that is the answer. */
static const char *name_at(hf_query *ask, size_t i, const char *what)
{
    if (hf_name_ok(ask->args[i]))
        return ask->args[i];
    (void)hf_ask_refuse(ask, 400, "invalid", "expected %s", what);
    return NULL;
}

/* What the command asks a question for is written out here. */
static bool is_confirmed(hf_query *ask, const char *name)
{
    const char *said = hf_ask_text(ask, "confirm");
    if (said != NULL && strcmp(said, name) == 0)
        return true;
    (void)hf_ask_refuse(ask, 400, "confirm", "expected \"confirm\": \"%s\"", name);
    return false;
}

/* ---- queues ---- */

static hf_err set_paused(hf_query *ask, hf_reader *r, bool paused)
{
    const char *queue = name_at(ask, 0, "a queue's name");
    if (queue == NULL)
        return HF_OK;
    hf_err err = hf_admin_pause(r->admin, queue, paused, r->detail);
    return err == HF_OK ? give_done(ask, r, "paused", json_boolean(paused)) : err;
}

hf_err hf_changes_pause(hf_query *ask, hf_reader *r)
{
    return set_paused(ask, r, true);
}

hf_err hf_changes_resume(hf_query *ask, hf_reader *r)
{
    return set_paused(ask, r, false);
}

hf_err hf_changes_limit(hf_query *ask, hf_reader *r)
{
    int64_t most, rate = HF_LIMIT_KEEP, per_ms = HF_LIMIT_KEEP;
    const char *queue = name_at(ask, 0, "a queue's name");
    const char *text = hf_ask_text(ask, "rate");
    if (queue == NULL)
        return HF_OK;
    if (!hf_ask_integer(ask, "max_running", 0, UINT32_MAX, HF_LIMIT_KEEP, &most))
        return hf_ask_refuse(ask, 400, "invalid",
                             "max_running: expected 0 (none) or more");
    if (json_object_get(ask->body, "rate") != NULL &&
        (text == NULL || !hf_parse_rate(text, &rate, &per_ms)))
        return hf_ask_refuse(ask, 400, "invalid",
                             "rate: expected JOBS/DURATION (100/1s) or 0");
    if (most == HF_LIMIT_KEEP && rate == HF_LIMIT_KEEP)
        return hf_ask_refuse(ask, 400, "invalid", "expected max_running or rate");
    hf_err err = hf_admin_limit(r->admin, queue, most, rate, per_ms, r->detail);
    return err == HF_OK ? give_done(ask, r, "limited", json_true()) : err;
}

hf_err hf_changes_purge(hf_query *ask, hf_reader *r)
{
    size_t n = 0;
    const char *queue = name_at(ask, 0, "a queue's name");
    if (queue == NULL || !is_confirmed(ask, queue))
        return HF_OK;
    hf_err err = hf_admin_purge(r->admin, queue, NULL, NULL, &n, r->detail);
    return err == HF_OK ? give_done(ask, r, "removed", json_integer((json_int_t)n)) : err;
}

/* ---- jobs ---- */

/* The queue of a job is in the body; NULL: any. False: that is the answer. */
static bool job_of(hf_query *ask, const char **queue, const char **id)
{
    *queue = hf_ask_text(ask, "queue");
    *id = name_at(ask, 0, "a job's id");
    if (*id != NULL && hf_ask_has(ask, "queue") &&
        (*queue == NULL || !hf_name_ok(*queue))) {
        (void)hf_ask_refuse(ask, 400, "invalid", "queue: expected a queue's name");
        return false;
    }
    return *id != NULL;
}

hf_err hf_changes_job_retry(hf_query *ask, hf_reader *r)
{
    const char *queue, *id;
    if (!job_of(ask, &queue, &id))
        return HF_OK;
    hf_err err = hf_admin_retry(r->admin, queue, id, r->detail);
    return err == HF_OK ? give_done(ask, r, "retried", json_true()) : err;
}

/* A job that runs is asked to end. */
hf_err hf_changes_job_cancel(hf_query *ask, hf_reader *r)
{
    const char *queue, *id;
    hf_job_info job = {HF_JOB_INFO_INIT};
    if (!job_of(ask, &queue, &id))
        return HF_OK;
    hf_err err = hf_admin_cancel(r->admin, queue, id, &job, r->detail);
    if (err != HF_OK && err != HF_RUNNING)
        return err;
    return give_done(ask, r, "cancelled",
                     json_string(err == HF_OK ? "removed" : "asked"));
}

/* A payload is a text here: the body is JSON. */
static bool take_edit(hf_query *ask, hf_job_edit *edit)
{
    const json_t *payload = json_object_get(ask->body, "payload");
    const char *priority = hf_ask_text(ask, "priority");
    const bool delayed = hf_ask_has(ask, "delay_ms"), timed = hf_ask_has(ask, "at_ms");
    const char *wrong = NULL;
    edit->payload = json_string_value(payload);
    edit->payload_len = json_string_length(payload);
    edit->set_due = delayed || timed;
    edit->set_priority = hf_ask_has(ask, "priority");
    if (hf_ask_has(ask, "payload") && edit->payload == NULL)
        wrong = "payload: expected a text";
    else if (delayed && timed)
        wrong = "expected delay_ms or at_ms, found both";
    else if (!hf_ask_integer(ask, "delay_ms", 0, HF_DELAY_MAX_MS, 0, &edit->delay_ms))
        wrong = "delay_ms: expected 0 (now) or more";
    else if (!hf_ask_integer(ask, "at_ms", 1, HF_TIME_MAX_MS, 0, &edit->at_ms))
        wrong = "at_ms: expected a time in Unix ms";
    else if (edit->set_priority &&
             (priority == NULL || !hf_priority_read(priority, &edit->priority)))
        wrong = "priority: expected high, normal or low";
    else if (edit->payload == NULL && !edit->set_due && !edit->set_priority)
        wrong = "expected payload, delay_ms, at_ms or priority";
    if (wrong != NULL)
        (void)hf_ask_refuse(ask, 400, "invalid", "%s", wrong);
    return wrong == NULL;
}

/* Only a job that waits is changed. */
hf_err hf_changes_job_edit(hf_query *ask, hf_reader *r)
{
    const char *queue, *id;
    hf_job_edit edit = {HF_JOB_EDIT_INIT};
    if (!job_of(ask, &queue, &id) || !take_edit(ask, &edit))
        return HF_OK;
    hf_err err = hf_admin_edit(r->admin, queue, id, &edit, r->detail);
    return err == HF_OK ? give_done(ask, r, "edited", json_true()) : err;
}

hf_err hf_changes_job_delete(hf_query *ask, hf_reader *r)
{
    const char *queue, *id;
    if (!job_of(ask, &queue, &id))
        return HF_OK;
    hf_err err = hf_admin_delete(r->admin, queue, id, NULL, r->detail);
    return err == HF_OK ? give_done(ask, r, "deleted", json_true()) : err;
}

/* ---- schedules ---- */

static hf_err pause_schedule(hf_query *ask, hf_reader *r, bool paused)
{
    const char *queue = name_at(ask, 0, "a queue's name");
    const char *id = queue == NULL ? NULL : name_at(ask, 1, "a schedule's id");
    if (id == NULL)
        return HF_OK;
    hf_err err = hf_admin_schedule_pause(r->admin, queue, id, paused, r->detail);
    return err == HF_OK ? give_done(ask, r, "paused", json_boolean(paused)) : err;
}

hf_err hf_changes_schedule_pause(hf_query *ask, hf_reader *r)
{
    return pause_schedule(ask, r, true);
}

hf_err hf_changes_schedule_resume(hf_query *ask, hf_reader *r)
{
    return pause_schedule(ask, r, false);
}

hf_err hf_changes_schedule_run(hf_query *ask, hf_reader *r)
{
    char job[HF_ID_SIZE] = "";
    const char *queue = name_at(ask, 0, "a queue's name");
    const char *id = queue == NULL ? NULL : name_at(ask, 1, "a schedule's id");
    if (id == NULL)
        return HF_OK;
    hf_err err = hf_admin_schedule_run(r->admin, queue, id, job, r->detail);
    return err == HF_OK ? give_done(ask, r, "job", hf_out_text(job)) : err;
}

/* ---- locks ---- */

/* False: that is the answer. */
static bool lock_of(hf_query *ask, const hf_reader *r, const char **name)
{
    *name = hf_ask_text(ask, "name");
    if (r->locks == NULL)
        (void)hf_ask_refuse(ask, 503, "locks", "locks cannot be read here");
    else if (*name == NULL)
        (void)hf_ask_refuse(ask, 400, "invalid", "expected the \"name\" of a lock");
    return r->locks != NULL && *name != NULL;
}

static hf_err give_holders(hf_query *ask, hf_reader *r, hf_err err, const char *name,
                           size_t n)
{
    if (err != HF_OK)
        return err;
    return n > 0 ? give_done(ask, r, "holders", json_integer((json_int_t)n))
                 : hf_ask_refuse(ask, 404, "not_found", "lock '%s' has no holder", name);
}

hf_err hf_changes_lock_revoke(hf_query *ask, hf_reader *r)
{
    size_t n = 0;
    const char *name, *owner = hf_ask_text(ask, "owner");
    if (!lock_of(ask, r, &name))
        return HF_OK;
    if (owner == NULL && hf_ask_has(ask, "owner"))
        return hf_ask_refuse(ask, 400, "invalid", "owner: expected a text");
    hf_err err = hf_lock_revoke(r->locks, name, owner, &n, r->detail);
    return give_holders(ask, r, err, name, n);
}

/* The fence is that of the hold that was seen: a later one stays. */
hf_err hf_changes_lock_release(hf_query *ask, hf_reader *r)
{
    size_t n = 0;
    int64_t fence;
    const char *name;
    if (!lock_of(ask, r, &name) || !is_confirmed(ask, name))
        return HF_OK;
    if (!hf_ask_integer(ask, "fence", 1, INT64_MAX, 0, &fence) || fence == 0)
        return hf_ask_refuse(ask, 400, "invalid",
                             "expected the \"fence\" of the holder that was seen");
    hf_err err = hf_lock_force_fence(r->locks, name, (uint64_t)fence, &n, r->detail);
    if (err == HF_OK && n == 0)
        return hf_ask_refuse(ask, 409, "changed",
                             "no holder of lock '%s' has this fence any more", name);
    return give_holders(ask, r, err, name, n);
}
