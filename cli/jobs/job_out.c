/* job_out.c - see job_out.h. */
#include "cli/jobs/job_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/common/priority.h"
#include "seen/holder.h"
#include "seen/offer.h"

const char *hf_job_state_name(hf_job_state state)
{
    static const char *const names[] = {"ready", "delayed", "retry", "running",
                                        "dead",  "done",    "parked"};
    return (size_t)state < HF_COUNT(names) ? names[state] : "?";
}

static json_t *history(const hf_job_info *job)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < job->n_history; i++) {
        const hf_job_attempt *a = &job->history[i];
        (void)json_array_append_new(
            list, json_pack("{s:o, s:I, s:o, s:o}", "ended_ms", hf_out_time(a->ended_ms),
                            "ran_ms", (json_int_t)a->ran_ms, "worker",
                            hf_out_text(a->worker), "error", hf_out_text(a->error)));
    }
    return list;
}

static json_t *add_done(json_t *object, const hf_job_info *job)
{
    json_t *rest =
        json_pack("{s:I, s:I, s:I, s:o}", "kept_until_ms", (json_int_t)job->kept_until_ms,
                  "ran_ms", (json_int_t)job->ran_ms, "result_bytes",
                  (json_int_t)job->payload_len, "worker", hf_out_text(job->done_by));
    if (json_object_update(object, rest) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(rest);
    return object;
}

static const char *const until_names[] = {[HF_UNIQUE_UNTIL_END] = "end",
                                          [HF_UNIQUE_UNTIL_START] = "start",
                                          [HF_UNIQUE_UNTIL_DONE] = "done"};

static json_t *add_unique(json_t *object, const hf_job_info *job)
{
    if (json_object_set_new(object, "unique", hf_out_text(job->unique)) == 0 &&
        json_object_set_new(object, "unique_until",
                            json_string(until_names[job->unique_until])) == 0 &&
        (job->follows[0] == '\0' ||
         json_object_set_new(object, "follows", hf_out_text(job->follows)) == 0))
        return object;
    json_decref(object);
    return NULL;
}

/* What its runs have told. */
static json_t *with_marks(json_t *json, const hf_job_info *job)
{
    if (json == NULL)
        return NULL;
    json_object_set_new(json, "progress",
                        job->has_progress ? json_integer(job->progress) : json_null());
    json_object_set_new(json, "note",
                        job->note[0] != '\0' ? hf_out_text(job->note) : json_null());
    json_object_set_new(json, "checkpoint_bytes",
                        json_integer((json_int_t)job->checkpoint_len));
    json_object_set_new(json, "logs", json_integer((json_int_t)job->logs));
    return json;
}

json_t *hf_job_json(const hf_job_info *job)
{
    bool running = job->state == HF_STATE_RUNNING, done = job->state == HF_STATE_DONE;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:I, s:o, s:o, "
        "s:o, s:o, s:I, s:o}",
        "id", hf_out_text(job->id), "queue", hf_out_text(job->queue), "type",
        hf_out_text(job->type), "state", hf_job_state_name(job->state), "attempts",
        (json_int_t)job->attempts, "crashes", (json_int_t)job->crashes, "max_attempts",
        (json_int_t)job->max_attempts, "timeout_ms", (json_int_t)job->timeout_ms,
        "priority", hf_priority_name(job->priority), "created_ms",
        hf_out_time(job->created_ms), "due_ms", hf_out_time(job->due_ms), "start_by_ms",
        hf_out_time(job->start_by_ms), "keep_ms", (json_int_t)job->keep_ms, "on_dead",
        job->on_dead[0] != '\0' ? hf_out_text(job->on_dead) : json_null(), "holder",
        running ? hf_out_text(job->holder) : json_null(), "fence",
        running ? json_integer((json_int_t)job->fence) : json_null(),
        "lease_remaining_ms",
        running ? json_integer(job->lease_remaining_ms) : json_null(), "payload_bytes",
        (json_int_t)(done ? 0 : job->payload_len), "error",
        job->error[0] != '\0' ? hf_out_text(job->error) : json_null());
    object = with_marks(object, job);
    if (object != NULL && job->n_history > 0)
        (void)json_object_set_new(object, "history", history(job));
    if (object != NULL && job->headers[0] != '\0')
        (void)json_object_set_new(object, "headers",
                                  json_loads(job->headers, JSON_ALLOW_NUL, NULL));
    if (job->unique[0] != '\0')
        object = add_unique(object, job);
    return done ? add_done(object, job) : object;
}

