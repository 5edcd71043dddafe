/* error_text.h - what a failed job said, made fit to be written into a line of JSON.
 *
 * The scripts write an error's bytes into the record as they are. Bytes that are no UTF-8
 * would leave a record that no JSON parser reads again, so they are replaced before they
 * are sent. */
#ifndef HF_QUEUE_ERROR_TEXT_H
#define HF_QUEUE_ERROR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "redis/request.h"

bool hf_error_text_fits(hf_bytes text); /* UTF-8, and not longer than HF_ERROR_MAX */

/* Writes the text, its last HF_ERROR_MAX bytes, each byte that is no UTF-8 as a question
 * mark; never more than text.len bytes. Answers how many. */
size_t hf_error_text_mend(char *out, hf_bytes text);

#endif
