/* cron.c - `holdfast cron list|show|add|remove|pause|resume|run`: the schedules of
 * queues. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/common/job_options.h"
#include "cli/common/more.h"
#include "cli/common/payload.h"
#include "cli/common/priority.h"
#include "cli/cron/cron.h"
#include "cli/out.h"
#include "seen/offer.h"
#include "seen/zones.h"

enum { PAGE = 50, LATE_MS = 2000 /* a worker takes a tick at once */ };

static const char *const missed_names[] = {"once", "all", "skip"};
static const char *const overlap_names[] = {"skip", "allow", "cancel"};
static const char *const expired_names[] = {"drop", "dead"};

/* ---- showing ---- */

static const char *state_of(const hf_schedule_info *s)
{
    if (s->paused)
        return "paused";
    if (s->held)
        return "held";
    return s->next_ms == 0 ? "ended" : "on";
}

/* Why none follows, where one would. */
static const char held_text[] = "no live worker names it";

static void when_text(const hf_schedule_info *s, char *out, size_t size)
{
    char every[HF_DURATION_SIZE];
    hf_format_duration(s->every_ms, every);
    if (s->cron[0] == '\0')
        snprintf(out, size, "every %s", every);
    else
        snprintf(out, size, "%s %s", s->cron, hf_zones_of(s));
}

static json_t *text_or_null(const char *text)
{
    return text[0] == '\0' ? json_null() : hf_out_text(text);
}

/* Of its jobs; null: it does not say. */
static json_t *with_options(json_t *json, const hf_schedule_info *s)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"max_attempts", s->max_attempts},
                   {"timeout_ms", s->timeout_ms},
                   {"keep_ms", s->keep_ms},
                   {"start_within_ms", s->start_within_ms}};
    if (json == NULL)
        return NULL;
    json_object_set_new(json, "priority", json_string(hf_priority_name(s->priority)));
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        json_object_set_new(json, numbers[i].name,
                            numbers[i].value != 0 ? json_integer(numbers[i].value)
                                                  : json_null());
    json_object_set_new(json, "expired",
                        s->start_within_ms != 0 ? json_string(expired_names[s->expired])
                                                : json_null());
    json_object_set_new(json, "on_dead", text_or_null(s->on_dead));
    return json;
}

json_t *hf_cron_json(const hf_schedule_info *s)
{
    return with_options(
        json_pack(
            "{s:o, s:o, s:o, s:o, s:I, s:o, s:s, s:o, s:s, s:s, s:I, s:I, s:o, s:o, "
            "s:I, "
            "s:I, s:b, s:o, s:o, s:o, s:I, s:I, s:I}",
            "id", hf_out_text(s->id), "queue", hf_out_text(s->queue), "type",
            hf_out_text(s->type), "cron", text_or_null(s->cron), "every_ms",
            (json_int_t)s->every_ms, "tz", text_or_null(s->tz), "state", state_of(s),
            "held", text_or_null(s->held ? held_text : ""), "missed",
            missed_names[s->missed], "overlap", overlap_names[s->overlap], "catch_up_ms",
            (json_int_t)s->catch_up_ms, "jitter_ms", (json_int_t)s->jitter_ms, "start_ms",
            hf_out_time(s->start_ms), "end_ms", hf_out_time(s->end_ms), "limit",
            (json_int_t)s->limit, "rev", (json_int_t)s->rev, "of_file", (int)s->of_file,
            "next_ms", hf_out_time(s->next_ms), "last_ms", hf_out_time(s->last_ms), "job",
            text_or_null(s->job), "accepted", (json_int_t)s->accepted, "skipped",
            (json_int_t)s->skipped, "dropped", (json_int_t)s->dropped),
        s);
}

/* The options that the schedule has. */
static void print_options(const hf_schedule_info *s)
{
    char timeout[HF_DURATION_SIZE], keep[HF_DURATION_SIZE], within[HF_DURATION_SIZE];
    hf_format_duration(s->timeout_ms, timeout);
    hf_format_duration(s->keep_ms, keep);
    hf_format_duration(s->start_within_ms, within);
    if (s->priority != HF_PRIORITY_NORMAL)
        printf("priority  %s\n", hf_priority_name(s->priority));
    if (s->max_attempts != 0)
        printf("attempts  at most %" PRIu32 "\n", s->max_attempts);
    if (s->timeout_ms != 0)
        printf("timeout   %s\n", timeout);
    if (s->keep_ms != 0)
        printf("keep      %s\n", keep);
    if (s->start_within_ms != 0)
        printf("expires   %s after it is due%s\n", within,
               s->expired == HF_EXPIRED_DEAD ? ", and is dead then" : "");
    if (s->on_dead[0] != '\0')
        printf("on dead   %s\n", s->on_dead);
}

