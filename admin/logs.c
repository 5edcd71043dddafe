/* logs.c - the logs of a job's runs, for an administrator. */
#include "holdfast/admin.h"

#include <stdlib.h>
#include <string.h>

#include "admin/ask.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { HEAD = 3 };

typedef struct reading {
    hf_log_place *place;
    hf_log_cb cb;
    void *arg;
} reading;

static void tell(const reading *r, const hf_reply *entry)
{
    hf_bytes text = hf_reply_bytes(hf_reply_at(entry, 3));
    const hf_log_part part = {
        .size = sizeof part,
        .fence = strtoull(hf_reply_text(hf_reply_at(entry, 0)), NULL, 10),
        .attempt = (uint32_t)hf_reply_int(hf_reply_at(entry, 1)),
        .from = (uint64_t)hf_reply_int(hf_reply_at(entry, 2)),
        .text = text.ptr,
        .len = text.len,
    };
    r->place->fence = part.fence;
    r->place->bytes = part.from + part.len;
    r->cb(&part, r->arg);
}

static hf_err read_logs(const hf_answer *answer, void *out)
{
    reading *r = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, HEAD, &now_ms);
    size_t n = hf_reply_len(answer->reply);
    if (err != HF_OK)
        return err;
    const char *set = hf_reply_text(hf_reply_at(answer->reply, 2));
    r->place->ended = strcmp(set, "dead") == 0 || strcmp(set, "gone") == 0;
    for (size_t i = HEAD; i < n; i++)
        tell(r, hf_reply_at(answer->reply, i));
    return HF_OK;
}

static hf_err ask(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    const reading *r = arg;
    hf_ask ask = {
        .script = &hf_lua_queue_logs, .queue = queue, .read = read_logs, .out = arg};
    hf_args_text(&ask.args, id);
    hf_args_int(&ask.args, (int64_t)r->place->fence);
    hf_args_int(&ask.args, (int64_t)r->place->bytes);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_logs(hf_admin *admin, const char *queue, const char *id,
                     hf_log_place *theirs, hf_log_cb cb, void *arg,
                     char detail[HF_DETAIL_SIZE])
{
    hf_log_place place = {HF_LOG_PLACE_INIT};
    reading r = {.place = &place, .cb = cb, .arg = arg};
    hf_admin_begin(admin, detail);
    hf_err err = hf_struct_in(&place, sizeof place, theirs, "hf_log_place", detail);
    if (err != HF_OK)
        return err;
    err = hf_admin_in_queue(admin, queue, id, ask, &r);
    if (theirs != NULL)
        hf_struct_fill(theirs, &place, sizeof place);
    return err;
}
