/* words.h - a list of texts that ends with NULL, as argv does; NULL is an empty list. */
#ifndef HF_BASE_WORDS_H
#define HF_BASE_WORDS_H

#include <stdbool.h>

/* Copies a list with its texts; the caller frees it with hf_words_free(). NULL: no memory
 * is left. */
const char *const *hf_words_copy(const char *const *list);
void hf_words_free(const char *const *list); /* NULL is fine */

/* Whether two texts are equal, or both NULL; two lists. */
bool hf_text_same(const char *a, const char *b);
bool hf_words_same(const char *const *a, const char *const *b);

#endif
