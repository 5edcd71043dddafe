/* view.h - what the user looks at: the page, its filter and order, the chosen row, what
 * lies over the page, and the question that is open. Keys change it (keys.h), and
 * layout.h draws it. */
#ifndef HF_TOP_VIEW_H
#define HF_TOP_VIEW_H

#include "top/model.h"
#include "top/pages.h"

typedef enum hf_over {
    HF_OVER_NONE,
    HF_OVER_DETAIL,
    HF_OVER_WHY,
    HF_OVER_LOG,
    HF_OVER_HELP
} hf_over;

/* What details or a log are about: the row of a page. */
typedef struct hf_subject {
    hf_over over; /* HF_OVER_NONE: none is wanted */
    hf_top_page page;
    char queue[HF_ID_SIZE];
    char id[HF_LOCK_NAME_MAX + 1]; /* a job, a worker, a lock, a type; "": the queue */
} hf_subject;

bool hf_subject_same(const hf_subject *a, const hf_subject *b);

typedef enum hf_change_kind {
    HF_CHANGE_NONE,
    HF_CHANGE_PAUSE,
    HF_CHANGE_RESUME,
    HF_CHANGE_CANCEL,
    HF_CHANGE_RETRY,     /* one job */
    HF_CHANGE_RETRY_TYPE /* all dead jobs of a type */
} hf_change_kind;

typedef struct hf_change {
    hf_change_kind kind;
    char queue[HF_ID_SIZE];
    char id[HF_ID_SIZE]; /* of the job, or its type */
} hf_change;

/* How a page is looked at. */
typedef struct hf_page_view {
    char key[HF_ROW_KEY]; /* of the chosen row: it stays chosen wherever it goes */
    size_t chosen, top;   /* in the order */
    int sort;             /* a column; -1: the usual order */
    bool reverse;
} hf_page_view;

enum { HF_FILTER_SIZE = 64, HF_LINE_SIZE = 512 };
enum { HF_INTERVAL_MIN_MS = 500, HF_INTERVAL_MAX_MS = 60000 };

typedef struct hf_view {
    bool utf8, allow_changes; /* set by the caller, as the interval */
    int64_t interval_ms;

    hf_top_page page;
    hf_page_view pages[HF_PAGES];
    char filter[HF_FILTER_SIZE];
    bool typing;        /* of the filter */
    bool frozen, wide;  /* wide: all columns, and reasons in full */
    unsigned shift;     /* columns of the table that are left of the screen */
    hf_subject subject; /* of what is over the page */
    hf_over over;
    size_t scroll;       /* its first line */
    bool follow;         /* the end of the log is shown */
    hf_change asked;     /* its question is open */
    hf_change confirmed; /* the caller takes it */
    char message[HF_LINE_SIZE];
    bool quit;

    size_t *order; /* owned: the rows of the page that the filter lets through */
    size_t n_order, cap_order;
    size_t page_rows; /* of the table, as it was drawn last */
} hf_view;

void hf_view_init(hf_view *view);
void hf_view_done(hf_view *view);

/* Finds the order, and where the chosen row is in it. False: no memory. */
HF_MUSTCHECK bool hf_view_settle(hf_view *view, const hf_model *model);

/* The chosen row of the model; false: there is none. */
bool hf_view_row(const hf_view *view, size_t *row);

/* Chooses the row at this place of the order, or the nearest one. */
void hf_view_choose(hf_view *view, const hf_model *model, size_t place);

static inline hf_page_view *hf_view_page(hf_view *view)
{
    return &view->pages[view->page];
}

/* The subject of the chosen row; its `over` is as given. HF_OVER_NONE: there is no row.
 */
hf_subject hf_view_subject(const hf_view *view, const hf_model *model, hf_over over);

/* The question of a change, without its end. */
void hf_change_question(const hf_change *change, char out[HF_LINE_SIZE]);
/* The command that makes the same change. */
void hf_change_command(const hf_change *change, char out[HF_LINE_SIZE]);

#endif
