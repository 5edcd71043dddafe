/* read.h - from the text of a YAML file into an hf_config that holds the presets. */
#ifndef HF_CONFIG_READ_H
#define HF_CONFIG_READ_H

#include "config/config.h"

/* HF_CONFIG with the one line in `detail`, HF_NOMEM. The part that was read stays in
 * `config` and is freed with it. */
HF_MUSTCHECK hf_err hf_config_read(hf_config *config, const char *file, const char *text,
                                   size_t len, char detail[HF_CONFIG_DETAIL_SIZE]);

#endif
