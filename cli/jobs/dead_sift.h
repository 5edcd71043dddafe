/* dead_sift.h - the dead jobs that a filter lets pass, and the options that make one. */
#ifndef HF_CLI_JOBS_DEAD_SIFT_H
#define HF_CLI_JOBS_DEAD_SIFT_H

#include "cli/cli.h"
#include "holdfast/admin.h"

/* --queue, --type: HF_EXIT_OK when they are names. */
int hf_dead_check(const hf_cli *cli);

/* --type, --since and --limit (`limit` if it is not given; 0: none). --since counts back
 * from now_ms. Text is borrowed from the cli. */
hf_dead_filter hf_dead_filter_of(const hf_cli *cli, int64_t now_ms, size_t limit);

/* Goes through the dead of a queue, those that died first first, after the place of
 * `after` (NULL: from the start): calls cb (may be NULL) for each that passes, until
 * there are filter->limit of them; *n counts them. */
HF_MUSTCHECK hf_err hf_dead_sift(hf_admin *admin, const char *queue,
                                 const hf_dead_filter *filter, const char *after,
                                 hf_job_cb cb, void *arg, size_t *n);

#endif
