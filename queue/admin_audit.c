/* admin_audit.c - carries the audit script through a whole queue. Which phases there are,
 * and in which order, the script alone knows: each answer says what to ask for next. */
#include "holdfast/admin.h"

#include <stdio.h>

#include "queue/ask.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { WORD_SIZE = 32 };

typedef struct slice {
    char phase[WORD_SIZE], cursor[WORD_SIZE];
    hf_audit_cb cb;
    void *arg;
    size_t *found;
} slice;

static hf_err read_slice(const hf_answer *answer, void *out)
{
    slice *s = out;
    int64_t now_ms;
    hf_err err = hf_script_status(answer, 5, &now_ms);
    if (err != HF_OK)
        return err;
    const hf_reply *findings = hf_reply_at(answer->reply, 4);
    for (size_t i = 0; i + 2 < hf_reply_len(findings); i += 3) {
        (*s->found)++;
        if (s->cb != NULL)
            s->cb((int)hf_reply_int(hf_reply_at(findings, i)),
                  hf_reply_text(hf_reply_at(findings, i + 1)),
                  hf_reply_text(hf_reply_at(findings, i + 2)), s->arg);
    }
    (void)snprintf(s->phase, WORD_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 2)));
    (void)snprintf(s->cursor, WORD_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 3)));
    return HF_OK;
}

hf_err hf_admin_audit(hf_admin *admin, const char *name, bool idle, hf_audit_cb cb,
                      void *arg, size_t *found)
{
    hf_queue queue;
    slice s = {.phase = "schedule", .cursor = "0", .cb = cb, .arg = arg, .found = found};
    *found = 0;
    hf_err err = hf_admin_queue(admin, name, &queue);
    while (err == HF_OK && s.phase[0] != '\0') {
        hf_args args;
        if (!hf_args_init(&args, 3, 0))
            return HF_NOMEM;
        hf_args_text(&args, s.phase);
        hf_args_text(&args, s.cursor);
        hf_args_flag(&args, idle);
        const hf_ask ask = {.script = &hf_lua_queue_audit,
                            .queue = &queue,
                            .args = &args,
                            .read = read_slice,
                            .out = &s};
        err = hf_admin_ask(admin, &ask, hf_admin_until(admin));
        hf_args_done(&args);
    }
    return err;
}