void hf_job_print_json(const hf_job_info *job)
{
    hf_out_json(stdout, hf_job_json(job));
}

/* A text of several lines, each of them indented. */
static void print_error(const char *text)
{
    fputs("error     ", stdout);
    while (*text != '\0') {
        size_t len = hf_control_len(text);
        if (*text == '\n' && text[1] != '\0')
            fputs("\n          ", stdout);
        else
            putchar(len == 0 ? *text : ' ');
        text += len == 0 ? 1 : len;
    }
    putchar('\n');
}

static void print_due(const hf_job_info *job, int64_t now_ms)
{
    char moment[HF_MOMENT_SIZE];
    hf_format_moment(job->due_ms, now_ms, moment);
    if (job->state == HF_STATE_RUNNING) {
        printf("lease     until %s\nholder    ", moment);
        hf_out_plain(stdout, job->holder);
        printf("\nfence     %" PRIu64 "\n", job->fence);
    } else {
        printf("%s      %s\n",
               job->state == HF_STATE_DEAD   ? "died"
               : job->state == HF_STATE_DONE ? "done"
                                             : "due ",
               moment);
    }
}

/* "attempt   2026-11-21T03:56:08.462Z (10s ago), 12ms by web1 pid 4711: exit status 1" */
static void print_history(const hf_job_info *job, int64_t now_ms)
{
    char moment[HF_MOMENT_SIZE], ran[HF_DURATION_SIZE], who[HF_HOLDER_TEXT];
    for (size_t i = 0; i < job->n_history; i++) {
        const hf_job_attempt *a = &job->history[i];
        hf_format_moment(a->ended_ms, now_ms, moment);
        hf_format_duration(a->ran_ms, ran);
        hf_holder_text(a->worker, who);
        printf("attempt   %s, %s by ", moment, ran);
        hf_out_plain(stdout, who);
        fputs(": ", stdout);
        hf_out_plain(stdout, a->error);
        putchar('\n');
    }
}

static void print_done(const hf_job_info *job, int64_t now_ms)
{
    char until[HF_MOMENT_SIZE], ran[HF_DURATION_SIZE];
    hf_format_moment(job->kept_until_ms, now_ms, until);
    hf_format_duration(job->ran_ms, ran);
    printf("kept      until %s\nran       %s, by ", until, ran);
    hf_out_plain(stdout, job->done_by);
    if (job->result_kind == HF_RESULT_NONE)
        puts("\nresult    none");
    else
        printf("\nresult    %zu byte%s%s\n", job->payload_len,
               job->payload_len == 1 ? "" : "s",
               job->result_kind == HF_RESULT_JSON ? " of JSON" : "");
}

static void print_unique(const hf_job_info *job)
{
    if (job->unique[0] != '\0') {
        printf("unique    ");
        hf_out_plain(stdout, job->unique);
        puts(job->unique_until == HF_UNIQUE_UNTIL_START  ? ", until it starts"
             : job->unique_until == HF_UNIQUE_UNTIL_DONE ? ", until it is done"
                                                         : "");
    }
    if (job->follows[0] != '\0')
        printf("follows   %s\n", job->follows);
}

