/* job_out.h - a job as the command shows it, in each of its forms. */
#ifndef HF_CLI_JOBS_JOB_OUT_H
#define HF_CLI_JOBS_JOB_OUT_H

#include "cli/out.h"
#include "holdfast/admin.h"

const char *hf_job_state_name(hf_job_state state);
json_t *hf_job_json(const hf_job_info *job); /* NULL: out of memory */
void hf_job_print_json(const hf_job_info *job);
void hf_job_print_whole(const hf_job_info *job, int64_t now_ms);

/* For lists: a table with one job in each row, all in that state; -1: in any. */
void hf_job_table(hf_table *table, int64_t state);
void hf_job_add_row(hf_table *table, const hf_job_info *job, int64_t now_ms);

#endif
