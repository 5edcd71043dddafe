/* end.c - one job is cancelled, deleted, or runs now. Each is one script, which
 * decides in the queue whether there is such a job; no look goes before it. */
#include "holdfast/admin.h"

#include "admin/look.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

/* The holder, from two places of the answer. */
static void read_holder(hf_job_info *info, const hf_reply *list, size_t first,
                        int64_t now_ms)
{
    info->state = HF_STATE_RUNNING;
    hf_look_token(info, hf_reply_at(list, first));
    info->due_ms = hf_reply_int(hf_reply_at(list, first + 1));
    info->lease_remaining_ms = info->due_ms - now_ms;
}

static void read_cancelling(hf_job_info *info, const hf_reply *reply, int64_t now_ms)
{
    read_holder(info, reply, 2, now_ms);
    info->accepted_ms = hf_reply_int(hf_reply_at(reply, 4));
}

static hf_err read_cancel(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 2, &now_ms);
    if (err == HF_RUNNING)
        read_cancelling(out, answer->reply, now_ms);
    return err;
}

/* Of scripts that take a list of ids: the code of the only one. */
static hf_err read_delete(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 4, &now_ms);
    if (err != HF_OK)
        return err;
    err = (hf_err)hf_reply_int(hf_reply_at(hf_reply_at(answer->reply, 2), 0));
    if (err == HF_RUNNING)
        read_holder(out, hf_reply_at(answer->reply, 3), 0, now_ms);
    return err;
}

static hf_err read_requeue(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    (void)out;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    return err != HF_OK
               ? err
               : (hf_err)hf_reply_int(hf_reply_at(hf_reply_at(answer->reply, 2), 0));
}

static hf_err end_one(hf_admin *admin, hf_ask *ask, const char *id, hf_job_info *info)
{
    hf_ask_order(ask, admin);
    hf_ask_word(ask, admin);
    if (ask->script != &hf_lua_queue_cancel)
        hf_args_text(&ask->args, "0"); /* a waiting or dead job */
    hf_args_text(&ask->args, id);
    ask->out = info;
    hf_look_begin(ask->out, ask->queue, id);
    return hf_admin_ask(admin, ask);
}

static hf_err cancel_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    hf_ask ask = {.script = &hf_lua_queue_cancel, .queue = queue, .read = read_cancel};
    return end_one(admin, &ask, id, arg);
}

static hf_err delete_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    hf_ask ask = {.script = &hf_lua_queue_delete, .queue = queue, .read = read_delete};
    return end_one(admin, &ask, id, arg);
}

static hf_err requeue_in(hf_admin *admin, const hf_queue *queue, const char *id,
                         void *arg)
{
    hf_ask ask = {.script = &hf_lua_queue_requeue, .queue = queue, .read = read_requeue};
    (void)arg;
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    for (int i = 0; i < 4; i++)
        hf_args_int(&ask.args, 0); /* a waiting or dead job; at once, in no set */
    hf_args_text(&ask.args, id);
    /* Made twice it tells how it stands then: it is due, it runs, or it has run. */
    return hf_admin_ask(admin, &ask);
}

/* `theirs` may be NULL. */
static hf_err end_in_queue(hf_admin *admin, const char *queue, const char *id,
                           hf_in_queue_fn fn, hf_job_info *theirs, char *detail)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_admin_begin(admin, detail);
    if (theirs == NULL)
        return hf_admin_in_queue(admin, queue, id, fn, &info);
    hf_err err = hf_admin_fits(admin, theirs, "hf_job_info");
    if (err != HF_OK)
        return err;
    err = hf_admin_in_queue(admin, queue, id, fn, &info);
    hf_struct_fill(theirs, &info, sizeof info);
    return err;
}

hf_err hf_admin_cancel(hf_admin *admin, const char *queue, const char *id,
                       hf_job_info *info, char detail[HF_DETAIL_SIZE])
{
    return end_in_queue(admin, queue, id, cancel_in, info, detail);
}

hf_err hf_admin_delete(hf_admin *admin, const char *queue, const char *id,
                       hf_job_info *info, char detail[HF_DETAIL_SIZE])
{
    return end_in_queue(admin, queue, id, delete_in, info, detail);
}

hf_err hf_admin_retry(hf_admin *admin, const char *queue, const char *id,
                      char detail[HF_DETAIL_SIZE])
{
    hf_admin_begin(admin, detail);
    return hf_admin_in_queue(admin, queue, id, requeue_in, NULL);
}
