/* helper_path.h - where the programs are that `holdfast` starts: found from where this
 * program lies, so that both may be moved. */
#ifndef HF_CLI_HELPER_PATH_H
#define HF_CLI_HELPER_PATH_H

#include <limits.h>
#include <stdbool.h>

#include "holdfast/error.h"

/* Beside this program, or where it is installed. False: it is not there. */
bool hf_helper_path(const char *program, char out[PATH_MAX]);
/* What the user can do if it is not there: the end of a message. */
const char *hf_helper_advice(void);
/* The same for a key of the configuration that needs it; if it is not there, `detail`
 * says what to install. */
bool hf_helper_needed(const char *key, const char *program, char out[PATH_MAX],
                      char detail[HF_DETAIL_SIZE]);

#endif
