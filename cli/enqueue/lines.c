/* lines.c - see lines.h. */
#include "cli/enqueue/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/stop.h"

enum { CHUNK_BYTES = 256 << 10 };

void hf_lines_init(hf_lines *lines, int fd)
{
    *lines = (hf_lines){.fd = fd};
    hf_buf_init(&lines->buf, (size_t)HF_LINE_MAX + CHUNK_BYTES);
}

void hf_lines_done(hf_lines *lines)
{
    hf_buf_done(&lines->buf);
}

static hf_err read_more(hf_lines *lines)
{
    hf_buf_cut(&lines->buf, lines->at);
    lines->looked -= lines->at;
    lines->at = 0;
    if (lines->buf.len > HF_LINE_MAX)
        return HF_TOOBIG;
    char *room = hf_buf_room(&lines->buf, CHUNK_BYTES);
    if (room == NULL)
        return hf_buf_err(&lines->buf);
    if (!hf_stop_until_readable(lines->fd))
        return HF_CANCEL;
    ssize_t n;
    do {
        n = read(lines->fd, room, CHUNK_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return HF_SYSTEM;
    hf_buf_took(&lines->buf, (size_t)n);
    lines->bytes += (uint64_t)n;
    lines->end = n == 0;
    return HF_OK;
}

static hf_err give(hf_lines *lines, const char **text, size_t *len, size_t end)
{
    *text = lines->buf.data + lines->at;
    *len = end - lines->at;
    lines->line++;
    lines->at = end < lines->buf.len ? end + 1 : end;
    lines->looked = lines->at;
    return *len > HF_LINE_MAX ? HF_TOOBIG : HF_OK;
}

hf_err hf_lines_next(hf_lines *lines, const char **text, size_t *len)
{
    for (;;) {
        size_t left = lines->buf.len - lines->looked;
        const char *end =
            left > 0 ? memchr(lines->buf.data + lines->looked, '\n', left) : NULL;
        if (end != NULL)
            return give(lines, text, len, (size_t)(end - lines->buf.data));
        lines->looked = lines->buf.len;
        if (lines->end && lines->at == lines->buf.len)
            return HF_GONE;
        if (lines->end)
            return give(lines, text, len, lines->buf.len);
        hf_err err = read_more(lines);
        if (err != HF_OK) {
            lines->line += err == HF_TOOBIG ? 1 : 0;
            return err;
        }
    }
}
