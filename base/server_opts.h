/* server_opts.h - hf_server_opts of holdfast/server.h: checked, filled in, owned. Only
 * this file and hf_client_open() copy the options of a connection.
 */
#ifndef HF_BASE_SERVER_OPTS_H
#define HF_BASE_SERVER_OPTS_H

#include "holdfast/server.h"

/* Copies the caller's options (NULL: the defaults), of any size, and fills in the
 * defaults of all but the URL. The text is still the caller's. HF_INVALID; then `detail`
 * (may be NULL) says why. */
HF_MUSTCHECK hf_err hf_server_opts_in(hf_server_opts *ours, const hf_server_opts *theirs,
                                      char detail[HF_DETAIL_SIZE]);

/* The second half of it, for options that are ours already. */
HF_MUSTCHECK hf_err hf_server_opts_fill(hf_server_opts *opts,
                                        char detail[HF_DETAIL_SIZE]);

/* Replaces the text by copies, which hf_server_opts_free() ends. HF_NOMEM: it has none.
 */
HF_MUSTCHECK hf_err hf_server_opts_own(hf_server_opts *opts);
void hf_server_opts_free(hf_server_opts *opts); /* its text, not the struct */

#endif
