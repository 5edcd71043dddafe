/* vectors.c - see vectors.h. */
#include "tests/support/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void hf_vectors_read(const char *path, const char *name, size_t least,
                     void (*check)(const json_t *entry, const char *text, void *arg),
                     void *arg)
{
    char *line = NULL;
    size_t size = 0, n = 0;
    json_t *whole = json_load_file(path, 0, NULL);
    size_t entries = json_array_size(json_object_get(whole, name));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (getline(&line, &size, file) > 0) {
        json_t *entry = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        if (entry != NULL)
            check(entry, line, arg);
        n += entry != NULL;
        json_decref(entry);
    }
    assert_int_equal(n, entries);
    assert_true(n >= least);
    free(line);
    fclose(file);
    json_decref(whole);
}