static void print_whole(const hf_schedule_info *s)
{
    char when[HF_CRON_SIZE + HF_ZONE_SIZE], next[HF_MOMENT_SIZE], last[HF_MOMENT_SIZE];
    char catch_up[HF_DURATION_SIZE], jitter[HF_DURATION_SIZE], command[HF_OFFER_SIZE];
    when_text(s, when, sizeof when);
    hf_format_moment(s->next_ms, s->now_ms, next);
    hf_format_moment(s->last_ms, s->now_ms, last);
    hf_format_duration(s->catch_up_ms, catch_up);
    hf_format_duration(s->jitter_ms, jitter);
    printf("id        %s\nqueue     %s\ntype      ", s->id, s->queue);
    hf_out_plain(stdout, s->type); /* another program may have written these */
    printf("\nstate     %s%s\nwhen      ", state_of(s),
           s->of_file ? ", of a worker's file" : "");
    hf_out_plain(stdout, when);
    printf("\nnext      %s", s->held ? held_text : next);
    if (s->next_ms != 0 && s->now_ms - s->next_ms > LATE_MS)
        printf(": '%s' tells whether it is paused or has no workers",
               hf_offer(command, "queue show", s->queue, NULL, ""));
    printf("\nlast      %s%s", last, s->job[0] != '\0' ? ", job " : "");
    hf_out_plain(stdout, s->job);
    printf("\nmissed    %s", missed_names[s->missed]);
    if (s->missed == HF_MISSED_ALL)
        printf(" within %s", catch_up);
    printf("\noverlap   %s\njitter    %s\n", overlap_names[s->overlap], jitter);
    print_options(s);
    printf("ticks     accepted %" PRId64, s->accepted);
    if (s->limit != 0)
        printf(" of %" PRId64, s->limit);
    printf("  skipped %" PRId64 "  dropped %" PRId64 "\npayload   %zu byte%s\n",
           s->skipped, s->dropped, s->payload_len, s->payload_len == 1 ? "" : "s");
}

/* ---- list ---- */

/* What --after names: the last schedule of the page before. */
typedef struct place {
    const char *id;         /* NULL: not given */
    char queue[HF_ID_SIZE]; /* of a list of all queues; else "" */
} place;

static int take_after(const hf_cli *cli, place *after)
{
    const char *text = hf_argv_text(cli->args, "after");
    after->id = text;
    if (text != NULL && (!hf_argv_has(cli->args, "queue") || strchr(text, '/') != NULL)) {
        size_t len = strcspn(text, "/");
        if (text[len] == '\0' || len >= sizeof after->queue)
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "--after: expected QUEUE/ID without --queue, found '%s'",
                              HF_FOUND(text));
        memcpy(after->queue, text, len);
        after->id = text + len + 1;
        const char *asked = hf_argv_text(cli->args, "queue");
        if (asked != NULL && strcmp(asked, after->queue) != 0)
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "--after: expected a place in queue '%s', found '%s'",
                              asked, HF_FOUND(text));
    }
    int code =
        hf_cli_check_name(cli, "a queue's name", after->id == text ? NULL : after->queue);
    return code == HF_EXIT_OK ? hf_cli_check_name(cli, "a schedule's id", after->id)
                              : code;
}

typedef struct lister {
    hf_table table;
    bool json, more;
    size_t n, limit;
    char queue[HF_ID_SIZE], last[HF_ID_SIZE];
} lister;

