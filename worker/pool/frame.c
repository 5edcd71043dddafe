/* frame.c - worker/pool/frame.h. */
#include "worker/pool/frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "redis/args.h"

/* ---- kinds and members ---- */

typedef enum member { T, RUN, N, C, IN, ERROR, JSON, PERCENT, NOTE, MEMBERS } member;

static const char *const member_names[MEMBERS] = {"t",     "run",  "n",       "c",   "in",
                                                  "error", "json", "percent", "note"};

enum {
    HAS_RUN = 1,
    HAS_BODY = 2,
    HAS_IN = 4,
    HAS_ERROR = 8,
    HAS_JSON = 16,
    HAS_NOTE = 32
};

static const struct {
    const char *word;
    unsigned has;
    size_t body_max; /* bytes of it that are kept */
    bool keeps_end;  /* of a longer one; else nothing is kept */
} kinds[HF_FRAME_KINDS] = {
    [HF_FRAME_NONE] = {"none", 0, 0, false},
    [HF_FRAME_BROKEN] = {"broken", 0, 0, false},
    [HF_FRAME_READY] = {"ready", 0, 0, false},
    [HF_FRAME_DONE] = {"done", HAS_RUN | HAS_BODY | HAS_JSON, HF_FRAME_RESULT_MAX, false},
    [HF_FRAME_RETRY] = {"retry", HAS_RUN | HAS_BODY | HAS_IN | HAS_ERROR,
                        HF_FRAME_TEXT_MAX, true},
    [HF_FRAME_DEAD] = {"dead", HAS_RUN | HAS_BODY | HAS_ERROR, HF_FRAME_TEXT_MAX, true},
    [HF_FRAME_RELEASE] = {"release", HAS_RUN | HAS_BODY | HAS_IN | HAS_ERROR,
                          HF_FRAME_TEXT_MAX, true},
    [HF_FRAME_CANCEL] = {"cancel", HAS_RUN | HAS_BODY | HAS_ERROR, HF_FRAME_TEXT_MAX,
                         true},
    [HF_FRAME_PROGRESS] = {"progress", HAS_RUN | HAS_NOTE, 0, false},
    [HF_FRAME_CHECKPOINT] = {"checkpoint", HAS_RUN | HAS_BODY, HF_CHECKPOINT_MAX, false},
    [HF_FRAME_LOG] = {"log", HAS_RUN | HAS_BODY, HF_FRAME_TEXT_MAX, true},
    [HF_FRAME_PONG] = {"pong", 0, 0, false},
    [HF_FRAME_LEAVE] = {"leave", 0, 0, false},
};

const char *hf_frame_word(hf_frame_kind kind)
{
    return kinds[kind].word;
}

static hf_frame_kind kind_of(const char *word, size_t len)
{
    int kind = HF_FRAME_READY;
    while (kind < HF_FRAME_KINDS &&
           (strlen(kinds[kind].word) != len || memcmp(kinds[kind].word, word, len) != 0))
        kind++;
    return kind == HF_FRAME_KINDS ? HF_FRAME_NONE : (hf_frame_kind)kind;
}

/* ---- protocol errors ---- */

/* `kind` may be NONE. The sentence has no bytes of the program, which may be a payload.
 */
static hf_frame_kind broken(hf_frame_reader *r, hf_frame_kind kind, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));
static hf_frame_kind broken(hf_frame_reader *r, hf_frame_kind kind, const char *format,
                            ...)
{
    char what[HF_FRAME_FAULT_SIZE / 2] = "the frame";
    va_list args;
    if (kind != HF_FRAME_NONE)
        (void)snprintf(what, sizeof what, "'%s'", kinds[kind].word);
    int len = snprintf(r->fault, sizeof r->fault, "%s at byte %llu: ", what,
                       (unsigned long long)r->begin);
    va_start(args, format);
    (void)vsnprintf(r->fault + len, sizeof r->fault - (size_t)len, format, args);
    va_end(args);
    return HF_FRAME_BROKEN;
}

