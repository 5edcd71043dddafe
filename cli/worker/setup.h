/* setup.h - what the configuration and the command line together make of a worker:
 * at its start, and each time its file is read again. */
#ifndef HF_CLI_WORKER_SETUP_H
#define HF_CLI_WORKER_SETUP_H

#include "cli/cli.h"
#include "holdfast/worker.h"

typedef struct hf_worker_setup {
    hf_worker_opts opts; /* its queues are these; no log */
    hf_worker_queue queues[HF_CONFIG_QUEUES_MAX];
    size_t n_queues;
    hf_program *programs; /* owned */
    size_t n_programs;
    hf_pool *pools; /* owned */
    size_t n_pools;
    const char **command;   /* owned: after "--"; NULL: there is none */
    hf_schedule *schedules; /* owned */
    size_t n_schedules;
} hf_worker_setup;

enum { HF_SETUP_DETAIL_SIZE = HF_CONFIG_DETAIL_SIZE };

/* All text is borrowed from the cli and its configuration. HF_EXIT_OK: the caller ends
 * *out with hf_worker_setup_done(). Else `detail` says why. */
int hf_worker_setup_make(hf_worker_setup *out, const hf_cli *cli,
                         char detail[HF_SETUP_DETAIL_SIZE]);
void hf_worker_setup_done(hf_worker_setup *setup);

#endif
