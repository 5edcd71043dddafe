/* env.c - worker/program/env.h. */
#define _GNU_SOURCE /* environ */
#include "worker/program/env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"

/* exec refuses more than a quarter of the stack's limit, 2 MiB where it is as usual. */
enum { TEXT_MAX = 1 << 20 };

/* The name that OpenTelemetry has for it, without a prefix of ours. */
static const char trace_name[] = "TRACEPARENT";

static const char *const always[] = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", NULL};

static void end_var(hf_program_env *env)
{
    hf_buf_add(&env->text, "", 1);
}

void hf_program_env_add(hf_program_env *env, const char *name, const char *value)
{
    hf_buf_printf(&env->text, "%s=%s", name, value);
    end_var(env);
}

static bool is_one_of(const char *name, size_t len, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* Variables that describe the job, the socket or the lock of a program cannot come from
 * the worker's own environment. */
static bool is_ours(const char *name, size_t len)
{
    static const char *const ours[] = {"VERDICT_FD",
                                       "CHECKPOINT_FD",
                                       "JOB_ID",
                                       "TYPE",
                                       "QUEUE",
                                       "FENCE",
                                       "DEADLINE_UNIX_MS",
                                       "SCHEDULED_UNIX_MS",
                                       "ATTEMPT",
                                       "FD",
                                       "PIPE",
                                       "HEADERS",
                                       "SOCKET"};
    enum { PREFIX = 9 };
    if (len > PREFIX && memcmp(name, "HOLDFAST_", PREFIX) == 0)
        return strncmp(name + PREFIX, "LOCK_", 5) == 0 ||
               is_one_of(name + PREFIX, len - PREFIX, ours, HF_COUNT(ours));
    return is_one_of(name, len, always, HF_COUNT(always) - 1) ||
           (len == sizeof trace_name - 1 && memcmp(name, trace_name, len) == 0);
}

static void pass_names(hf_program_env *env, const char *const *names, bool ours)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        const char *value = getenv(names[i]);
        size_t len = strlen(names[i]);
        bool again =
            is_one_of(names[i], len, names, i) || (!ours && is_ours(names[i], len));
        if (value != NULL && !again)
            hf_program_env_add(env, names[i], value);
    }
}

/* systemd means these for this process alone. */
static bool is_systemds(const char *var)
{
    return strncmp(var, "NOTIFY_SOCKET=", 14) == 0 || strncmp(var, "WATCHDOG_", 9) == 0 ||
           strncmp(var, "LISTEN_", 7) == 0;
}

/* If a name is there twice, programs take the first one. */
static void pass_all(hf_program_env *env)
{
    for (size_t i = 0; environ != NULL && environ[i] != NULL; i++) {
        const char *var = environ[i];
        size_t len = strcspn(var, "=");
        if (is_ours(var, len) || is_systemds(var) || len == 0 || var[len] == '\0')
            continue;
        hf_buf_text(&env->text, var);
        end_var(env);
    }
}

void hf_program_env_pass(hf_program_env *env, const char *const *names, bool all)
{
    pass_names(env, always, true);
    if (all)
        pass_all(env);
    else
        pass_names(env, names, false);
}

static size_t count(const hf_program_env *env)
{
    size_t n = 0;
    for (size_t i = 0; i < env->text.len; i++)
        n += env->text.data[i] == '\0' ? 1 : 0;
    return n;
}

void hf_program_env_begin(hf_program_env *env)
{
    hf_buf_init(&env->text, TEXT_MAX);
    env->vars = NULL;
}

hf_err hf_program_env_end(hf_program_env *env)
{
    hf_err err = hf_buf_err(&env->text);
    if (err != HF_OK)
        return err;
    size_t n = 0;
    env->vars = calloc(count(env) + 1, sizeof *env->vars);
    if (env->vars == NULL)
        return HF_NOMEM;
    char *at = env->text.data, *end = at + env->text.len;
    for (; at < end; at += strlen(at) + 1)
        env->vars[n++] = at;
    return HF_OK;
}

hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                           const hf_program_job *job)
{
    hf_program_env_begin(env);
    hf_program_env_add(env, "HOLDFAST_VERDICT_FD", "3");
    hf_program_env_add(env, "HOLDFAST_CHECKPOINT_FD", "4");
    hf_program_env_add(env, "HOLDFAST_JOB_ID", job->id);
    hf_program_env_add(env, "HOLDFAST_TYPE", job->type);
    hf_program_env_add(env, "HOLDFAST_QUEUE", job->queue);
    hf_program_env_add(env, "HOLDFAST_FENCE", job->fence);
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
        hf_program_env_add(env, "HOLDFAST_HEADERS", job->headers);
    if (job->traceparent != NULL && job->traceparent[0] != '\0')
        hf_program_env_add(env, trace_name, job->traceparent);
    hf_program_env_pass(env, spec->env, spec->env_all);
    return hf_program_env_end(env);
}

void hf_program_env_done(hf_program_env *env)
{
    hf_buf_done(&env->text);
    free(env->vars);
}
