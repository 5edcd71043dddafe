/* figures.h - the counters of a queue: one list for all that show them. `unit.figures`
 * compares it with the scripts, the pages, the documents and the model. */
#ifndef HF_SEEN_FIGURES_H
#define HF_SEEN_FIGURES_H

#include <stddef.h>

#include "holdfast/admin.h"

typedef struct hf_figure {
    const char *name;   /* the field of `meta` and of --json */
    const char *metric; /* of the exporter, */
    const char *help;   /* and what it says of it */
    size_t at;          /* of the int64_t in hf_queue_stats */
} hf_figure;

/* In the order in which they are shown. The last one has no name. */
extern const hf_figure hf_figures[];

int64_t hf_figures_of(const hf_figure *figure, const hf_queue_stats *stats);

#endif
