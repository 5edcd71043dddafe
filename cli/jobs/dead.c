/* dead.c - `holdfast dead ...`: lists dead jobs, retries or removes them, one or all that
 * a filter lets pass. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/error_key.h"
#include "base/mask.h"
#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/common/rate.h"
#include "cli/common/slices.h"
#include "cli/jobs/job_find.h"
#include "cli/jobs/job_out.h"
#include "cli/jobs/page.h"
#include "holdfast/admin.h"

enum { PAGE = 50, PER_SECOND_MAX = 1000000, MS_OF_SECOND = 1000 };

/* ---- those that a filter lets pass ---- */

/* --queue, --type: HF_EXIT_OK when they are names. */
static int check_filter(const hf_cli *cli)
{
    int code = hf_cli_check_name(cli, "a queue's name", hf_argv_text(cli->args, "queue"));
    return code == HF_EXIT_OK
               ? hf_cli_check_name(cli, "a type", hf_argv_text(cli->args, "type"))
               : code;
}

/* --type, --error, --since and --limit (`limit` if it is not given; 0: none). --since
 * counts back from now_ms. Text is borrowed from the cli. */
static hf_dead_filter filter_of(const hf_cli *cli, int64_t now_ms, size_t limit)
{
    int64_t since = hf_argv_number(cli->args, "since", -1);
    return (hf_dead_filter){
        HF_DEAD_FILTER_INIT, .type = hf_argv_text(cli->args, "type"),
        .error = hf_argv_text(cli->args, "error"),
        .since_ms = since < 0 ? 0 : now_ms - since,
        .limit = (size_t)hf_argv_number(cli->args, "limit", (int64_t)limit)};
}

/* Whether jobs are told apart, and not only counted. */
static bool is_choosy(const hf_dead_filter *filter)
{
    return filter->type != NULL || filter->error != NULL || filter->since_ms != 0;
}

static bool is_of_kind(const char *error, const char *wanted)
{
    char key[HF_ERROR_KEY_SIZE], other[HF_ERROR_KEY_SIZE];
    hf_error_key(error, key);
    hf_error_key(wanted, other);
    return strcmp(key, other) == 0;
}

static bool passes(const hf_dead_filter *filter, const hf_job_info *job)
{
    return job->due_ms >= filter->since_ms &&
           (filter->type == NULL || strcmp(filter->type, job->type) == 0) &&
           (filter->error == NULL || is_of_kind(job->error, filter->error));
}

/* ---- list ---- */

typedef struct lister {
    hf_table table;
    bool json;
    int64_t now_ms;
    hf_dead_filter filter;
} lister;

static bool is_wanted(const hf_job_info *job, void *arg)
{
    const lister *l = arg;
    return passes(&l->filter, job);
}

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    if (l->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&l->table, job, l->now_ms);
}

static int list(const hf_cli *cli, hf_admin *admin)
{
    static const hf_job_state dead = HF_STATE_DEAD;
    lister l = {.json = cli->json};
    hf_page page;
    int code = hf_page_time(cli, admin, hf_argv_text(cli->args, "queue"), &l.now_ms);
    if (code != HF_EXIT_OK)
        return code;
    l.filter = filter_of(cli, l.now_ms, PAGE);
    bool some = is_choosy(&l.filter);
    const hf_page_opts opts = {.states = &dead,
                               .n_states = 1,
                               .limit = l.filter.limit,
                               .passes = some ? is_wanted : NULL,
                               .cb = on_job,
                               .arg = &l};
    hf_job_table(&l.table, HF_STATE_DEAD);
    code = hf_page_list(cli, admin, &opts, &page);
    if (!hf_table_print(&l.table, stdout) && code == HF_EXIT_OK)
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    if (code == HF_EXIT_OK)
        hf_page_tell_end(cli, &page, some ? "such dead jobs" : "dead jobs");
    return code;
}

int hf_cmd_dead_list(hf_cli *cli)
{
    hf_admin *admin = NULL;
    int code = check_filter(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin);
    hf_admin_close(admin);
    return code;
}

/* ---- the queues that a change concerns ---- */