static void print_marks(const hf_job_info *job)
{
    char command[HF_OFFER_SIZE];
    if (job->has_progress) {
        printf("progress  %" PRIu32 " %%%s", job->progress,
               job->note[0] != '\0' ? ", " : "");
        hf_out_plain(stdout, job->note);
        putchar('\n');
    }
    if (job->checkpoint_len > 0)
        printf("saved     a checkpoint of %zu byte%s\n", job->checkpoint_len,
               job->checkpoint_len == 1 ? "" : "s");
    if (job->logs > 0)
        printf("logs      of %zu run%s: %s\n", job->logs, job->logs == 1 ? "" : "s",
               hf_offer(command, "job logs", job->id, job->queue, ""));
}

void hf_job_print_whole(const hf_job_info *job, int64_t now_ms)
{
    char moment[HF_MOMENT_SIZE], duration[HF_DURATION_SIZE];
    printf("id        %s\nqueue     %s\ntype      %s\nstate     ", job->id, job->queue,
           job->type);
    hf_out_state(stdout, hf_job_state_name(job->state));
    putchar('\n');
    hf_format_moment(job->created_ms, now_ms, moment);
    printf("created   %s\n", job->created_ms == 0 ? "unknown" : moment);
    if (job->priority != HF_PRIORITY_NORMAL)
        printf("priority  %s\n", hf_priority_name(job->priority));
    hf_format_moment(job->scheduled_ms, now_ms, moment);
    if (job->scheduled_ms != 0)
        printf("tick      %s\n", moment);
    print_due(job, now_ms);
    hf_format_moment(job->start_by_ms, now_ms, moment);
    if (job->start_by_ms != 0)
        printf("expires   %s unless it starts\n", moment);
    printf("attempts  %" PRIu32 " failed", job->attempts);
    if (job->max_attempts != 0)
        printf(", at most %" PRIu32, job->max_attempts);
    if (job->crashes != 0)
        printf("; %" PRIu32 " crash%s", job->crashes, job->crashes == 1 ? "" : "es");
    putchar('\n');
    print_history(job, now_ms);
    hf_format_duration(job->timeout_ms, duration);
    if (job->timeout_ms != 0)
        printf("timeout   %s\n", duration);
    hf_format_duration(job->keep_ms, duration);
    if (job->keep_ms != 0)
        printf("keep      %s once it is done\n", duration);
    if (job->on_dead[0] != '\0')
        printf("on dead   %s\n", job->on_dead);
    if (job->headers[0] != '\0')
        printf("headers   %s\n", job->headers);
    print_unique(job);
    if (job->state == HF_STATE_DONE)
        print_done(job, now_ms);
    else
        printf("payload   %zu byte%s\n", job->payload_len,
               job->payload_len == 1 ? "" : "s");
    print_marks(job);
    if (job->error[0] != '\0')
        print_error(job->error);
}

#define COLUMNS(when)                                                                    \
    {                                                                                    \
        {"ID", false, 0}, {"QUEUE", false, 40}, {"TYPE", false, 32},                     \
            {"STATE", false, 0}, {"ATTEMPTS", true, 0}, {when, false, 0},                \
            {"ERROR", false, 60},                                                        \
    }

void hf_job_table(hf_table *table, int64_t state)
{
    static const hf_column any[] = COLUMNS("DUE"), died[] = COLUMNS("DIED"),
                           done[] = COLUMNS("DONE");
    hf_table_init(table,
                  state == HF_STATE_DEAD   ? died
                  : state == HF_STATE_DONE ? done
                                           : any,
                  HF_COUNT(any));
}

void hf_job_add_row(hf_table *table, const hf_job_info *job, int64_t now_ms)
{
    char when[HF_WHEN_SIZE];
    hf_format_when(job->due_ms, now_ms, when);
    hf_table_text(table, job->id);
    hf_table_text(table, job->queue);
    hf_table_text(table, job->type);
    hf_table_text(table, hf_job_state_name(job->state));
    hf_table_number(table, job->attempts);
    hf_table_text(table, when);
    hf_table_text(table, hf_text_gist(job->error));
}
