/* words.c - see words.h. */
#include "seen/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, FEW = 10, HOURS_MOST = 48 };

static void two(char out[HF_WORDS_SIZE], int64_t a, const char *of_a, int64_t b,
                const char *of_b)
{
    if (b > 0)
        (void)snprintf(out, HF_WORDS_SIZE, "%" PRId64 " %s %" PRId64 " %s", a, of_a, b,
                       of_b);
    else
        (void)snprintf(out, HF_WORDS_SIZE, "%" PRId64 " %s", a, of_a);
}

const char *hf_words_span(int64_t ms, char out[HF_WORDS_SIZE])
{
    int64_t s = ms < 0 ? 0 : ms / 1000;
    if (s < MINUTE)
        two(out, s, "s", 0, "");
    else if (s < FEW * MINUTE)
        two(out, s / MINUTE, "min", s % MINUTE, "s");
    else if (s < HOUR)
        two(out, s / MINUTE, "min", 0, "");
    else if (s < FEW * HOUR)
        two(out, s / HOUR, "h", s % HOUR / MINUTE, "min");
    else if (s < HOURS_MOST * HOUR)
        two(out, s / HOUR, "h", 0, "");
    else
        two(out, s / DAY, "days", 0, "");
    return out;
}

const char *hf_words_count(int64_t n, const char *one, const char *many,
                           char out[HF_WORDS_SIZE])
{
    (void)snprintf(out, HF_WORDS_SIZE, "%" PRId64 " %s", n, n == 1 ? one : many);
    return out;
}

/* A text without a space is cut behind a character. */
static void mark_cut(char *text, size_t size)
{
    static const char cut[] = "...";
    size_t n = size - sizeof cut, word = n;
    while (word > 0 && text[word - 1] != ' ')
        word--;
    n = word > 0 ? word : n - hf_utf8_unfinished(text, n);
    memcpy(text + n, cut, sizeof cut);
}

void hf_words_add_args(char *text, size_t size, const char *format, va_list args)
{
    const size_t len = strlen(text);
    const int n = vsnprintf(text + len, size - len, format, args);
    if (n >= 0 && (size_t)n >= size - len)
        mark_cut(text, size);
}

void hf_words_add(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_words_add_args(text, size, format, args);
    va_end(args);
}

/* The cut is at the end of a character, or hf_text_plain() would see half of one. */
const char *hf_words_line(const char *text, char *out, size_t size)
{
    static const char cut[] = "...";
    size_t len = strlen(text), room = size - 1;
    size_t n = len <= room ? len : room - (sizeof cut - 1);
    memcpy(out, text, n);
    n -= len <= room ? 0 : hf_utf8_unfinished(out, n);
    (void)snprintf(out + n, size - n, "%s", len <= room ? "" : cut);
    hf_text_plain(out);
    for (n = strlen(out); n > 0 && out[n - 1] == ' '; n--)
        out[n - 1] = '\0';
    return out;
}
