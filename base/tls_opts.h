/* tls_opts.h - a copy of the options of <holdfast/tls.h> that outlives its caller. */
#ifndef HF_BASE_TLS_OPTS_H
#define HF_BASE_TLS_OPTS_H

#include "holdfast/tls.h"

/* One block, which free() ends. A field that a caller of an older version does not have
 * is the default. NULL: out of memory. */
hf_tls_opts *hf_tls_opts_copy(const hf_tls_opts *from);

#endif
