/* dead.c - `holdfast dead ...`: lists dead jobs, retries or removes them, one or all that
 * a filter lets pass. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/mask.h"
#include "cli/cli.h"
#include "cli/common/confirm.h"
#include "cli/common/rate.h"
#include "cli/common/slices.h"
#include "cli/jobs/job_out.h"
#include "holdfast/admin.h"

enum { PAGE = 50, SLICE = 500, PER_SECOND_MAX = 1000000, MS_OF_SECOND = 1000 };

/* ---- those that a filter lets pass ---- */

/* --queue, --type: HF_EXIT_OK when they are names. */
static int check_filter(const hf_cli *cli)
{
    const char *type = hf_argv_text(cli->args, "type");
    if (hf_cli_queue(cli) == NULL)
        return HF_EXIT_DATA;
    return hf_cli_check_name(cli, "a type", type);
}

/* --type, --since and --limit (`limit` if it is not given; 0: none). --since counts back
 * from now_ms. Text is borrowed from the cli. */
static hf_dead_filter filter_of(const hf_cli *cli, int64_t now_ms, size_t limit)
{
    int64_t since = hf_argv_number(cli->args, "since", -1);
    return (hf_dead_filter){
        HF_DEAD_FILTER_INIT, .type = hf_argv_text(cli->args, "type"),
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

static void sift_job(const hf_job_info *job, void *arg)
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

/* Goes through the dead jobs of a queue, the oldest death first, after the place of
 * `after` (NULL: from the start): calls cb (may be NULL) for each that passes, until
 * there are filter->limit of them; *n counts them. */
static hf_err sift(const hf_cli *cli, hf_admin *admin, const char *queue,
                   const hf_dead_filter *filter, const char *after, hf_job_cb cb,
                   void *arg, size_t *n)
{
    char from[HF_ID_SIZE];
    sieve s = {.filter = filter, .cb = cb, .arg = arg};
    hf_err err;
    do {
        s.seen = 0;
        err = hf_admin_list(admin, queue, HF_STATE_DEAD, after, SLICE, sift_job, &s, NULL,
                            cli->detail);
        memcpy(from, s.last, sizeof from);
        after = from;
    } while (err == HF_OK && s.seen == SLICE && !is_full(&s));
    *n = s.kept;
    return err;
}

/* ---- list ---- */

typedef struct lister {
    hf_table table;
    bool json;
    int64_t now_ms;
    char last[HF_ID_SIZE];
} lister;

static void on_job(const hf_job_info *job, void *arg)
{
    lister *l = arg;
    memcpy(l->last, job->id, sizeof l->last);
    if (l->json)
        hf_job_print_json(job);
    else
        hf_job_add_row(&l->table, job, l->now_ms);
}

static int list(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    size_t n = 0;
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail); /* for Redis's time */
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_dead_filter filter = filter_of(cli, stats.now_ms, PAGE);
    lister l = {.json = cli->json, .now_ms = stats.now_ms};
    hf_job_table(&l.table, HF_STATE_DEAD);
    err = sift(cli, admin, queue, &filter, hf_argv_text(cli->args, "after"), on_job, &l,
               &n);
    if (!hf_table_print(&l.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    bool some = filter.type != NULL || filter.since_ms > 0;
    if (n == 0 && !cli->json)
        printf("%s: no %sdead jobs\n", queue, some ? "such " : "");
    if (n == filter.limit && !cli->json)
        hf_job_tell_more(queue, NULL, n, l.last);
    return HF_EXIT_OK;
}

int hf_cmd_dead_list(hf_cli *cli)
{
    hf_admin *admin = NULL;
    const char *after = hf_argv_text(cli->args, "after");
    int code = check_filter(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a job's id", after);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin, hf_cli_queue(cli));
    hf_admin_close(admin);
    return code;
}

/* ---- one of them ---- */

/* It needs no filter. */
static int check_id(const hf_cli *cli, const char *id)
{
    static const char *const filters[] = {"type", "since", "limit", "rate"};
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
                             .one = "job is back in the line",
                             .many = "jobs are back in the line"};
}

/* Tells of one job: n is 0 if it was not dead, or not any more. */
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

static int retry_one(const hf_cli *cli, hf_admin *admin, const char *queue,
                     const char *id)
{
    size_t n = 0;
    const hf_slices_words words = retried(queue);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = id};
    hf_err err =
        hf_admin_dead_retry(admin, queue, &filter, 0, NULL, NULL, &n, cli->detail);
    return tell_one(cli, &words, id, err, n);
}

static int retry_many(const hf_cli *cli, hf_admin *admin, const char *queue,
                      uint32_t per_second)
{
    char pace[64];
    hf_slices_words words = retried(queue);
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_slices slices;
    size_t n = 0;
    (void)snprintf(pace, sizeof pace, ", %" PRIu32 " of them due in each second",
                   per_second);
    if (per_second > 0)
        words.pace = pace;
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail); /* for Redis's time */
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_dead_filter filter = filter_of(cli, stats.now_ms, 0);
    hf_slices_start(&slices, "jobs");
    err = hf_admin_dead_retry(admin, queue, &filter, per_second, hf_slices_progress,
                              &slices, &n, cli->detail);
    return hf_slices_end(&slices, cli, &words, err, n);
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
        code = id != NULL ? retry_one(cli, admin, hf_cli_queue(cli), id)
                          : retry_many(cli, admin, hf_cli_queue(cli), per_second);
    hf_admin_close(admin);
    return code;
}

/* ---- purge ---- */

static bool is_filtered(const hf_dead_filter *filter)
{
    return filter->type != NULL || filter->since_ms != 0 || filter->limit != 0;
}

static hf_slices_words purged(const char *queue)
{
    return (hf_slices_words){.queue = queue,
                             .key = "removed",
                             .one = "dead job removed",
                             .many = "dead jobs removed"};
}

static int purge_one(const hf_cli *cli, hf_admin *admin, const char *queue,
                     const char *id)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    size_t n = 0;
    const hf_slices_words words = purged(queue);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = id};
    hf_err err = hf_admin_job(admin, queue, id, &job, NULL, cli->detail);
    if (err == HF_GONE || (err == HF_OK && job.state != HF_STATE_DEAD))
        return not_dead(cli, queue, id);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    int code = hf_confirm(cli, "Remove the dead job '%s' (%s) of queue '%s'?", id,
                          job.type, queue);
    if (code != HF_EXIT_OK)
        return code;
    err = hf_admin_dead_purge(admin, queue, &filter, NULL, NULL, &n, cli->detail);
    return tell_one(cli, &words, id, err, n);
}

