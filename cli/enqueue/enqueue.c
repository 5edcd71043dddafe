/* enqueue.c - `holdfast enqueue`: one job, and if asked for, waiting for its end; or many
 * jobs from a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/common/job_options.h"
#include "cli/common/payload.h"
#include "cli/common/progress.h"
#include "cli/common/traceparent.h"
#include "cli/common/tracing.h"
#include "cli/common/unique.h"
#include "cli/enqueue/bulk.h"
#include "cli/enqueue/wait.h"
#include "cli/limits.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/stop.h"
#include "cli/waiting.h"
#include "seen/offer.h"

enum { KEEP_MS = 600000 }; /* with --result */

/* ---- the producer ---- */

static uint32_t wanted_replicas(const hf_cli *cli)
{
    return (uint32_t)hf_argv_number(cli->args, "wait-replicas",
                                    cli->config->worker.wait_replicas);
}

static void fill_producer(const hf_cli *cli, hf_producer_opts *opts)
{
    hf_cli_fill_producer(cli, opts);
    opts->wait_replicas = wanted_replicas(cli);
    if (opts->wait_replicas == 0)
        return;
    opts->wait_replicas_ms = (uint32_t)hf_argv_number(
        cli->args, "replicas-timeout", cli->config->worker.wait_replicas_ms);
    opts->deadline_ms += opts->wait_replicas_ms;
}

