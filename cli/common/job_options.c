/* job_options.c - see job_options.h. */
#include "cli/common/job_options.h"

#include <string.h>

#include "cli/common/priority.h"

int hf_job_options_take(const hf_cli *cli, hf_job *job)
{
    const hf_argv *args = cli->args;
    job->max_attempts = (uint32_t)hf_argv_number(args, "max-attempts", 0);
    job->timeout_ms = (uint32_t)hf_argv_number(args, "timeout", 0);
    if (hf_argv_has(args, "priority")) /* it is one of its choices */
        (void)hf_priority_read(hf_argv_text(args, "priority"), &job->priority);
    job->keep_ms = hf_argv_number(args, "keep", 0);
    job->start_within_ms = hf_argv_number(args, "start-within", 0);
    job->expired = (hf_expired)hf_argv_number(args, "expired", HF_EXPIRED_DROP);
    job->on_dead = hf_argv_text(args, "on-dead");
    if (hf_argv_has(args, "expired") && !hf_argv_has(args, "start-within"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "%s: --expired needs --start-within",
                          args->command->name);
    return hf_cli_check_name(cli, "a type", job->on_dead);
}
