/* play.c - cli/conform/play.h. A case is a list of steps, each a line:
 *
 *   job RUN TYPE [BYTES]    line TEXT    bytes BYTES    cancel RUN WHY    stop    ping
 *   repeat N STEP           repeat-job N TYPE           pieces N
 *   signal TERM|INT         wait MS      close          closed-on-exec
 *   part NAME
 *   expect [N] KIND [RUN] [body|error|note|json BYTES] [and ...]
 *   printed TEXT            exits STATUS|failure|any    complains
 *
 * BYTES has the escapes \n \t \\ \xHH; @N is N bytes, @all every byte once. What is sent
 * by neighbouring steps leaves in one piece, unless `pieces` says otherwise. A failure
 * names the last `part`, of the same program, that began before it. At its end a
 * case that has not said how the program ends sends `stop` and expects the exit status 0.
 */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): memmem() */
#include "cli/conform/play.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/conform/inbox.h"
#include "cli/conform/program.h"
#include "cli/stop.h"

enum { RUNS_MAX = 256 };

typedef struct run {
    uint64_t number;
    bool open; /* its verdict is missing */
} run;

typedef struct play {
    hf_play *out;
    hf_conform_program program;
    hf_ready *ready;
    bool refuses; /* it has to end without `ready` */
    hf_inbox inbox;
    run runs[RUNS_MAX];
    size_t n_runs;
    size_t pings, pongs;
    hf_words part; /* its name; both NULL: none has begun */
    bool failed, exits, memory, sent_term;
} play;

/* ---- failures ---- */

