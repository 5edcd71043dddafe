/* edit.c - a waiting job is changed, by one script. */
#include "holdfast/admin.h"

#include <inttypes.h>

#include "admin/parts.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

static const char *priority_word(const hf_job_edit *edit)
{
    static const char *const words[] = {
        [HF_PRIORITY_NORMAL] = "normal",
        [HF_PRIORITY_HIGH] = "high",
        [HF_PRIORITY_LOW] = "low",
    };
    return edit->set_priority ? words[edit->priority] : "";
}

static hf_err edit_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    const hf_job_edit *edit = arg;
    hf_ask ask = {.script = &hf_lua_queue_edit, .queue = queue};
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_text(&ask.args, id);
    if (edit->set_due)
        hf_args_int(&ask.args, edit->delay_ms != 0 ? -edit->delay_ms : edit->at_ms);
    else
        hf_args_text(&ask.args, "");
    hf_args_text(&ask.args, priority_word(edit));
    hf_args_flag(&ask.args, edit->payload != NULL);
    hf_args_bytes(&ask.args, (hf_bytes){edit->payload != NULL ? edit->payload : "",
                                        edit->payload_len});
    return hf_admin_ask(admin, &ask);
}

static hf_err check(hf_admin *admin, const hf_job_edit *edit)
{
    if (!edit->set_due && (edit->delay_ms != 0 || edit->at_ms != 0))
        return hf_admin_fail(admin, HF_INVALID, "expected set_due with a time");
    if (edit->delay_ms < 0 || edit->delay_ms > HF_DELAY_MAX_MS || edit->at_ms < 0 ||
        edit->at_ms > HF_TIME_MAX_MS || (edit->delay_ms != 0 && edit->at_ms != 0))
        return hf_admin_fail(admin, HF_INVALID,
                             "expected a delay_ms of 0..%" PRId64
                             " or an at_ms of 0..%" PRId64,
                             HF_DELAY_MAX_MS, HF_TIME_MAX_MS);
    if ((unsigned)edit->priority > HF_PRIORITY_LOW)
        return hf_admin_fail(admin, HF_INVALID, "expected a priority of hf_priority");
    if (edit->payload == NULL && edit->payload_len != 0)
        return hf_admin_fail(admin, HF_INVALID,
                             "expected %zu bytes of payload, found NULL",
                             edit->payload_len);
    if (edit->payload_len > HF_PAYLOAD_CEILING)
        return hf_admin_fail(admin, HF_TOOBIG, "expected at most %d bytes of payload",
                             HF_PAYLOAD_CEILING);
    return HF_OK;
}

hf_err hf_admin_edit(hf_admin *admin, const char *queue, const char *id,
                     const hf_job_edit *theirs, char detail[HF_DETAIL_SIZE])
{
    hf_job_edit edit;
    hf_admin_begin(admin, detail);
    hf_err err = hf_struct_in(&edit, sizeof edit, theirs, "hf_job_edit", detail);
    if (err == HF_OK)
        err = check(admin, &edit);
    return err == HF_OK ? hf_admin_in_queue(admin, queue, id, edit_in, &edit) : err;
}
