/* width.h - how many columns a text takes at a terminal, and how many there are. */
#ifndef HF_CLI_WIDTH_H
#define HF_CLI_WIDTH_H

#include <stddef.h>
#include <stdio.h>

/* Columns: a wide character (CJK, most emoji) takes two, a combining one none. Bytes that
 * are not UTF-8 take one each. */
size_t hf_width(const char *text);

/* The bytes at its beginning that take at most `max` columns. Combining characters stay
 * with the one before. */
size_t hf_width_bytes(const char *text, size_t max);

/* The columns of the terminal that the stream is, or of COLUMNS; 0: it is none, or does
 * not know. Asked anew each time, since a window changes. */
size_t hf_width_of_terminal(FILE *file);

#endif
