/* logs.c - `holdfast job logs`: what the runs of a job have printed. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/jobs/job_find.h"
#include "cli/out.h"
#include "cli/stop.h"

enum { LOOK_AGAIN_MS = 500, CHARACTER = 4 /* bytes */ };

typedef struct printer {
    const hf_job_info *job;
    bool json, plain; /* plain: no byte that a terminal could take for a command */
    bool holds;       /* the beginning of a character at the end waits for its rest */
    uint64_t fence;   /* the run that was printed last; 0: none */
    uint32_t attempt; /* of the job */
    uint64_t bytes;   /* of the run's log that were printed */
    char held[CHARACTER];
    size_t n_held;
} printer;

/* A piece of a log, and how many bytes came before it. */
typedef struct log_piece {
    const char *text;
    size_t len;
    uint64_t from;
} log_piece;

static void print_json(const printer *p, const log_piece *piece)
{
    bool exact;
    json_t *text = hf_out_bytes(piece->text, piece->len, &exact);
    json_t *object = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o}", "job", hf_out_text(p->job->id), "queue",
        hf_out_text(p->job->queue), "attempt", (json_int_t)p->attempt, "fence",
        (json_int_t)p->fence, "from", (json_int_t)piece->from, "text", text);
    char *encoded = exact ? NULL : hf_base64_encode(piece->text, piece->len);
    if (!exact && json_object_set_new(object, "text_base64", json_string(encoded)) != 0) {
        json_decref(object);
        object = NULL; /* the reader gets an error instead */
    }
    free(encoded);
    hf_out_json(stdout, object);
}

static void print_text(const printer *p, const log_piece *piece)
{
    if (!p->plain) {
        (void)fwrite(piece->text, 1, piece->len, stdout);
        return;
    }
    for (size_t i = 0; i < piece->len;) {
        const char *at = piece->text + i; /* a NUL follows the last byte */
        size_t len = *at == '\n' || *at == '\t' ? 0 : hf_control_len(at);
        putchar(len == 0 && *at != '\0' ? *at : ' ');
        i += len == 0 ? 1 : len;
    }
}

static void print_piece(printer *p, const log_piece *piece)
{
    if (piece->len == 0)
        return;
    if (p->json)
        print_json(p, piece);
    else
        print_text(p, piece);
    p->bytes = piece->from + piece->len;
}

/* No rest of it comes. */
static void print_held(printer *p)
{
    const log_piece piece = {p->held, p->n_held, p->bytes};
    p->n_held = 0;
    print_piece(p, &piece);
}

/* A piece that was cut begins with a whole character: if the first bytes of one are
 * missing, its other bytes are left out. */
static void skip_half(log_piece *piece)
{
    for (size_t n = 1; n < CHARACTER; n++) {
        if (piece->len == 0 || ((unsigned char)*piece->text & 0xC0) != 0x80)
            return;
        piece->text++;
        piece->len--;
        piece->from++;
    }
}

static void print_part(printer *p, log_piece piece)
{
    char *joined = p->n_held > 0 ? malloc(p->n_held + piece.len + 1) : NULL;
    if (joined != NULL) {
        memcpy(joined, p->held, p->n_held);
        memcpy(joined + p->n_held, piece.text, piece.len + 1);
        piece.text = joined;
        piece.len += p->n_held;
        piece.from -= p->n_held;
        p->n_held = 0;
    }
    print_held(p); /* memory is short */
    size_t n = p->holds ? hf_utf8_unfinished(piece.text, piece.len) : 0;
    piece.len -= n;
    print_piece(p, &piece);
    memcpy(p->held, piece.text + piece.len, n);
    p->held[n] = '\0';
    p->n_held = n;
    free(joined);
}

static void on_part(const hf_log_part *part, void *arg)
{
    printer *p = arg;
    log_piece piece = {part->text, part->len, part->from};
    bool other = part->fence != p->fence;
    if (other || part->from != p->bytes + p->n_held)
        print_held(p);
    if (other) {
        if (!p->json)
            printf("==> attempt %" PRIu32 " <==\n", part->attempt);
        p->fence = part->fence;
        p->attempt = part->attempt;
        p->bytes = 0;
    }
    bool cut = part->from > p->bytes + p->n_held;
    if (cut && p->json)
        skip_half(&piece);
    else if (cut)
        printf("==> %" PRIu64 " bytes are not kept <==\n", part->from - p->bytes);
    if (cut)
        p->bytes = piece.from;
    print_part(p, piece);
}

/* Until the job is gone or dead. */
static int show(const hf_cli *cli, hf_admin *admin)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    hf_log_place place = {HF_LOG_PLACE_INIT};
    bool follow = hf_argv_has(cli->args, "follow");
    int code = hf_job_find(cli, admin, &job);
    if (code != HF_EXIT_OK)
        return code;
    printer p = {.job = &job,
                 .json = cli->json,
                 .plain = isatty(STDOUT_FILENO) == 1,
                 .holds = follow};
    hf_stop_start();
    hf_err err =
        hf_admin_logs(admin, job.queue, job.id, &place, on_part, &p, cli->detail);
    while (err == HF_OK && follow && !place.ended && fflush(stdout) == 0 &&
           hf_stop_pause(LOOK_AGAIN_MS))
        err = hf_admin_logs(admin, job.queue, job.id, &place, on_part, &p, cli->detail);
    hf_stop_end();
    print_held(&p);
    return err == HF_OK || err == HF_GONE ? hf_stop_code(HF_EXIT_OK)
                                          : hf_cli_fail(cli, err, cli->detail);
}

int hf_cmd_job_logs(hf_cli *cli)
{
    return hf_job_command(cli, show);
}
