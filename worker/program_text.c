/* program_text.c - worker/program_text.h. */
#include "worker/program_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

/* ---- the environment ---- */

/* exec refuses more than a quarter of the stack's limit, 2 MiB where it is as usual. */
enum { TEXT_MAX = 1 << 20 };

static const char *const always[] = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", NULL};

static void end_var(hf_program_env *env)
{
    hf_buf_add(&env->text, "", 1);
}

static void add_text(hf_program_env *env, const char *name, const char *value)
{
    hf_buf_printf(&env->text, "%s=%s", name, value);
    end_var(env);
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void pass_on(hf_program_env *env, const char *const *names,
                    bool (*skip)(const char *))
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        const char *value = getenv(names[i]);
        bool again = is_one_of(names[i], names, i) || (skip != NULL && skip(names[i]));
        if (value != NULL && !again)
            add_text(env, names[i], value);
    }
}

/* Variables that the worker sets cannot be passed on from its environment. */
static bool is_ours(const char *name)
{
    return strncmp(name, "HOLDFAST_", 9) == 0 ||
           is_one_of(name, always, HF_COUNT(always) - 1);
}

static hf_err split(hf_program_env *env)
{
    size_t n = 0;
    char *at = env->text.data, *end = at + env->text.len;
    for (; at < end; at += strlen(at) + 1) {
        if (n == HF_PROGRAM_ENV_MAX)
            return HF_TOOBIG;
        env->vars[n++] = at;
    }
    env->vars[n] = NULL;
    return HF_OK;
}

hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                           const hf_program_job *job)
{
    hf_buf_init(&env->text, TEXT_MAX);
    add_text(env, "HOLDFAST_VERDICT_FD", "3");
    add_text(env, "HOLDFAST_CHECKPOINT_FD", "4");
    add_text(env, "HOLDFAST_JOB_ID", job->id);
    add_text(env, "HOLDFAST_TYPE", job->type);
    add_text(env, "HOLDFAST_QUEUE", job->queue);
    add_text(env, "HOLDFAST_FENCE", job->fence);
    hf_buf_printf(&env->text, "HOLDFAST_ATTEMPT=%" PRIu32, job->attempt);
    end_var(env);
    if (job->deadline_unix_ms != 0) {
        hf_buf_printf(&env->text, "HOLDFAST_DEADLINE_UNIX_MS=%" PRId64,
                      job->deadline_unix_ms);
        end_var(env);
    }
    if (job->scheduled_unix_ms != 0) {
        hf_buf_printf(&env->text, "HOLDFAST_SCHEDULED_UNIX_MS=%" PRId64,
                      job->scheduled_unix_ms);
        end_var(env);
    }
    pass_on(env, always, NULL);
    pass_on(env, spec->env, is_ours);
    hf_err err = hf_buf_err(&env->text);
    return err == HF_OK ? split(env) : err;
}

void hf_program_env_done(hf_program_env *env)
{
    hf_buf_done(&env->text);
}

/* ---- its output ---- */

void hf_output_init(hf_output *output, hf_output_line_fn on_line, void *arg)
{
    output->on_line = on_line;
    output->arg = arg;
    output->told = 0;
    output->left_out = output->tail_bytes = 0;
    output->line[0].len = output->line[1].len = 0;
}

static void tell_line(hf_output *output, int stream, size_t with_newline)
{
    hf_output_line *line = &output->line[stream - 1];
    size_t bytes = line->len + with_newline;
    if (output->left_out > 0 || output->told + bytes > HF_PROGRAM_OUTPUT_MAX) {
        output->left_out += bytes;
    } else {
        output->told += bytes;
        line->text[line->len] = '\0';
        if (output->on_line != NULL)
            output->on_line(stream, line->text, line->len, output->arg);
    }
    line->len = 0;
}

/* A line that goes on in the next one. No character is split between them. */
static void tell_full_line(hf_output *output, int stream)
{
    hf_output_line *line = &output->line[stream - 1];
    size_t n = hf_utf8_unfinished(line->text, line->len);
    char rest[4] = "";
    memcpy(rest, line->text + line->len - n, n);
    line->len -= n;
    tell_line(output, stream, 0);
    memcpy(line->text, rest, n);
    line->len = n;
}

static void feed_lines(hf_output *output, int stream, const char *bytes, size_t len)
{
    hf_output_line *line = &output->line[stream - 1];
    while (len > 0 && output->left_out == 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t n = newline == NULL ? len : (size_t)(newline - bytes);
        size_t room = HF_PROGRAM_LINE_MAX - line->len;
        bool ends = newline != NULL && n <= room;
        n = n < room ? n : room;
        memcpy(line->text + line->len, bytes, n);
        line->len += n;
        bytes += n + ends;
        len -= n + ends;
        if (ends)
            tell_line(output, stream, 1);
        else if (line->len == HF_PROGRAM_LINE_MAX && len > 0)
            tell_full_line(output, stream);
    }
    output->left_out += len;
}

