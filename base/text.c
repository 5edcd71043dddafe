/* text.c - durations, sizes, numbers and control characters of base/text.h. Times are in
 * time.c. */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/job.h"

typedef struct unit {
    const char *name;
    int64_t factor;
} unit;

/* From the smallest to the largest: formatting picks the largest that divides. */
static const unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
};
static const unit sizes[] = {
    {"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
};

/* Reads digits up to the first character that is none. NULL: there were none, or too
 * many. */
static const char *read_digits(const char *text, int64_t *out)
{
    int64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        int digit = *at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    *out = value;
    return at == text ? NULL : at;
}

/* "10s", "1h30m": units from the larger to the smaller, each at most once. */
static bool read_with_units(const char *text, const unit *units, size_t n, bool many,
                            int64_t *out)
{
    int64_t sum = 0;
    do {
        int64_t value = 0;
        const char *name = read_digits(text, &value);
        if (name == NULL)
            return false;
        size_t len = many ? strcspn(name, "0123456789") : strlen(name);
        size_t i = n; /* those from `n` on have been used */
        while (i > 0 && (strlen(units[i - 1].name) != len ||
                         strncmp(name, units[i - 1].name, len) != 0))
            i--;
        if (i == 0 || value > (INT64_MAX - sum) / units[i - 1].factor)
            return false;
        sum += value * units[i - 1].factor;
        n = i - 1;
        text = name + len;
    } while (*text != '\0');
    *out = sum;
    return true;
}

bool hf_parse_duration_ms(const char *text, int64_t *out)
{
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return true;
    }
    int64_t value = 0;
    if (!read_with_units(text, durations, HF_COUNT(durations), true, &value) ||
        value > HF_DELAY_MAX_MS)
        return false;
    *out = value;
    return true;
}

bool hf_parse_size(const char *text, int64_t *out)
{
    return read_with_units(text, sizes, HF_COUNT(sizes), false, out);
}

bool hf_parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    bool negative = *text == '-';
    int64_t value = 0;
    const char *rest = read_digits(text + (negative ? 1 : 0), &value);
    if (rest == NULL || *rest != '\0')
        return false;
    if (negative)
        value = -value;
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

void hf_format_duration(int64_t ms, char out[HF_DURATION_SIZE])
{
    size_t i = HF_COUNT(durations) - 1;
    while (i > 0 && (ms == 0 || ms % durations[i].factor != 0))
        i--;
    snprintf(out, HF_DURATION_SIZE, "%" PRId64 "%s", ms / durations[i].factor,
             durations[i].name);
}

/* ---- distances in time ---- */

/* One unit, and the next one below it where the first says little: "9m59s", "12m". */
static void rough_span(int64_t ms, char out[HF_WHEN_SIZE])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    const size_t seconds = 3;
    size_t i = 0;
    while (i + 1 < HF_COUNT(units) && ms < units[i].ms)
        i++;
    int64_t n = ms / units[i].ms;
    int64_t rest = i < seconds ? ms % units[i].ms / units[i + 1].ms : 0;
    if (n < 10 && rest > 0)
        snprintf(out, HF_WHEN_SIZE, "%lld%s%lld%s", (long long)n, units[i].name,
                 (long long)rest, units[i + 1].name);
    else
        snprintf(out, HF_WHEN_SIZE, "%lld%s", (long long)n, units[i].name);
}

void hf_format_when(int64_t unix_ms, int64_t now_ms, char out[HF_WHEN_SIZE])
{
    char span[HF_WHEN_SIZE];
    if (unix_ms == 0) {
        snprintf(out, HF_WHEN_SIZE, "-");
        return;
    }
    int64_t ahead = unix_ms - now_ms;
    rough_span(ahead < 0 ? -ahead : ahead, span);
    if (ahead == 0)
        snprintf(out, HF_WHEN_SIZE, "now");
    else if (ahead > 0)
        snprintf(out, HF_WHEN_SIZE, "in %.24s", span);
    else
        snprintf(out, HF_WHEN_SIZE, "%.24s ago", span);
}

void hf_format_moment(int64_t unix_ms, int64_t now_ms, char out[HF_MOMENT_SIZE])
{
    char when[HF_WHEN_SIZE], time[HF_TIME_SIZE];
    hf_format_when(unix_ms, now_ms, when);
    if (unix_ms == 0) {
        snprintf(out, HF_MOMENT_SIZE, "%s", when);
        return;
    }
    hf_format_time(unix_ms, time);
    snprintf(out, HF_MOMENT_SIZE, "%s (%s)", time, when);
}

/* ---- bytes that are not text ---- */

size_t hf_utf8_len(const char *text, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc0 || p[0] > 0xf7 || len > left)
        return 0;
    uint32_t c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < least[len] || c > 0x10ffff || surrogate ? 0 : len;
}

size_t hf_utf8_unfinished(const char *text, size_t len)
{
    for (size_t n = 1; n <= 3 && n <= len; n++) {
        unsigned char c = (unsigned char)text[len - n];
        if (c >= 0xc0)
            return c < 0xf8 && n < (c < 0xe0 ? 2U : c < 0xf0 ? 3U : 4U) ? n : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

/* Those that change the order or the look of the text around them. Joiners are left:
 * scripts and emojis need them. */
static const struct {
    uint32_t from, to;
} formats[] = {
    {0x061c, 0x061c}, {0x180e, 0x180e}, {0x200b, 0x200b},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

uint32_t hf_utf8_char(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fu);
    return c;
}

size_t hf_control_len(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;
    if (p[0] < 0x80)
        return (p[0] != 0 && p[0] < 0x20) || p[0] == 0x7F ? 1 : 0;
    if (p[0] == 0xC2)
        return p[1] >= 0x80 && p[1] <= 0x9F ? 2 : 0;
    size_t len = hf_utf8_len(at, strnlen(at, 4));
    uint32_t c = len > 1 ? hf_utf8_char(at, len) : 0;
    for (size_t i = 0; i < HF_COUNT(formats); i++)
        if (c >= formats[i].from && c <= formats[i].to)
            return len;
    return 0;
}

void hf_text_plain(char *text)
{
    for (; *text != '\0'; text++) {
        size_t len = hf_control_len(text);
        if (len > 0)
            memset(text, ' ', len);
        text += len > 1 ? len - 1 : 0;
    }
}

uint64_t hf_hash_text(uint64_t hash, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return hash;
}

size_t hf_text_end(const char *text, size_t len, size_t room)
{
    size_t at = len > room ? len - room : 0;
    for (int i = 0;
         at > 0 && i < 3 && at < len && ((unsigned char)text[at] & 0xc0) == 0x80; i++)
        at++;
    return at;
}

const char *hf_text_gist(const char *error)
{
    const char *trace = strstr(error, "Traceback (most recent call last):");
    const char *gist = trace;
    if (trace == NULL)
        return error;
    for (const char *at = trace; (at = strchr(at, '\n')) != NULL;) {
        at++;
        if (*at != '\0' && *at != ' ' && *at != '\n')
            gist = at;
    }
    return gist == trace ? error : gist;
}