static void on_schedule(const hf_schedule_info *s, void *arg)
{
    lister *l = arg;
    char when[HF_CRON_SIZE + HF_ZONE_SIZE], next[HF_WHEN_SIZE], last[HF_WHEN_SIZE];
    if (l->n == l->limit) {
        l->more = true;
        return;
    }
    l->n++;
    memcpy(l->queue, s->queue, sizeof l->queue);
    memcpy(l->last, s->id, sizeof l->last);
    if (l->json) {
        hf_out_json(stdout, hf_cron_json(s));
        return;
    }
    when_text(s, when, sizeof when);
    hf_format_when(s->next_ms, s->now_ms, next);
    hf_format_when(s->last_ms, s->now_ms, last);
    hf_table_text(&l->table, s->id);
    hf_table_text(&l->table, s->queue);
    hf_table_text(&l->table, state_of(s));
    hf_table_text(&l->table, when);
    hf_table_text(&l->table, s->held ? held_text : next);
    hf_table_text(&l->table, last);
    hf_table_number(&l->table, s->accepted);
    hf_table_number(&l->table, s->skipped);
    hf_table_number(&l->table, s->dropped);
}

/* The schedules of a queue; then whether there is one behind a full page. */
static hf_err list_queue(const hf_cli *cli, hf_admin *admin, const char *queue,
                         const char *after, lister *l)
{
    hf_err err = HF_OK;
    if (l->n < l->limit)
        err = hf_admin_schedules(admin, queue, after, l->limit - l->n, on_schedule, l,
                                 cli->detail);
    bool is_last = strcmp(queue, l->queue) == 0;
    if (err == HF_OK && l->n == l->limit && !l->more)
        err = hf_admin_schedules(admin, queue, is_last ? l->last : NULL, 1, on_schedule,
                                 l, cli->detail);
    return err;
}

static hf_err list_all(const hf_cli *cli, hf_admin *admin, const place *after, lister *l)
{
    char **names = NULL;
    size_t n = 0;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    for (size_t i = 0; i < n && err == HF_OK && !l->more; i++) {
        int order = strcmp(names[i], after->queue);
        if (order >= 0)
            err = list_queue(cli, admin, names[i], order == 0 ? after->id : NULL, l);
    }
    free(names);
    return err;
}

static void tell_more(const hf_cli *cli, const lister *l)
{
    char at[2 * HF_ID_SIZE + 2];
    (void)snprintf(at, sizeof at, "%s/%s", l->queue, l->last);
    hf_more_tell(cli, l->n, "schedule", at);
}

static int list(const hf_cli *cli, hf_admin *admin, const place *after)
{
    static const hf_column columns[] = {
        {"ID", false, 40},     {"QUEUE", false, 40}, {"STATE", false, 0},
        {"WHEN", false, 40},   {"NEXT", false, 0},   {"LAST", false, 0},
        {"ACCEPTED", true, 0}, {"SKIPPED", true, 0}, {"DROPPED", true, 0}};
    const char *queue = hf_argv_text(cli->args, "queue");
    lister l = {.json = cli->json,
                .limit = (size_t)hf_argv_number(cli->args, "limit", PAGE)};
    hf_table_init(&l.table, columns, HF_COUNT(columns));
    hf_err err = queue == NULL ? list_all(cli, admin, after, &l)
                               : list_queue(cli, admin, queue, after->id, &l);
    if (!hf_table_print(&l.table, stdout) && err == HF_OK)
        err = HF_NOMEM;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    if (l.n == 0 && !cli->json)
        puts(after->id == NULL ? "no schedules" : "no more schedules");
    if (l.more)
        tell_more(cli, &l);
    return HF_EXIT_OK;
}

int hf_cmd_cron_list(hf_cli *cli)
{
    place after = {.id = NULL};
    hf_admin *admin = NULL;
    int code = hf_cli_check_name(cli, "a queue's name", hf_argv_text(cli->args, "queue"));
    if (code == HF_EXIT_OK)
        code = take_after(cli, &after);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = list(cli, admin, &after);
    hf_admin_close(admin);
    return code;
}

/* ---- one ---- */

static int not_found(const hf_cli *cli, const char *queue)
{
    return hf_cli_say(cli, HF_EXIT_NO, "see: holdfast cron list",
                      "no schedule '%s' in %s%s%s", hf_argv_operand(cli->args, 0),
                      queue != NULL ? "queue '" : "any queue", queue != NULL ? queue : "",
                      queue != NULL ? "'" : "");
}

static int fail(const hf_cli *cli, hf_err err, const char *queue)
{
    if (err == HF_GONE)
        return not_found(cli, queue);
    if (err == HF_INVALID)
        return hf_cli_say(cli, HF_EXIT_DATA, "", "%s", cli->detail);
    return hf_cli_fail(cli, err, cli->detail);
}

typedef hf_err (*act_fn)(const hf_cli *cli, hf_admin *admin, const char *queue,
                         const char *id);

