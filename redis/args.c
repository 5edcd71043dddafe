/* args.c - see args.h. */
#include "redis/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void hf_args_init(hf_args *args, size_t n, size_t n_numbers)
{
    args->n = 0;
    args->cap = n;
    args->block = NULL;
    args->failed = false;
    if (n <= HF_ARGS_FEW && n_numbers <= HF_ARGS_FEW) {
        args->at = args->few;
        args->digits = args->few_digits;
        args->digits_end = args->few_digits + sizeof args->few_digits;
        return;
    }
    size_t digits = n_numbers * HF_DECIMAL_MAX;
    args->block = malloc(n * sizeof *args->at + digits);
    args->failed = args->block == NULL;
    if (args->failed)
        return;
    args->at = args->block;
    args->digits = (char *)args->block + n * sizeof *args->at;
    args->digits_end = args->digits + digits;
}

void hf_args_done(hf_args *args)
{
    free(args->block);
    args->block = NULL;
}

/* False: there is none, for want of memory. */
static bool has_room(hf_args *args)
{
    if (args->cap == 0 && !args->failed)
        hf_args_init(args, HF_ARGS_FEW, HF_ARGS_FEW);
    return !args->failed;
}

void hf_args_bytes(hf_args *args, hf_bytes bytes)
{
    if (!has_room(args))
        return;
    HF_ASSERT(args->n < args->cap);
    args->at[args->n++] = bytes.len == 0 ? (hf_bytes){"", 0} : bytes;
}

void hf_args_text(hf_args *args, const char *text)
{
    hf_args_bytes(args, (hf_bytes){text, strlen(text)});
}

void hf_args_int(hf_args *args, int64_t value)
{
    if (!has_room(args))
        return;
    HF_ASSERT(args->digits_end - args->digits >= HF_DECIMAL_MAX);
    size_t len = hf_args_digits(args->digits, value);
    hf_args_bytes(args, (hf_bytes){args->digits, len});
    args->digits += len;
}

void hf_args_flag(hf_args *args, bool value)
{
    hf_args_text(args, value ? "1" : "0");
}

size_t hf_args_digits(char out[HF_DECIMAL_MAX], int64_t value)
{
    char backwards[HF_DECIMAL_MAX];
    size_t n = 0, len = 0;
    /* The smallest number has no positive counterpart, but its unsigned form has. */
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        backwards[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        out[len++] = '-';
    while (n != 0)
        out[len++] = backwards[--n];
    return len;
}