static int check_replicas(const hf_cli *cli)
{
    if (hf_argv_has(cli->args, "replicas-timeout") && wanted_replicas(cli) == 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: --replicas-timeout needs --wait-replicas");
    return HF_EXIT_OK;
}

/* ---- its spans ---- */

static void tell_loss(uint64_t dropped, const char *why, void *arg)
{
    char text[HF_DETAIL_SIZE];
    (void)snprintf(text, sizeof text, "%" PRIu64 " span%s lost: %.180s", dropped,
                   dropped == 1 ? " was" : "s were", why);
    hf_cli_warn(arg, text);
}

static int open_tracing(const hf_cli *cli, hf_tracing *tracing)
{
    char detail[HF_DETAIL_SIZE] = "";
    int code =
        hf_tracing_open(tracing, cli->config, tell_loss, (void *)(uintptr_t)cli, detail);
    return code == HF_EXIT_OK ? code : hf_cli_say(cli, (hf_exit)code, "", "%s", detail);
}

/* ---- the job ---- */

static void take_unique(const hf_argv *args, hf_job *job)
{
    job->unique = hf_argv_text(args, "unique");
    if (hf_argv_has(args, "unique-until")) /* each is one of its choices */
        (void)hf_unique_until_read(hf_argv_text(args, "unique-until"),
                                   &job->unique_until);
    if (hf_argv_has(args, "on-conflict"))
        (void)hf_on_conflict_read(hf_argv_text(args, "on-conflict"), &job->on_conflict);
    job->unique_for_ms = hf_argv_number(args, "unique-for", 0);
    job->debounce_ms = hf_argv_number(args, "debounce", 0);
    job->max_wait_ms = hf_argv_number(args, "max-wait", 0);
    job->throttle_ms = hf_argv_number(args, "throttle", 0);
}

/* Whether its options go together; before any of standard input is read. */
static int check_job(const hf_cli *cli, const hf_job *job)
{
    char detail[HF_DETAIL_SIZE] = "";
    return hf_job_check(job, detail) == HF_OK
               ? HF_EXIT_OK
               : hf_cli_say(cli, HF_EXIT_USAGE, "see holdfast enqueue --help",
                            "enqueue: %s", detail);
}

static int take_options(const hf_cli *cli, hf_job *job)
{
    const hf_argv *args = cli->args;
    job->type = hf_argv_operand(args, 0);
    job->id = hf_argv_text(args, "id");
    job->delay_ms = hf_argv_number(args, "in", 0);
    job->at_ms = hf_argv_number(args, "at", 0);
    job->awaited = hf_argv_has(args, "wait");
    job->replace_dead = hf_argv_has(args, "replace-dead");
    job->headers = hf_argv_text(args, "headers");
    take_unique(args, job);
    int code = hf_job_options_take(cli, job);
    if (code == HF_EXIT_OK && hf_argv_has(args, "result") && job->keep_ms == 0)
        job->keep_ms = KEEP_MS;
    if (code == HF_EXIT_OK && (job->queue = hf_cli_queue(cli)) == NULL)
        code = HF_EXIT_DATA;
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a type", job->type);
    if (code == HF_EXIT_OK)
        code = hf_cli_check_name(cli, "a job's id", job->id);
    return code == HF_EXIT_OK ? check_job(cli, job) : code;
}

static int take_trace(const hf_cli *cli, hf_job *job, char room[HF_TRACED_SIZE])
{
    const char *traceparent;
    int code = hf_cli_traceparent(cli, &traceparent);
    if (code == HF_EXIT_OK)
        hf_cli_put_trace(job, traceparent, room);
    return code;
}

static int check_usage(const hf_cli *cli)
{
    static const char *const pairs[][2] = {
        {"result", "wait"},       {"expired", "start-within"}, {"unique-until", "unique"},
        {"unique-for", "unique"}, {"on-conflict", "unique"},   {"debounce", "unique"},
        {"max-wait", "unique"},   {"throttle", "unique"},      {"debounce", "max-wait"},
        {"max-wait", "debounce"}, {"replace-dead", "id"},
    };
    const hf_argv *args = cli->args;
    if (args->n_operands == 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "see holdfast enqueue --help",
                          "enqueue: expected TYPE or --bulk FILE, found neither");
    if (hf_argv_has(args, "in") && hf_argv_has(args, "at"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: expected --in or --at, found both");
    for (size_t i = 0; i < HF_COUNT(pairs); i++)
        if (hf_argv_has(args, pairs[i][0]) && !hf_argv_has(args, pairs[i][1]))
            return hf_cli_say(cli, HF_EXIT_USAGE, "", "enqueue: --%s needs --%s",
                              pairs[i][0], pairs[i][1]);
    if (hf_argv_has(args, "run") || hf_argv_has(args, "atomic"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: --run and --atomic need --bulk");
    if (hf_argv_has(args, "quiet"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "enqueue: --quiet needs --bulk");
    return HF_EXIT_OK;
}

static bool is_new(hf_err err)
{
    return err == HF_OK || err == HF_UNCONFIRMED;
}

/* A dead job has its id, or its unique key: nothing will run for it. */
static bool is_swallowed(const hf_enqueue_result *result)
{
    return result->err == HF_EXISTS && result->holder_state == HF_DEAD;
}

static const char *state_word(hf_err state)
{
    return state == HF_EXISTS    ? "waiting"
           : state == HF_RUNNING ? "running"
           : state == HF_DEAD    ? "dead"
           : state == HF_PARKED  ? "parked"
                                 : "ended";
}

/* The holder of its unique key, or the job that has its id. */
static json_t *add_conflict(json_t *object, const hf_enqueue_result *result)
{
    const char *word = state_word(result->holder_state);
    json_t *more =
        result->conflict == HF_CONFLICT_NONE
            ? json_pack("{s:s}", "state", word)
            : json_pack("{s:s, s:s, s:s}", "conflict", hf_conflict_name(result->conflict),
                        "holder", result->holder, "holder_state", word);
    if (json_object_update(object, more) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

static void print_id(const hf_cli *cli, const hf_job *job,
                     const hf_enqueue_result *result)
{
    if (!cli->json) {
        puts(result->id);
        return;
    }
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:b}", "id", result->id, "queue", job->queue, "type",
                  job->type, "existed", !is_new(result->err));
    hf_out_json(stdout,
                result->holder_state == HF_OK ? object : add_conflict(object, result));
}

/* An id that is there already is no failure, wherever it is. */
static bool is_there(hf_err err)
{
    return err == HF_OK || err == HF_EXISTS || err == HF_RUNNING || err == HF_DEAD;
}

static int tell_swallowed(const hf_cli *cli, const hf_job *job,
                          const hf_enqueue_result *result)
{
    char command[HF_OFFER_SIZE], hint[HF_OFFER_SIZE + 96];
    bool by_key = result->conflict != HF_CONFLICT_NONE;
    (void)snprintf(hint, sizeof hint, "'%s' runs that one%s",
                   hf_offer(command, "dead retry", result->id, job->queue, ""),
                   by_key ? "" : ", --replace-dead accepts this one instead");
    return hf_cli_say(cli, HF_EXIT_TAKEN, hint, "not accepted: %s is dead, and has %s",
                      result->id, by_key ? "this unique key" : "this id");
}

static int send_traced(const hf_cli *cli, const hf_job *job, const hf_tracer *tracer,
                       hf_enqueue_result *result)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_producer *producer = NULL;
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT};
    fill_producer(cli, &opts);
    opts.tracer = tracer;
    hf_err err = hf_producer_open(&producer, &opts, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    hf_waiting *waiting = hf_waiting_begin(cli->server.url, cli->json);
    err = hf_enqueue_wait(producer, job, 1, result, 0, detail);
    hf_waiting_end(waiting);
    hf_producer_close(producer, NULL, NULL);
    if (!is_there(err) && err != HF_UNCONFIRMED)
        return hf_cli_fail(cli, err, detail);
    bool alone = hf_argv_has(cli->args, "result"); /* it is printed alone */
    if (!alone && (cli->json || !is_swallowed(result)))
        print_id(cli, job, result);
    if (err == HF_UNCONFIRMED)
        return hf_cli_fail(cli, err, detail);
    return is_swallowed(result) ? tell_swallowed(cli, job, result) : HF_EXIT_OK;
}

static int send_one(const hf_cli *cli, const hf_job *job, hf_enqueue_result *result)
{
    hf_tracing tracing;
    int code = open_tracing(cli, &tracing);
    if (code == HF_EXIT_OK)
        code = send_traced(cli, job, hf_tracing_tracer(&tracing), result);
    hf_tracing_close(&tracing);
    return code;
}

/* ---- many jobs: bulk.c makes the blocks, this sends them ---- */

typedef struct sender {
    const hf_cli *cli;
    hf_producer *producer;
    hf_progress progress;
    const char *traceparent;
    hf_tracing tracing;
    bool atomic, quiet;
    int out_error; /* errno of the ids that could not be printed; 0: all were */
    uint64_t accepted, swallowed, unsure, bytes_read;
    uint64_t existed;           /* of those accepted */
    hf_enqueue_result *results; /* HF_BATCH_JOBS of them */
    char detail[HF_DETAIL_SIZE];
} sender;

static void count_shard(const hf_shard_info *shard, void *arg)
{
    (void)shard;
    ++*(unsigned *)arg;
}

/* A block with ids of its own would be sent in parts, one to each shard. */
static hf_err check_atomic(sender *s, const hf_bulk_block *block)
{
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &s->cli->server};
    hf_admin *admin = NULL;
    unsigned n = 0;
    size_t i = 0;
    while (i < block->n && block->jobs[i].id == NULL)
        i++;
    if (block->n == 1 || i == block->n)
        return HF_OK;
    hf_err err = hf_admin_open(&admin, &opts, s->detail);
    if (err == HF_OK)
        err = hf_admin_shards(admin, block->jobs[i].queue, count_shard, &n, s->detail);
    hf_admin_close(admin);
    if (n == 0)
        return err;
    snprintf(s->detail, sizeof s->detail,
             "queue '%s': expected jobs without ids with --atomic, because it is divided "
             "into %u shards",
             block->jobs[i].queue, n);
    return HF_INVALID;
}

/* It is in Redis: its id is printed. */
static bool has_id(hf_err err)
{
    return is_there(err) || err == HF_UNCONFIRMED;
}

/* Also after a fault: a queue with shards may have accepted a part. A signal that ends
 * the command leaves whole lines. */
static void take_answers(sender *s, const hf_bulk_block *block, hf_err err)
{
    hf_progress_end(&s->progress); /* the ids may go to the same terminal */
    for (size_t i = 0; i < block->n; i++) {
        hf_err answer = s->results[i].err;
        bool accepted = is_there(answer) && !is_swallowed(&s->results[i]);
        s->swallowed += is_swallowed(&s->results[i]);
        s->accepted += accepted;
        s->existed += accepted && !is_new(answer);
        s->unsure += err == HF_UNSURE && answer == HF_UNSURE;
        if (has_id(answer) && !s->quiet)
            print_id(s->cli, &block->jobs[i], &s->results[i]);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        s->out_error = errno;
}

static hf_err on_block(const hf_bulk_block *block, void *arg)
{
    sender *s = arg;
    if (hf_stop_asked() != 0)
        return HF_CANCEL;
    hf_err err = s->atomic ? check_atomic(s, block) : HF_OK;
    for (size_t i = 0; i < block->n; i++)
        s->results[i].err = HF_UNSURE; /* it may not come to an answer */
    if (err == HF_OK) {
        bool first = block->number == 1;
        hf_waiting *waiting =
            first ? hf_waiting_begin(s->cli->server.url, s->cli->json) : NULL;
        err = hf_enqueue_numbered(s->producer, block->jobs, block->n, block->number,
                                  block->first, s->results, s->detail);
        hf_waiting_end(waiting);
    }
    take_answers(s, block, err);
    if (err == HF_OK && s->out_error != 0)
        return HF_CANCEL;
    hf_progress_show(&s->progress, s->bytes_read, s->accepted);
    return err;
}

static void on_progress(uint64_t bytes_read, void *arg)
{
    sender *s = arg;
    s->bytes_read = bytes_read;
    hf_progress_show(&s->progress, bytes_read, s->accepted);
}

/* The others are for a job of its own. */
static bool goes_with_bulk(const char *option)
{
    static const char *const names[] = {
        "queue", "traceparent", "wait-replicas", "replicas-timeout",
        "bulk",  "run",         "quiet",         "atomic"};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        if (strcmp(option, names[i]) == 0)
            return true;
    return false;
}

static int check_bulk_usage(const hf_cli *cli)
{
    if (cli->args->n_operands > 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: expected TYPE or --bulk FILE, found "
                          "both");
    for (const hf_opt *opt = hf_opts_enqueue; opt->name != NULL; opt++) {
        if (hf_argv_has(cli->args, opt->name) && !goes_with_bulk(opt->name))
            return hf_cli_say(cli, HF_EXIT_USAGE, "each line of the file has its own",
                              "enqueue: expected no --%s with --bulk, found one",
                              opt->name);
    }
    if (hf_cli_queue(cli) == NULL)
        return HF_EXIT_DATA;
    const char *run = hf_argv_text(cli->args, "run");
    return hf_cli_check_name(cli, "a run's id", run);
}

static int open_input(const hf_cli *cli, int *fd, uint64_t *size)
{
    struct stat st;
    const char *file = hf_argv_text(cli->args, "bulk");
    *size = 0;
    *fd = STDIN_FILENO;
    if (strcmp(file, "-") == 0)
        return HF_EXIT_OK;
    *fd = open(file, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return hf_cli_say(cli, HF_EXIT_DATA, "",
                          "%s:1: expected a file that can be read, found "
                          "none (%s)",
                          file, strerror(errno));
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        *size = (uint64_t)st.st_size;
    return HF_EXIT_OK;
}

static int open_producer(const hf_cli *cli, sender *s)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT};
    fill_producer(cli, &opts);
    opts.run = hf_argv_text(cli->args, "run");
    opts.remember_ms = HF_DAY_MS;
    opts.tracer = hf_tracing_tracer(&s->tracing);
    hf_err err = hf_producer_open(&s->producer, &opts, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    /* Before anything is sent: the run can be continued even if this is interrupted now.
     */
    if (cli->json)
        hf_out_json(stderr, json_pack("{s:s}", "run", hf_producer_id(s->producer)));
    else
        fprintf(stderr, "run %s\n", hf_producer_id(s->producer));
    return HF_EXIT_OK;
}

enum { REST_SIZE = 192 };

/* How far it came, and how to continue. */
static void say_rest(const sender *s, hf_err err, char out[REST_SIZE])
{
    char unsure[40] = "";
    if (s->unsure > 0)
        snprintf(unsure, sizeof unsure, ", %" PRIu64 " may have been", s->unsure);
    if (err == HF_OK)
        snprintf(out, REST_SIZE, "all %" PRIu64 " jobs were accepted", s->accepted);
    else if (s->accepted == 0 && err != HF_UNSURE && err != HF_UNCONFIRMED)
        snprintf(out, REST_SIZE, "nothing was accepted");
    else
        snprintf(out, REST_SIZE, "%" PRIu64 " jobs were accepted%s; go on with --run %s",
                 s->accepted, unsure, hf_producer_id(s->producer));
}

/* A signal asked to stop. */
static int tell_stop(const sender *s, hf_err err)
{
    char rest[REST_SIZE];
    say_rest(s, err, rest);
    return hf_cli_say(s->cli, (hf_exit)hf_stop_code(HF_EXIT_OK), "", "stopped by %s (%s)",
                      hf_stop_name(), rest);
}

static int tell_output(const sender *s)
{
    char rest[REST_SIZE];
    say_rest(s, HF_CANCEL, rest);
    return hf_cli_say(s->cli, hf_exit_of_output(s->out_error), "",
                      "standard output cannot be written: %s (%s)",
                      strerror(s->out_error), rest);
}

/* One line: the fault, the state of the blocks before, and how to continue. */
static int tell_fault(const sender *s, hf_err err, const char *what)
{
    char rest[REST_SIZE];
    const char *sentence = hf_err_text(err);
    bool theirs = err == HF_INVALID || err == HF_TOOBIG || err == HF_SYSTEM;
    bool whole = theirs || err == HF_TIMEOUT || strcmp(what, sentence) == 0;
    hf_exit code = theirs ? HF_EXIT_DATA : hf_exit_code(err);
    code = (hf_exit)hf_stop_code((int)code);
    say_rest(s, err, rest);
    if (*what == '\0')
        return hf_cli_say(s->cli, code, hf_exit_hint(err), "%s (%s)", sentence, rest);
    return hf_cli_say(s->cli, code, hf_exit_hint(err), "%s%s%s (%s)",
                      whole ? "" : sentence, whole ? "" : ": ", what, rest);
}

/* With --quiet, instead of the ids. */
static void print_counts(const sender *s)
{
    uint64_t added = s->accepted - s->existed;
    if (s->cli->json)
        hf_out_json(stdout, json_pack("{s:I, s:I}", "accepted", (json_int_t)added,
                                      "existed", (json_int_t)s->existed));
    else
        printf("%" PRIu64 " job%s accepted", added, added == 1 ? " was" : "s were");
    if (!s->cli->json && s->existed > 0)
        printf(", %" PRIu64 " existed already", s->existed);
    if (!s->cli->json)
        putchar('\n');
}

static int read_file(const hf_cli *cli, sender *s, int fd)
{
    char detail[HF_BULK_DETAIL_SIZE];
    const char *file = hf_argv_text(cli->args, "bulk");
    const hf_bulk_opts opts = {.fd = fd,
                               .file = strcmp(file, "-") == 0 ? "standard input" : file,
                               .queue = hf_cli_queue(cli), /* it was checked */
                               .payload_max = (size_t)cli->config->payload_max,
                               .atomic = s->atomic,
                               .traceparent = s->traceparent,
                               .send = on_block,
                               .progress = on_progress,
                               .arg = s};
    hf_stop_start();
    hf_err err = hf_bulk_read(&opts, detail);
    hf_stop_end();
    hf_progress_end(&s->progress);
    if (s->out_error != 0 && (err == HF_CANCEL || err == HF_OK))
        return tell_output(s);
    if (err == HF_CANCEL || (err == HF_OK && hf_stop_asked() != 0))
        return tell_stop(s, err);
    if (err == HF_OK && s->quiet)
        print_counts(s);
    if (err == HF_OK && s->swallowed != 0)
        return hf_cli_say(cli, HF_EXIT_TAKEN,
                          "\"replace_dead\":true in their lines accepts them instead",
                          "%" PRIu64 " jobs were not accepted, because dead jobs have "
                          "their ids or unique keys; %" PRIu64 " were accepted",
                          s->swallowed, s->accepted);
    if (err == HF_OK)
        return HF_EXIT_OK;
    return tell_fault(s, err, detail[0] != '\0' ? detail : s->detail);
}

static int send_file(const hf_cli *cli)
{
    int fd = -1;
    uint64_t size = 0;
    sender s = {.cli = cli,
                .atomic = hf_argv_has(cli->args, "atomic"),
                .quiet = hf_argv_has(cli->args, "quiet")};
    int code = check_bulk_usage(cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_traceparent(cli, &s.traceparent);
    if (code == HF_EXIT_OK)
        code = open_input(cli, &fd, &size);
    if (code == HF_EXIT_OK)
        code = open_tracing(cli, &s.tracing);
    if (code != HF_EXIT_OK)
        return code;
    s.results = calloc(HF_BATCH_JOBS, sizeof *s.results);
    if (s.results != NULL)
        s.results->size = sizeof *s.results;
    code = s.results == NULL ? hf_cli_fail(cli, HF_NOMEM, NULL) : open_producer(cli, &s);
    if (code == HF_EXIT_OK) {
        hf_progress_start(&s.progress, "jobs", size);
        code = read_file(cli, &s, fd);
    }
    if (s.producer != NULL)
        hf_producer_close(s.producer, NULL, NULL);
    hf_tracing_close(&s.tracing);
    free(s.results);
    if (fd != STDIN_FILENO)
        (void)close(fd); /* it was only read */
    return code;
}

/* ---- the command ---- */

int hf_cmd_enqueue(hf_cli *cli)
{
    int code = check_replicas(cli);
    if (code != HF_EXIT_OK)
        return code;
    if (hf_argv_has(cli->args, "bulk"))
        return send_file(cli);
    hf_buf input;
    hf_job job = {HF_JOB_INIT};
    hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
    char headers[HF_TRACED_SIZE];
    hf_buf_init(&input, (size_t)cli->config->payload_max);
    code = check_usage(cli);
    if (code == HF_EXIT_OK)
        code = take_options(cli, &job);
    if (code == HF_EXIT_OK)
        code = take_trace(cli, &job, headers);
    if (code == HF_EXIT_OK)
        code = hf_take_payload(cli, 1, &input, &job.payload, &job.payload_len);
    if (code == HF_EXIT_OK)
        code = send_one(cli, &job, &result);
    hf_buf_done(&input);
    if (code == HF_EXIT_OK && hf_argv_has(cli->args, "wait"))
        code = hf_enqueue_end(cli, job.queue, &result);
    return code;
}
