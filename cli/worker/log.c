/* log.c - see log.h. */
#include "cli/worker/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/out.h"

enum {
    LINE_MAX_BYTES = 256 << 10,
    FLUSH_MS = 2000 /* at the end, if the log is not read */
};

static const char *level_name(hf_log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return (size_t)level < HF_COUNT(names) ? names[level] : "?";
}

/* Without logins, owned by the caller. NULL: memory ran out. */
static char *masked(const char *text)
{
    char *copy = strdup(text);
    if (copy != NULL)
        hf_mask(copy);
    return copy;
}

/* ---- logfmt ---- */

static bool is_bare(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text == ' ' || *text == '"' || *text == '=' || *text == '\\' ||
            hf_control_len(text) > 0)
            return false;
    }
    return true;
}

static void put_quoted(hf_buf *out, const char *text)
{
    hf_buf_text(out, "\"");
    while (*text != '\0') {
        size_t plain = 0;
        while (text[plain] != '\0' && text[plain] != '"' && text[plain] != '\\' &&
               hf_control_len(text + plain) == 0)
            plain++;
        hf_buf_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        if (*text == '"' || *text == '\\')
            hf_buf_printf(out, "\\%c", *text);
        else if (*text == '\n')
            hf_buf_text(out, "\\n");
        else if (*text == '\t')
            hf_buf_text(out, "\\t");
        else {
            char escaped[HF_ESCAPED_SIZE];
            size_t len = hf_control_len(text);
            hf_buf_add(out, escaped, hf_out_escape(text, len, escaped));
            text += len - 1;
        }
        text++;
    }
    hf_buf_text(out, "\"");
}

static void put_pair(hf_buf *out, const char *key, const char *text)
{
    char *shown = masked(text);
    hf_buf_printf(out, " %s=", key);
    if (shown != NULL && is_bare(shown))
        hf_buf_text(out, shown);
    else
        put_quoted(out, shown != NULL ? shown : "");
    free(shown);
}

static void format_logfmt(hf_buf *out, const char *time, hf_log_level level,
                          const char *message, const hf_log_field *fields, size_t n)
{
    hf_buf_printf(out, "ts=%s level=%s", time, level_name(level));
    put_pair(out, "msg", message);
    for (size_t i = 0; i < n; i++) {
        if (fields[i].text != NULL)
            put_pair(out, fields[i].key, fields[i].text);
        else
            hf_buf_printf(out, " %s=%" PRId64, fields[i].key, fields[i].number);
    }
}

/* ---- JSON ---- */

static json_t *json_text(const char *text)
{
    char *shown = masked(text);
    json_t *value = shown == NULL ? NULL : hf_out_text(shown);
    free(shown);
    return value;
}

static void format_json(hf_buf *out, const char *time, hf_log_level level,
                        const char *message, const hf_log_field *fields, size_t n)
{
    json_t *object = json_pack("{s:s, s:s, s:o}", "ts", time, "level", level_name(level),
                               "msg", json_text(message));
    for (size_t i = 0; object != NULL && i < n; i++) {
        json_t *value = fields[i].text != NULL
                            ? json_text(fields[i].text)
                            : json_integer((json_int_t)fields[i].number);
        (void)json_object_set_new(object, fields[i].key, value);
    }
    char *line = hf_out_line(object);
    if (line != NULL)
        hf_buf_text(out, line);
    free(line);
    json_decref(object);
}

void hf_log_format_line(hf_buf *out, hf_config_format format, int64_t unix_ms,
                        hf_log_level level, const char *message,
                        const hf_log_field *fields, size_t n)
{
    char time[HF_TIME_SIZE];
    hf_format_time(unix_ms, time);
    if (format == HF_FORMAT_JSON)
        format_json(out, time, level, message, fields, n);
    else
        format_logfmt(out, time, level, message, fields, n);
}

/* ---- the log ---- */

static void tell_gap(hf_buf *out, uint64_t lines, void *arg)
{
    const hf_log *log = arg;
    const hf_log_field field = {.key = "lines", .number = (int64_t)lines};
    hf_log_format_line(out, (hf_config_format)atomic_load(&log->format), hf_wall_ms(),
                       HF_LOG_WARN, "lines of this log are missing", &field, 1);
    hf_buf_text(out, "\n");
}

bool hf_log_open(hf_log *log, int fd, const hf_config *config)
{
    hf_log_reload(log, config);
    log->writer = hf_writer_open(fd, tell_gap, log);
    return log->writer != NULL;
}

void hf_log_close(hf_log *log)
{
    hf_writer_close(log->writer, FLUSH_MS);
    log->writer = NULL;
}

void hf_log_reload(hf_log *log, const hf_config *config)
{
    atomic_store(&log->level, (int)config->log_level);
    atomic_store(&log->format, (int)config->log_format);
}

void hf_log_write(hf_log_level level, const char *message, const hf_log_field *fields,
                  size_t n, void *arg)
{
    const hf_log *log = arg;
    hf_config_format format = (hf_config_format)atomic_load(&log->format);
    hf_buf line;
    if ((int)level < atomic_load(&log->level))
        return;
    hf_buf_init(&line, LINE_MAX_BYTES);
    hf_log_format_line(&line, format, hf_wall_ms(), level, message, fields, n);
    if (hf_buf_err(&line) !=
        HF_OK) { /* without what was too long, rather than not at all */
        hf_buf_clear(&line);
        hf_log_format_line(&line, format, hf_wall_ms(), level, message, NULL, 0);
    }
    hf_buf_text(&line, "\n");
    if (hf_buf_err(&line) == HF_OK)
        hf_writer_put(log->writer, line.data, line.len);
    hf_buf_done(&line);
}
