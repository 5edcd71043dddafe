/* roff.c - see roff.h. */
#include "base/roff.h"

#include <string.h>

void hf_roff_put(FILE *file, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", file);
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            fputs("\n.PP\n", file);
        else if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else
            fputc(*text, file);
    }
}

void hf_roff_example(FILE *file, const char *text)
{
    static const char plain[] = "\\-'~^";
    static const char *const escaped[] = {"\\e", "\\-", "\\(aq", "\\(ti", "\\(ha"};
    fputs(".EX\n", file);
    for (; *text != '\0'; text++) {
        const char *at = strchr(plain, *text);
        if (at != NULL)
            fputs(escaped[at - plain], file);
        else
            fputc(*text, file);
    }
    fputs("\n.EE\n.PP\n", file);
}
