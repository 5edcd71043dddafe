/* output.h - what a program writes to stdout and stderr. Pure: no descriptors. Whole
 * lines go to the log, up to a limit, and the end of stderr is the error text; the memory
 * for it is bounded. */
#ifndef HF_WORKER_PROGRAM_OUTPUT_H
#define HF_WORKER_PROGRAM_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "worker/program/said.h"

enum {
    HF_PROGRAM_LINE_MAX = 4096,      /* bytes of a line; a longer one is split */
    HF_PROGRAM_OUTPUT_MAX = 64 << 10 /* bytes of lines logged for one job */
};

/* As hf_programs_opts.on_line; `arg` is hf_program_output.arg. */
typedef void (*hf_program_output_fn)(int stream, const char *text, size_t len, void *arg);

typedef struct hf_program_output_line {
    size_t len;
    char text[HF_PROGRAM_LINE_MAX + 1];
} hf_program_output_line;

typedef struct hf_program_output {
    hf_program_output_fn on_line; /* may be NULL */
    void *arg;
    size_t reported;   /* bytes of lines that were reported, with their newlines */
    uint64_t left_out; /* bytes; once it is not 0 nothing more is reported */
    hf_program_output_line
        line[2];         /* the beginning of the next line of stdout, of stderr */
    uint64_t tail_bytes; /* of stderr, in all */
    char tail[HF_PROGRAM_ERROR_MAX]; /* its last bytes, at tail_bytes modulo its size */
} hf_program_output;

void hf_program_output_init(hf_program_output *output, hf_program_output_fn on_line,
                            void *arg);

/* stream: 1 or 2. */
void hf_program_output_feed(hf_program_output *output, int stream, const char *bytes,
                            size_t len);

/* Tells what is left of lines without an end, and how much was left out. */
void hf_program_output_end(hf_program_output *output);

/* The end of stderr, without blanks at its end, from the beginning of a character on, NUL
 * bytes as blanks. Answers its length. */
size_t hf_program_output_error(const hf_program_output *output,
                               char out[HF_PROGRAM_ERROR_MAX + 1]);

#endif
