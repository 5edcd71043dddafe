/* roff.h - text for manual pages. */
#ifndef HF_BASE_ROFF_H
#define HF_BASE_ROFF_H

#include <stdio.h>

/* Text, in which a newline begins a paragraph: a hyphen that can be copied, a backslash
 * and a leading point that stay. */
void hf_roff_put(FILE *file, const char *text);

/* Lines as they are, without the last newline: a shell's quotes stay quotes when they are
 * copied. */
void hf_roff_example(FILE *file, const char *text);

#endif