typedef struct target {
    const char *queue;
    size_t dead; /* all of them */
    size_t n;    /* those that the change concerns */
} target;

typedef struct plan {
    char **names; /* owned */
    target *at;   /* owned */
    size_t n;
    int64_t now_ms;
    bool nothing;          /* it was counted */
    hf_dead_filter filter; /* of each queue; its limit is for all of them */
} plan;

static void plan_done(plan *p)
{
    free(p->names);
    free(p->at);
}

/* How many of the queue's dead jobs the filter lets pass, up to `max`. */
static hf_err count(const hf_cli *cli, hf_admin *admin, const plan *p, target *t,
                    size_t max)
{
    hf_dead_filter filter = p->filter;
    hf_err err = HF_OK;
    t->n = t->dead < max ? t->dead : max;
    filter.limit = max == SIZE_MAX ? 0 : max;
    if (is_choosy(&filter) && max > 0)
        err = hf_admin_dead_count(admin, t->queue, &filter, &t->n, cli->detail);
    return err;
}

/* Keeps the queues with jobs that the filter lets pass; all together have at most as many
 * as its limit. */
static hf_err count_all(const hf_cli *cli, hf_admin *admin, plan *p)
{
    size_t left = p->filter.limit == 0 ? SIZE_MAX : p->filter.limit, kept = 0;
    hf_err err = HF_OK;
    for (size_t i = 0; i < p->n && err == HF_OK; i++) {
        err = count(cli, admin, p, &p->at[i], left);
        left -= p->at[i].n;
        if (p->at[i].n > 0)
            p->at[kept++] = p->at[i];
    }
    p->n = kept;
    return err;
}

/* --queue, or those that have dead jobs. */
static int plan_make(const hf_cli *cli, hf_admin *admin, plan *p)
{
    size_t n = 0;
    bool all = !hf_argv_has(cli->args, "queue");
    hf_err err = HF_OK;
    *p = (plan){.names = NULL};
    int code = hf_page_queues(cli, admin, &p->names, &n);
    if (code == HF_EXIT_OK)
        code = hf_page_time(cli, admin, all ? NULL : p->names[0], &p->now_ms);
    if (code != HF_EXIT_OK)
        return code;
    p->at = calloc(n + 1, sizeof *p->at);
    if (p->at == NULL)
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    p->filter = filter_of(cli, p->now_ms, 0);
    for (size_t i = 0; i < n && err == HF_OK; i++) {
        hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
        err = hf_admin_stats(admin, p->names[i], &stats, cli->detail);
        if (err == HF_OK && (stats.dead > 0 || !all))
            p->at[p->n++] = (target){p->names[i], (size_t)stats.dead, 0};
    }
    if (err == HF_OK && p->n > 1)
        err = count_all(cli, admin, p);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, cli->detail);
}

/* "'a', 'b' and 3 others" */
enum { NAMED_MAX = 4, QUEUES_SIZE = NAMED_MAX * (HF_ID_SIZE + 4) + 32 };
static const char *queue_names(const plan *p, char out[QUEUES_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < p->n && i < NAMED_MAX; i++)
        len += (size_t)snprintf(out + len, QUEUES_SIZE - len, "%s'%s'", i > 0 ? ", " : "",
                                p->at[i].queue);
    if (p->n > NAMED_MAX)
        (void)snprintf(out + len, QUEUES_SIZE - len, " and %zu others", p->n - NAMED_MAX);
    return out;
}

/* Jobs of several queues that were not named: only after a question, or with --yes. */
static int confirm_several(const hf_cli *cli, const plan *p, const char *what)
{
    char names[QUEUES_SIZE];
    size_t n = 0;
    if (p->n < 2 || !hf_confirm_wanted(cli))
        return HF_EXIT_OK;
    if (isatty(STDIN_FILENO) != 1)
        return hf_cli_say(
            cli, HF_EXIT_USAGE, "",
            "%s: expected --queue, or --yes for the queues %s, found neither",
            cli->args->command->name, queue_names(p, names));
    for (size_t i = 0; i < p->n; i++)
        n += p->at[i].n;
    return hf_confirm(cli, "%s %zu dead jobs of %zu queues (%s)?", what, n, p->n,
                      queue_names(p, names));
}

