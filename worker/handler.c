/* handler.c - worker/handler.h. */
#include "worker/handler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "base/words.h"

static void free_handler(hf_handler *handler)
{
    hf_words_free(handler->program.argv);
    hf_words_free(handler->program.env);
    free((void *)(uintptr_t)handler->program.cwd);
    free(handler);
}

static hf_err new_handler(hf_handler **out, const char *type, char *detail)
{
    if (type == NULL || (strcmp(type, "*") != 0 && !hf_name_ok(type))) {
        (void)hf_say_expected(
            detail, "a type (1 to 128 characters of A-Z a-z 0-9 . _ : -) or \"*\"", type);
        return HF_INVALID;
    }
    hf_handler *handler = calloc(1, sizeof *handler);
    if (handler == NULL) {
        (void)hf_say_err(detail, HF_NOMEM);
        return HF_NOMEM;
    }
    snprintf(handler->type, sizeof handler->type, "%s", type);
    handler->refs = 1;
    *out = handler;
    return HF_OK;
}

hf_err hf_handler_of_function(hf_handler **out, const char *type, uint32_t timeout_ms,
                              hf_handler_fn fn, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_err err = fn == NULL ? hf_say_expected(detail, "a function", NULL)
                            : new_handler(out, type, detail);
    if (err != HF_OK)
        return err;
    (*out)->fn = fn;
    (*out)->arg = arg;
    (*out)->timeout_ms = timeout_ms;
    return HF_OK;
}

hf_err hf_handler_of_program(hf_handler **out, const hf_program *program,
                             char detail[HF_DETAIL_SIZE])
{
    hf_handler *handler;
    if (program->argv == NULL || program->argv[0] == NULL) {
        (void)hf_say_expected(detail, "an argv with a program", NULL);
        return HF_INVALID;
    }
    if (program->env_all && program->env != NULL && program->env[0] != NULL)
        return hf_say_expected(detail, "either env or env_all", "both");
    if (program->on_dead != NULL && !hf_name_ok(program->on_dead))
        return hf_say_expected(detail, HF_ON_DEAD_RULE, program->on_dead);
    hf_err err = new_handler(&handler, program->type, detail);
    if (err != HF_OK)
        return err;
    handler->program = *program;
    handler->program.type = handler->type;
    handler->program.argv = hf_words_copy(program->argv);
    handler->program.env = hf_words_copy(program->env);
    handler->program.grace_ms = program->grace_ms == 0 ? 5000 : program->grace_ms;
    handler->program.cwd = program->cwd == NULL ? NULL : strdup(program->cwd);
    handler->timeout_ms = program->timeout_ms;
    handler->max_attempts = program->max_attempts;
    handler->keep_ms = program->keep_ms;
    handler->program.on_dead = NULL;
    if (program->on_dead != NULL)
        snprintf(handler->on_dead, sizeof handler->on_dead, "%s", program->on_dead);
    if ((program->cwd != NULL && handler->program.cwd == NULL) ||
        handler->program.argv == NULL || handler->program.env == NULL) {
        free_handler(handler);
        (void)hf_say_err(detail, HF_NOMEM);
        return HF_NOMEM;
    }
    *out = handler;
    return HF_OK;
}

hf_err hf_handler_of_pool(hf_handler **out, const hf_pool_type *type, const hf_pool *pool,
                          struct hf_supervisor *supervisor, char detail[HF_DETAIL_SIZE])
{
    hf_handler *handler;
    hf_err err = new_handler(&handler, type->type, detail);
    if (err != HF_OK)
        return err;
    handler->pool = supervisor;
    handler->timeout_ms = type->timeout_ms;
    handler->max_attempts = type->max_attempts;
    handler->keep_ms = type->keep_ms;
    if (type->on_dead != NULL)
        snprintf(handler->on_dead, sizeof handler->on_dead, "%s", type->on_dead);
    handler->program.grace_ms = pool->grace_ms;
    handler->program.logs = pool->logs;
    *out = handler;
    return HF_OK;
}

hf_handler *hf_handler_ref(hf_handler *handler)
{
    if (handler != NULL)
        handler->refs++;
    return handler;
}

void hf_handler_unref(hf_handler *handler)
{
    if (handler != NULL && --handler->refs == 0)
        free_handler(handler);
}

bool hf_handler_same(const hf_handler *a, const hf_handler *b)
{
    return a->fn == b->fn && strcmp(a->type, b->type) == 0 &&
           a->timeout_ms == b->timeout_ms && a->max_attempts == b->max_attempts &&
           a->keep_ms == b->keep_ms && strcmp(a->on_dead, b->on_dead) == 0 &&
           a->program.grace_ms == b->program.grace_ms &&
           a->program.logs == b->program.logs &&
           a->program.result_stdout == b->program.result_stdout &&
           a->program.env_all == b->program.env_all &&
           hf_text_same(a->program.cwd, b->program.cwd) &&
           hf_words_same(a->program.argv, b->program.argv) &&
           hf_words_same(a->program.env, b->program.env);
}

hf_handler *hf_handlers_find(hf_handler *const *list, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (hf_text_same(list[i]->type, type))
            return list[i];
    return NULL;
}

bool hf_handlers_only_programs(hf_handler *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i]->fn != NULL)
            return false;
    return true;
}