/* ---- one line ---- */

/* The value of each member as it is written. The last of several counts; null counts as
 * none. */
typedef struct members {
    struct {
        const char *at; /* NULL: not named */
        size_t len;
    } of[MEMBERS];
} members;

static void split(members *m, const char *line, size_t len)
{
    hf_json_scan scan;
    hf_json_member found;
    *m = (members){0};
    hf_json_scan_start(&scan, line, len);
    while (hf_json_scan_next(&scan, &found)) {
        char name[16];
        size_t n = hf_json_text(found.key, found.key_len, name, sizeof name);
        bool null = found.value_len == 4 && *found.value == 'n';
        int i = 0;
        while (i < MEMBERS &&
               (strlen(member_names[i]) != n || memcmp(member_names[i], name, n) != 0))
            i++;
        if (i == MEMBERS)
            continue;
        m->of[i].at = null ? NULL : found.value;
        m->of[i].len = found.value_len;
    }
}

/* False: it is no such number. Not named: *has is false. */
static bool read_number(const members *m, member i, bool *has, uint64_t *out)
{
    int64_t value = 0;
    *has = m->of[i].at != NULL;
    if (!*has)
        return true;
    bool is = hf_json_integer(m->of[i].at, m->of[i].len, &value) && value >= 0;
    *out = (uint64_t)value;
    return is;
}

/* False: it is no text. Not named: *out stays. */
static bool read_text(const members *m, member i, char *room, size_t size,
                      const char **out, size_t *n)
{
    if (m->of[i].at == NULL)
        return true;
    if (*m->of[i].at != '"')
        return false;
    *n = hf_json_text(m->of[i].at, m->of[i].len, room, size);
    *out = room;
    return true;
}

static bool read_flag(const members *m, member i, bool *out)
{
    *out = m->of[i].at != NULL && *m->of[i].at == 't';
    return m->of[i].at == NULL || *out || *m->of[i].at == 'f';
}

#define A_NUMBER "expected a whole number from 0 to 2^53 as `%s`"

/* The members that its kind has; others are ignored. */
static hf_frame_kind read_members(hf_frame_reader *r, hf_frame *f, const members *m)
{
    unsigned has = kinds[f->kind].has;
    bool has_run;
    uint64_t in = 0, percent = 0;
    if ((has & HAS_RUN) != 0 && (!read_number(m, RUN, &has_run, &f->run) || !has_run))
        return broken(r, f->kind, A_NUMBER, "run");
    if ((has & HAS_IN) != 0 && !read_number(m, IN, &f->has_in, &in))
        return broken(r, f->kind, A_NUMBER, "in");
    if ((has & HAS_ERROR) != 0 &&
        !read_text(m, ERROR, r->error, sizeof r->error, &f->error, &f->error_len))
        return broken(r, f->kind, "expected a text as `error`");
    if ((has & HAS_JSON) != 0 && !read_flag(m, JSON, &f->json))
        return broken(r, f->kind, "expected true or false as `json`");
    if ((has & HAS_NOTE) != 0 && !read_number(m, PERCENT, &f->has_percent, &percent))
        return broken(r, f->kind, A_NUMBER, "percent");
    if ((has & HAS_NOTE) != 0 &&
        !read_text(m, NOTE, r->note, sizeof r->note, &f->note, &f->note_len))
        return broken(r, f->kind, "expected a text as `note`");
    f->in_ms = (int64_t)in;
    f->percent = percent > 100 ? 100 : (uint32_t)percent;
    return f->kind;
}

