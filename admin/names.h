/* names.h - a list of names as a caller gets it: sorted, each once, in one allocation. */
#ifndef HF_ADMIN_NAMES_H
#define HF_ADMIN_NAMES_H

#include "base/buf.h"
#include "holdfast/admin.h"

typedef struct hf_names {
    hf_buf text; /* one after the other, each ended by NUL */
    size_t n;
} hf_names;

void hf_names_init(hf_names *names);
void hf_names_add(hf_names *names, const char *name);

/* *out is owned, and ended with free(): the pointers, then the text. HF_TOOBIG: more than
 * 16 MiB were added; HF_NOMEM. In any case the list is done with. */
HF_MUSTCHECK hf_err hf_names_take(hf_names *names, char ***out, size_t *n);
void hf_names_done(hf_names *names);

#endif
