/* table.h - from texts to small numbers, in the order in which they were first seen. */
#ifndef HF_TESTS_HISTORY_TABLE_H
#define HF_TESTS_HISTORY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hf_table {
    char **texts; /* owned; texts[0..n) */
    size_t n, slots;
    size_t *index; /* owned; 0: free, else the number + 1 */
} hf_table;

/* The text's number; a new text gets the next one. */
size_t hf_table_put(hf_table *t, const char *text, bool *is_new);
bool hf_table_find(const hf_table *t, const char *text, size_t *number);
void hf_table_done(hf_table *t);

/* Grows an array of `size`-byte elements so that element n fits; what is new is zero. */
void *hf_array_fit(void *array, size_t n, size_t *capacity, size_t size);

#endif
