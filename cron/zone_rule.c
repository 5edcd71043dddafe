/* zone_rule.c - see zone_rule.h. */
#include "cron/zone_rule.h"

#include "base/date.h"

enum { HOUR_S = 3600, RULE_HOURS_MAX = 167, OFFSET_HOURS_MAX = 24 };

/* ---- the text ---- */

/* A position in the text; `ok` stays false once something did not match. */
typedef struct reader {
    const char *at, *end;
    bool ok;
} reader;

static bool next_is(const reader *r, char c)
{
    return r->ok && r->at < r->end && *r->at == c;
}

static bool take_if(reader *r, char c)
{
    bool is = next_is(r, c);
    r->at += is;
    return is;
}

static void take(reader *r, char c)
{
    if (!take_if(r, c))
        r->ok = false;
}

static bool is_digit(const reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* One to three digits, as a number of min..max. */
static int take_number(reader *r, int min, int max)
{
    int value = 0, digits = 0;
    while (r->ok && is_digit(r) && digits++ < 3)
        value = value * 10 + (*r->at++ - '0');
    if (digits == 0 || value < min || value > max)
        r->ok = false;
    return r->ok ? value : min;
}

/* "CET" or "<+0330>"; the name is not used. */
static void take_name(reader *r)
{
    int len = 0;
    bool quoted = take_if(r, '<');
    for (; r->ok && r->at < r->end; r->at++, len++) {
        char c = *r->at;
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(quoted && (is_digit(r) || c == '+' || c == '-')))
            break;
    }
    if (quoted)
        take(r, '>');
    if (len < 3)
        r->ok = false;
}

/* "2", "-1:30", "+167:59:59", in seconds. */
static int32_t take_hours(reader *r, int max)
{
    int sign = take_if(r, '-') ? -1 : 1;
    if (sign > 0)
        (void)take_if(r, '+');
    int32_t seconds = take_number(r, 0, max) * HOUR_S;
    if (take_if(r, ':'))
        seconds += take_number(r, 0, 59) * 60;
    else
        return sign * seconds;
    if (take_if(r, ':'))
        seconds += take_number(r, 0, 59);
    return sign * seconds;
}

static hf_rule_day take_day(reader *r)
{
    hf_rule_day day = {.form = '0', .time = 2 * HOUR_S};
    take(r, ',');
    if (take_if(r, 'M')) {
        day.form = 'M';
        day.month = take_number(r, 1, 12);
        take(r, '.');
        day.week = take_number(r, 1, 5);
        take(r, '.');
        day.day = take_number(r, 0, 6);
    } else if (take_if(r, 'J')) {
        day.form = 'J';
        day.day = take_number(r, 1, 365);
    } else {
        day.day = take_number(r, 0, 365);
    }
    if (take_if(r, '/'))
        day.time = take_hours(r, RULE_HOURS_MAX);
    return day;
}

bool hf_zone_rule_parse(hf_zone_rule *out, const char *text, size_t len)
{
    reader r = {text, text + len, true};
    *out = (hf_zone_rule){0};
    take_name(&r);
    out->offset = -take_hours(&r, OFFSET_HOURS_MAX);
    if (!r.ok || r.at == r.end)
        return r.ok;
    out->changes = true;
    take_name(&r);
    out->summer_offset = out->offset + HOUR_S;
    if (!next_is(&r, ','))
        out->summer_offset = -take_hours(&r, OFFSET_HOURS_MAX);
    out->start = take_day(&r);
    out->end = take_day(&r);
    return r.ok && r.at == r.end;
}

/* ---- its changes ---- */

/* The change of a year on a local clock. */
static int64_t local_of(const hf_rule_day *rule, int year)
{
    int64_t first = hf_days_of_date(year, rule->form == 'M' ? rule->month : 1, 1);
    int64_t day = rule->day;
    if (rule->form == 'M') {
        day = (rule->day - hf_weekday_of_days(first) + 7) % 7 + 7 * (rule->week - 1);
        while (day >= hf_days_in_month(year, rule->month))
            day -= 7; /* the fifth is the last */
    } else if (rule->form == 'J') {
        day += rule->day >= 60 && hf_days_in_month(year, 2) == 29 ? 0 : -1;
    }
    return (first + day) * HF_DAY_S + rule->time;
}

typedef struct change {
    int64_t at;
    int32_t offset; /* from then on */
} change;

/* Sorted; of two at one time the later one counts, as where summer lasts all year. */
static void insert(change *changes, size_t n, change c)
{
    for (; n > 0 && changes[n - 1].at > c.at; n--)
        changes[n] = changes[n - 1];
    changes[n] = c;
}

hf_zone_span hf_zone_rule_span(const hf_zone_rule *rule, int64_t unix_s)
{
    hf_zone_span span = {INT64_MIN, INT64_MAX, rule->offset};
    change changes[6];
    size_t n = 0;
    if (!rule->changes)
        return span;
    int year = hf_date_of_days(hf_days_of_seconds(unix_s + rule->offset)).year;
    for (int y = year - 1; y <= year + 1; y++) {
        insert(changes, n++,
               (change){local_of(&rule->start, y) - rule->offset, rule->summer_offset});
        insert(changes, n++,
               (change){local_of(&rule->end, y) - rule->summer_offset, rule->offset});
    }
    for (size_t i = 0; i < n; i++) {
        if (changes[i].at > unix_s) {
            span.until = changes[i].at;
            break;
        }
        span.from = changes[i].at;
        span.offset = changes[i].offset;
    }
    return span;
}
