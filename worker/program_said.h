/* program_said.h - what a program says on its descriptor, in lines of JSON. Pure: no
 * descriptors.
 *
 * Contract 1: one line, read when the program has ended: its verdict. A newline may be
 * missing, and what follows the first one is ignored.
 *
 * Contract 2: any number of lines while it runs, each taken when it is whole. Of each key
 * the last one counts. A line that is too long or not valid is ignored as a whole, and
 * the first of its kind is told. At the end a line with a verdict may lack its newline;
 * any other such line is ignored, because it may be the beginning of a longer one. */
#ifndef HF_WORKER_PROGRAM_SAID_H
#define HF_WORKER_PROGRAM_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/worker.h"

enum {
    HF_PROGRAM_ERROR_MAX = 4096,      /* bytes of an error text */
    HF_VERDICT_LINE_MAX = 16 << 10,   /* bytes of the line of contract 1 */
    HF_PROGRAM_SAID_MAX = 128 << 10,  /* bytes of a line of contract 2 */
    HF_PROGRAM_RESULT_MAX = 64 << 10, /* bytes of a result */
    HF_CONTRACT_LAST = 2
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

/* Reads the first line of the text; blank text is a line that says nothing. False: it is
 * no such line, `error` says why and nothing else is set. */
bool hf_verdict_line_read(hf_verdict_line *out, const char *text, size_t len);

/* What one line says beside a verdict. All borrowed. */
typedef struct hf_said_news {
    bool has_progress;
    uint32_t progress;
    const char *note;       /* NULL: none is named */
    const void *checkpoint; /* NULL: none is named */
    size_t checkpoint_len;  /* 0: it is removed */
} hf_said_news;

typedef struct hf_said {
    hf_verdict_line verdict; /* as of now; contract 1: after hf_said_end() */
    char *result;            /* owned; NULL: none */
    size_t result_len;
    bool result_is_json;
    unsigned contract;
    void (*on_news)(const hf_said_news *news, void *arg);
    void (*on_fault)(const char *text, void *arg); /* once for each kind */
    void *arg;
    hf_buf line;     /* what came of a line that is not whole */
    hf_buf output;   /* its standard output, if that is its result */
    bool skips;      /* until the end of a line that is too long */
    unsigned faults; /* kinds that were told */
} hf_said;

void hf_said_init(hf_said *said, unsigned contract,
                  void (*on_news)(const hf_said_news *news, void *arg),
                  void (*on_fault)(const char *text, void *arg), void *arg);
void hf_said_done(hf_said *said);

void hf_said_feed(hf_said *said, const char *bytes, size_t len);
/* Bytes of its standard output, which is the result if its lines name none. */
void hf_said_output(hf_said *said, const char *bytes, size_t len);
void hf_said_end(hf_said *said); /* nothing more comes */

#endif
