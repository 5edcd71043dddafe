/* layout_table.h - the part of layout.h that is about the rows of a page. */
#ifndef HF_TOP_LAYOUT_TABLE_H
#define HF_TOP_LAYOUT_TABLE_H

#include "top/screen.h"
#include "top/view.h"

/* A part of the screen: its first row and how many. */
typedef struct hf_area {
    unsigned row, rows;
} hf_area;

/* Draws the table of the page with its heads. */
void hf_layout_table(hf_screen *screen, hf_area area, const hf_model *model,
                     hf_view *view);

/* Draws lines of an hf_top_text, with long ones folded, from line view->scroll on, which
 * is put right when it is behind the end. `follow`: the end is shown. */
void hf_layout_lines(hf_screen *screen, hf_area area, const char *lines, bool follow,
                     hf_view *view);

/* Draws the lanes of the workers: at most area.rows. Returns how many rows it took. */
unsigned hf_layout_lanes(hf_screen *screen, hf_area area, const hf_model *model);

#endif
