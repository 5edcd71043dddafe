/* cmd_bulk.c - see cmd_bulk.h. bulk.c makes the blocks; this sends them, prints what came
 * of them, and says how to go on when something was wrong. */
#include "cli/enqueue/cmd_bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/progress.h"
#include "cli/enqueue/bulk.h"
#include "cli/limits.h"
#include "cli/out.h"

typedef struct sender {
    const hf_cli *cli;
    hf_producer *producer;
    hf_progress progress;
    uint64_t accepted, bytes_read;
    hf_enqueue_result *results; /* HF_BATCH_JOBS of them */
    char detail[HF_DETAIL_SIZE];
} sender;

static void print_ids(const sender *s, const hf_bulk_block *block)
{
    for (size_t i = 0; i < block->n; i++) {
        const hf_enqueue_result *r = &s->results[i];
        if (s->cli->json)
            hf_out_json(stdout,
                        json_pack("{s:s, s:s, s:s, s:b}", "id", r->id, "queue",
                                  block->jobs[i].queue, "type", block->jobs[i].type,
                                  "existed", r->err != HF_OK));
        else
            puts(r->id);
    }
}

static hf_err on_block(const hf_bulk_block *block, void *arg)
{
    sender *s = arg;
    hf_err err = hf_enqueue_numbered(s->producer, block->jobs, block->n, block->number,
                                     block->first, s->results, s->detail);
    if (err != HF_OK)
        return err;
    s->accepted += block->n;
    hf_progress_end(&s->progress); /* the ids may go to the same terminal */
    print_ids(s, block);
    hf_progress_show(&s->progress, s->bytes_read, s->accepted);
    return HF_OK;
}

static void on_progress(uint64_t bytes_read, void *arg)
{
    sender *s = arg;
    s->bytes_read = bytes_read;
    hf_progress_show(&s->progress, bytes_read, s->accepted);
}

/* ---- opening ---- */

static int check_usage(const hf_cli *cli)
{
    static const char *const single[] = {"in",           "at",      "id",
                                         "max-attempts", "timeout", "wait"};
    if (cli->args->n_operands > 0)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "enqueue: expected TYPE or --bulk FILE, found "
                          "both");
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        if (hf_argv_has(cli->args, single[i]))
            return hf_cli_say(cli, HF_EXIT_USAGE, "each line of the file has its own",
                              "enqueue: expected no --%s with --bulk, found one",
                              single[i]);
    }
    if (hf_cli_queue(cli) == NULL)
        return HF_EXIT_DATA;
    const char *run = hf_argv_text(cli->args, "run");
    return run == NULL ? HF_EXIT_OK : hf_cli_check_name(cli, "a run's id", run);
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
    hf_producer_opts opts = {0};
    hf_cli_fill_producer(cli, &opts);
    opts.run = hf_argv_text(cli->args, "run");
    opts.remember_ms = HF_DAY_MS;
    hf_err err = hf_producer_open(&s->producer, &opts, detail);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    /* Before anything is sent: whoever ends this now can go on with it. */
    if (cli->json)
        hf_out_json(stderr, json_pack("{s:s}", "run", hf_producer_id(s->producer)));
    else
        fprintf(stderr, "run %s\n", hf_producer_id(s->producer));
    return HF_EXIT_OK;
}

/* ---- the end ---- */

/* One line: what was wrong, what became of the blocks before, and how to go on. */
static int tell_fault(const sender *s, hf_err err, const char *what)
{
    char rest[128];
    const char *sentence = hf_err_text(err);
    bool theirs = err == HF_INVALID || err == HF_TOOBIG || err == HF_SYSTEM;
    bool whole = theirs || err == HF_TIMEOUT || strcmp(what, sentence) == 0;
    hf_exit code = theirs ? HF_EXIT_DATA : hf_exit_code(err);
    if (s->accepted == 0 && err != HF_UNSURE)
        snprintf(rest, sizeof rest, "nothing was accepted");
    else
        snprintf(rest, sizeof rest, "%" PRIu64 " jobs were accepted; go on with --run %s",
                 s->accepted, hf_producer_id(s->producer));
    if (*what == '\0')
        return hf_cli_say(s->cli, code, hf_exit_hint(err), "%s (%s)", sentence, rest);
    return hf_cli_say(s->cli, code, hf_exit_hint(err), "%s%s%s (%s)",
                      whole ? "" : sentence, whole ? "" : ": ", what, rest);
}

static int read_file(const hf_cli *cli, sender *s, int fd)
{
    char detail[HF_BULK_DETAIL_SIZE];
    const char *file = hf_argv_text(cli->args, "bulk");
    const hf_bulk_opts opts = {.fd = fd,
                               .file = strcmp(file, "-") == 0 ? "standard input" : file,
                               .queue = hf_cli_queue(cli), /* it was checked */
                               .payload_max = (size_t)cli->config->payload_max,
                               .atomic = hf_argv_has(cli->args, "atomic"),
                               .send = on_block,
                               .progress = on_progress,
                               .arg = s};
    hf_err err = hf_bulk_read(&opts, detail);
    hf_progress_end(&s->progress);
    if (err == HF_OK)
        return HF_EXIT_OK;
    return tell_fault(s, err, detail[0] != '\0' ? detail : s->detail);
}

int hf_cmd_bulk(hf_cli *cli)
{
    int fd = -1;
    uint64_t size = 0;
    sender s = {.cli = cli};
    int code = check_usage(cli);
    if (code == HF_EXIT_OK)
        code = open_input(cli, &fd, &size);
    if (code != HF_EXIT_OK)
        return code;
    s.results = calloc(HF_BATCH_JOBS, sizeof *s.results);
    code = s.results == NULL ? hf_cli_fail(cli, HF_NOMEM, NULL) : open_producer(cli, &s);
    if (code == HF_EXIT_OK) {
        hf_progress_start(&s.progress, "jobs", size);
        code = read_file(cli, &s, fd);
    }
    if (s.producer != NULL)
        hf_producer_close(s.producer, NULL, NULL);
    free(s.results);
    if (fd != STDIN_FILENO)
        (void)close(fd); /* it was only read */
    return code;
}