/* How many bytes follow the line, and what happens to them. */
static hf_frame_kind read_sizes(hf_frame_reader *r, hf_frame *f, const members *m)
{
    uint64_t n = 0;
    if (m->of[C].at != NULL)
        return broken(r, f->kind, "expected no `c`, which only `job` has");
    if ((kinds[f->kind].has & HAS_BODY) == 0 && m->of[N].at != NULL)
        return broken(r, f->kind, "expected no `n`, because no bytes follow it");
    if (!read_number(m, N, &f->has_body, &n) || n > HF_FRAME_BODY_MAX)
        return broken(r, f->kind, "expected a whole number from 0 to %d as `n`",
                      HF_FRAME_BODY_MAX);
    f->n = (size_t)n;
    size_t max = kinds[f->kind].body_max;
    f->too_long = f->n > max;
    /* One byte more than the end shows where a character begins. */
    r->skip = !f->too_long ? 0 : kinds[f->kind].keeps_end ? f->n - max - 1 : f->n;
    r->left = f->n - r->skip;
    return f->kind;
}

/* In which order the frames of a program come. */
static hf_frame_kind check_order(hf_frame_reader *r, hf_frame_kind kind)
{
    if (!r->ready && kind != HF_FRAME_READY)
        return broken(r, kind, "expected `ready` as the first frame");
    if (r->ready && kind == HF_FRAME_READY)
        return broken(r, kind, "expected `ready` once");
    return kind;
}

/* A line without its newline. Its kind; BROKEN. */
static hf_frame_kind read_line(hf_frame_reader *r, const char *line, size_t len)
{
    hf_json_fault fault;
    members m;
    hf_frame *f = &r->frame;
    *f = (hf_frame){.error = ""};
    if (len == 0)
        return broken(r, HF_FRAME_NONE, "expected an object, found an empty line");
    if (!hf_json_check_bytes(line, len, &fault))
        return broken(r, HF_FRAME_NONE, "expected %s behind %zu bytes of its line",
                      fault.expected, fault.at);
    size_t space = 0;
    while (line[space] == ' ' || line[space] == '\t' || line[space] == '\r')
        space++;
    if (line[space] != '{')
        return broken(r, HF_FRAME_NONE, "expected an object");
    split(&m, line, len);
    char word[16];
    const char *t = "";
    size_t t_len = 0;
    if (read_text(&m, T, word, sizeof word, &t, &t_len))
        f->kind = kind_of(t, t_len);
    if (f->kind == HF_FRAME_NONE)
        return broken(r, f->kind, "expected as `t` the kind of a frame of a program");
    hf_frame_kind kind = check_order(r, f->kind);
    if (kind != HF_FRAME_BROKEN)
        kind = read_sizes(r, f, &m);
    if (kind != HF_FRAME_BROKEN)
        kind = read_members(r, f, &m);
    if (kind == HF_FRAME_READY) {
        f->line = line;
        f->line_len = len;
    }
    return kind;
}

/* ---- bytes in pieces ---- */

static void take(hf_frame_reader *r, const char **bytes, size_t *len, size_t n)
{
    *bytes += n;
    *len -= n;
    r->at += n;
}

/* The bytes of the body are there. */
static hf_frame_kind finish(hf_frame_reader *r, const char *body, size_t len,
                            hf_frame *out)
{
    hf_frame *f = &r->frame;
    hf_json_fault fault;
    size_t max = kinds[f->kind].body_max;
    size_t from = f->too_long ? hf_text_end(body, len, max) : 0;
    f->body = body + from;
    f->body_len = len - from;
    f->json = f->json && f->n > 0;
    if (f->json && !f->too_long && !hf_json_check(f->body, f->body_len, &fault)) {
        f->not_json = true;
        f->not_json_at = fault.at;
    }
    r->in_body = false;
    r->ready = true;
    r->begin = r->at;
    *out = *f;
    return f->kind;
}

static hf_frame_kind take_body(hf_frame_reader *r, const char **bytes, size_t *len,
                               hf_frame *out)
{
    size_t skip = r->skip < *len ? r->skip : *len;
    take(r, bytes, len, skip);
    r->skip -= skip;
    const char *from = *bytes;
    if (r->skip == 0 && r->body.len == 0 && r->left <= *len) {
        size_t whole = r->left;
        take(r, bytes, len, whole);
        return finish(r, from, whole, out);
    }
    size_t n = r->left < *len ? r->left : *len;
    hf_buf_add(&r->body, from, n);
    if (hf_buf_err(&r->body) != HF_OK)
        return broken(r, r->frame.kind, "out of memory");
    take(r, bytes, len, n);
    r->left -= n;
    if (r->skip > 0 || r->left > 0)
        return HF_FRAME_NONE;
    return finish(r, r->body.data, r->body.len, out);
}

