/* lines.h - reads a file line by line, each of at most HF_LINE_MAX bytes. */
#ifndef HF_CLI_ENQUEUE_LINES_H
#define HF_CLI_ENQUEUE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { HF_LINE_MAX = 64 << 20 };

typedef struct hf_lines {
    int fd; /* borrowed */
    hf_buf buf;
    size_t at;      /* where the next line begins in it */
    size_t looked;  /* up to where no end of line was found */
    uint64_t line;  /* number of the line that was read last, from 1 */
    uint64_t bytes; /* that were read from the file */
    bool end;
} hf_lines;

void hf_lines_init(hf_lines *lines, int fd);
void hf_lines_done(hf_lines *lines);

/* HF_OK: a line without its end, borrowed until the next call; HF_GONE: there is none any
 * more; HF_CANCEL: a signal asked to stop (cli/stop.h); HF_TOOBIG; HF_NOMEM; HF_SYSTEM
 * with errno. */
HF_MUSTCHECK hf_err hf_lines_next(hf_lines *lines, const char **text, size_t *len);

#endif
