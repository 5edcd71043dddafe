/* page.c - see page.h. */
#include "cli/jobs/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mask.h"
#include "cli/common/more.h"
#include "cli/jobs/job_out.h"

enum { SLICE = 500 };

typedef struct walk {
    const hf_cli *cli;
    hf_admin *admin;
    const hf_page_opts *opts;
    hf_page *page;
    const char *queue; /* that is listed now */
    size_t state;
    bool more; /* a job of the next page was seen */
} walk;

/* ---- where ---- */

int hf_page_queues(const hf_cli *cli, hf_admin *admin, char ***names, size_t *n)
{
    const char *queue = hf_argv_text(cli->args, "queue");
    if (queue == NULL) {
        hf_err err = hf_admin_queues(admin, names, n, cli->detail);
        return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, cli->detail);
    }
    size_t size = strlen(queue) + 1;
    char **one = malloc(sizeof *one + size);
    if (one == NULL)
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    one[0] = (char *)(one + 1);
    memcpy(one[0], queue, size);
    *names = one;
    *n = 1;
    return HF_EXIT_OK;
}

/* Where the figures of a queue are refused it is this machine's time: a table is worth
 * more than the words in one column of it. */
int hf_page_time(const hf_cli *cli, hf_admin *admin, const char *queue, int64_t *now_ms)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_err err =
        hf_admin_stats(admin, queue != NULL ? queue : "default", &stats, cli->detail);
    *now_ms = err == HF_OK ? stats.now_ms : hf_wall_ms();
    return err == HF_OK || err == HF_REDIS ? HF_EXIT_OK
                                           : hf_cli_fail(cli, err, cli->detail);
}

void hf_page_tell_end(const hf_cli *cli, const hf_page *page, const char *what)
{
    const char *queue = hf_argv_text(cli->args, "queue");
    if (page->after[0] != '\0')
        hf_more_tell(cli, page->n, "job", page->after);
    else if (page->n == 0 && !cli->json)
        printf("%s%sno %s\n", queue != NULL ? queue : "", queue != NULL ? ": " : "",
               what);
}

/* The place of a state in the list; a list of all states has the retried among the
 * delayed. n_states: it has none. */
static size_t find_state(const hf_page_opts *opts, const char *name, size_t len)
{
    for (size_t i = 0; i < opts->n_states; i++) {
        const char *its = hf_job_state_name(opts->states[i]);
        if (strlen(its) == len && memcmp(its, name, len) == 0)
            return i;
    }
    return strncmp(name, "retry", len) == 0 && len == 5 ? find_state(opts, "delayed", 7)
                                                        : opts->n_states;
}

static int bad_after(const hf_cli *cli, const char *text)
{
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "--after: expected the id of a job, or what the page before has "
                      "said, of the same list, found '%s'",
                      HF_FOUND(text));
}

/* "QUEUE/STATE/CURSOR": the queue goes to `queue`, *rest is the cursor. */
static int read_place(const hf_cli *cli, const hf_page_opts *opts, const char *text,
                      char queue[HF_ID_SIZE], size_t *state, const char **rest)
{
    const char *asked = hf_argv_text(cli->args, "queue");
    size_t len = strcspn(text, "/");
    if (len >= HF_ID_SIZE)
        return bad_after(cli, text);
    memcpy(queue, text, len);
    queue[len] = '\0';
    const char *name = text + len + 1;
    size_t name_len = strcspn(name, "/");
    *state = find_state(opts, name, name_len);
    if (!hf_name_ok(queue) || name[name_len] == '\0' || *state == opts->n_states ||
        (asked != NULL && strcmp(asked, queue) != 0))
        return bad_after(cli, text);
    *rest = name + name_len + 1;
    return HF_EXIT_OK;
}

/* The same for a job's id, which has to be found first. If the job has gone its place is
 * unknown, and the list begins at its start. */
