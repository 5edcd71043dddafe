/* ops_verdict.c - what happened to jobs: complete, retry, release, bury, keep, refuse,
 * crash. */
#include "queue/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/error_text.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { RESENT_SIZE = 32 };

typedef struct verdict_form {
    const hf_script *script;
    size_t fixed, each; /* arguments */
} verdict_form;

static const verdict_form forms[] = {
    [HF_OP_COMPLETE] = {&hf_lua_queue_complete, 4, 1},
    [HF_OP_RETRY] = {&hf_lua_queue_retry, 3, 6},
    [HF_OP_RELEASE] = {&hf_lua_queue_release, 3, 5},
    [HF_OP_BURY] = {&hf_lua_queue_bury, 5, 6},
    [HF_OP_KEEP] = {&hf_lua_queue_keep, 5, 4},
    [HF_OP_REFUSE] = {&hf_lua_queue_refuse, 6, 3},
    [HF_OP_CRASH] = {&hf_lua_queue_crash, 6, 4},
};

/* How many of the first of these have one fence. */
static size_t run_of(const hf_verdict_item *items, size_t n)
{
    size_t run = 1;
    while (run < n && (items[run].fence == items[0].fence ||
                       strcmp(items[run].fence, items[0].fence) == 0))
        run++;
    return run;
}

static size_t count_runs(const hf_verdict_item *items, size_t n)
{
    size_t runs = 0;
    for (size_t i = 0; i < n; i += run_of(items + i, n - i))
        runs++;
    return runs;
}

/* Each fence, and how many jobs have it: most have the one of the job before. */
static void add_fences(hf_args *a, const hf_verdict_item *items, size_t n, size_t runs)
{
    hf_args_int(a, (int64_t)runs);
    for (size_t i = 0, run; i < n; i += run) {
        run = run_of(items + i, n - i);
        hf_args_text(a, items[i].fence);
        hf_args_int(a, (int64_t)run);
    }
}

static bool any_leaving(const hf_verdict_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i].leaving.len != 0)
            return true;
    }
    return false;
}

/* Room for those error texts that cannot be sent as they are. NULL in *out: there is
 * none. False: out of memory. */
static bool take_scratch(char **out, hf_verdict_op op, const hf_verdict_item *items,
                         size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; op != HF_OP_COMPLETE && i < n; i++) {
        if (!hf_error_text_fits(items[i].error))
            bytes += items[i].error.len;
    }
    *out = bytes == 0 ? NULL : malloc(bytes);
    return bytes == 0 || *out != NULL;
}

static void add_error(hf_args *a, hf_bytes error, char **scratch)
{
    if (!hf_error_text_fits(error)) {
        size_t len = hf_error_text_mend(*scratch, error);
        error = (hf_bytes){*scratch, len};
        *scratch += len;
    }
    hf_args_bytes(a, error);
}

static const char *how_released(const hf_verdict_item *item)
{
    return item->cancels     ? "cancelled"
           : item->neighbour ? "neighbour"
           : item->waits     ? "down"
           : item->later     ? "later"
           : item->started   ? "started"
                             : "unstarted";
}

static void add_item(hf_args *a, hf_verdict_op op, const hf_verdict_item *item,
                     char **scratch)
{
    hf_args_text(a, item->id);
    if (op == HF_OP_COMPLETE)
        return;
    hf_args_text(a, item->fence);
    if (op == HF_OP_BURY) {
        hf_args_flag(a, item->counts);
        hf_args_text(a, item->reason);
    } else if (op != HF_OP_REFUSE) {
        hf_args_int(a, item->due_ms);
    }
    if (op == HF_OP_KEEP) {
        hf_args_bytes(a, item->words);
        return;
    }
    if (op == HF_OP_RELEASE)
        hf_args_text(a, how_released(item));
    add_error(a, item->error, scratch);
    if (op == HF_OP_RETRY || op == HF_OP_BURY)
        hf_args_int(a, item->ran_ms);
    if (op == HF_OP_RETRY)
        hf_args_flag(a, item->alone);
}

static size_t count_resent(const hf_verdict_item *items, size_t n)
{
    size_t resent = 0;
    while (resent < n && items[resent].resent)
        resent++;
    return resent;
}

hf_err hf_op_verdict(hf_client *client, const hf_queue *queue, hf_verdict_op op,
                     const hf_verdict_args *args, const hf_verdict_item *items, size_t n,
                     hf_answer_cb cb, void *arg)
{
    hf_args a;
    char *scratch, resent[RESENT_SIZE];
    const verdict_form *form = &forms[op];
    HF_ASSERT(n >= 1 && n <= HF_VERDICTS_MAX);
    if (!take_scratch(&scratch, op, items, n))
        return HF_NOMEM;
    char *at = scratch;
    size_t runs = op == HF_OP_COMPLETE ? count_runs(items, n) : 0;
    size_t leaving = op == HF_OP_COMPLETE && any_leaving(items, n) ? n : 0;
    (void)snprintf(resent, sizeof resent, "%zu%s", count_resent(items, n),
                   leaving != 0 ? " leaving" : "");
    hf_args_init(&a, form->fixed + 2 * runs + form->each * n + leaving,
                 form->fixed + 2 * n);
    hf_args_text(&a, args->worker);
    hf_args_int(&a, args->not_after);
    hf_args_text(&a, resent);
    if (op == HF_OP_BURY || op == HF_OP_REFUSE || op == HF_OP_CRASH) {
        hf_args_int(&a, args->dead_max);
        hf_args_int(&a, args->dead_age_ms);
        if (op == HF_OP_REFUSE)
            hf_args_int(&a, args->patience_ms);
        if (op == HF_OP_CRASH)
            hf_args_int(&a, args->poison);
    } else if (op == HF_OP_KEEP) {
        hf_args_int(&a, args->keep_max);
        hf_args_int(&a, args->keep_bytes);
    } else if (op == HF_OP_COMPLETE) {
        add_fences(&a, items, n, runs);
    }
    for (size_t i = 0; i < n; i++)
        add_item(&a, op, &items[i], &at);
    for (size_t i = 0; i < leaving; i++)
        hf_args_bytes(&a, items[i].leaving);
    hf_err err = hf_queue_send(client, queue, form->script, &a, 0, cb, arg);
    free(scratch);
    return err;
}

hf_err hf_settled_read(const hf_answer *answer, hf_settled *out)
{
    *out = (hf_settled){.n = 0};
    hf_err err = hf_send_script_status(answer, 2, &out->now_ms);
    if (err != HF_OK)
        return err;
    out->codes = hf_reply_at(answer->reply, 2);
    out->n = hf_reply_len(out->codes);
    return out->codes == NULL || out->n > 0 ? HF_OK : HF_PROTO;
}
