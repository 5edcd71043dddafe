/* output.c - worker/program/output.h. */
#include "worker/program/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "worker/program/said.h"

void hf_program_output_init(hf_program_output *output, hf_program_output_fn on_line,
                            void *arg)
{
    output->on_line = on_line;
    output->arg = arg;
    output->reported = 0;
    output->left_out = output->tail_bytes = 0;
    output->line[0].len = output->line[1].len = 0;
}

static void tell_line(hf_program_output *output, int stream, size_t with_newline)
{
    hf_program_output_line *line = &output->line[stream - 1];
    size_t bytes = line->len + with_newline;
    if (output->left_out > 0 || output->reported + bytes > HF_PROGRAM_OUTPUT_MAX) {
        output->left_out += bytes;
    } else {
        output->reported += bytes;
        line->text[line->len] = '\0';
        if (output->on_line != NULL)
            output->on_line(stream, line->text, line->len, output->arg);
    }
    line->len = 0;
}

/* A line that goes on in the next one. No character is split between them. */
static void tell_full_line(hf_program_output *output, int stream)
{
    hf_program_output_line *line = &output->line[stream - 1];
    size_t n = hf_utf8_unfinished(line->text, line->len);
    char rest[4] = "";
    memcpy(rest, line->text + line->len - n, n);
    line->len -= n;
    tell_line(output, stream, 0);
    memcpy(line->text, rest, n);
    line->len = n;
}

static void feed_lines(hf_program_output *output, int stream, const char *bytes,
                       size_t len)
{
    hf_program_output_line *line = &output->line[stream - 1];
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

static void feed_tail(hf_program_output *output, const char *bytes, size_t len)
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

void hf_program_output_feed(hf_program_output *output, int stream, const char *bytes,
                            size_t len)
{
    HF_ASSERT(stream == 1 || stream == 2);
    if (stream == 2)
        feed_tail(output, bytes, len);
    feed_lines(output, stream, bytes, len);
}

void hf_program_output_end(hf_program_output *output)
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

size_t hf_program_output_error(const hf_program_output *output,
                               char out[HF_PROGRAM_ERROR_MAX + 1])
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
