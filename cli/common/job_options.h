/* job_options.h - the options of a job on the command line: HF_OPTS_OF_JOBS of
 * cli/options.h. */
#ifndef HF_CLI_COMMON_JOB_OPTIONS_H
#define HF_CLI_COMMON_JOB_OPTIONS_H

#include "cli/cli.h"
#include "holdfast/producer.h"

/* HF_EXIT_OK, or what was said on standard error. */
int hf_job_options_take(const hf_cli *cli, hf_job *job);

#endif
