/* result.c - `holdfast job result`. */
#include "cli/common/result.h"
#include "cli/jobs/job_find.h"

/* Which queue has it is told by the job. */
static int result(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    int code = hf_job_find(cli, admin, &job);
    return code == HF_EXIT_OK ? hf_result_print(cli, admin, job.queue, job.id) : code;
}

int hf_cmd_job_result(hf_cli *cli)
{
    return hf_job_command(cli, result);
}
