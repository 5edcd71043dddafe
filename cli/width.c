/* width.c - see width.h. */
/* For wcwidth(). */
#define _XOPEN_SOURCE 700 /* NOLINT(bugprone-reserved-identifier) */
#include "cli/width.h"

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"

enum { COLUMNS_MAX = 10000 };

/* The characters of the C library's UTF-8 locale; the process itself keeps the locale
 * "C", in which numbers are written for programs. */
static int columns_of(wchar_t c)
{
    static locale_t locale;
    if (locale == (locale_t)0)
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (locale == (locale_t)0 || c < 0x80) /* without that locale: one each */
        return 1;
    locale_t before = uselocale(locale);
    int n = wcwidth(c);
    (void)uselocale(before);
    return n < 0 ? 1 : n; /* not assigned yet: a terminal shows a box */
}

/* The bytes of the first character; *columns: what it takes. */
static size_t next(const char *text, int *columns)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len = hf_utf8_len(text, strnlen(text, 4));
    *columns = 1;
    if (len <= 1)
        return 1;
    uint32_t c = p[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fU);
    *columns = columns_of((wchar_t)c);
    return len;
}

size_t hf_width(const char *text)
{
    size_t width = 0;
    int columns;
    for (; *text != '\0'; width += (size_t)columns)
        text += next(text, &columns);
    return width;
}

size_t hf_width_bytes(const char *text, size_t max)
{
    size_t at = 0, width = 0;
    int columns;
    while (text[at] != '\0') {
        size_t len = next(text + at, &columns);
        if (width + (size_t)columns > max)
            break;
        width += (size_t)columns;
        at += len;
    }
    return at;
}

size_t hf_width_of_terminal(FILE *file)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    int64_t columns;
    if (isatty(fileno(file)) != 1)
        return 0;
    if (text != NULL && hf_parse_int(text, 1, COLUMNS_MAX, &columns))
        return (size_t)columns;
    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
