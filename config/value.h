/* value.h - one value of the configuration: from text into its struct, and how to say
 * what was expected instead. */
#ifndef HF_CONFIG_VALUE_H
#define HF_CONFIG_VALUE_H

#include "base/buf.h"
#include "config/schema.h"
#include "holdfast/error.h"

/* Reads the text of a scalar key and stores it in the owner's struct at `base`, in place
 * of its value. HF_INVALID (`reason` explains it; "" if hf_value_expected() says
 * everything), HF_NOMEM. */
HF_MUSTCHECK hf_err hf_value_store(const hf_key *key, const char *text, void *base,
                                   char reason[HF_DETAIL_SIZE]);

/* Whether a word may stand at place i of a list. */
bool hf_value_word_ok(const hf_key *key, const char *word, size_t i);

/* Frees all that the keys of an owner hold at `base`; sets its presets. */
void hf_value_free_all(hf_key_owner owner, void *base);
HF_MUSTCHECK hf_err hf_value_preset_all(hf_key_owner owner, void *base);

/* "an integer from 1 to 16"; and the range alone, "1 to 16", or nothing. */
void hf_value_expected(const hf_key *key, hf_buf *out);
void hf_value_range(const hf_key *key, hf_buf *out);

/* The members of an owner, by the table's offset. */
char **hf_value_text(const hf_key *key, void *base);
char ***hf_value_words(const hf_key *key, void *base);

/* "duration", as the reference and the manual page call it. */
const char *hf_key_type_name(hf_key_type type);

#endif
