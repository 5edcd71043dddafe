/* ask.c - see ask.h. */
#include "dashboard/ask.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/out.h"

enum { PAGE = 50, PAGE_MAX = 200, MESSAGE = 1024 };

static const char answer_type[] = "application/json; charset=utf-8";

/* ---- answers ---- */

static void take_text(hf_query *ask, unsigned status, json_t *object)
{
    free(ask->text);
    ask->text = hf_out_line(object);
    ask->len = ask->text == NULL ? 0 : strlen(ask->text);
    ask->status = ask->text == NULL ? 500 : status;
    ask->type = answer_type;
    json_decref(object);
}

hf_err hf_ask_give(hf_query *ask, const hf_reader *r, json_t *object, int64_t age_ms)
{
    if (object == NULL)
        return HF_NOMEM;
    if (json_object_get(object, "now_ms") == NULL)
        (void)json_object_set_new(object, "now_ms", json_integer(hf_reader_now_ms(r)));
    (void)json_object_set_new(object, "age_ms", json_integer(age_ms));
    take_text(ask, 200, object);
    return HF_OK;
}

hf_err hf_ask_refuse(hf_query *ask, unsigned status, const char *code, const char *format,
                     ...)
{
    char message[MESSAGE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    hf_mask(message);
    hf_text_plain(message);
    take_text(ask, status,
              json_pack("{s:o, s:s}", "error", hf_out_text(message), "code", code));
    return HF_OK;
}

hf_err hf_ask_bytes(hf_query *ask, char *bytes, size_t len, const char *type,
                    const char *file_end)
{
    free(ask->text);
    ask->text = bytes;
    ask->len = len;
    ask->status = 200;
    ask->type = type;
    (void)snprintf(ask->file, sizeof ask->file, "%s%s",
                   ask->args[0] == NULL ? "holdfast" : ask->args[0], file_end);
    return HF_OK;
}

hf_err hf_ask_list(hf_query *ask, const hf_reader *r, json_t *items, const char *next,
                   size_t looked_at)
{
    return hf_ask_give(ask, r,
                       json_pack("{s:o, s:o, s:I}", "items", items, "next",
                                 *next == '\0' ? json_null() : hf_out_text(next),
                                 "looked_at", (json_int_t)looked_at),
                       0);
}

static unsigned status_of(hf_err err)
{
    switch ((int)err) {
    case HF_GONE:
        return 404;
    case HF_INVALID:
        return 400;
    case HF_TOOBIG:
        return 413;
    case HF_EXISTS:
    case HF_RUNNING:
    case HF_DEAD:
    case HF_PARKED:
    case HF_BUSY:
    case HF_TAKEN:
    case HF_LOST:
        return 409;
    case HF_NOMEM:
    case HF_SYSTEM:
        return 500;
    default:
        return 503; /* what Redis is to blame for */
    }
}

/* "HF_BUSY_SCRIPT" becomes "busy_script". */
static void code_of(hf_err err, char out[32])
{
    const char *name = hf_err_name(err);
    size_t n = 0;
    name += strncmp(name, "HF_", 3) == 0 ? 3 : 0;
    for (; n < 31 && name[n] != '\0'; n++)
        out[n] = (char)tolower((unsigned char)name[n]);
    out[n] = '\0';
}

static void take_fault(hf_query *ask, hf_err err, const char *detail)
{
    char code[32], message[MESSAGE];
    code_of(err, code);
    (void)hf_ask_refuse(ask, status_of(err), err == HF_GONE ? "not_found" : code, "%s",
                        hf_say_whole(err, detail, message, sizeof message));
}

/* ---- the task ---- */

static void run(hf_poll_task *task, hf_reader *r)
{
    hf_query *ask = HF_CONTAINER(task, hf_query, task);
    hf_err err = hf_reader_open(r);
    if (err == HF_OK || ask->away_is_fine)
        err = hf_reader_note(r, ask->run(ask, r));
    if (err != HF_OK)
        take_fault(ask, err, r->detail);
}

static void done(hf_poll_task *task, bool dropped)
{
    hf_query *ask = HF_CONTAINER(task, hf_query, task);
    ask->told(ask, dropped);
}

hf_query *hf_ask_new(hf_ask_run what, void (*told)(hf_query *ask, bool dropped),
                     void *owner)
{
    hf_query *ask = calloc(1, sizeof *ask);
    if (ask != NULL)
        *ask = (hf_query){.task = {.run = run, .done = done},
                          .run = what,
                          .told = told,
                          .owner = owner};
    return ask;
}

void hf_ask_free(hf_query *ask)
{
    if (ask == NULL)
        return;
    hf_target_done(&ask->target);
    json_decref(ask->body);
    free(ask->text);
    free(ask);
}

/* ---- what was asked ---- */

const char *hf_ask_param(const hf_query *ask, const char *name)
{
    return hf_target_param(&ask->target, name);
}

const char *hf_ask_name(hf_query *ask, const char *param, bool *good)
{
    const char *name = hf_ask_param(ask, param);
    *good = name == NULL || hf_name_ok(name);
    if (!*good)
        (void)hf_ask_refuse(ask, 400, "invalid",
                            "%s: expected 1 to 128 characters of A-Z a-z 0-9 . _ : -",
                            param);
    return name;
}

size_t hf_ask_limit(hf_query *ask)
{
    int64_t limit;
    if (hf_target_number(&ask->target, "limit", 1, PAGE_MAX, PAGE, &limit))
        return (size_t)limit;
    (void)hf_ask_refuse(ask, 400, "invalid", "limit: expected 1 to %d", PAGE_MAX);
    return 0;
}

const char *hf_ask_text(const hf_query *ask, const char *name)
{
    const char *text = json_string_value(json_object_get(ask->body, name));
    return text == NULL ||
                   strlen(text) != json_string_length(json_object_get(ask->body, name))
               ? NULL
               : text;
}

bool hf_ask_has(const hf_query *ask, const char *name)
{
    const json_t *value = json_object_get(ask->body, name);
    return value != NULL && !json_is_null(value);
}

bool hf_ask_integer(const hf_query *ask, const char *name, int64_t min, int64_t max,
                    int64_t otherwise, int64_t *out)
{
    const json_t *value = json_object_get(ask->body, name);
    *out = hf_ask_has(ask, name) ? json_integer_value(value) : otherwise;
    return !hf_ask_has(ask, name) ||
           (json_is_integer(value) && *out >= min && *out <= max);
}
