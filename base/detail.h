/* detail.h - the sentence that a public call gives beside its error (holdfast/error.h).
 */
#ifndef HF_BASE_DETAIL_H
#define HF_BASE_DETAIL_H

#include <stdarg.h>
#include <stddef.h>

#include "holdfast/error.h"

/* Writes the sentence, cut if it is too long and masked (base/mask.h), and gives err
 * back. `detail` may be NULL.
 */
hf_err hf_say(char detail[HF_DETAIL_SIZE], hf_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a function that has its own arguments. */
hf_err hf_say_args(char detail[HF_DETAIL_SIZE], hf_err err, const char *format,
                   va_list args) __attribute__((format(printf, 3, 0)));

/* The same with the sentence of the error itself. */
hf_err hf_say_err(char detail[HF_DETAIL_SIZE], hf_err err);

/* HF_INVALID, and "expected WHAT, found FOUND"; found NULL: none. */
hf_err hf_say_expected(char detail[HF_DETAIL_SIZE], const char *what, const char *found);

/* One sentence of both, for people: that of the error, or the detail where it says it
 * all, or both. `detail` may be NULL. Returns `out`. */
const char *hf_say_whole(hf_err err, const char *detail, char *out, size_t size);

#endif
