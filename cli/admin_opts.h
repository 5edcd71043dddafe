/* admin_opts.h - the options of the commands that look into queues and put them right,
 * for the table of commands.c. Each list ends with an option that has no name. */
#ifndef HF_CLI_ADMIN_OPTS_H
#define HF_CLI_ADMIN_OPTS_H

#include "cli/args.h"

#define HF_OPT_QUEUE                                                                     \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "the queue; \"default\" if it is not named"                              \
    }
#define HF_OPT_END                                                                       \
    {                                                                                    \
        .name = 0                                                                        \
    }

extern const hf_opt hf_opts_limit[];
extern const hf_opt hf_opts_purge[];
extern const hf_opt hf_opts_queue_list[];
extern const hf_opt hf_opts_workers[];
extern const hf_opt hf_opts_show[];
extern const hf_opt hf_opts_find[];
extern const hf_opt hf_opts_cancel[];
extern const hf_opt hf_opts_delete[];
extern const hf_opt hf_opts_list[];
extern const hf_opt hf_opts_dead_list[];
extern const hf_opt hf_opts_dead_retry[];
extern const hf_opt hf_opts_dead_purge[];
extern const hf_opt hf_opts_locks_list[];
extern const hf_opt hf_opts_locks_show[];
extern const hf_opt hf_opts_locks_release[];
extern const hf_opt hf_opts_locks_revoke[];
extern const hf_opt hf_opts_fence_check[];

#endif
