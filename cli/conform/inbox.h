/* inbox.h - the frames that came from a program, and those that a case expects. */
#ifndef HF_CLI_CONFORM_INBOX_H
#define HF_CLI_CONFORM_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/conform/cases.h"
#include "worker/pool/frame.h"

/* A frame that came, and was not expected yet. */
typedef struct hf_heard {
    hf_frame_kind kind;
    uint64_t run;
    bool json;
    char *body, *text; /* owned; the text is its error or its note */
    size_t body_len, text_len;
} hf_heard;

typedef struct hf_inbox {
    hf_heard *list; /* owned */
    size_t n, cap;
} hf_inbox;

bool hf_inbox_add(hf_inbox *box, const hf_frame *frame); /* false: out of memory */
void hf_inbox_remove(hf_inbox *box, size_t i);
void hf_inbox_done(hf_inbox *box);

/* An expected frame. They may come in any order. */
typedef struct hf_expected {
    size_t count; /* how many are missing */
    int kind;     /* an hf_frame_kind; HF_FRAME_KINDS: any verdict */
    bool has_run;
    uint64_t run;
    char what[8]; /* body, error, note, json; "" : it may say anything */
    hf_buf bytes;
} hf_expected;

enum { HF_EXPECTED_MAX = 4, HF_EXPECTED_SIZE = 128, HF_EXPECTED_WHY_SIZE = 512 };

/* Reads `[N] KIND [RUN] [WHAT BYTES] [and ...]`. How many there are. */
size_t hf_expected_read(hf_words words, hf_expected all[HF_EXPECTED_MAX]);
void hf_expected_done(hf_expected *all, size_t n);
/* The missing ones, for people; "" : none. */
const char *hf_expected_text(const hf_expected *all, size_t n,
                             char out[HF_EXPECTED_SIZE]);

/* Takes what is expected out of the inbox, and drops notes and pongs that are not. False:
 * another verdict is there, or something else than expected is in a frame. */
bool hf_inbox_look(hf_inbox *box, hf_expected *all, size_t n,
                   char why[HF_EXPECTED_WHY_SIZE]);

#endif
