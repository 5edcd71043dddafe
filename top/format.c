/* format.c - see format.h. */
#include "top/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SECOND_MS = 1000,
    MINUTE = 60,
    HOUR = 60 * MINUTE,
    DAY = 24 * HOUR,
    EXACT = 100000, /* from here on a number is rounded */
    THOUSAND = 1000,
    MILLION = 1000 * 1000
};

const char *hf_top_count(int64_t n, char out[HF_TOP_FORMAT_SIZE])
{
    if (n < THOUSAND)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64, n);
    else if (n < EXACT)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 ",%03" PRId64, n / THOUSAND,
                       n % THOUSAND);
    else if (n < MILLION)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 " k", n / THOUSAND);
    else
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%.1f M", (double)n / MILLION);
    return out;
}

const char *hf_top_span(int64_t ms, char out[HF_TOP_FORMAT_SIZE])
{
    const int64_t s = ms / SECOND_MS;
    if (ms < 0)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "-");
    else if (s < MINUTE)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 "s", s);
    else if (s < HOUR)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 "m%02" PRId64 "s", s / MINUTE,
                       s % MINUTE);
    else if (s < DAY)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 "h%02" PRId64 "m", s / HOUR,
                       s % HOUR / MINUTE);
    else
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%" PRId64 "d%02" PRId64 "h", s / DAY,
                       s % DAY / HOUR);
    return out;
}

const char *hf_top_short_span(double ms, char out[HF_TOP_FORMAT_SIZE])
{
    if (ms <= 0)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "-");
    else if (ms < SECOND_MS)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%.0fms", ms);
    else if (ms < 10 * SECOND_MS)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%.1fs", ms / SECOND_MS);
    else
        (void)hf_top_span((int64_t)ms, out);
    return out;
}

const char *hf_top_rate(double n, char out[HF_TOP_FORMAT_SIZE])
{
    if (n < 0)
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, "-");
    else if (n >= EXACT)
        (void)hf_top_count((int64_t)n, out);
    else
        (void)snprintf(out, HF_TOP_FORMAT_SIZE, n > 0 && n < 9.95 ? "%.1f" : "%.0f", n);
    return out;
}

const char *hf_top_percent(double n, char out[HF_TOP_FORMAT_SIZE])
{
    (void)snprintf(out, HF_TOP_FORMAT_SIZE, n < 0 ? "-" : "%.1f", n);
    return out;
}

const char *hf_top_clock(int64_t unix_ms, char out[HF_TOP_FORMAT_SIZE])
{
    const int64_t s = (unix_ms < 0 ? 0 : unix_ms) / SECOND_MS % DAY;
    (void)snprintf(out, HF_TOP_FORMAT_SIZE, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 "Z",
                   s / HOUR, s % HOUR / MINUTE, s % MINUTE);
    return out;
}

void hf_top_names(const char *const *list, size_t n, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? "," : "", list[i]);
}
