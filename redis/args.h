/* args.h - the arguments of one request, gathered without an allocation for each.
 *
 * Room for all of them and for the digits of the numbers among them is taken once: from
 * the struct itself while that is enough, else in one block. Text and bytes are borrowed
 * until the request was written. If there was no memory, nothing is gathered, and what
 * sends the request refuses it with HF_NOMEM. */
#ifndef HF_REDIS_ARGS_H
#define HF_REDIS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/request.h"

enum { HF_DECIMAL_MAX = 20, HF_ARGS_FEW = 40 };

/* All zero is empty, with room for HF_ARGS_FEW. */
typedef struct hf_args {
    hf_bytes *at;
    size_t n, cap;
    char *digits; /* where the next number's text goes */
    char *digits_end;
    void *block; /* owned, NULL while the struct's own room is enough */
    bool failed; /* there was no memory */
    hf_bytes few[HF_ARGS_FEW];
    char few_digits[HF_ARGS_FEW * HF_DECIMAL_MAX];
} hf_args;

/* Room for n arguments; n_numbers of them are numbers. */
void hf_args_init(hf_args *args, size_t n, size_t n_numbers);
void hf_args_done(hf_args *args);

void hf_args_bytes(hf_args *args, hf_bytes bytes);
void hf_args_text(hf_args *args, const char *text);
void hf_args_int(hf_args *args, int64_t value);
void hf_args_flag(hf_args *args, bool value); /* "1" or "0" */

/* Writes a number's digits, without a NUL, and answers how many bytes that were. */
size_t hf_args_digits(char out[HF_DECIMAL_MAX], int64_t value);

#endif
