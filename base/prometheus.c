/* prometheus.c - see prometheus.h. */
#include "base/prometheus.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

void hf_prom_begin(hf_prom *out, bool open, size_t max)
{
    *out = (hf_prom){.open = open};
    hf_buf_init(&out->buf, max);
}

/* OpenMetrics names a counter without the end that its values have. */
static int family_len(const hf_prom *out, const char *name, hf_prom_type type)
{
    static const char total[] = "_total";
    const size_t len = strlen(name), end = sizeof total - 1;
    const bool cut = out->open && type == HF_PROM_COUNTER && len > end &&
                     strcmp(name + len - end, total) == 0;
    return (int)(cut ? len - end : len);
}

void hf_prom_family(hf_prom *out, const char *name, hf_prom_type type, const char *help)
{
    static const char *const types[] = {"gauge", "counter", "histogram"};
    const int len = family_len(out, name, type);
    out->name = name;
    hf_buf_printf(&out->buf, "# HELP %.*s %s\n# TYPE %.*s %s\n", len, name, help, len,
                  name, types[type]);
}

/* A byte that is no text would spoil all figures. */
static void put_escaped(hf_buf *buf, const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = hf_utf8_len(text, left);
        if (*text == '\\' || *text == '"')
            hf_buf_text(buf, "\\");
        if (*text == '\n')
            hf_buf_text(buf, "\\n");
        else
            hf_buf_add(buf, n > 0 ? text : "?", n > 0 ? n : 1);
        n += n == 0 ? 1 : 0;
    }
}

static void put_name(hf_prom *out, const char *end, const hf_prom_label *labels,
                     const char *le)
{
    size_t n = 0;
    hf_buf_text(&out->buf, out->name);
    hf_buf_text(&out->buf, end);
    for (; labels != NULL && n < HF_PROM_LABELS && labels[n].name != NULL; n++) {
        hf_buf_printf(&out->buf, "%s%s=\"", n == 0 ? "{" : ",", labels[n].name);
        put_escaped(&out->buf, labels[n].value);
        hf_buf_text(&out->buf, "\"");
    }
    if (le != NULL)
        hf_buf_printf(&out->buf, "%sle=\"%s\"", n == 0 ? "{" : ",", le);
    hf_buf_text(&out->buf, n > 0 || le != NULL ? "} " : " ");
}

enum { NUMBER_SIZE = 48 };

/* "12", "0.05"; with `point` "12.0". */
static void write_number(char out[NUMBER_SIZE], uint64_t value, uint32_t unit, bool point)
{
    int digits = 0;
    for (uint32_t u = unit; u > 1; u /= 10)
        digits++;
    int len = snprintf(out, NUMBER_SIZE, "%" PRIu64, value / unit);
    if (digits > 0 && value % unit != 0) {
        len += snprintf(out + len, NUMBER_SIZE - (size_t)len, ".%0*" PRIu64, digits,
                        value % unit);
        while (out[len - 1] == '0')
            out[--len] = '\0';
    } else if (point) {
        (void)snprintf(out + len, NUMBER_SIZE - (size_t)len, ".0");
    }
}

static void put_number(hf_prom *out, uint64_t value, uint32_t unit)
{
    char number[NUMBER_SIZE];
    write_number(number, value, unit, false);
    hf_buf_text(&out->buf, number);
    hf_buf_text(&out->buf, "\n");
}

void hf_prom_value(hf_prom *out, const hf_prom_label labels[HF_PROM_LABELS],
                   uint64_t value, uint32_t unit)
{
    put_name(out, "", labels, NULL);
    put_number(out, value, unit);
}

/* A bound reads the same in both formats, so a series has one name. */
void hf_prom_histogram(hf_prom *out, const hf_prom_label labels[HF_PROM_LABELS],
                       const uint32_t *bounds_ms, const uint64_t *counts, size_t n,
                       uint64_t sum, uint32_t sum_unit)
{
    char bound[NUMBER_SIZE];
    uint64_t all = 0;
    for (size_t i = 0; i <= n; i++) {
        all += counts[i];
        if (i < n)
            write_number(bound, bounds_ms[i], HF_PROM_MS, true);
        put_name(out, "_bucket", labels, i < n ? bound : "+Inf");
        put_number(out, all, HF_PROM_ONE);
    }
    put_name(out, "_sum", labels, NULL);
    put_number(out, sum, sum_unit);
    put_name(out, "_count", labels, NULL);
    put_number(out, all, HF_PROM_ONE);
}

hf_err hf_prom_end(hf_prom *out)
{
    if (out->open)
        hf_buf_text(&out->buf, "# EOF\n");
    return hf_buf_err(&out->buf);
}

/* ---- what a reader wants ---- */

/* "1", "0.75" in thousandths. */
static int read_quality(const char *text)
{
    int quality = *text == '1' ? 1000 : 0;
    if (strncmp(text, "0.", 2) == 0)
        for (int i = 2, unit = 100; unit > 0 && isdigit((unsigned char)text[i]);
             i++, unit /= 10)
            quality += (text[i] - '0') * unit;
    return quality;
}

/* Of the first media range of this type, in thousandths; -1: there is none. */
static int quality_of(const char *accept, const char *type)
{
    const size_t len = strlen(type);
    const char *at = accept;
    for (; strncasecmp(at, type, len) != 0 || strchr(",; \t", at[len]) == NULL; at++) {
        at += strcspn(at, ",");
        if (*at == '\0')
            return -1;
        at += strspn(at + 1, " \t");
    }
    const char *end = at + strcspn(at, ","), *q = at;
    while ((q = strpbrk(q, ";,")) != NULL && q < end) {
        q += 1 + strspn(q + 1, " \t");
        if (strncasecmp(q, "q=", 2) == 0)
            return read_quality(q + 2);
    }
    return 1000;
}

bool hf_prom_wants_open(const char *accept)
{
    if (accept == NULL)
        return false;
    const int open = quality_of(accept, "application/openmetrics-text");
    return open > 0 && open >= quality_of(accept, "text/plain");
}
