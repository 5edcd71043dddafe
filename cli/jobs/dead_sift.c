/* dead_sift.c - see dead_sift.h. */
#include "cli/jobs/dead_sift.h"

#include <string.h>

enum { SLICE = 500 };

int hf_dead_check(const hf_cli *cli)
{
    const char *type = hf_argv_text(cli->args, "type");
    if (hf_cli_queue(cli) == NULL)
        return HF_EXIT_DATA;
    return type == NULL ? HF_EXIT_OK : hf_cli_check_name(cli, "a type", type);
}

hf_dead_filter hf_dead_filter_of(const hf_cli *cli, int64_t now_ms, size_t limit)
{
    int64_t since = hf_argv_number(cli->args, "since", -1);
    return (hf_dead_filter){
        .type = hf_argv_text(cli->args, "type"),
        .since_ms = since < 0 ? 0 : now_ms - since,
        .limit = (size_t)hf_argv_number(cli->args, "limit", (int64_t)limit)};
}

typedef struct sieve {
    const hf_dead_filter *filter;
    hf_job_cb cb;
    void *arg;
    size_t seen, kept;
    char last[HF_ID_SIZE];
} sieve;

static bool is_full(const sieve *s)
{
    return s->filter->limit != 0 && s->kept == s->filter->limit;
}

static void on_job(const hf_job_info *job, void *arg)
{
    sieve *s = arg;
    const char *type = s->filter->type;
    s->seen++;
    memcpy(s->last, job->id, sizeof s->last);
    if (is_full(s) || job->due_ms < s->filter->since_ms ||
        (type != NULL && strcmp(type, job->type) != 0))
        return;
    s->kept++;
    if (s->cb != NULL)
        s->cb(job, s->arg);
}

hf_err hf_dead_sift(hf_admin *admin, const char *queue, const hf_dead_filter *filter,
                    const char *after, hf_job_cb cb, void *arg, size_t *n)
{
    char from[HF_ID_SIZE];
    sieve s = {.filter = filter, .cb = cb, .arg = arg};
    hf_err err;
    do {
        s.seen = 0;
        err = hf_admin_list(admin, queue, HF_STATE_DEAD, after, SLICE, on_job, &s);
        memcpy(from, s.last, sizeof from);
        after = from;
    } while (err == HF_OK && s.seen == SLICE && !is_full(&s));
    *n = s.kept;
    return err;
}
