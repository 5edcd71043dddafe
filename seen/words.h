/* words.h - numbers and times in the sentences for an operator. */
#ifndef HF_SEEN_WORDS_H
#define HF_SEEN_WORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_WORDS_SIZE = 48 };

/* "41 s", "7 min 12 s", "58 min", "5 h 3 min", "30 h", "3 days". Returns `out`. */
const char *hf_words_span(int64_t ms, char out[HF_WORDS_SIZE]);

/* "1 job", "12 jobs". Returns `out`. */
const char *hf_words_count(int64_t n, const char *one, const char *many,
                           char out[HF_WORDS_SIZE]);

/* Adds to a text for people. What has no room is cut behind a word, and " ..." shows it.
 */
void hf_words_add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf_words_add_args(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Puts a text for people into `out`: on one line, without control characters, cut at its
 * end. Returns `out`. */
const char *hf_words_line(const char *text, char *out, size_t size);

#endif