static void feed_tail(hf_output *output, const char *bytes, size_t len)
{
    if (len > HF_PROGRAM_ERROR_MAX) {
        output->tail_bytes += len - HF_PROGRAM_ERROR_MAX;
        bytes += len - HF_PROGRAM_ERROR_MAX;
        len = HF_PROGRAM_ERROR_MAX;
    }
    size_t at = (size_t)(output->tail_bytes % HF_PROGRAM_ERROR_MAX);
    size_t first = HF_PROGRAM_ERROR_MAX - at < len ? HF_PROGRAM_ERROR_MAX - at : len;
    memcpy(output->tail + at, bytes, first);
    memcpy(output->tail, bytes + first, len - first);
    output->tail_bytes += len;
}

void hf_output_feed(hf_output *output, int stream, const char *bytes, size_t len)
{
    HF_ASSERT(stream == 1 || stream == 2);
    if (stream == 2)
        feed_tail(output, bytes, len);
    feed_lines(output, stream, bytes, len);
}

void hf_output_end(hf_output *output)
{
    for (int stream = 1; stream <= 2; stream++)
        if (output->line[stream - 1].len > 0)
            tell_line(output, stream, 0);
    if (output->left_out == 0 || output->on_line == NULL)
        return;
    char text[64];
    int n = snprintf(text, sizeof text, "%" PRIu64 " bytes of output left out",
                     output->left_out);
    output->on_line(0, text, (size_t)n, output->arg);
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\r' || c == '\t' || c == ' ' || c == '\0';
}

size_t hf_output_error(const hf_output *output, char out[HF_PROGRAM_ERROR_MAX + 1])
{
    bool cut = output->tail_bytes > HF_PROGRAM_ERROR_MAX;
    size_t len = cut ? HF_PROGRAM_ERROR_MAX : (size_t)output->tail_bytes;
    size_t at = (size_t)((output->tail_bytes - len) % HF_PROGRAM_ERROR_MAX);
    for (size_t i = 0; i < len; i++) {
        char c = output->tail[(at + i) % HF_PROGRAM_ERROR_MAX];
        out[i] = c == '\0' ? ' ' : c;
    }
    size_t from = 0; /* no half of a UTF-8 character: 10xxxxxx is never a first byte */
    while (cut && from < 3 && from < len && ((unsigned char)out[from] & 0xc0) == 0x80)
        from++;
    while (len > from && is_blank(out[len - 1]))
        len--;
    memmove(out, out + from, len - from);
    out[len - from] = '\0';
    return len - from;
}

/* ---- its verdict ---- */

/* "what: why"; of a long reason its end. */
static void say(char *error, const char *what, const char *why)
{
    size_t room = HF_PROGRAM_ERROR_MAX;
    size_t taken = what[0] == '\0' ? 0 : strlen(what) + 2;
    why += hf_text_end(why, strlen(why), room - taken);
    const char *const parts[] = {what, what[0] == '\0' || why[0] == '\0' ? "" : ": ",
                                 why};
    for (size_t i = 0; i < HF_COUNT(parts); i++) {
        size_t len = strnlen(parts[i], room);
        memcpy(error, parts[i], len);
        error += len;
        room -= len;
    }
    *error = '\0';
}

void hf_program_not_started(const hf_program *spec, const hf_spawn_fault *fault,
                            char error[HF_PROGRAM_ERROR_MAX + 1])
{
    const char *name = spec->argv[0], *why = strerror(fault->error);
    if (fault->step == HF_SPAWN_MINDER)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "the minder cannot be told: %s", why);
    else if (fault->step == HF_SPAWN_LATE)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "the lease was over before it started");
    else if (fault->step == HF_SPAWN_CWD)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot enter '%s': %s", spec->cwd, why);
    else if (fault->step == HF_SPAWN_EXEC)
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot run '%s': %s", name, why);
    else
        snprintf(error, HF_PROGRAM_ERROR_MAX, "cannot prepare '%s': %s", name, why);
}

void hf_program_judge(hf_program_result *result, const hf_program_end_state *end,
                      const hf_verdict_line *line, char error[HF_PROGRAM_ERROR_MAX + 1])
{
    char what[64], duration[HF_DURATION_SIZE];
    const char *said = line->error[0] != '\0' ? line->error : end->stderr_end;
    result->error = error;
    result->verdict = HF_VERDICT_RETRY;
    result->has_retry_in = line->has_retry_in;
    result->retry_in_ms = line->retry_in_ms;
    error[0] = '\0';
    if (end->timed_out) {
        hf_format_duration((int64_t)end->timeout_ms, duration);
        snprintf(what, sizeof what, "time-out after %s", duration);
        say(error, what, said);
    } else if (end->by_signal) {
        snprintf(what, sizeof what, "killed by signal %d", end->status);
        say(error, what, said);
    } else {
        if (line->has_verdict)
            result->verdict = line->verdict;
        else if (end->status == 0)
            result->verdict = HF_VERDICT_DONE;
        else if (end->status == HF_EXIT_DEAD)
            result->verdict = HF_VERDICT_DEAD;
        bool failed =
            result->verdict == HF_VERDICT_RETRY || result->verdict == HF_VERDICT_DEAD;
        if (!failed)
            said = line->error; /* its output is for the log only */
        snprintf(what, sizeof what, "exit status %d", end->status);
        bool none = said[0] == '\0' && failed;
        say(error, none ? what : "", said);
    }
    if (result->verdict != HF_VERDICT_RETRY && result->verdict != HF_VERDICT_RELEASE)
        result->has_retry_in = false;
}
