/* info.h - what of the text that INFO answers is kept. */
#ifndef HF_REDIS_INFO_H
#define HF_REDIS_INFO_H

#include <stdbool.h>

#include "holdfast/server.h"

/* Fills everything but client_id; fields that the text does not have are "" or false. */
void hf_info_parse(const char *text, hf_server_info *out);

/* Whether a version ("7.0.15") is one that all scripts run on. */
bool hf_info_new_enough(const char *version);

#endif
