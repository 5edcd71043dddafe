/* sections.h - a file of many small texts. The line "== NAME" begins each of them, and
 * one empty line before the next such line is not part of it. What comes before the first
 * section explains the file. */
#ifndef HF_TESTS_SECTIONS_H
#define HF_TESTS_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { HF_SECTION_NAME = 128 };

typedef struct hf_section {
    char name[HF_SECTION_NAME];
    const char *text; /* borrowed from the file; whole lines */
    size_t len;
} hf_section;

/* The next section from *at on; false after the last. */
bool hf_section_next(const char **at, hf_section *out);

/* The text of one section of a file, owned: end it with free(). Fails the test when there
 * is none. */
char *hf_section_read(const char *path, const char *name);

#endif