/* Takes up to the end of the line, which may be in an earlier piece: then *line is in the
 * reader. False: it is not there yet, or too long. */
static bool take_line(hf_frame_reader *r, const char **bytes, size_t *len,
                      const char **line, size_t *line_len)
{
    size_t max = r->ready ? HF_FRAME_LINE_MAX : HF_FRAME_READY_MAX;
    size_t room = max - r->line.len, seen = *len < room ? *len : room;
    const char *from = *bytes, *end = memchr(from, '\n', seen);
    size_t n = end == NULL ? seen : (size_t)(end - from);
    if (end == NULL && n == room) {
        (void)broken(r, HF_FRAME_NONE, "expected the end of a line within %zu bytes",
                     max);
        return false;
    }
    bool here = end != NULL && r->line.len == 0;
    if (!here)
        hf_buf_add(&r->line, from, n);
    take(r, bytes, len, n + (end != NULL));
    if (hf_buf_err(&r->line) != HF_OK)
        (void)broken(r, HF_FRAME_NONE, "out of memory");
    *line = here ? from : r->line.data;
    *line_len = here ? n : r->line.len;
    return end != NULL && r->fault[0] == '\0';
}

/* What the last frame borrowed is not needed any more. */
static void forget_last(hf_frame_reader *r)
{
    if (r->begin != r->at || r->line.len + r->body.len == 0)
        return;
    if (r->line.cap > HF_FRAME_LINE_MAX + 1)
        hf_buf_done(&r->line);
    hf_buf_clear(&r->line);
    hf_buf_clear(&r->body);
}

hf_frame_kind hf_frame_next(hf_frame_reader *r, const char **bytes, size_t *len,
                            hf_frame *out)
{
    forget_last(r);
    if (r->fault[0] == '\0' && *len > 0 && !r->in_body) {
        const char *line = NULL;
        size_t line_len = 0;
        if (!take_line(r, bytes, len, &line, &line_len))
            return r->fault[0] == '\0' ? HF_FRAME_NONE : HF_FRAME_BROKEN;
        if (read_line(r, line, line_len) == HF_FRAME_BROKEN)
            return HF_FRAME_BROKEN;
        r->in_body = true;
        if (r->frame.n == 0)
            return finish(r, "", 0, out);
    }
    if (r->fault[0] != '\0')
        return HF_FRAME_BROKEN;
    return r->in_body && *len > 0 ? take_body(r, bytes, len, out) : HF_FRAME_NONE;
}

bool hf_frame_is_partial(const hf_frame_reader *r)
{
    return r->at != r->begin;
}

void hf_frame_reader_init(hf_frame_reader *r)
{
    *r = (hf_frame_reader){.fault = ""};
    hf_buf_init(&r->line, HF_FRAME_READY_MAX);
    hf_buf_init(&r->body, HF_FRAME_RESULT_MAX);
}

void hf_frame_reader_done(hf_frame_reader *r)
{
    hf_buf_done(&r->line);
    hf_buf_done(&r->body);
}

/* ---- what the frames mean ---- */

bool hf_frame_is_refused(const hf_frame *f, char why[HF_FRAME_FAULT_SIZE])
{
    bool result = f->kind == HF_FRAME_DONE;
    if (f->too_long && !kinds[f->kind].keeps_end)
        (void)snprintf(why, HF_FRAME_FAULT_SIZE,
                       "%s: expected at most %zu bytes, found %zu",
                       result ? "result" : "checkpoint", kinds[f->kind].body_max, f->n);
    else if (f->not_json)
        (void)snprintf(why, HF_FRAME_FAULT_SIZE, "result: no JSON at byte %zu",
                       f->not_json_at);
    else
        return false;
    return true;
}

