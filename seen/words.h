/* words.h - numbers and times in the sentences for an operator. */
#ifndef HF_SEEN_WORDS_H
#define HF_SEEN_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { HF_WORDS_SIZE = 48 };

/* "41 s", "7 min 12 s", "58 min", "5 h 3 min", "30 h", "3 days". Returns `out`. */
const char *hf_words_span(int64_t ms, char out[HF_WORDS_SIZE]);

/* "1 job", "12 jobs". Returns `out`. */
const char *hf_words_count(int64_t n, const char *one, const char *many,
                           char out[HF_WORDS_SIZE]);

/* Puts a text for people into `out`: on one line, without control characters, cut at its
 * end. Returns `out`. */
const char *hf_words_line(const char *text, char *out, size_t size);

#endif
