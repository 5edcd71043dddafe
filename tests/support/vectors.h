/* vectors.h - the files of tests/vectors, which the clients of all languages read too:
 * one entry on each line. */
#ifndef HF_TESTS_VECTORS_H
#define HF_TESTS_VECTORS_H

#include <jansson.h>

/* Calls `check` for each entry of the array `name` in
 * HF_TEST_SOURCE/tests/vectors/<file>, with its text as well. Fails the test if there are
 * fewer than `least`. */
void hf_vectors_read(const char *path, const char *name, size_t least,
                     void (*check)(const json_t *entry, const char *text, void *arg),
                     void *arg);

#endif