size_t hf_frame_error(const hf_frame *f, char out[HF_FRAME_ERROR_MAX + 1])
{
    size_t n = f->error_len;
    memcpy(out, f->error, n);
    if (f->body_len > 0 && n > 0 && n < HF_FRAME_ERROR_MAX)
        out[n++] = '\n';
    size_t from = hf_text_end(f->body, f->body_len, HF_FRAME_ERROR_MAX - n);
    memcpy(out + n, f->body + from, f->body_len - from);
    n += f->body_len - from;
    out[n] = '\0';
    return n;
}

/* ---- writing ---- */

typedef struct text {
    char *at; /* room for a line of the worker */
} text;

static void add(text *t, const char *words, size_t len)
{
    memcpy(t->at, words, len);
    t->at += len;
}

static void add_number(text *t, const char *name, uint64_t value)
{
    add(t, name, strlen(name));
    t->at += hf_args_digits(t->at, (int64_t)value);
}

/* A name needs no escapes. */
static void add_name(text *t, const char *name, const char *value)
{
    size_t len = strlen(value);
    HF_ASSERT(len <= HF_NAME_MAX);
    add(t, name, strlen(name));
    add(t, value, len);
    add(t, "\"", 1);
}

/* A traceparent needs none, and what is none is left out. */
static void add_trace(text *t, const char *trace)
{
    size_t len = strlen(trace);
    if (len <= HF_NAME_MAX && strspn(trace, "0123456789abcdef-") == len)
        add_name(t, ",\"trace\":\"", trace);
}

void hf_frame_put_job(hf_buf *out, const hf_frame_job *job)
{
    text t = {hf_buf_room(out, HF_FRAME_OWN_MAX)};
    if (t.at == NULL)
        return;
    char *begin = t.at;
    add_number(&t, "{\"t\":\"job\",\"run\":", job->run);
    add_number(&t, ",\"n\":", job->payload_len);
    if (job->checkpoint_len > 0)
        add_number(&t, ",\"c\":", job->checkpoint_len);
    add_name(&t, ",\"id\":\"", job->id);
    add_name(&t, ",\"type\":\"", job->type);
    add_name(&t, ",\"queue\":\"", job->queue);
    add_number(&t, ",\"attempt\":", job->attempt);
    add_number(&t, ",\"max_attempts\":", job->max_attempts);
    add_number(&t, ",\"fence\":\"", job->fence);
    add(&t, "\"", 1);
    if (job->timeout_ms > 0)
        add_number(&t, ",\"timeout\":", job->timeout_ms);
    if (job->created_ms > 0)
        add_number(&t, ",\"created\":", (uint64_t)job->created_ms);
    if (job->scheduled_ms > 0)
        add_number(&t, ",\"scheduled\":", (uint64_t)job->scheduled_ms);
    if (job->trace != NULL)
        add_trace(&t, job->trace);
    if (job->headers != NULL) {
        HF_ASSERT(job->headers_len <= HF_FRAME_HEADERS_MAX);
        add(&t, ",\"headers\":", 11);
        add(&t, job->headers, job->headers_len);
    }
    add(&t, "}\n", 2);
    hf_buf_took(out, (size_t)(t.at - begin));
}

void hf_frame_put_cancel(hf_buf *out, uint64_t run, hf_frame_why why, int64_t kill_in_ms)
{
    static const char *const whys[] = {"timeout", "lost", "cancelled", "stop"};
    hf_buf_printf(out,
                  "{\"t\":\"cancel\",\"run\":%llu,\"why\":\"%s\",\"kill_in\":%lld}\n",
                  (unsigned long long)run, whys[why], (long long)kill_in_ms);
}

void hf_frame_put_stop(hf_buf *out, int64_t kill_in_ms)
{
    hf_buf_printf(out, "{\"t\":\"stop\",\"kill_in\":%lld}\n", (long long)kill_in_ms);
}

void hf_frame_put_ping(hf_buf *out)
{
    hf_buf_text(out, "{\"t\":\"ping\"}\n");
}
