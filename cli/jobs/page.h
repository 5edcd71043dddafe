/* page.h - a page of jobs, for the lists of jobs: of one queue or all, queue after queue,
 * in some states, one state after the other.
 *
 * The place where a page ends is QUEUE/STATE/CURSOR, with the cursor of hf_admin_list().
 * It stays good when the job there moves or goes. */
#ifndef HF_CLI_JOBS_PAGE_H
#define HF_CLI_JOBS_PAGE_H

#include "cli/cli.h"
#include "holdfast/admin.h"

typedef struct hf_page_opts {
    const hf_job_state *states; /* in their order */
    size_t n_states;
    size_t limit;
    /* NULL: each job is in the list. Else the list has one state, dead. */
    bool (*passes)(const hf_job_info *job, void *arg);
    hf_job_cb cb;
    void *arg; /* of both */
} hf_page_opts;

enum { HF_PLACE_SIZE = HF_ID_SIZE + HF_CURSOR_SIZE + 16 };

typedef struct hf_page {
    size_t n;                  /* jobs that cb was called for */
    char after[HF_PLACE_SIZE]; /* "": the list ends here */
} hf_page;

/* --queue and --after say where. HF_EXIT_OK, or it has been said. */
int hf_page_list(const hf_cli *cli, hf_admin *admin, const hf_page_opts *opts,
                 hf_page *out);

/* Redis's time, by which jobs are due; `queue` may be NULL. HF_EXIT_OK, or it has been
 * said. */
int hf_page_time(const hf_cli *cli, hf_admin *admin, const char *queue, int64_t *now_ms);

/* Prints how to see the next page, or that there is nothing; `what`: "such jobs". */
void hf_page_tell_end(const hf_cli *cli, const hf_page *page, const char *what);

/* The queues that a command without an id is about, --queue or all: owned by the caller,
 * one free(). HF_EXIT_OK, or it has been said. */
int hf_page_queues(const hf_cli *cli, hf_admin *admin, char ***names, size_t *n);

#endif