/* ---- one of them ---- */

/* It needs no filter. */
static int check_id(const hf_cli *cli, const char *id)
{
    static const char *const filters[] = {"type", "error", "since", "limit", "rate"};
    if (id == NULL)
        return HF_EXIT_OK;
    for (size_t i = 0; i < HF_COUNT(filters); i++) {
        if (hf_argv_has(cli->args, filters[i]))
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "%s: expected an id or --%s, found both",
                              cli->args->command->name, filters[i]);
    }
    return hf_cli_check_name(cli, "a job's id", id);
}

static int not_dead(const hf_cli *cli, const char *queue, const char *id)
{
    return hf_cli_say(cli, HF_EXIT_NO, "", "no dead job '%s' in queue '%s'", id, queue);
}

/* The dead job of that id, in whichever queue. */
static int find_dead(const hf_cli *cli, hf_admin *admin, hf_job_info *job)
{
    int code = hf_job_find(cli, admin, job);
    return code == HF_EXIT_OK && job->state != HF_STATE_DEAD
               ? not_dead(cli, job->queue, job->id)
               : code;
}

/* ---- retry ---- */

/* "50/s": how many become due in each second. */
static int read_rate(const hf_cli *cli, uint32_t *per_second)
{
    int64_t count = 0, per_ms = 1;
    const char *rate = hf_argv_text(cli->args, "rate");
    *per_second = 0;
    if (rate == NULL)
        return HF_EXIT_OK;
    if (!hf_parse_rate(rate, &count, &per_ms) || count == 0 ||
        count * MS_OF_SECOND % per_ms != 0 ||
        count * MS_OF_SECOND / per_ms > PER_SECOND_MAX)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--rate: expected JOBS/s, a whole number from 1 to %d (50/s), "
                          "found '%s'",
                          PER_SECOND_MAX, HF_FOUND(rate));
    *per_second = (uint32_t)(count * MS_OF_SECOND / per_ms);
    return HF_EXIT_OK;
}

static hf_slices_words retried(const char *queue)
{
    return (hf_slices_words){.queue = queue,
                             .key = "retried",
                             .one = "job will run again",
                             .many = "jobs will run again"};
}

/* Reports one job: n is 0 if it was not dead, or not any more. */
static int tell_one(const hf_cli *cli, const hf_slices_words *words, const char *id,
                    hf_err err, size_t n)
{
    if (err == HF_OK && n == 0)
        return not_dead(cli, words->queue, id);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_slices_tell(cli, words, n, true);
    return HF_EXIT_OK;
}

static int retry_one(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    size_t n = 0;
    int code = find_dead(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    const hf_slices_words words = retried(job.queue);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = job.id};
    hf_err err =
        hf_admin_dead_retry(admin, job.queue, &filter, 0, NULL, NULL, &n, cli->detail);
    return tell_one(cli, &words, job.id, err, n);
}

static int retry_queue(const hf_cli *cli, hf_admin *admin, const plan *p, const target *t,
                       uint32_t per_second)
{
    char pace[64];
    hf_slices_words words = retried(t->queue);
    hf_slices slices;
    size_t n = 0;
    (void)snprintf(pace, sizeof pace, ", %" PRIu32 " of them due in each second",
                   per_second);
    if (per_second > 0)
        words.pace = pace;
    hf_dead_filter filter = p->filter;
    if (t->n > 0)
        filter.limit = t->n;
    hf_slices_start(&slices, "jobs");
    hf_err err = hf_admin_dead_retry(admin, t->queue, &filter, per_second,
                                     hf_slices_progress, &slices, &n, cli->detail);
    return hf_slices_end(&slices, cli, &words, err, n);
}

static int retry_many(const hf_cli *cli, hf_admin *admin, uint32_t per_second)
{
    plan p;
    int code = plan_make(cli, admin, &p);
    if (code == HF_EXIT_OK)
        code = confirm_several(cli, &p, "Retry");
    const hf_slices_words none = retried(NULL);
    if (code == HF_EXIT_OK && p.n == 0)
        hf_slices_tell(cli, &none, 0, true);
    for (size_t i = 0; i < p.n && code == HF_EXIT_OK; i++)
        code = retry_queue(cli, admin, &p, &p.at[i], per_second);
    plan_done(&p);
    return code;
}

