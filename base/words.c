/* words.c - base/words.h. */
#include "base/words.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t length(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

const char *const *hf_words_copy(const char *const *list)
{
    size_t n = length(list);
    char **copy = calloc(n + 1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        copy[i] = strdup(list[i]);
        if (copy[i] == NULL) {
            hf_words_free((const char *const *)copy);
            return NULL;
        }
    }
    return (const char *const *)copy;
}

void hf_words_free(const char *const *list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free((void *)(uintptr_t)list[i]);
    free((void *)(uintptr_t)list);
}

bool hf_text_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool hf_words_same(const char *const *a, const char *const *b)
{
    size_t n = length(a);
    if (n != length(b))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}
