/* pages.h - the six pages as tables: their columns, the order of their rows, and the
 * command that shows a row. To add a column: a row in the table of its page. */
#ifndef HF_TOP_PAGES_H
#define HF_TOP_PAGES_H

#include "seen/offer.h"
#include "top/model.h"
#include "top/shown.h"

enum { HF_ROW_KEY = 320, HF_ROW_COMMAND = HF_OFFER_SIZE };

typedef struct hf_top_column {
    const char *title;
    unsigned width; /* the least, of the flexible one */
    unsigned from;  /* it needs a screen of this many columns */
    bool right;
    bool flexible; /* it takes what is left: one in each page */
    void (*show)(const hf_model *model, size_t row, hf_shown *out);
    /* How it is sorted; without both it is not. Numbers begin with the largest one. */
    double (*number)(const hf_model *model, size_t row);
    const char *(*name)(const hf_model *model, size_t row);
} hf_top_column;

/* The usual order: by a, then by b, both from the least one; then by name. */
typedef struct hf_rank {
    double a, b;
    const char *name;
} hf_rank;

typedef struct hf_page_table {
    const char *title, *brief; /* for the first line */
    const char *empty;         /* the line of a page without rows */
    const hf_top_column *columns;
    size_t n_columns;
    size_t (*count)(const hf_model *model);
    hf_rank (*rank)(const hf_model *model, size_t row);
    /* What tells a row from all others, and what the filter looks at. */
    void (*key)(const hf_model *model, size_t row, char out[HF_ROW_KEY]);
    void (*words)(const hf_model *model, size_t row, char out[HF_SHOWN_SIZE]);
    void (*command)(const hf_model *model, size_t row, char out[HF_ROW_COMMAND]);
} hf_page_table;

const hf_page_table *hf_top_page_of(hf_top_page page);

/* The tables, each in the file of its subject; hf_top_page_of() alone uses them. */
extern const hf_page_table hf_page_overview, hf_page_running, hf_page_dead,
    hf_page_workers, hf_page_locks, hf_page_types;

#endif
