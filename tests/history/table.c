/* table.c - see table.h. */
#include "tests/history/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { FIRST = 64 };

void *hf_array_fit(void *array, size_t n, size_t *capacity, size_t size)
{
    size_t old = *capacity;
    if (n < old)
        return array;
    *capacity = n < FIRST ? FIRST : n * 2;
    array = realloc(array, *capacity * size);
    HF_ASSERT(array != NULL);
    memset((char *)array + old * size, 0, (*capacity - old) * size);
    return array;
}

static size_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (size_t)h;
}

/* Where the text is, or would be. */
static size_t slot_of(const hf_table *t, const char *text)
{
    size_t at = hash(text) & (t->slots - 1);
    while (t->index[at] != 0 && strcmp(t->texts[t->index[at] - 1], text) != 0)
        at = (at + 1) & (t->slots - 1);
    return at;
}

static void grow(hf_table *t)
{
    t->slots = t->slots == 0 ? FIRST : t->slots * 2;
    free(t->index);
    t->index = calloc(t->slots, sizeof *t->index);
    t->texts = realloc(t->texts, t->slots / 2 * sizeof *t->texts);
    HF_ASSERT(t->index != NULL && t->texts != NULL);
    for (size_t i = 0; i < t->n; i++)
        t->index[slot_of(t, t->texts[i])] = i + 1;
}

size_t hf_table_put(hf_table *t, const char *text, bool *is_new)
{
    if (t->n == t->slots / 2)
        grow(t);
    size_t at = slot_of(t, text);
    *is_new = t->index[at] == 0;
    if (*is_new) {
        t->texts[t->n] = strdup(text);
        HF_ASSERT(t->texts[t->n] != NULL);
        t->index[at] = ++t->n;
    }
    return t->index[at] - 1;
}

bool hf_table_find(const hf_table *t, const char *text, size_t *number)
{
    if (t->slots == 0)
        return false;
    size_t found = t->index[slot_of(t, text)];
    if (found != 0)
        *number = found - 1;
    return found != 0;
}

void hf_table_done(hf_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->texts[i]);
    free(t->texts);
    free(t->index);
    *t = (hf_table){.n = 0};
}