/* Without --queue the schedule is looked for in all queues. */
static int find_queue(const hf_cli *cli, hf_admin *admin, char queue[HF_ID_SIZE])
{
    const char *id = hf_argv_operand(cli->args, 0);
    char **names = NULL;
    size_t n = 0, found = 0;
    hf_err err = hf_admin_queues(admin, &names, &n, cli->detail);
    for (size_t i = 0; i < n && err == HF_OK && found < 2; i++) {
        hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
        err = hf_admin_schedule(admin, names[i], id, &info, NULL, cli->detail);
        if (err == HF_OK && found++ == 0)
            memcpy(queue, info.queue, HF_ID_SIZE);
        err = err == HF_GONE ? HF_OK : err;
    }
    free(names);
    if (err != HF_OK)
        return fail(cli, err, NULL);
    if (found > 1)
        return hf_cli_say(
            cli, HF_EXIT_USAGE, "name its queue with --queue",
            "%s: expected --queue, since several queues have a schedule '%s'",
            cli->args->command->name, id);
    return found == 1 ? HF_EXIT_OK : not_found(cli, NULL);
}

static int act_on(const hf_cli *cli, act_fn act)
{
    hf_admin *admin = NULL;
    char queue[HF_ID_SIZE] = "";
    const char *asked = hf_argv_text(cli->args, "queue");
    const char *id = hf_argv_operand(cli->args, 0);
    int code = hf_cli_check_name(cli, "a queue's name", asked);
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a schedule's id", id);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK && asked == NULL)
        code = find_queue(cli, admin, queue);
    if (code == HF_EXIT_OK) {
        const char *its = asked != NULL ? asked : queue;
        hf_err err = act(cli, admin, its, id);
        code = err == HF_OK ? HF_EXIT_OK : fail(cli, err, its);
    }
    hf_admin_close(admin);
    return code;
}

static hf_err show(const hf_cli *cli, hf_admin *admin, const char *queue, const char *id)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    void *payload = NULL;
    hf_err err = hf_admin_schedule(admin, queue, id, &info, &payload, cli->detail);
    if (err == HF_OK && hf_argv_has(cli->args, "payload"))
        (void)fwrite(payload, 1, info.payload_len, stdout);
    else if (err == HF_OK && cli->json)
        hf_out_json(stdout, hf_cron_json(&info));
    else if (err == HF_OK)
        print_whole(&info);
    free(payload);
    return err;
}

int hf_cmd_cron_show(hf_cli *cli)
{
    return act_on(cli, show);
}

/* What has become of it. */
static void tell(const hf_cli *cli, const char *queue, const char *id,
                 const char *outcome)
{
    if (cli->json)
        hf_out_json(stdout, json_pack("{s:s, s:s, s:s}", "id", id, "queue", queue,
                                      "outcome", outcome));
    else
        printf("%s: %s\n", id, outcome);
}

static hf_err pause_it(const hf_cli *cli, hf_admin *admin, const char *queue,
                       const char *id)
{
    hf_err err = hf_admin_schedule_pause(admin, queue, id, true, cli->detail);
    if (err == HF_OK)
        tell(cli, queue, id, "paused");
    return err;
}

int hf_cmd_cron_pause(hf_cli *cli)
{
    return act_on(cli, pause_it);
}

static hf_err resume_it(const hf_cli *cli, hf_admin *admin, const char *queue,
                        const char *id)
{
    hf_err err = hf_admin_schedule_pause(admin, queue, id, false, cli->detail);
    if (err == HF_OK)
        tell(cli, queue, id, "resumed");
    return err;
}

int hf_cmd_cron_resume(hf_cli *cli)
{
    return act_on(cli, resume_it);
}

static hf_err remove_it(const hf_cli *cli, hf_admin *admin, const char *queue,
                        const char *id)
{
    hf_err err = hf_admin_schedule_remove(admin, queue, id, cli->detail);
    if (err == HF_OK)
        tell(cli, queue, id, "removed");
    return err;
}

int hf_cmd_cron_remove(hf_cli *cli)
{
    return act_on(cli, remove_it);
}

static hf_err run_it(const hf_cli *cli, hf_admin *admin, const char *queue,
                     const char *id)
{
    char job[HF_ID_SIZE] = "";
    hf_err err = hf_admin_schedule_run(admin, queue, id, job, cli->detail);
    if (err == HF_OK && cli->json)
        hf_out_json(stdout, json_pack("{s:s}", "id", job));
    else if (err == HF_OK)
        puts(job);
    return err;
}

