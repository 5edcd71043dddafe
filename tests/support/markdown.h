/* markdown.h - what a document of ours says in code: its fenced blocks and its `spans`,
 * so that tests can hold them against the program; and the sections of a file of many
 * small texts. */
#ifndef HF_TESTS_MARKDOWN_H
#define HF_TESTS_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

enum { HF_MD_INFO = 32, HF_MD_SPAN = 256 };

/* One block between fences. */
typedef struct hf_md_block {
    char info[HF_MD_INFO]; /* what stands after the opening fence: "sh" */
    const char *text;      /* borrowed from the document; whole lines */
    size_t len;
    char note[HF_MD_SPAN]; /* of the comment on the line above it, which no reader sees:
                              `<!-- not run: REASON -->`; "" without one */
} hf_md_block;

/* The text of a file, owned: end it with free(). Fails the test when there is none. */
char *hf_md_read(const char *path);

/* The next block from *at on; false after the last. */
bool hf_md_next_block(const char **at, hf_md_block *out);

/* The next `span` from *at on that is on one line and not in a block; false after the
 * last, and a longer one than fits is passed over. */
bool hf_md_next_span(const char **at, char out[HF_MD_SPAN]);

/* ---- a file of many small texts ---- */

/* The line "== NAME" begins each of them, and one empty line before the next such line is
 * not part of it. What comes before the first section explains the file. */
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
