/* screen.h - a grid of cells in memory: what a terminal will show, without one. */
#ifndef HF_TOP_SCREEN_H
#define HF_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef enum hf_style {
    HF_STYLE_PLAIN,
    HF_STYLE_DIM, /* zeros, old data, what can be left unread */
    HF_STYLE_BOLD,
    HF_STYLE_BAD, /* bold as well: never colour alone */
    HF_STYLE_WARN,
    HF_STYLE_GOOD,
    HF_STYLE_RUNS,
    HF_STYLE_TITLE, /* the heads of columns */
    HF_STYLE_CHOSEN /* the page, the row */
} hf_style;

typedef struct hf_cell {
    uint32_t c; /* a character; 0: the second half of a wide one */
    uint8_t style;
} hf_cell;

typedef struct hf_screen {
    unsigned rows, columns;
    hf_cell *cells; /* owned */
    bool utf8;      /* else each character beyond ASCII becomes '?' */
} hf_screen;

/* Makes it empty and of this size; all zero before the first time. */
HF_MUSTCHECK hf_err hf_screen_begin(hf_screen *screen, unsigned rows, unsigned columns);
void hf_screen_done(hf_screen *screen);

/* Writes a text into at most `width` columns, on one line and without control characters,
 * and returns how many it took. What does not fit is cut, with a sign of that at the end.
 * Outside of the screen nothing is written. */
unsigned hf_screen_put(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                       hf_style style, const char *text);
/* The same at the right edge of the field. */
void hf_screen_put_right(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                         hf_style style, const char *text);

void hf_screen_clear(hf_screen *screen, unsigned row);

/* Gives the cells from this column on another style. */
void hf_screen_paint(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                     hf_style style);

/* The bytes of a character in UTF-8, with a NUL; returns how many. */
enum { HF_CELL_SIZE = 5 };
size_t hf_screen_utf8(uint32_t c, char out[HF_CELL_SIZE]);

/* A row as text, without the spaces at its end. `out` has room for 4 bytes a column and a
 * NUL. */
void hf_screen_row(const hf_screen *screen, unsigned row, char *out);

#endif