int hf_cmd_cron_run(hf_cli *cli)
{
    return act_on(cli, run_it);
}

/* ---- add ---- */

static int check_add(const hf_cli *cli)
{
    const hf_argv *args = cli->args;
    bool cron = hf_argv_has(args, "cron"), every = hf_argv_has(args, "every");
    if (cron == every)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "cron add: expected either --cron or --every, found %s",
                          cron ? "both" : "none");
    if (every && hf_argv_has(args, "tz"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "cron add: expected --cron with --tz, found --every");
    if (hf_argv_has(args, "catch-up") &&
        hf_argv_number(args, "missed", HF_MISSED_ONCE) != HF_MISSED_ALL)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "cron add: expected --missed all with --catch-up, found %s",
                          hf_argv_has(args, "missed") ? hf_argv_text(args, "missed")
                                                      : "none");
    int code = hf_cli_check_name(cli, "a schedule's id", hf_argv_operand(args, 0));
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a type", hf_argv_operand(args, 1));
    if (code == HF_EXIT_OK && hf_cli_queue(cli) == NULL)
        code = HF_EXIT_DATA;
    return code;
}

/* 0 would be no end. */
static int64_t end_of(const hf_argv *args)
{
    int64_t end_ms = hf_argv_number(args, "end", 0);
    return end_ms == 0 && hf_argv_has(args, "end") ? 1 : end_ms;
}

static hf_schedule schedule_of(const hf_cli *cli, const hf_job *job)
{
    const hf_argv *args = cli->args;
    return (hf_schedule){
        HF_SCHEDULE_INIT,
        .id = hf_argv_operand(args, 0),
        .queue = hf_cli_queue(cli),
        .type = hf_argv_operand(args, 1),
        .cron = hf_argv_text(args, "cron"),
        .every_ms = hf_argv_number(args, "every", 0),
        .tz = hf_argv_text(args, "tz"),
        .missed = (hf_missed)hf_argv_number(args, "missed", HF_MISSED_ONCE),
        .overlap = (hf_overlap)hf_argv_number(args, "overlap", HF_OVERLAP_SKIP),
        .catch_up_ms = hf_argv_number(args, "catch-up", 0),
        .jitter_ms = hf_argv_number(args, "jitter", 0),
        .start_ms = hf_argv_number(args, "start", 0),
        .end_ms = end_of(args),
        .limit = hf_argv_number(args, "limit", 0),
        .priority = job->priority,
        .expired = job->expired,
        .max_attempts = job->max_attempts,
        .timeout_ms = job->timeout_ms,
        .keep_ms = job->keep_ms,
        .start_within_ms = job->start_within_ms,
        .on_dead = job->on_dead,
    };
}

static int add_it(const hf_cli *cli, hf_admin *admin, const hf_schedule *schedule)
{
    char next[HF_MOMENT_SIZE];
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    hf_err err = hf_admin_schedule_put(admin, schedule, cli->detail);
    if (err == HF_OK)
        err = hf_admin_schedule(admin, schedule->queue, schedule->id, &info, NULL,
                                cli->detail);
    if (err != HF_OK)
        return fail(cli, err, schedule->queue);
    hf_format_moment(info.next_ms, info.now_ms, next);
    if (cli->json)
        hf_out_json(stdout, hf_cron_json(&info));
    else if (info.next_ms != 0)
        printf("%s: next tick %s\n", schedule->id, next);
    else
        printf("%s: %s, no tick follows\n", schedule->id, state_of(&info));
    return HF_EXIT_OK;
}

int hf_cmd_cron_add(hf_cli *cli)
{
    hf_buf input;
    hf_admin *admin = NULL;
    hf_job job = {HF_JOB_INIT};
    int code = check_add(cli);
    if (code == HF_EXIT_OK)
        code = hf_job_options_take(cli, &job);
    if (code != HF_EXIT_OK)
        return code;
    hf_schedule schedule = schedule_of(cli, &job);
    hf_buf_init(&input, (size_t)cli->config->payload_max);
    code = hf_take_payload(cli, 2, &input, &schedule.payload, &schedule.payload_len);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = add_it(cli, admin, &schedule);
    hf_admin_close(admin);
    hf_buf_done(&input);
    return code;
}
