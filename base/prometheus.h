/* prometheus.h - writes figures as Prometheus reads them: its text format 0.0.4, or
 * OpenMetrics 1.0. Numbers are whole and come with their unit, so no locale and no
 * rounding shows. */
#ifndef HF_BASE_PROMETHEUS_H
#define HF_BASE_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define HF_PROM_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define HF_PROM_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

typedef struct hf_prom {
    hf_buf buf;       /* the text; the caller ends it */
    bool open;        /* OpenMetrics */
    const char *name; /* of the family; borrowed */
} hf_prom;

typedef enum hf_prom_type {
    HF_PROM_GAUGE,
    HF_PROM_COUNTER, /* its name ends with _total */
    HF_PROM_HISTOGRAM
} hf_prom_type;

/* How many of it are one: a count, or of a second. */
enum {
    HF_PROM_ONE = 1,
    HF_PROM_MS = 1000,
    HF_PROM_US = 1000000,
    HF_PROM_NS = 1000000000
};

typedef struct hf_prom_label {
    const char *name, *value;
} hf_prom_label;

enum { HF_PROM_LABELS = 4 };

void hf_prom_begin(hf_prom *out, bool open, size_t max);
/* What follows belongs to it, up to the next one. `help` is a sentence. */
void hf_prom_family(hf_prom *out, const char *name, hf_prom_type type, const char *help);
/* Labels: up to the first without a name; NULL: none. */
void hf_prom_value(hf_prom *out, const hf_prom_label labels[HF_PROM_LABELS],
                   uint64_t value, uint32_t unit);
/* counts[i] are those above bounds[i - 1] and up to bounds[i]; counts[n] the rest. */
void hf_prom_histogram(hf_prom *out, const hf_prom_label labels[HF_PROM_LABELS],
                       const uint32_t *bounds_ms, const uint64_t *counts, size_t n,
                       uint64_t sum, uint32_t sum_unit);
/* The last call. HF_TOOBIG, HF_NOMEM: the text is not complete. */
HF_MUSTCHECK hf_err hf_prom_end(hf_prom *out);

/* Whether a reader with this header Accept (NULL: none) prefers OpenMetrics. */
bool hf_prom_wants_open(const char *accept);

#endif
