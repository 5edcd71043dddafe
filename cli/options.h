/* options.h - the options of the commands, for the table of commands.c. Each list ends
 * with an option that has no name. */
#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include "cli/limits.h"
#include "cli/table.h"

#define HF_OPT_QUEUE                                                                     \
    {                                                                                    \
        .name = "queue", .alike = "topic|tube|channel", .letter = 'q',                   \
        .kind = HF_OPT_TEXT, .value = "Q",                                               \
        .help = "the queue; \"default\" if it is not given"                              \
    }
#define HF_OPT_END                                                                       \
    {                                                                                    \
        .name = 0                                                                        \
    }

/* How a job is run: the options of `enqueue` and of `cron add`
 * (cli/common/job_options.h). */
#define HF_OPTS_OF_JOBS                                                                  \
    {.name = "max-attempts",                                                             \
     .alike = "retries|retry|attempts|max-retries|max-retry",                            \
     .kind = HF_OPT_INT,                                                                 \
     .value = "N",                                                                       \
     .min = 1,                                                                           \
     .max = HF_ATTEMPTS_MAX,                                                             \
     .help = "number of failed attempts after which the job is dead"},                   \
        {.name = "timeout",                                                              \
         .kind = HF_OPT_DURATION,                                                        \
         .value = "DURATION",                                                            \
         .min = 1,                                                                       \
         .max = HF_TIMEOUT_MAX_MS,                                                       \
         .help = "fail an attempt after this long"},                                     \
        {.name = "priority",                                                             \
         .kind = HF_OPT_CHOICE,                                                          \
         .value = "LEVEL",                                                               \
         .choices = "high|normal|low",                                                   \
         .help = "start the job before those of a lower priority: high, normal or low; " \
                 "default normal"},                                                      \
        {.name = "keep",                                                                 \
         .kind = HF_OPT_DURATION,                                                        \
         .value = "DURATION",                                                            \
         .min = 1,                                                                       \
         .max = HF_DELAY_MAX_MS,                                                         \
         .help = "keep the job for this long when it is done, with its result"},         \
        {.name = "start-within",                                                         \
         .kind = HF_OPT_DURATION,                                                        \
         .value = "DURATION",                                                            \
         .min = 1,                                                                       \
         .max = HF_DELAY_MAX_MS,                                                         \
         .help =                                                                         \
             "let the job expire if it has not started this long after its first due "   \
             "time"},                                                                    \
        {.name = "expired",                                                              \
         .kind = HF_OPT_CHOICE,                                                          \
         .value = "WHAT",                                                                \
         .choices = "drop|dead",                                                         \
         .help = "what to do with an expired job: drop (only counted; the default) or "  \
                 "dead"},                                                                \
    {                                                                                    \
        .name = "on-dead", .kind = HF_OPT_TEXT, .value = "TYPE",                         \
        .help =                                                                          \
            "enqueue a job of this type when the job dies, with JSON about the death"    \
    }

/* The help of `holdfast lock run`, paragraph by paragraph. */
#define HF_MORE_LOCK                                                                     \
    "COMMAND gets its own process group, and the terminal while it runs in the "         \
    "foreground; INT, TERM, HUP, QUIT, USR1, USR2, CONT, TSTP and WINCH are "            \
    "passed on to the group. Its environment contains HOLDFAST_LOCK_NAME, "              \
    "_FENCE, _OWNER, _DEADLINE_UNIX_MS (of the first lease) and _FD, a "                 \
    "descriptor that becomes readable (end of file) when the lock is lost. "             \
    "Several names are taken together, all or none; they need a common tag: "            \
    "shop/a,shop/b.\nThe lock is held until the last process of the group has "          \
    "ended, including the processes that COMMAND left in the background. When "          \
    "the lock is lost the group gets TERM and, after --grace, KILL. If renewals "        \
    "fail, this happens before the lease can pass to another holder, even while "        \
    "holdfast itself is stopped. When holdfast is killed the group gets KILL. If "       \
    "holdfast is stopped together with COMMAND, as by ^Z, it cannot renew, and "         \
    "prints how long the lock lasts. If it does not continue in that time, "             \
    "COMMAND gets TERM and KILL, others may have the lock, and `fg` exits with "         \
    "75.\nExits with the exit code of COMMAND (128 + N when signal N ended it), "        \
    "or with: 1 (or --conflict-exit-code) another client has the lock, 64 wrong "        \
    "usage, 65 an invalid name, 69 Redis was not reached within "                        \
    "redis.connect_timeout (with --wait within that time if it is shorter, with "        \
    "--nonblock within redis.request_timeout), 75 the lock was lost, 126 COMMAND "       \
    "cannot be executed, 127 COMMAND was not found, 128 + N when signal N ended "        \
    "the wait.\n`run` may be left out: lock NAME -- COMMAND. After `lock`, the "         \
    "words run, list, show, release, revoke and fence-check are commands, unless "       \
    "-- and a COMMAND follow: then the word is the name of a lock. So lock list -- "     \
    "COMMAND takes a lock named list, as lock run list -- COMMAND does, and lock "       \
    "run -- COMMAND one named run. A name that begins with - stands behind --: lock "    \
    "show -- -x, and lock run -- -x COMMAND."

extern const hf_opt hf_opts_enqueue[];
extern const hf_opt hf_opts_limit[];
extern const hf_opt hf_opts_purge[];
extern const hf_opt hf_opts_remove[];
extern const hf_opt hf_opts_queue_list[];
extern const hf_opt hf_opts_stats[];
extern const hf_opt hf_opts_runs[];
extern const hf_opt hf_opts_workers[];
extern const hf_opt hf_opts_show[];
extern const hf_opt hf_opts_find[];
extern const hf_opt hf_opts_edit[];
extern const hf_opt hf_opts_logs[];
extern const hf_opt hf_opts_cancel[];
extern const hf_opt hf_opts_delete[];
extern const hf_opt hf_opts_list[];
extern const hf_opt hf_opts_dead_list[];
extern const hf_opt hf_opts_dead_retry[];
extern const hf_opt hf_opts_dead_purge[];
extern const hf_opt hf_opts_cron_list[];
extern const hf_opt hf_opts_cron_one[];
extern const hf_opt hf_opts_cron_show[];
extern const hf_opt hf_opts_cron_add[];
extern const hf_opt hf_opts_cron_next[];
extern const hf_opt hf_opts_lock[];
extern const hf_opt hf_opts_locks_list[];
extern const hf_opt hf_opts_locks_show[];
extern const hf_opt hf_opts_locks_release[];
extern const hf_opt hf_opts_locks_revoke[];
extern const hf_opt hf_opts_fence_check[];
extern const hf_opt hf_opts_worker[];
extern const hf_opt hf_opts_script[];
extern const hf_opt hf_opts_check[];
extern const hf_opt hf_opts_conform[];
extern const hf_opt hf_opts_doctor[];
extern const hf_opt hf_opts_wrong[];
extern const hf_opt hf_opts_top[];
extern const hf_opt hf_opts_dashboard[];
extern const hf_opt hf_opts_exporter[];
extern const hf_opt hf_opts_demo[];
extern const hf_opt hf_opts_bench[];
extern const hf_opt hf_opts_help[];

#endif