/* The first one counts. False, always. */
static bool fail(play *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(play *p, const char *format, ...)
{
    va_list args;
    if (p->failed)
        return false;
    int n = 0;
    if (p->part.at != NULL)
        n = snprintf(p->out->why, sizeof p->out->why,
                     "%.*s: ", (int)(p->part.end - p->part.at), p->part.at);
    va_start(args, format);
    (void)vsnprintf(p->out->why + n, sizeof p->out->why - (size_t)n, format, args);
    va_end(args);
    p->failed = true;
    return false;
}

static bool no_memory(play *p)
{
    p->memory = true;
    return fail(p, "out of memory");
}

enum { STATUS_SIZE = 64 };

static const char *status_text(int status, char out[STATUS_SIZE])
{
    if (WIFSIGNALED(status))
        (void)snprintf(out, STATUS_SIZE, "signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(out, STATUS_SIZE, "exit status %d", WEXITSTATUS(status));
    return out;
}

/* Fails: an expected frame did not come. Says what came instead. */
static bool fail_missing(play *p, const char *expected)
{
    char status[STATUS_SIZE], time[HF_DURATION_SIZE];
    hf_format_duration(p->out->timeout_ms, time);
    if (hf_stop_asked() != 0)
        return fail(p, "stopped");
    if (p->program.pid == 0)
        return fail(p, "expected %s, found the end of the program (%s)", expected,
                    status_text(p->program.status, status));
    if (p->program.closed)
        return fail(p, "expected %s, found that the program has closed its socket",
                    expected);
    return fail(p, "expected %s within %s, found %s", expected, time,
                hf_conform_program_is_written(&p->program)
                    ? "nothing"
                    : "that the program does not read what it is sent");
}

/* ---- frames that come ---- */

static run *run_of(play *p, uint64_t number)
{
    for (size_t i = p->n_runs; i > 0; i--)
        if (p->runs[i - 1].number == number)
            return &p->runs[i - 1];
    return NULL;
}

static void open_run(play *p, uint64_t number)
{
    run *r = run_of(p, number);
    HF_ASSERT(r != NULL || p->n_runs < RUNS_MAX);
    if (r == NULL)
        r = &p->runs[p->n_runs++];
    *r = (run){number, true};
}

static bool take_verdict(play *p, const hf_frame *f)
{
    char why[HF_FRAME_FAULT_SIZE];
    run *r = run_of(p, f->run);
    if (r == NULL)
        return fail(
            p, "expected verdicts only of runs that were sent, found '%s' of run %llu",
            hf_frame_word(f->kind), (unsigned long long)f->run);
    if (!r->open)
        return fail(p, "expected one verdict of run %llu, found a second one: '%s'",
                    (unsigned long long)f->run, hf_frame_word(f->kind));
    r->open = false;
    if (hf_frame_is_refused(f, why))
        return fail(p, "'%s' of run %llu: %s; the program has to answer 'dead' itself",
                    hf_frame_word(f->kind), (unsigned long long)f->run, why);
    return true;
}

static bool take_ready(play *p, const hf_frame *f)
{
    char detail[HF_DETAIL_SIZE];
    if (p->refuses)
        return fail(p, "expected the end of the program, found `ready`");
    hf_err err = hf_ready_read(&p->ready, f->line, f->line_len, detail);
    if (err == HF_NOMEM)
        return no_memory(p);
    return err == HF_OK || fail(p, "the frame `ready` is refused: %s", detail);
}

/* Whether it may come now. */
static bool check(play *p, const hf_frame *f)
{
    char why[HF_FRAME_FAULT_SIZE];
    if (f->kind == HF_FRAME_READY)
        return take_ready(p, f);
    if (hf_frame_is_verdict(f->kind))
        return take_verdict(p, f);
    if (f->kind == HF_FRAME_PONG && ++p->pongs > p->pings)
        return fail(p, "expected one 'pong' for each 'ping', found %zu for %zu", p->pongs,
                    p->pings);
    if (f->kind == HF_FRAME_CHECKPOINT && hf_frame_is_refused(f, why))
        return fail(
            p, "'checkpoint' of run %llu: %s; the program has to answer 'dead' itself",
            (unsigned long long)f->run, why);
    bool of_run = f->kind == HF_FRAME_PROGRESS || f->kind == HF_FRAME_CHECKPOINT ||
                  f->kind == HF_FRAME_LOG;
    return !of_run || run_of(p, f->run) != NULL ||
           fail(p, "expected frames only of runs that were sent, found '%s' of run %llu",
                hf_frame_word(f->kind), (unsigned long long)f->run);
}

static bool on_frame(const hf_frame *f, void *arg)
{
    play *p = arg;
    return check(p, f) && (hf_inbox_add(&p->inbox, f) || no_memory(p));
}

/* ---- waiting ---- */

static uint64_t deadline(const play *p)
{
    return hf_boot_ns() + (uint64_t)p->out->timeout_ms * HF_MS_NS;
}

/* One turn. False: nothing more will come, or the case has failed. */
static bool turn(play *p, uint64_t until_ns)
{
    hf_conform_program_turn(&p->program, until_ns);
    if (p->program.reader.fault[0] != '\0')
        return fail(p, "protocol error: %s", p->program.reader.fault);
    return !p->failed && !hf_conform_program_is_over(&p->program) &&
           hf_boot_ns() < until_ns && hf_stop_asked() == 0;
}

/* A program that takes long to read what it is sent is not late yet. */
static bool turn_while_writing(play *p, uint64_t *until_ns)
{
    size_t before = p->program.written;
    bool goes_on = turn(p, *until_ns);
    if (p->program.written != before)
        *until_ns = deadline(p);
    return goes_on;
}

/* All that there is to write leaves. */
static bool flush(play *p)
{
    uint64_t until_ns = deadline(p);
    while (!hf_conform_program_is_written(&p->program) &&
           turn_while_writing(p, &until_ns))
        continue;
    return !p->failed && (hf_conform_program_is_written(&p->program) ||
                          fail_missing(p, "a program that reads"));
}

/* ---- steps that send ---- */

static void send_job(play *p, uint64_t number, const char *type, hf_words payload)
{
    hf_buf bytes;
    char id[32];
    hf_buf_init(&bytes, HF_PAYLOAD_CEILING);
    hf_words_bytes(payload, false, &bytes);
    (void)snprintf(id, sizeof id, "conform-%llu", (unsigned long long)number);
    const hf_frame_job job = {.run = number,
                              .payload_len = bytes.len,
                              .id = id,
                              .type = type,
                              .queue = "default",
                              .attempt = 1,
                              .max_attempts = 5,
                              .fence = UINT64_C(1790000000000000) + p->n_runs,
                              .timeout_ms = 30000,
                              .created_ms = hf_wall_ms()};
    hf_frame_put_job(&p->program.to_write, &job);
    if (bytes.len > 0)
        hf_buf_add(&p->program.to_write, bytes.data, bytes.len);
    hf_buf_done(&bytes);
    open_run(p, number);
}

static bool do_job(play *p, hf_words w)
{
    char type[32];
    uint64_t number = hf_words_number(&w);
    (void)hf_words_next(&w, type);
    send_job(p, number, type, w);
    return true;
}

/* A line that is a job opens its run. */
static bool do_line(play *p, hf_words w)
{
    hf_buf *out = &p->program.to_write;
    size_t begin = out->len;
    hf_json_scan scan;
    hf_json_member m;
    bool job = false;
    int64_t number = -1;
    hf_words_bytes(w, true, out);
    hf_json_scan_start(&scan, out->data + begin, out->len - begin);
    while (hf_json_scan_next(&scan, &m)) {
        char key[8], value[8];
        size_t n = hf_json_text(m.key, m.key_len, key, sizeof key);
        if (n == 3 && memcmp(key, "run", 3) == 0)
            (void)hf_json_integer(m.value, m.value_len, &number);
        if (n == 1 && *key == 't')
            job = hf_json_text(m.value, m.value_len, value, sizeof value) == 3 &&
                  memcmp(value, "job", 3) == 0;
    }
    hf_buf_add(out, "\n", 1);
    if (job)
        open_run(p, (uint64_t)number);
    return true;
}

static bool do_bytes(play *p, hf_words w)
{
    static const char half[] = "\"t\":\"job\",\"run\":1,";
    hf_buf *out = &p->program.to_write;
    size_t begin = out->len;
    hf_words_bytes(w, false, out);
    if (memmem(out->data + begin, out->len - begin, half, sizeof half - 1) != NULL)
        open_run(p, 1); /* the first half of a line */
    return true;
}

static bool do_cancel(play *p, hf_words w)
{
    static const char *const whys[] = {"timeout", "lost", "cancelled", "stop"};
    char word[32];
    uint64_t number = hf_words_number(&w);
    int why = HF_FRAME_WHY_TIMEOUT;
    (void)hf_words_next(&w, word);
    while (why < HF_FRAME_WHY_STOP && strcmp(whys[why], word) != 0)
        why++;
    hf_frame_put_cancel(&p->program.to_write, number, (hf_frame_why)why, 5000);
    return true;
}

static bool do_stop(play *p, hf_words w)
{
    (void)w;
    hf_frame_put_stop(&p->program.to_write, 25000);
    return true;
}

static bool do_ping(play *p, hf_words w)
{
    (void)w;
    hf_frame_put_ping(&p->program.to_write);
    p->pings++;
    return true;
}

static bool do_part(play *p, hf_words w)
{
    p->part = w;
    return true;
}

static bool do_pieces(play *p, hf_words w)
{
    p->program.piece = hf_words_number(&w);
    return true;
}

/* ---- steps that wait ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool look(play *p, hf_expected all[HF_EXPECTED_MAX], size_t n)
{
    char why[HF_PLAY_WHY_SIZE];
    return hf_inbox_look(&p->inbox, all, n, why) || fail(p, "%s", why);
}

static bool do_expect(play *p, hf_words w)
{
    hf_expected all[HF_EXPECTED_MAX];
    char missing[HF_EXPECTED_SIZE];
    size_t n = hf_expected_read(w, all);
    uint64_t until_ns = deadline(p);
    bool good = look(p, all, n), goes_on = true;
    while (good && goes_on && hf_expected_text(all, n, missing)[0] != '\0') {
        goes_on = turn_while_writing(p, &until_ns);
        good = !p->failed && look(p, all, n);
    }
    if (good && hf_expected_text(all, n, missing)[0] != '\0')
        good = fail_missing(p, missing);
    hf_expected_done(all, n);
    return good;
}

static bool wait_ms(play *p, uint64_t ms)
{
    uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    while (turn(p, until_ns))
        continue;
    if (!p->failed && hf_stop_asked() != 0)
        return fail(p, "stopped");
    return !p->failed;
}

static bool do_wait(play *p, hf_words w)
{
    return flush(p) && wait_ms(p, hf_words_number(&w));
}

static bool do_signal(play *p, hf_words w)
{
    char name[HF_WORD_SIZE];
    bool term = strcmp(hf_words_next(&w, name), "TERM") == 0; /* else INT */
    if (!flush(p))
        return false;
    if (p->program.pid > 0) {
        (void)kill(-p->program.pid, term ? SIGTERM : SIGINT);
        p->sent_term = p->sent_term || term;
    }
    return true;
}

static bool do_close(play *p, hf_words w)
{
    (void)w;
    if (!flush(p))
        return false;
    hf_conform_program_close(&p->program);
    return true;
}

static bool do_closed_on_exec(play *p, hf_words w)
{
    (void)w;
    return !hf_conform_program_leaks(&p->program) ||
           fail(p,
                "expected that the descriptor %d is closed on exec (FD_CLOEXEC), found "
                "that "
                "programs which the program starts inherit it",
                p->program.number);
}

/* Whether it has printed this. */
static bool printed(const hf_buf *out, const char *text, size_t len)
{
    return out->len > 0 && memmem(out->data, out->len, text, len) != NULL;
}

static bool do_printed(play *p, hf_words w)
{
    hf_conform_program_turn(&p->program, 0);
    hf_buf text;
    hf_buf_init(&text, 4096);
    hf_words_bytes(w, false, &text);
    bool found = printed(&p->program.out, text.data, text.len);
    hf_buf_done(&text);
    return found ||
           fail(p,
                "expected what the handler printed on standard output before its "
                "verdict, found %zu bytes",
                p->program.out.len);
}

/* Runtimes take their handlers back before they exit, and a TERM may come after that. So
 * a worker, too, takes an end by its own TERM for one in order. */
static bool ended_by_our_term(const play *p)
{
    int found = p->program.status;
    return p->sent_term && WIFSIGNALED(found) && WTERMSIG(found) == SIGTERM;
}

static bool do_exits(play *p, hf_words w)
{
    char word[32], text[64] = "the end of the program", status[STATUS_SIZE];
    uint64_t until_ns = deadline(p);
    (void)hf_words_next(&w, word);
    if (is_digit(*word))
        (void)snprintf(text, sizeof text, "exit status %s", word);
    else if (strcmp(word, "failure") == 0)
        (void)snprintf(text, sizeof text, "an exit status other than 0");
    while (turn_while_writing(p, &until_ns))
        continue;
    if (p->failed)
        return false;
    if (p->program.pid != 0) {
        char time[HF_DURATION_SIZE];
        hf_format_duration(p->out->timeout_ms, time);
        return hf_stop_asked() != 0
                   ? fail(p, "stopped")
                   : fail(p, "expected %s within %s, found that the program still runs",
                          text, time);
    }
    p->exits = true;
    int found = p->program.status;
    bool good =
        strcmp(word, "any") == 0 || ended_by_our_term(p) ||
        (WIFEXITED(found) &&
         (strcmp(word, "failure") == 0 ? WEXITSTATUS(found) != 0
                                       : WEXITSTATUS(found) == strtol(word, NULL, 10)));
    return good || fail(p, "expected %s, found %s", text, status_text(found, status));
}

static bool do_complains(play *p, hf_words w)
{
    (void)w;
    return printed(&p->program.err, "\n", 1) ||
           fail(p, "expected a line on standard error, found none");
}

/* ---- the list of steps ---- */

static bool do_step(play *p, const hf_conform_line *line);

static bool do_repeat(play *p, hf_words w)
{
    uint64_t n = hf_words_number(&w);
    const char *at = w.at;
    hf_conform_line line;
    bool good = hf_conform_next(&at, w.end, &line);
    for (uint64_t i = 0; i < n && good; i++)
        good = do_step(p, &line);
    return good;
}

static bool do_repeat_job(play *p, hf_words w)
{
    uint64_t n = hf_words_number(&w);
    char type[32], text[64];
    (void)hf_words_next(&w, type);
    for (uint64_t i = 1; i <= n; i++) {
        int len = snprintf(text, sizeof text, "done %llu body job %llu",
                           (unsigned long long)i, (unsigned long long)i);
        const char *body = strstr(text, "job");
        send_job(p, i, type, (hf_words){body, text + len});
        if (!do_expect(p, (hf_words){text, text + len}))
            return false;
    }
    return true;
}

static const struct {
    const char *word;
    bool (*run)(play *p, hf_words w);
} steps[] = {
    {"job", do_job},
    {"line", do_line},
    {"bytes", do_bytes},
    {"cancel", do_cancel},
    {"stop", do_stop},
    {"ping", do_ping},
    {"part", do_part},
    {"pieces", do_pieces},
    {"expect", do_expect},
    {"wait", do_wait},
    {"signal", do_signal},
    {"close", do_close},
    {"closed-on-exec", do_closed_on_exec},
    {"printed", do_printed},
    {"exits", do_exits},
    {"complains", do_complains},
    {"repeat", do_repeat},
    {"repeat-job", do_repeat_job},
};

static bool do_step(play *p, const hf_conform_line *line)
{
    size_t i = 0;
    while (i < HF_COUNT(steps) && !hf_conform_is(line, steps[i].word))
        i++;
    HF_ASSERT(i < HF_COUNT(steps));
    return steps[i].run(p, (hf_words){line->rest, line->rest + line->rest_len});
}

/* ---- a case ---- */

typedef struct needs {
    hf_conform_start start;
    char versions[32];
    char missing[64]; /* "" : the program has all that the case needs */
    bool refuses;
    const char *steps; /* behind these lines */
} needs;

static bool read_need(needs *n, const hf_conform_line *line, const hf_ready *ready)
{
    char word[32];
    hf_words w = {line->rest, line->rest + line->rest_len};
    if (hf_conform_is(line, "needs")) {
        if (hf_ready_find(ready, hf_words_next(&w, word)) == NULL)
            (void)snprintf(n->missing, sizeof n->missing, "it has no type '%s'", word);
    } else if (hf_conform_is(line, "parallel")) {
        uint64_t parallel = hf_words_number(&w);
        if (ready->parallel < parallel)
            (void)snprintf(n->missing, sizeof n->missing, "its `parallel` is %u",
                           ready->parallel);
    } else if (hf_conform_is(line, "versions")) {
        (void)snprintf(n->versions, sizeof n->versions, "%.*s", (int)line->rest_len,
                       line->rest);
    } else if (hf_conform_is(line, "fd")) {
        n->start.no_socket = strcmp(hf_words_next(&w, word), "pipe") == 0;
        n->start.number = n->start.no_socket ? 3 : (int)strtol(word, NULL, 10);
    } else if (hf_conform_is(line, "refuses")) {
        n->refuses = true;
    } else {
        return false;
    }
    return true;
}

static void read_needs(needs *n, const hf_conform_case *one, const hf_ready *ready,
                       char *const *argv)
{
    const char *at = one->lines;
    hf_conform_line line;
    *n = (needs){.start = {.argv = argv, .number = 3}, .versions = "1"};
    n->start.versions = n->versions;
    do
        n->steps = at;
    while (hf_conform_next(&at, one->end, &line) && read_need(n, &line, ready));
}

/* Starts the program, and waits for its `ready`. */
static bool begin(play *p, const hf_conform_start *start)
{
    bool exec;
    uint64_t until_ns = deadline(p);
    int error = hf_conform_program_start(&p->program, start, &exec);
    p->program.on_frame = on_frame;
    p->program.arg = p;
    if (error != 0) {
        *(exec ? &p->out->exec_error : &p->out->error) = error;
        return fail(p, "the program cannot be started: %s", strerror(error));
    }
    while (!p->refuses && p->ready == NULL && turn(p, until_ns))
        continue;
    if (!p->refuses && p->ready == NULL)
        return fail_missing(p, "`ready`");
    if (p->ready != NULL)
        hf_inbox_remove(&p->inbox, 0);
    return true;
}

static bool finish(play *p)
{
    for (size_t i = 0; i < p->n_runs && !p->exits; i++) {
        char text[40];
        int len = snprintf(text, sizeof text, "verdict %llu",
                           (unsigned long long)p->runs[i].number);
        if (p->runs[i].open && !do_expect(p, (hf_words){text, text + len}))
            return false;
    }
    static const char zero[] = "0";
    if (!p->exits &&
        (!do_stop(p, (hf_words){NULL, NULL}) || !do_exits(p, (hf_words){zero, zero + 1})))
        return false;
    for (size_t i = 0; i < p->inbox.n; i++) {
        const hf_heard *h = &p->inbox.list[i];
        if (hf_frame_is_verdict(h->kind))
            return fail(p, "expected no verdict, found '%s' of run %llu",
                        hf_frame_word(h->kind), (unsigned long long)h->run);
    }
    return true;
}

/* Its last words, for people. */
static void keep_stderr(play *p)
{
    const hf_buf *err = &p->program.err;
    if (err->len == 0)
        return;
    size_t from = hf_text_end(err->data, err->len, HF_PLAY_STDERR_MAX);
    (void)snprintf(p->out->stderr_end, sizeof p->out->stderr_end, "%.*s",
                   (int)(err->len - from), err->data + from);
}

static void end(play *p, bool good)
{
    p->out->end = good ? HF_PLAY_PASSED : HF_PLAY_FAILED;
    if (!good && !p->out->exec_error)
        (void)wait_ms(p, 50); /* for its last words */
    keep_stderr(p);
    hf_conform_program_end(&p->program);
    hf_inbox_done(&p->inbox);
}

hf_ready *hf_play_ready(hf_play *out)
{
    play p = {.out = out};
    const hf_conform_start start = {.argv = out->argv, .versions = "1", .number = 3};
    bool good = begin(&p, &start) && finish(&p);
    end(&p, good);
    if (good)
        return p.ready;
    hf_ready_free(p.ready);
    return NULL;
}

void hf_play_case(hf_play *out, const hf_conform_case *one, const hf_ready *ready)
{
    play p = {.out = out};
    needs n;
    hf_conform_line line;
    read_needs(&n, one, ready, out->argv);
    if (n.missing[0] != '\0') {
        out->end = HF_PLAY_SKIPPED;
        (void)snprintf(out->why, sizeof out->why, "%s", n.missing);
        return;
    }
    p.refuses = n.refuses;
    bool good = begin(&p, &n.start);
    while (good && hf_conform_next(&n.steps, one->end, &line))
        good = do_step(&p, &line);
    good = good && finish(&p);
    end(&p, good);
    hf_ready_free(p.ready);
}
