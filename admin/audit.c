/* audit.c - runs the scripts of the audit over a whole queue. The script alone knows its
 * phases and their order: each answer names the next request. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <string.h>

#include "admin/parts.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { WORD_SIZE = 32, FINDING_WORDS = 6, HOLDER_WORDS = 3 };
enum { BY_HAND, WOULD_BE_REPAIRED, REPAIRED }; /* `how` of a finding */

typedef struct slice {
    char phase[WORD_SIZE], cursor[WORD_SIZE];
    const hf_audit_opts *opts;
    size_t *found;
    size_t looked_at; /* by this slice; the first one says how many there are */
} slice;

typedef struct audit {
    slice slice;
    size_t done, total; /* ids, of all shards so far */
    bool stopped;       /* by its caller */
} audit;

static void tell_finding(const slice *s, const hf_reply *words, size_t at)
{
    int64_t how = hf_reply_int(hf_reply_at(words, at + 5));
    const hf_finding finding = {.size = sizeof finding,
                                .check = hf_reply_text(hf_reply_at(words, at)),
                                .invariant =
                                    (int)hf_reply_int(hf_reply_at(words, at + 1)),
                                .id = hf_reply_text(hf_reply_at(words, at + 2)),
                                .text = hf_reply_text(hf_reply_at(words, at + 3)),
                                .repair = hf_reply_text(hf_reply_at(words, at + 4)),
                                .by_hand = how == BY_HAND,
                                .repaired = how == REPAIRED};
    (*s->found)++;
    if (s->opts->cb != NULL)
        s->opts->cb(&finding, s->opts->arg);
}

static hf_err read_slice(const hf_answer *answer, void *out)
{
    slice *s = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 7, &now_ms);
    if (err != HF_OK)
        return err;
    const hf_reply *findings = hf_reply_at(answer->reply, 5);
    const hf_reply *holders = hf_reply_at(answer->reply, 6);
    for (size_t i = 0; i + FINDING_WORDS <= hf_reply_len(findings); i += FINDING_WORDS)
        tell_finding(s, findings, i);
    for (size_t i = 0; s->opts->holder != NULL && i < hf_reply_len(holders);
         i += HOLDER_WORDS)
        s->opts->holder(hf_reply_text(hf_reply_at(holders, i)),
                        (size_t)hf_reply_int(hf_reply_at(holders, i + 1)),
                        hf_reply_int(hf_reply_at(holders, i + 2)), s->opts->arg);
    s->looked_at = (size_t)hf_reply_int(hf_reply_at(answer->reply, 4));
    (void)snprintf(s->phase, WORD_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 2)));
    (void)snprintf(s->cursor, WORD_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 3)));
    return HF_OK;
}

static hf_err ask_slice(hf_admin *admin, const hf_queue *queue, const hf_script *script,
                        slice *s)
{
    hf_ask ask = {.script = script, .queue = queue, .read = read_slice, .out = s};
    if (s->opts->fix) /* a script that writes nothing may run late */
        hf_ask_order(&ask, admin);
    hf_args_text(&ask.args, s->phase);
    hf_args_text(&ask.args, s->cursor);
    hf_args_flag(&ask.args, s->opts->idle);
    hf_args_flag(&ask.args, s->opts->fix);
    hf_ask_word(&ask, admin);
    return hf_admin_ask(admin, &ask);
}

/* Of one queue, whose first slice says how many ids it has. */
static hf_err audit_in(hf_admin *admin, const hf_part *part, void *arg)
{
    static const hf_script *const scripts[] = {&hf_lua_queue_audit_keys,
                                               &hf_lua_queue_audit_jobs};
    audit *a = arg;
    slice *s = &a->slice;
    bool first = true, stop = a->stopped;
    hf_err err = HF_OK;
    for (size_t i = 0; err == HF_OK && !stop && i < HF_COUNT(scripts); i++) {
        (void)snprintf(s->phase, WORD_SIZE, "%s", "");
        (void)snprintf(s->cursor, WORD_SIZE, "%s", "0");
        do {
            err = ask_slice(admin, part->queue, scripts[i], s);
            if (err != HF_OK)
                break;
            *(first ? &a->total : &a->done) += s->looked_at;
            first = false;
            a->stopped = s->opts->progress != NULL &&
                         !s->opts->progress(a->done, a->total, s->opts->arg);
            stop = a->stopped || strcmp(s->phase, "stop") == 0;
        } while (!stop && s->phase[0] != '\0');
    }
    return err;
}

hf_err hf_admin_audit(hf_admin *admin, const char *name, const hf_audit_opts *theirs,
                      size_t *found, char detail[HF_DETAIL_SIZE])
{
    hf_audit_opts opts;
    hf_queue queue;
    audit a = {.slice = {.opts = &opts, .found = found}};
    *found = 0;
    hf_admin_begin(admin, detail);
    hf_err err = hf_struct_in(&opts, sizeof opts, theirs, "hf_audit_opts", admin->detail);
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    return err == HF_OK ? hf_admin_in_parts(admin, &queue, audit_in, &a) : err;
}
