/* said.h - descriptor lines: what a program says on its descriptor, in lines of
 * JSON. Pure: no descriptors.
 *
 * It writes any number of lines while it runs, and each is taken when it is whole. Of
 * each key the last one counts. A line that is too long or not valid is ignored as a
 * whole, and the first of its kind is reported. At the end a line with a verdict may lack
 * its newline; any other such line is ignored, because it may be the beginning of a
 * longer one. */
#ifndef HF_WORKER_PROGRAM_SAID_H
#define HF_WORKER_PROGRAM_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/worker.h"

enum {
    HF_PROGRAM_ERROR_MAX = 4096,      /* bytes of an error text */
    HF_PROGRAM_SAID_MAX = 128 << 10,  /* bytes of a line */
    HF_PROGRAM_RESULT_MAX = 64 << 10, /* bytes of a result */
};

/* {"verdict":"done|retry|dead|release|cancel","in":"30s","error":"..."}; each may be
 * missing, others are ignored. */
typedef struct hf_verdict_line {
    bool has_verdict;
    hf_verdict verdict;
    bool has_retry_in;
    int64_t retry_in_ms;
    char error[HF_PROGRAM_ERROR_MAX + 1];
} hf_verdict_line;

/* What one line says beside a verdict. All borrowed. */
typedef struct hf_program_update {
    bool has_progress;
    uint32_t progress;
    const char *note;       /* NULL: none is named */
    const void *checkpoint; /* NULL: none is named */
    size_t checkpoint_len;  /* 0: it is removed */
} hf_program_update;

typedef struct hf_program_said {
    hf_verdict_line verdict; /* as of now */
    char *result;            /* owned; NULL: none */
    size_t result_len;
    bool result_is_json;
    void (*on_update)(const hf_program_update *update, void *arg);
    void (*on_fault)(const char *text, void *arg); /* once for each kind */
    void *arg;
    hf_buf line;     /* what came of a line that is not whole */
    hf_buf output;   /* its standard output, if that is its result */
    bool skips;      /* until the end of a line that is too long */
    unsigned faults; /* kinds that were reported */
} hf_program_said;

void hf_program_said_init(hf_program_said *said,
                          void (*on_update)(const hf_program_update *update, void *arg),
                          void (*on_fault)(const char *text, void *arg), void *arg);
void hf_program_said_done(hf_program_said *said);

void hf_program_said_feed(hf_program_said *said, const char *bytes, size_t len);
/* Bytes of its standard output, which is the result if its lines name none. */
void hf_program_said_output(hf_program_said *said, const char *bytes, size_t len);
void hf_program_said_end(hf_program_said *said); /* nothing more comes */

#endif
