/* cases.h - the cases of `holdfast conform`: data, in the files of tests/conform/. */
#ifndef HF_CLI_CONFORM_CASES_H
#define HF_CLI_CONFORM_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* One case begins with the line `case NAME`. These lines may follow it:
 *
 *   needs TYPE        the program has this type of the contract (docs/pipe.md)
 *   parallel N        and a `parallel` of N at least
 *   versions TEXT     is HOLDFAST_PIPE, without it 1
 *   fd N, fd pipe     is HOLDFAST_FD, without it 3; or it is no socket
 *   refuses           the program ends without `ready`
 *
 * and then its steps, one on a line (play.c). A line with # is a comment. */
typedef struct hf_conform_case {
    const char *name; /* of `name_len` bytes */
    size_t name_len;
    const char *lines; /* behind its first line, up to `end` */
    const char *end;
} hf_conform_case;

/* All of them, in their order. The caller frees the list; its text is static. NULL: out
 * of memory. */
hf_conform_case *hf_conform_cases(size_t *n);

/* The next line that is no comment, as its first word and the rest. False: there is none.
 */
typedef struct hf_conform_line {
    const char *word, *rest;
    size_t word_len, rest_len;
} hf_conform_line;
bool hf_conform_next(const char **at, const char *end, hf_conform_line *out);
bool hf_conform_is(const hf_conform_line *line, const char *word);

/* The words of a rest. */
typedef struct hf_words {
    const char *at, *end;
} hf_words;
enum { HF_WORD_SIZE = 32 };
const char *hf_words_next(hf_words *words, char out[HF_WORD_SIZE]); /* "" : none */
uint64_t hf_words_number(hf_words *words);
/* Appends what is left as bytes: \n \t \\ \xHH, @N for N bytes of a pattern, @all for
 * each byte once. In JSON only @N is replaced. */
void hf_words_bytes(hf_words words, bool json, hf_buf *out);

#endif
