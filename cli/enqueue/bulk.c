/* bulk.c - see bulk.h. */
#include "cli/enqueue/bulk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "cli/common/traceparent.h"
#include "cli/enqueue/lines.h"

enum {
    JOB_BYTES =
        720, /* what a job counts beside its payload: more than the rest ever takes */
    UNIQUE_BYTES = 8, /* and for each byte of its unique key, which is escaped */
    PROGRESS_LINES = 1000,
    NOWHERE = -1
};

/* A job whose text and bytes are in the block's buffer, which moves while it grows. */
typedef struct item {
    hf_job job;
    ptrdiff_t type, id, unique, on_dead, headers,
        payload; /* in the buffer; NOWHERE: it has none */
} item;

typedef struct block {
    struct block *next; /* the one that was opened after it */
    char queue[HF_ID_SIZE];
    hf_buf text;
    item *items;
    size_t n, cap, bytes;
} block;

typedef struct bulk {
    const hf_bulk_opts *opts;
    char *detail;
    hf_lines lines;
    block *oldest;
    size_t n_open, open_bytes;
    uint64_t number, sent;
    bool many; /* there was a block before */
} bulk;

/* ---- blocks ---- */

static void block_free(block *b)
{
    hf_buf_done(&b->text);
    free(b->items);
    free(b);
}

static void unlink_block(bulk *u, block *b)
{
    block **at = &u->oldest;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    u->n_open--;
    u->open_bytes -= b->bytes;
}

static block *open_block(bulk *u, const char *queue)
{
    block *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    snprintf(b->queue, sizeof b->queue, "%s", queue);
    hf_buf_init(&b->text, (size_t)HF_BATCH_BYTES + HF_BATCH_JOBS * JOB_BYTES);
    block **at = &u->oldest;
    while (*at != NULL)
        at = &(*at)->next;
    *at = b;
    u->n_open++;
    return b;
}

static block *find_block(const bulk *u, const char *queue)
{
    block *b = u->oldest;
    while (b != NULL && strcmp(b->queue, queue) != 0)
        b = b->next;
    return b;
}

static block *largest_block(const bulk *u)
{
    block *best = u->oldest;
    for (block *b = u->oldest; b != NULL; b = b->next) {
        if (b->bytes > best->bytes)
            best = b;
    }
    return best;
}

static ptrdiff_t keep(block *b, const void *bytes, size_t len)
{
    ptrdiff_t at = (ptrdiff_t)b->text.len;
    hf_buf_add(&b->text, bytes, len);
    return at;
}

static ptrdiff_t keep_text(block *b, const char *text)
{
    return text == NULL ? NOWHERE : keep(b, text, strlen(text) + 1);
}

static const char *kept_text(const block *b, ptrdiff_t at)
{
    return at == NOWHERE ? NULL : b->text.data + at;
}

/* What it counts: at least what it takes here, and in a request. A trace of the command
 * does not count: it is not a part of the file, and blocks depend on the file alone. */
static size_t size_of(const hf_job *job)
{
    size_t unique = job->unique == NULL ? 0 : UNIQUE_BYTES * (strlen(job->unique) + 1);
    size_t headers = job->headers == NULL ? 0 : strlen(job->headers) + 1;
    return job->payload_len + JOB_BYTES + unique + headers;
}

static hf_err add_job(bulk *u, block *b, const hf_job *job)
{
    if (b->n == b->cap) {
        size_t cap = b->cap == 0 ? 64 : b->cap * 2;
        item *items = realloc(b->items, cap * sizeof *items);
        if (items == NULL)
            return HF_NOMEM;
        b->items = items;
        b->cap = cap;
    }
    char room[HF_TRACED_SIZE];
    hf_job traced = *job;
    hf_cli_put_trace(&traced, u->opts->traceparent, room);
    item *added = &b->items[b->n];
    added->job = *job;
    added->type = keep_text(b, job->type);
    added->id = keep_text(b, job->id);
    added->unique = keep_text(b, job->unique);
    added->on_dead = keep_text(b, job->on_dead);
    added->headers = keep_text(b, traced.headers);
    added->payload = keep(b, job->payload, job->payload_len);
    if (hf_buf_err(&b->text) != HF_OK)
        return HF_NOMEM; /* its maximum cannot be met: the caller looks at the sizes */
    b->n++;
    b->bytes += size_of(job);
    u->open_bytes += size_of(job);
    return HF_OK;
}

