/* verdict.c - worker/program/verdict.h. */
#include "worker/program/verdict.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "worker/program/said.h"

/* "what: why"; of a long reason its end. */
static void say(char *error, const char *what, const char *why)
{
    size_t room = HF_PROGRAM_ERROR_MAX;
    size_t taken = what[0] == '\0' ? 0 : strlen(what) + 2;
    why += hf_text_end(why, strlen(why), room - taken);
    const char *const parts[] = {what, what[0] == '\0' || why[0] == '\0' ? "" : ": ",
                                 why};
    for (size_t i = 0; i < HF_COUNT(parts); i++) {
        size_t len = strnlen(parts[i], room);
        memcpy(error, parts[i], len);
        error += len;
        room -= len;
    }
    *error = '\0';
}

void hf_program_verdict_not_started(const hf_program *spec, const hf_spawn_fault *fault,
                                    char error[HF_PROGRAM_ERROR_MAX + 1])
{
    const char *name = spec->argv[0], *why = strerror(fault->error);
    if (fault->step == HF_SPAWN_MINDER)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "the minder cannot be told: %s", why);
    else if (fault->step == HF_SPAWN_LATE)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "the lease was over before it started");
    else if (fault->step == HF_SPAWN_CWD)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot enter '%s': %s", spec->cwd, why);
    else if (fault->step == HF_SPAWN_EXEC)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot run '%s': %s", name, why);
    else
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot prepare '%s': %s", name, why);
}

void hf_program_verdict_decide(hf_program_result *result, const hf_program_end_state *end,
                               const hf_verdict_line *line,
                               char error[HF_PROGRAM_ERROR_MAX + 1])
{
    char what[64], duration[HF_DURATION_SIZE];
    const char *said = line->error[0] != '\0' ? line->error : end->stderr_end;
    result->error = error;
    result->verdict = HF_VERDICT_RETRY;
    result->has_retry_in = line->has_retry_in;
    result->retry_in_ms = line->retry_in_ms;
    error[0] = '\0';
    if (end->timed_out) {
        hf_format_duration((int64_t)end->timeout_ms, duration);
        snprintf(what, sizeof what, "time-out after %s", duration);
        say(error, what, said);
    } else if (end->by_signal) {
        snprintf(what, sizeof what, "killed by signal %d", end->status);
        say(error, what, said);
    } else {
        if (line->has_verdict)
            result->verdict = line->verdict;
        else if (end->status == 0)
            result->verdict = HF_VERDICT_DONE;
        else if (end->status == HF_EXIT_DEAD)
            result->verdict = HF_VERDICT_DEAD;
        bool failed =
            result->verdict == HF_VERDICT_RETRY || result->verdict == HF_VERDICT_DEAD;
        if (!failed)
            said = line->error; /* its output is for the log only */
        snprintf(what, sizeof what, "exit status %d", end->status);
        bool none = said[0] == '\0' && failed;
        say(error, none ? what : "", said);
    }
    if (result->verdict != HF_VERDICT_RETRY && result->verdict != HF_VERDICT_RELEASE)
        result->has_retry_in = false;
}
