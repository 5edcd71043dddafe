/* scan.h - the first look at a YAML text: is it well formed, and free of what a loaded
 * document does not show any more. */
#ifndef HF_CONFIG_SCAN_H
#define HF_CONFIG_SCAN_H

#include "config/fault.h"

/* HF_CONFIG: broken YAML, a second document, an alias, a tag. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_config_scan(const hf_fault *fault, const char *text, size_t len);

#endif
