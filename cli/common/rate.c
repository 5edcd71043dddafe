/* rate.c - see rate.h. */
#include "cli/common/rate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/limits.h"

enum { COUNT_SIZE = 64, COUNT_MAX = 1000000 };

static bool parse_per(const char *text, int64_t *out)
{
    char one[COUNT_SIZE];
    if (isdigit((unsigned char)*text))
        return hf_parse_duration_ms(text, out);
    int n = snprintf(one, sizeof one, "1%s", text); /* "s": one of it */
    return n > 0 && (size_t)n < sizeof one && hf_parse_duration_ms(one, out);
}

bool hf_parse_rate(const char *text, int64_t *count, int64_t *per_ms)
{
    char digits[COUNT_SIZE];
    size_t len = strcspn(text, "/");
    if (len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (!hf_parse_int(digits, 0, COUNT_MAX, count))
        return false;
    *per_ms = 0;
    if (text[len] == '\0')
        return *count == 0;
    return parse_per(text + len + 1, per_ms) && *per_ms >= 1 && *per_ms <= HF_DAY_MS;
}
