/* layout.h - draws what is known, as the user looks at it, into cells. */
#ifndef HF_TOP_LAYOUT_H
#define HF_TOP_LAYOUT_H

#include "top/screen.h"
#include "top/view.h"

enum { HF_LAYOUT_COLUMNS = 60, HF_LAYOUT_ROWS = 12 }; /* the least */

/* Fills the screen, whose size is set. The view was settled with this model. It learns
 * what of it fits: the rows of the table, the last line that can be first. now_ns: of
 * hf_boot_ns(), for the age of the data. */
void hf_layout(hf_screen *screen, const hf_model *model, hf_view *view, uint64_t now_ns);

#endif