/* Asks with the number of those that will go, which takes a look at each if not all do;
 * and no more go than was said. */
static int ask(const hf_cli *cli, hf_admin *admin, const hf_queue_stats *stats,
               hf_dead_filter *filter, bool *nothing)
{
    size_t n = (size_t)stats->dead;
    hf_err err = HF_OK;
    if (is_filtered(filter))
        err = sift(cli, admin, stats->queue, filter, NULL, NULL, NULL, &n);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (n == 0) {
        *nothing = true;
        return HF_EXIT_OK;
    }
    filter->limit = n;
    return hf_confirm(cli, "Remove %zu of the %" PRId64 " dead jobs of queue '%s'?", n,
                      stats->dead, stats->queue);
}

static int purge_all(const hf_cli *cli, hf_admin *admin, const char *queue,
                     const hf_dead_filter *filter)
{
    const hf_slices_words words = purged(queue);
    hf_slices slices;
    size_t n = 0;
    hf_slices_start(&slices, "jobs");
    hf_err err = hf_admin_dead_purge(admin, queue, filter, hf_slices_progress, &slices,
                                     &n, cli->detail);
    return hf_slices_end(&slices, cli, &words, err, n);
}

static int purge_many(const hf_cli *cli, hf_admin *admin, const char *queue)
{
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_err err = hf_admin_stats(admin, queue, &stats, cli->detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_dead_filter filter = filter_of(cli, stats.now_ms, 0);
    const hf_slices_words words = purged(queue);
    int code = HF_EXIT_OK;
    bool nothing = false;
    if (hf_confirm_wanted(cli))
        code = ask(cli, admin, &stats, &filter, &nothing);
    if (nothing)
        hf_slices_tell(cli, &words, 0, true);
    return code != HF_EXIT_OK || nothing ? code : purge_all(cli, admin, queue, &filter);
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
        code = id != NULL ? purge_one(cli, admin, hf_cli_queue(cli), id)
                          : purge_many(cli, admin, hf_cli_queue(cli));
    hf_admin_close(admin);
    return code;
}
