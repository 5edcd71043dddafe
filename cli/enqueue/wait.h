/* wait.h - `holdfast enqueue --wait`: the end of the job that was accepted. */
#ifndef HF_CLI_ENQUEUE_WAIT_H
#define HF_CLI_ENQUEUE_WAIT_H

#include "cli/cli.h"
#include "holdfast/producer.h"

/* Waits, and tells how the job ended. The exit code for that end. */
int hf_enqueue_end(const hf_cli *cli, const char *queue, const hf_enqueue_result *job);

#endif
