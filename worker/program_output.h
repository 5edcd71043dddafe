/* program_output.h - what a program prints: whole lines of it for the log, up to a limit,
 * and the end of stderr for the error text. Its memory does not grow. Pure: no
 * descriptors. */
#ifndef HF_WORKER_PROGRAM_OUTPUT_H
#define HF_WORKER_PROGRAM_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "worker/programs.h"

/* As hf_programs_opts.on_line; `arg` is hf_output.arg. */
typedef void (*hf_output_line_fn)(int stream, const char *text, size_t len, void *arg);

typedef struct hf_output_line {
    size_t len;
    char text[HF_PROGRAM_LINE_MAX + 1];
} hf_output_line;

typedef struct hf_output {
    hf_output_line_fn on_line; /* may be NULL */
    void *arg;
    size_t told;            /* bytes of lines that were told, with their newlines */
    uint64_t left_out;      /* bytes; once it is not 0 nothing more is told */
    hf_output_line line[2]; /* the beginning of the next line of stdout, of stderr */
    uint64_t tail_bytes;    /* of stderr, in all */
    char tail[HF_PROGRAM_ERROR_MAX]; /* its last bytes, at tail_bytes modulo its size */
} hf_output;

void hf_output_init(hf_output *output, hf_output_line_fn on_line, void *arg);

/* stream: 1 or 2. */
void hf_output_feed(hf_output *output, int stream, const char *bytes, size_t len);

/* Tells what is left of lines without an end, and how much was left out. */
void hf_output_end(hf_output *output);

/* The end of stderr, without blanks at its end, from the beginning of a character on, NUL
 * bytes as blanks. Answers its length. */
size_t hf_output_error(const hf_output *output, char out[HF_PROGRAM_ERROR_MAX + 1]);

#endif
