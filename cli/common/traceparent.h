/* traceparent.h - the trace that new jobs belong to. */
#ifndef HF_CLI_COMMON_TRACEPARENT_H
#define HF_CLI_COMMON_TRACEPARENT_H

#include "cli/cli.h"
#include "holdfast/job.h"

/* The text of --traceparent, else of the environment variable TRACEPARENT; NULL: there is
 * none. One in the environment that is not valid is ignored, as the standard says.
 * Returns the exit code. */
int hf_cli_traceparent(const hf_cli *cli, const char **out);

/* Adds it to the headers of a job that has none, and whose headers are JSON. The headers
 * are then in `room`. If they would be too long, the job goes without a trace. NULL: does
 * nothing. */
enum { HF_TRACED_SIZE = HF_HEADERS_MAX + 1 };
void hf_cli_put_trace(hf_job *job, const char *traceparent, char room[HF_TRACED_SIZE]);

#endif
