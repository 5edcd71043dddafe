/* out.h - what the command prints: aligned tables for people, one JSON object per line
 * for programs. */
#ifndef HF_CLI_OUT_H
#define HF_CLI_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints an object on one line and ends it. */
void hf_out_json(FILE *file, json_t *object);

/* Prints an object with one more member at its end, whose value is text that is JSON. */
void hf_out_json_with(FILE *file, json_t *object, const char *name, const char *value,
                      size_t len);

/* An object as one line, without its end, owned by the caller, in which nothing is a
 * command to a terminal. NULL: memory ran out, or there is no object. */
char *hf_out_line(const json_t *object);

/* A control character as JSON and the log have it, "\\u202e"; returns its length. */
enum { HF_ESCAPED_SIZE = 13 };
size_t hf_out_escape(const char *at, size_t len, char out[HF_ESCAPED_SIZE]);

/* A text on a line that is not ended: spaces instead of control characters. */
void hf_out_plain(FILE *file, const char *text);

/* A text as JSON; each byte that is not UTF-8 becomes '?'. *exact: there was none. */
json_t *hf_out_text(const char *text);
json_t *hf_out_bytes(const char *bytes, size_t len, bool *exact);
/* A time in ms as an integer; 0 becomes null. */
json_t *hf_out_time(int64_t unix_ms);

/* Whether to use colours and weights on this stream: a terminal that is not dumb, and no
 * NO_COLOR. */
bool hf_out_is_bright(FILE *file);

/* The word of a state, in its colour: dead red, paused yellow, running green. A column of
 * a table with the title STATE has them by itself. */
void hf_out_state(FILE *file, const char *state);

/* ---- tables: cells are added from left to right, row after row ---- */

typedef struct hf_column {
    const char *title;
    bool right; /* numbers */
    size_t max; /* 0: never cut. Else it may be cut at a terminal that is too narrow:
                   first to this many columns, then further. In a pipe nothing is cut */
} hf_column;

enum { HF_COLUMNS_MAX = 12 };

typedef struct hf_table {
    const hf_column *columns; /* borrowed */
    size_t n_columns;
    char **cells; /* owned */
    size_t n_cells, cap;
    bool failed; /* out of memory: later output is missing */
} hf_table;

void hf_table_init(hf_table *table, const hf_column *columns, size_t n);
void hf_table_text(hf_table *table,
                   const char *text); /* control characters become spaces */
void hf_table_number(hf_table *table, int64_t number);
/* Prints it (nothing without rows) and frees it. False: memory ran out. The second one
 * for a terminal of `room` columns (0: as wide as it is), with or without colours. */
bool hf_table_print(hf_table *table, FILE *file);
bool hf_table_print_in(hf_table *table, FILE *file, size_t room, bool bright);

#endif
