/* env.c - cli/lock/env.h. */
#include "cli/lock/env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"

enum { OURS = 5, VAR_SIZE = HF_LOCK_NAMES_MAX * (HF_LOCK_NAME_MAX + 1) + 64 };

struct hf_lock_env {
    char ours[OURS][VAR_SIZE];
    char *vars[]; /* with NULL at its end */
};

extern char **environ;

/* A URL with a login: the command may be another user's, and may print what it has. */
static bool is_secret(const char *var)
{
    static const char url[] = "REDIS_URL=";
    return strncmp(var, url, sizeof url - 1) == 0 && strchr(var, '@') != NULL;
}

static bool is_ours(const char *var)
{
    static const char *const names[OURS] = {
        "HOLDFAST_LOCK_NAME=", "HOLDFAST_LOCK_FENCE=", "HOLDFAST_LOCK_OWNER=",
        "HOLDFAST_LOCK_DEADLINE_UNIX_MS=", "HOLDFAST_LOCK_FD="};
    for (size_t i = 0; i < OURS; i++)
        if (strncmp(var, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

hf_lock_env *hf_lock_env_make(const hf_lock *lock, const char *names, int loss_fd)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL)
        n++;
    hf_lock_env *env = malloc(sizeof *env + (n + OURS + 1) * sizeof env->vars[0]);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_ours(environ[i]) && !is_secret(environ[i]))
            env->vars[kept++] = environ[i];
    (void)snprintf(env->ours[0], VAR_SIZE, "HOLDFAST_LOCK_NAME=%s", names);
    (void)snprintf(env->ours[1], VAR_SIZE, "HOLDFAST_LOCK_FENCE=%" PRIu64,
                   hf_lock_fence(lock));
    (void)snprintf(env->ours[2], VAR_SIZE, "HOLDFAST_LOCK_OWNER=%s",
                   hf_lock_owner_of(lock));
    (void)snprintf(env->ours[3], VAR_SIZE, "HOLDFAST_LOCK_DEADLINE_UNIX_MS=%" PRId64,
                   hf_wall_ms() + hf_lock_remaining_ms(lock));
    (void)snprintf(env->ours[4], VAR_SIZE, "HOLDFAST_LOCK_FD=%d", loss_fd);
    for (size_t i = 0; i < OURS; i++)
        env->vars[kept++] = env->ours[i];
    env->vars[kept] = NULL;
    return env;
}

char *const *hf_lock_env_vars(const hf_lock_env *env)
{
    return env->vars;
}

void hf_lock_env_free(hf_lock_env *env)
{
    free(env);
}
