/* base.c - the end of a program that has met a programming error. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hf_assert_failed(const char *cond, const char *file, int line)
{
    /* The only text that the library prints itself: the process is about to end, and this
     * line is the only trace. */
    fprintf(stderr, "holdfast: %s:%d: assertion `%s` does not hold\n", file, line, cond);
    abort();
}
