/* death.c - worker/pool/death.h. */
#include "worker/pool/death.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/signal_name.h"
#include "base/text.h"
#include "worker/program/verdict.h"

enum { SEEN_MS = 5000 }; /* from an end to the sight of it, on a busy machine */

void hf_death_describe(const hf_death *death, char out[HF_DEATH_SIZE])
{
    const hf_group *group = death->group;
    int n;
    if (group->fault.step != HF_SPAWN_NONE) {
        const hf_program spec = {HF_PROGRAM_INIT, .argv = death->pool->argv,
                                 .cwd = death->pool->cwd};
        hf_program_verdict_not_started(&spec, &group->fault, out);
        return;
    }
    if (death->why[0] != '\0')
        n = snprintf(out, HF_DEATH_SIZE, "%s", death->why);
    else if (group->by_signal && hf_signal_name(group->status) != NULL)
        n = snprintf(out, HF_DEATH_SIZE, "killed by signal %d (%s)", group->status,
                     hf_signal_name(group->status));
    else if (group->by_signal)
        n = snprintf(out, HF_DEATH_SIZE, "killed by signal %d", group->status);
    else
        n = snprintf(out, HF_DEATH_SIZE, "exited with status %d%s", group->status,
                     death->in_run ? " in the middle of a run" : "");
    size_t len = strlen(death->stderr_end);
    size_t from = hf_text_end(death->stderr_end, len, HF_DEATH_SIZE - (size_t)n - 2);
    if (len > from)
        snprintf(out + n, HF_DEATH_SIZE - (size_t)n, "\n%s", death->stderr_end + from);
}

bool hf_death_is_by(const hf_group *group, int signal, uint64_t sent_ns,
                    uint32_t grace_ms)
{
    return group->by_signal && group->status == signal && sent_ns != 0 &&
           hf_boot_ns() - sent_ns < (grace_ms + SEEN_MS) * HF_MS_NS;
}

bool hf_death_may_be_the_minders(const hf_group *group)
{
    return group->told &&
           (!group->by_signal || group->status == SIGTERM || group->status == SIGKILL);
}
