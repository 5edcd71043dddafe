/* line.h - one line of a history: a flat JSON object. The values hold neither quotes nor
 * backslashes, so it can be read by looking for the key. */
#ifndef HF_TESTS_HISTORY_LINE_H
#define HF_TESTS_HISTORY_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_LINE_MAX = 4096 };

/* The value as text, without its quotes; "" when there is none, cut when it is longer. */
const char *hf_line_text(const char *line, const char *key, char *out, size_t size);
uint64_t hf_line_number(const char *line, const char *key); /* 0: none */
bool hf_line_is(const char *line, const char *key, const char *value);

/* Calls each(line, arg) for the whole lines of a file; what a killed process left
 * unfinished at the end is left out. Ends the test program when it cannot be read. */
void hf_lines_read(const char *path, void (*each)(const char *line, void *arg),
                   void *arg);

/* Writes one line into a file that several processes append to, in one piece. */
void hf_line_write(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
int hf_lines_open(const char *path); /* for hf_line_write(); ends the program if not */

#endif
