/* shown.h - what stands in one cell of a table. */
#ifndef HF_TOP_SHOWN_H
#define HF_TOP_SHOWN_H

#include "top/screen.h"

enum { HF_SHOWN_SIZE = 320 };

typedef struct hf_shown {
    bool utf8; /* set by the caller, as the room */
    unsigned room;
    hf_style style;
    char text[HF_SHOWN_SIZE];
} hf_shown;

/* A zero is dim, and so is what is not known. */
void hf_show_count(hf_shown *out, int64_t n);
void hf_show_rate(hf_shown *out, double n);
void hf_show_span(hf_shown *out, int64_t ms);
void hf_show_text(hf_shown *out, hf_style style, const char *text);

/* Values over time in this many columns, by blocks; -1 is a gap. */
void hf_show_spark(hf_shown *out, const int64_t *values, size_t n);

#endif