/* Sends a block and ends it, also when that fails. */
static hf_err send_block(bulk *u, block *b)
{
    hf_job *jobs = calloc(b->n, sizeof *jobs);
    unlink_block(u, b);
    hf_err err = HF_NOMEM;
    if (jobs != NULL) {
        for (size_t i = 0; i < b->n; i++) {
            const item *it = &b->items[i];
            jobs[i] = it->job;
            jobs[i].queue = b->queue;
            jobs[i].type = kept_text(b, it->type);
            jobs[i].id = kept_text(b, it->id);
            jobs[i].unique = kept_text(b, it->unique);
            jobs[i].on_dead = kept_text(b, it->on_dead);
            jobs[i].headers = kept_text(b, it->headers);
            jobs[i].payload = b->text.data + it->payload;
        }
        const hf_bulk_block out = {jobs, b->n, ++u->number, u->sent};
        u->sent += b->n;
        err = u->opts->send(&out, u->opts->arg);
    }
    free(jobs);
    block_free(b);
    return err;
}

/* ---- lines ---- */

static hf_err at_line(bulk *u, hf_err err, const char *what)
{
    snprintf(u->detail, HF_BULK_DETAIL_SIZE, "%.200s:%llu: %.300s", u->opts->file,
             (unsigned long long)u->lines.line, what);
    return err;
}

/* A block for a job of this queue and size, with room for it. */
static hf_err block_for(bulk *u, const char *queue, size_t size, block **out)
{
    block *b = find_block(u, queue);
    if (b != NULL && b->n < HF_BATCH_JOBS && b->bytes + size < HF_BATCH_BYTES) {
        *out = b;
        return HF_OK;
    }
    if (u->opts->atomic && u->many)
        return at_line(
            u, HF_INVALID,
            "expected at most one block with --atomic (10000 jobs of one queue, less "
            "than 64MiB), found more");
    hf_err err = b == NULL ? HF_OK : send_block(u, b);
    if (err == HF_OK && u->n_open == HF_BULK_OPEN_BLOCKS)
        err = send_block(u, u->oldest);
    if (err != HF_OK)
        return err;
    u->many = true;
    *out = open_block(u, queue);
    return *out == NULL ? HF_NOMEM : HF_OK;
}

static hf_err take_job(bulk *u, const hf_job *job)
{
    block *b = NULL;
    const char *queue = job->queue != NULL ? job->queue : u->opts->queue;
    hf_err err = block_for(u, queue, size_of(job), &b);
    if (err == HF_OK)
        err = add_job(u, b, job);
    if (err != HF_OK || u->opts->atomic)
        return err;
    /* As soon as the block is complete: later lines of the file may be bad. */
    if (b->n == HF_BATCH_JOBS)
        return send_block(u, b);
    return u->open_bytes > HF_BULK_OPEN_BYTES ? send_block(u, largest_block(u)) : HF_OK;
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    }
    return true;
}

static hf_err take_line(bulk *u, const char *text, size_t len)
{
    char what[HF_BULK_DETAIL_SIZE] = "";
    hf_bulk_line line;
    if (is_blank(text, len))
        return HF_OK;
    hf_err err = hf_bulk_line_read(&line, text, len, u->opts->payload_max, what);
    if (err != HF_OK)
        return err == HF_NOMEM ? err : at_line(u, err, what);
    err = take_job(u, &line.job);
    hf_bulk_line_done(&line);
    return err;
}

static hf_err read_all(bulk *u)
{
    const char *text;
    size_t len;
    for (uint64_t n = 1;; n++) {
        hf_err err = hf_lines_next(&u->lines, &text, &len);
        if (err == HF_GONE)
            return HF_OK;
        if (err == HF_TOOBIG)
            return at_line(u, err,
                           "expected a line of at most 64MiB, found a longer one");
        if (err == HF_SYSTEM) {
            char what[HF_BULK_DETAIL_SIZE];
            u->lines.line++;
            snprintf(what, sizeof what,
                     "expected a file that can be read, found none (%s)",
                     strerror(errno));
            return at_line(u, err, what);
        }
        if (err == HF_OK)
            err = take_line(u, text, len);
        if (err != HF_OK)
            return err;
        if (n % PROGRESS_LINES == 0 && u->opts->progress != NULL)
            u->opts->progress(u->lines.bytes, u->opts->arg);
    }
}

hf_err hf_bulk_read(const hf_bulk_opts *opts, char detail[HF_BULK_DETAIL_SIZE])
{
    bulk u = {.opts = opts, .detail = detail};
    detail[0] = '\0';
    hf_lines_init(&u.lines, opts->fd);
    hf_err err = read_all(&u);
    while (err == HF_OK && u.oldest != NULL)
        err = send_block(&u, u.oldest);
    if (err == HF_NOMEM && detail[0] == '\0')
        err = at_line(&u, err, hf_err_text(err));
    while (u.oldest != NULL) {
        block *b = u.oldest;
        unlink_block(&u, b);
        block_free(b);
    }
    hf_lines_done(&u.lines);
    return err;
}
