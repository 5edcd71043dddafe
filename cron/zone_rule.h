/* zone_rule.h - the rule at the end of a TZif file ("CET-1CEST,M3.5.0,M10.5.0/3"): how
 * the clocks change after the last time that the file lists. The form is that of the
 * variable TZ in POSIX, with hours from -167 to 167. */
#ifndef HF_CRON_ZONE_RULE_H
#define HF_CRON_ZONE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cron/span.h"

typedef struct hf_rule_day {
    char form; /* 'M': month, week, weekday; 'J': day 1..365 of a year without
    leap day; '0': day 0..365 */
    int month, week, day;
    int32_t time; /* seconds from the midnight at which the day begins */
} hf_rule_day;

typedef struct hf_zone_rule {
    int32_t offset;        /* standard time, in seconds east */
    bool changes;          /* the rest is used */
    int32_t summer_offset; /* in Dublin it is the smaller one */
    hf_rule_day start, end;
} hf_zone_rule;

/* False: it is no such rule. */
bool hf_zone_rule_parse(hf_zone_rule *out, const char *text, size_t len);

hf_zone_span hf_zone_rule_span(const hf_zone_rule *rule, int64_t unix_s);

#endif
