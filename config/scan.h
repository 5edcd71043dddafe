/* scan.h - the first pass over a YAML text: whether it is well formed, and free of
 * features that a loaded document no longer shows. */
#ifndef HF_CONFIG_SCAN_H
#define HF_CONFIG_SCAN_H

#include "config/fault.h"

/* HF_CONFIG: broken YAML, a second document, an alias, a tag. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_config_scan(const hf_fault *fault, const char *text, size_t len);

#endif
