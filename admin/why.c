/* why.c - explains why a job does not run. One script reads the state of its queue; the
 * workers' heartbeats show which workers serve it. */
#include "holdfast/admin.h"

#include <string.h>

#include "admin/look.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { FIRST = 9 }; /* the first place after the fields of the job */

typedef struct asking {
    hf_job_why why;
    hf_job_info job;
} asking;

static void read_holders(hf_job_why *why, const hf_reply *list)
{
    for (size_t i = 0; i + 1 < hf_reply_len(list); i += 2) {
        hf_bytes name = hf_reply_bytes(hf_reply_at(list, i));
        if (why->n_holders == HF_COUNT(why->holders) || name.len >= HF_HOLDER_SIZE)
            continue;
        memcpy(why->holders[why->n_holders], name.ptr, name.len);
        why->held[why->n_holders++] = hf_reply_int(hf_reply_at(list, i + 1));
    }
}

static hf_err read_why(const hf_answer *answer, void *out)
{
    asking *asked = out;
    hf_job_why *why = &asked->why;
    int64_t paused = 0, cancelling = 0;
    int64_t *const fields[] = {
        &paused,          &why->before,      &why->max_running,   &why->running,
        &why->rate_limit, &why->rate_per_ms, &why->next_token_ms, &why->locked_until_ms,
        &cancelling,
    };
    const size_t list = FIRST + HF_COUNT(fields);
    hf_err err = hf_send_script_status(answer, list + 2, &why->now_ms);
    if (err == HF_OK)
        err = hf_look_read(&asked->job, answer->reply, list + 1, why->now_ms);
    if (err != HF_OK)
        return err;
    for (size_t i = 0; i < HF_COUNT(fields); i++)
        *fields[i] = hf_reply_int(hf_reply_at(answer->reply, FIRST + i));
    why->paused = paused != 0;
    why->cancelling = cancelling != 0;
    read_holders(why, hf_reply_at(answer->reply, list));
    return HF_OK;
}

static hf_err why_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    asking *asked = arg;
    hf_ask ask = {
        .script = &hf_lua_queue_why, .queue = queue, .read = read_why, .out = asked};
    asked->why = (hf_job_why){HF_JOB_WHY_INIT};
    hf_look_begin(&asked->job, queue, id);
    hf_args_text(&ask.args, id);
    return hf_admin_ask(admin, &ask);
}

/* ---- the workers that could take it ---- */

static bool names(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* One that does not tell all its types may take this one. */
static bool takes(const hf_worker_info *worker, const char *type)
{
    return !worker->all_types || names(worker->types, worker->n_types, type) ||
           names(worker->types, worker->n_types, "*");
}

/* Its running jobs: a heartbeat is up to 10 s old, its jobs of this queue are current. */
static int64_t busy_of(const hf_job_why *why, const hf_worker_info *worker)
{
    int64_t busy = worker->running;
    for (size_t i = 0; i < why->n_holders; i++)
        if (strcmp(why->holders[i], worker->id) == 0 && why->held[i] > busy)
            busy = why->held[i];
    return busy;
}

static void count_worker(const hf_worker_info *worker, void *arg)
{
    asking *asked = arg;
    hf_job_why *why = &asked->why;
    bool claims = worker->state[0] == '\0' || strcmp(worker->state, "serving") == 0;
    if (worker->silent || !claims ||
        !names(worker->queues, worker->n_queues, asked->job.queue))
        return;
    why->workers++;
    for (size_t i = 0; i < worker->n_pools; i++)
        why->pools_down += strcmp(worker->pools[i].state, "down") == 0 ? 1 : 0;
    if (!takes(worker, asked->job.type))
        return;
    why->workers_for_type++;
    why->slots += worker->concurrency;
    why->busy += busy_of(why, worker);
}

/* What was read may be right, and still nothing can start or end. */
static void check_writes(hf_admin *admin, asking *asked)
{
    hf_err err = hf_admin_check_writes(admin, asked->job.queue, asked->why.refusal);
    asked->why.refuses = err == HF_AUTH ? HF_OK : err;
}

hf_err hf_admin_why(hf_admin *admin, const char *queue, const char *id,
                    hf_job_why *theirs, char detail[HF_DETAIL_SIZE])
{
    asking asked = {.why = {HF_JOB_WHY_INIT}};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_job_why");
    if (err == HF_OK && theirs->job != NULL)
        err = hf_admin_fits(admin, theirs->job, "hf_job_info");
    if (err != HF_OK)
        return err;
    err = hf_admin_in_queue(admin, queue, id, why_in, &asked);
    if (err == HF_OK)
        err = hf_admin_workers(admin, count_worker, &asked, admin->detail);
    if (err == HF_OK)
        check_writes(admin, &asked);
    if (theirs->job != NULL)
        hf_struct_fill(theirs->job, &asked.job, sizeof asked.job);
    asked.why.job = theirs->job;
    hf_struct_fill(theirs, &asked.why, sizeof asked.why);
    return err;
}