static int find_place(const walk *w, char *const *names, size_t n, const char *id,
                      char queue[HF_ID_SIZE], size_t *state)
{
    for (size_t i = 0; i < n; i++) {
        hf_job_info job = {HF_JOB_INFO_INIT};
        hf_err err = hf_admin_job(w->admin, names[i], id, &job, NULL, w->cli->detail);
        if (err != HF_OK && err != HF_GONE)
            return hf_cli_fail(w->cli, err, w->cli->detail);
        const char *name = hf_job_state_name(job.state);
        *state = find_state(w->opts, name, strlen(name));
        if (err == HF_GONE || *state == w->opts->n_states)
            continue;
        memcpy(queue, job.queue, HF_ID_SIZE);
        return HF_EXIT_OK;
    }
    *state = 0;
    queue[0] = '\0';
    hf_cli_warn(w->cli, "the job of --after has gone: the list begins at its start. What "
                        "a page says at its end stays good");
    return HF_EXIT_OK;
}

/* ---- the list ---- */

/* A list with a filter has one state, in which a job's score is its time. */
static void note_place(walk *w, const char *cursor)
{
    (void)snprintf(w->page->after, sizeof w->page->after, "%s/%s/%s", w->queue,
                   hf_job_state_name(w->opts->states[w->state]), cursor);
}

static void on_job(const hf_job_info *job, void *arg)
{
    walk *w = arg;
    char cursor[HF_CURSOR_SIZE];
    if (w->opts->passes != NULL && !w->opts->passes(job, w->opts->arg))
        return;
    if (w->page->n == w->opts->limit) {
        w->more = true;
        return;
    }
    w->page->n++;
    if (w->opts->passes != NULL) {
        (void)snprintf(cursor, sizeof cursor, "%" PRId64 "/%s", job->due_ms, job->id);
        note_place(w, cursor);
    }
    w->opts->cb(job, w->opts->arg);
}

/* The jobs in one state, from behind `after` (NULL or "": from the start). */
static hf_err list_state(walk *w, const char *after)
{
    char next[HF_CURSOR_SIZE];
    bool filters = w->opts->passes != NULL;
    hf_err err;
    after = after != NULL && *after != '\0' ? after : NULL;
    do {
        size_t left = w->opts->limit - w->page->n;
        bool was_full = left == 0;
        size_t want = filters ? SLICE : was_full ? 1 : left;
        err = hf_admin_list(w->admin, w->queue, w->opts->states[w->state], after, want,
                            on_job, w, next, w->cli->detail);
        if (err == HF_GONE && after != NULL) {
            after = NULL; /* the job of an id went just now */
            continue;
        }
        if (err != HF_OK || next[0] == '\0' || w->more)
            break;
        after = next;
        /* The end of a page, or of one request: it may have seen 50,000 jobs in vain. */
        if (!filters && !was_full)
            w->more = true;
    } while (!w->more);
    if (err == HF_OK && w->more && !filters)
        note_place(w, after == next ? next : "");
    return err;
}

static hf_err list_queue(walk *w, const char *after)
{
    hf_err err = HF_OK;
    for (; w->state < w->opts->n_states && err == HF_OK && !w->more; w->state++) {
        err = list_state(w, after);
        after = NULL;
    }
    w->state = 0;
    return err;
}

static int list(walk *w, char *const *names, size_t n)
{
    char queue[HF_ID_SIZE] = "";
    const char *after = hf_argv_text(w->cli->args, "after"), *rest = after;
    int code = HF_EXIT_OK;
    if (after != NULL && strchr(after, '/') != NULL)
        code = read_place(w->cli, w->opts, after, queue, &w->state, &rest);
    else if (after != NULL)
        code = find_place(w, names, n, after, queue, &w->state);
    if (queue[0] == '\0')
        rest = NULL;
    hf_err err = HF_OK;
    for (size_t i = 0; i < n && code == HF_EXIT_OK && err == HF_OK && !w->more; i++) {
        int order = strcmp(names[i], queue);
        if (order < 0)
            continue;
        w->queue = names[i];
        if (order > 0)
            w->state = 0;
        err = list_queue(w, order == 0 ? rest : NULL);
    }
    if (!w->more)
        w->page->after[0] = '\0';
    return err == HF_OK ? code : hf_cli_fail(w->cli, err, w->cli->detail);
}

int hf_page_list(const hf_cli *cli, hf_admin *admin, const hf_page_opts *opts,
                 hf_page *out)
{
    char **names = NULL;
    size_t n = 0;
    *out = (hf_page){.n = 0};
    walk w = {.cli = cli, .admin = admin, .opts = opts, .page = out};
    int code = hf_page_queues(cli, admin, &names, &n);
    if (code == HF_EXIT_OK)
        code = list(&w, names, n);
    free(names);
    return code;
}
