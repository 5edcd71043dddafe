/* env.c - worker/program/env.h. */
#include "worker/program/env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

/* exec refuses more than a quarter of the stack's limit, 2 MiB where it is as usual. */
enum { TEXT_MAX = 1 << 20 };

static const char *const always[] = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", NULL};

static void end_var(hf_program_env *env)
{
    hf_buf_add(&env->text, "", 1);
}

static void add_text(hf_program_env *env, const char *name, const char *value)
{
    hf_buf_printf(&env->text, "%s=%s", name, value);
    end_var(env);
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void pass_on(hf_program_env *env, const char *const *names,
                    bool (*skip)(const char *))
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        const char *value = getenv(names[i]);
        bool again = is_one_of(names[i], names, i) || (skip != NULL && skip(names[i]));
        if (value != NULL && !again)
            add_text(env, names[i], value);
    }
}

/* Variables that the worker sets cannot be passed on from its environment. */
static bool is_ours(const char *name)
{
    return strncmp(name, "HOLDFAST_", 9) == 0 ||
           is_one_of(name, always, HF_COUNT(always) - 1);
}

static hf_err split(hf_program_env *env)
{
    size_t n = 0;
    char *at = env->text.data, *end = at + env->text.len;
    for (; at < end; at += strlen(at) + 1) {
        if (n == HF_PROGRAM_ENV_MAX)
            return HF_TOOBIG;
        env->vars[n++] = at;
    }
    env->vars[n] = NULL;
    return HF_OK;
}

hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                           const hf_program_job *job)
{
    hf_buf_init(&env->text, TEXT_MAX);
    add_text(env, "HOLDFAST_VERDICT_FD", "3");
    add_text(env, "HOLDFAST_CHECKPOINT_FD", "4");
    add_text(env, "HOLDFAST_JOB_ID", job->id);
    add_text(env, "HOLDFAST_TYPE", job->type);
    add_text(env, "HOLDFAST_QUEUE", job->queue);
    add_text(env, "HOLDFAST_FENCE", job->fence);
    hf_buf_printf(&env->text, "HOLDFAST_ATTEMPT=%" PRIu32, job->attempt);
    end_var(env);
    if (job->deadline_unix_ms != 0) {
        hf_buf_printf(&env->text, "HOLDFAST_DEADLINE_UNIX_MS=%" PRId64,
                      job->deadline_unix_ms);
        end_var(env);
    }
    if (job->scheduled_unix_ms != 0) {
        hf_buf_printf(&env->text, "HOLDFAST_SCHEDULED_UNIX_MS=%" PRId64,
                      job->scheduled_unix_ms);
        end_var(env);
    }
    if (job->headers != NULL && job->headers[0] != '\0')
        add_text(env, "HOLDFAST_HEADERS", job->headers);
    pass_on(env, always, NULL);
    pass_on(env, spec->env, is_ours);
    hf_err err = hf_buf_err(&env->text);
    return err == HF_OK ? split(env) : err;
}

void hf_program_env_done(hf_program_env *env)
{
    hf_buf_done(&env->text);
}