int hf_cmd_dead_retry(hf_cli *cli)
{
    uint32_t per_second;
    hf_admin *admin = NULL;
    const char *id = hf_argv_operand(cli->args, 0);
    int code = check_filter(cli);
    if (code == HF_EXIT_OK)
        code = check_id(cli, id);
    if (code == HF_EXIT_OK)
        code = read_rate(cli, &per_second);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = id != NULL ? retry_one(cli, admin) : retry_many(cli, admin, per_second);
    hf_admin_close(admin);
    return code;
}

/* ---- purge ---- */

static hf_slices_words purged(const char *queue)
{
    return (hf_slices_words){.queue = queue,
                             .key = "removed",
                             .one = "dead job removed",
                             .many = "dead jobs removed"};
}

static int purge_one(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    size_t n = 0;
    int code = find_dead(cli, admin, &job);
    if (code == HF_EXIT_OK)
        code = hf_confirm(cli, "Remove the dead job '%s' (%s) of queue '%s'?", job.id,
                          job.type, job.queue);
    if (code != HF_EXIT_OK)
        return code;
    const hf_slices_words words = purged(job.queue);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = job.id};
    hf_err err =
        hf_admin_dead_purge(admin, job.queue, &filter, NULL, NULL, &n, cli->detail);
    return tell_one(cli, &words, job.id, err, n);
}

/* Asks with the number of those that will go; and no more go than was said. Of one queue
 * nothing was counted yet. */
static int ask(const hf_cli *cli, hf_admin *admin, plan *p)
{
    if (p->n == 1) {
        hf_err err = count(cli, admin, p, &p->at[0],
                           p->filter.limit == 0 ? SIZE_MAX : p->filter.limit);
        if (err != HF_OK)
            return hf_cli_fail(cli, err, cli->detail);
        p->nothing = p->at[0].n == 0;
    }
    if (p->nothing)
        return HF_EXIT_OK;
    return p->n == 1 ? hf_confirm(cli, "Remove %zu of the %zu dead jobs of queue '%s'?",
                                  p->at[0].n, p->at[0].dead, p->at[0].queue)
                     : confirm_several(cli, p, "Remove");
}

static int purge_queue(const hf_cli *cli, hf_admin *admin, const plan *p, const target *t)
{
    const hf_slices_words words = purged(t->queue);
    hf_slices slices;
    size_t n = 0;
    hf_dead_filter filter = p->filter;
    if (t->n > 0)
        filter.limit = t->n;
    if (p->nothing) {
        hf_slices_tell(cli, &words, 0, true);
        return HF_EXIT_OK;
    }
    hf_slices_start(&slices, "jobs");
    hf_err err = hf_admin_dead_purge(admin, t->queue, &filter, hf_slices_progress,
                                     &slices, &n, cli->detail);
    return hf_slices_end(&slices, cli, &words, err, n);
}

static int purge_many(const hf_cli *cli, hf_admin *admin)
{
    plan p;
    int code = plan_make(cli, admin, &p);
    if (code == HF_EXIT_OK && hf_confirm_wanted(cli))
        code = ask(cli, admin, &p);
    const hf_slices_words none = purged(hf_argv_text(cli->args, "queue"));
    if (code == HF_EXIT_OK && p.n == 0)
        hf_slices_tell(cli, &none, 0, true);
    for (size_t i = 0; i < p.n && code == HF_EXIT_OK; i++)
        code = purge_queue(cli, admin, &p, &p.at[i]);
    plan_done(&p);
    return code;
}

int hf_cmd_dead_purge(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *id = hf_argv_operand(cli->args, 0);
    int code = check_filter(cli);
    if (code == HF_EXIT_OK)
        code = check_id(cli, id);
    if (code == HF_EXIT_OK)
        code = hf_confirm_possible(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = id != NULL ? purge_one(cli, admin) : purge_many(cli, admin);
    hf_admin_close(admin);
    return code;
}
