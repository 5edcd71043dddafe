/* shown.c - see shown.h. */
#include "top/shown.h"

#include <stdio.h>
#include <string.h>

#include "top/format.h"

void hf_show_text(hf_shown *out, hf_style style, const char *text)
{
    out->style = style;
    (void)snprintf(out->text, sizeof out->text, "%s", text);
}

void hf_show_count(hf_shown *out, int64_t n)
{
    char text[HF_TOP_FORMAT_SIZE];
    hf_show_text(out, n == 0 ? HF_STYLE_DIM : HF_STYLE_PLAIN, hf_top_count(n, text));
}

void hf_show_rate(hf_shown *out, double n)
{
    char text[HF_TOP_FORMAT_SIZE];
    hf_show_text(out, n <= 0 ? HF_STYLE_DIM : HF_STYLE_PLAIN, hf_top_rate(n, text));
}

void hf_show_span(hf_shown *out, int64_t ms)
{
    char text[HF_TOP_FORMAT_SIZE];
    hf_show_text(out, ms < 0 ? HF_STYLE_DIM : HF_STYLE_PLAIN, hf_top_span(ms, text));
}

/* The largest value of a column's share of the values; -1: all of it is a gap. */
static int64_t largest(const int64_t *values, size_t n, size_t i, size_t columns)
{
    int64_t most = -1;
    for (size_t at = i * n / columns; at < (i + 1) * n / columns; at++)
        most = values[at] > most ? values[at] : most;
    return most;
}

void hf_show_spark(hf_shown *out, const int64_t *values, size_t n)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {".", ".", ":", ":", "|", "|", "#", "#"};
    enum { STEPS = 8 };
    const char *const *marks = out->utf8 ? blocks : plain;
    const size_t columns = out->room < n ? out->room : n;
    int64_t most = 0;
    size_t len = 0;
    out->style = HF_STYLE_RUNS;
    out->text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < columns && len + 4 < sizeof out->text; i++) {
        const int64_t value = largest(values, n, i, columns);
        const size_t step =
            most == 0 ? 0 : (size_t)((double)value / (double)most * (STEPS - 1) + 0.5);
        len += (size_t)snprintf(out->text + len, sizeof out->text - len, "%s",
                                value < 0 ? " " : marks[step]);
    }
}
