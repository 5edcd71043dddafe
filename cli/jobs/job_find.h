/* job_find.h - finds the job of an id, for the commands about one job. */
#ifndef HF_CLI_JOBS_JOB_FIND_H
#define HF_CLI_JOBS_JOB_FIND_H

#include "cli/cli.h"
#include "holdfast/admin.h"

/* A command about one job: checks that ID, and --queue if there is one, are names,
 * connects, and lets `act` do it. */
int hf_job_command(const hf_cli *cli, int (*act)(const hf_cli *cli, hf_admin *admin));

/* The job of that id. Without --queue all queues are searched. An id that several of
 * them have is refused (64), because it is ambiguous. HF_EXIT_OK, and
 * out->queue is its queue; else it has been said. */
int hf_job_find(const hf_cli *cli, hf_admin *admin, hf_job_info *out);

/* Says that there is no such job (any more), and gives what the command ends with. */
int hf_job_not_found(const hf_cli *cli, const char *queue);

/* The same of a job that was found, and that a change did not find: it was done and kept,
 * or has gone since. */
int hf_job_gone(const hf_cli *cli, const hf_job_info *job);

#endif
