/* base.c - the end of a program that has met a programming error. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hf_assert_failed(const char *cond, const char *file, int line)
{
    /* The one thing the library ever prints: the process is about to end, and whoever
     * looks at it has nothing else. */
    fprintf(stderr, "holdfast: %s:%d: assertion `%s` does not hold\n", file, line, cond);
    abort();
}
