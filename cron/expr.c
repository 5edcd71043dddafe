/* expr.c - see expr.h. */
#include "cron/expr.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/date.h"
#include "base/detail.h"
#include "base/mask.h"
#include "holdfast/job.h"

enum { JUMP_S = 3 * 3600, YEAR_S = 366 * HF_DAY_S, NUMBER_DIGITS = 9, WORD_MAX = 40 };

/* ---- the text ---- */

typedef struct field {
    const char *name;
    int min, max;
    const char *names; /* three letters each, from `names_from` on; NULL: none */
    int names_from;
    const char *expected;
} field;

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const field fields[FIELDS] = {
    {"second", 0, 59, NULL, 0, "0-59"},
    {"minute", 0, 59, NULL, 0, "0-59"},
    {"hour", 0, 23, NULL, 0, "0-23"},
    {"day of month", 1, 31, NULL, 0, "1-31, L or LW"},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1, "1-12 or JAN-DEC"},
    {"day of week", 0, 7, "sunmontuewedthufrisat", 0, "0-7, SUN-SAT, 5L or 5#2"},
};

/* The part of a field that is read: a list's item. */
typedef struct item {
    const char *text;
    const char *at;
    const char *end;
    const field *field;
    char *detail;
    const char *whole; /* the expression */
    int low, latest;   /* its first value, and the greatest of those of the list, */
    const char *latest_text, *latest_end; /* which is this one's */
} item;

static hf_err refuse(const item *it, const char *expected)
{
    size_t len = (size_t)(it->end - it->text);
    return hf_say(it->detail, HF_INVALID, "cron '%s', %s: expected %s, found '%.*s'",
                  HF_FOUND(it->whole), it->field->name, expected,
                  (int)(len < WORD_MAX ? len : WORD_MAX), it->text);
}

static bool take(item *it, char c)
{
    bool is = it->at < it->end && *it->at == c;
    it->at += is;
    return is;
}

static bool take_letter(item *it, char upper)
{
    return take(it, upper) || take(it, (char)(upper | 0x20));
}

static bool take_digits(item *it, int *out)
{
    int digits = 0;
    *out = 0;
    for (; it->at < it->end && *it->at >= '0' && *it->at <= '9'; it->at++)
        if (digits++ < NUMBER_DIGITS)
            *out = *out * 10 + (*it->at - '0');
    return digits > 0 && digits <= NUMBER_DIGITS;
}

/* A number or a name of the field. */
static bool take_value(item *it, int *out)
{
    const char *names = it->field->names;
    for (int i = 0; names != NULL && it->end - it->at >= 3 && names[3 * (size_t)i]; i++) {
        if (strncasecmp(it->at, names + 3 * (size_t)i, 3) == 0) {
            it->at += 3;
            *out = it->field->names_from + i;
            return true;
        }
    }
    return take_digits(it, out) && *out >= it->field->min && *out <= it->field->max;
}

/* "5L" and "5#2", after the 5. True: it was one of them. */
static bool take_weekday_of_month(item *it, hf_cron *out, int weekday, bool *bad)
{
    uint8_t bit = (uint8_t)(1U << (weekday % 7));
    int nth = 0;
    if (it->field != &fields[WEEKDAY])
        return false;
    if (take_letter(it, 'L')) {
        out->weekdays_last |= bit;
        return true;
    }
    if (!take(it, '#'))
        return false;
    *bad = !take_digits(it, &nth) || nth < 1 || nth > 5;
    if (!*bad)
        out->weekdays_nth[nth] |= bit;
    return true;
}

static bool take_last_day(item *it, hf_cron *out)
{
    if (it->field != &fields[DAY] || !take_letter(it, 'L'))
        return false;
    if (take_letter(it, 'W'))
        out->last_workday = true;
    else
        out->last_day = true;
    return true;
}

/* It would take the first value alone. */
static hf_err refuse_step(const item *it, int n)
{
    char expected[WORD_MAX];
    (void)snprintf(expected, sizeof expected, "a step of at most %d", n);
    return refuse(it, expected);
}

/* One of a list: '*', N, N-M, each with an optional step, or one of the special days. */
static hf_err take_item(item *it, hf_cron *out, uint64_t *bits)
{
    int low = it->field->min, high = it->field->max, step = 1;
    bool star = take(it, '*'), range = star, bad = false;
    if (!star) {
        if (take_last_day(it, out))
            return it->at == it->end ? HF_OK : refuse(it, it->field->expected);
        if (!take_value(it, &low))
            return refuse(it, it->field->expected);
        if (take_weekday_of_month(it, out, low, &bad))
            return it->at == it->end && !bad ? HF_OK : refuse(it, it->field->expected);
        range = take(it, '-');
        if (range && !take_value(it, &high))
            return refuse(it, it->field->expected);
    }
    bool steps = take(it, '/');
    if (steps && (!take_digits(it, &step) || step < 1))
        return refuse(it, "a step of at least 1");
    if (it->at != it->end)
        return refuse(it, it->field->expected);
    if (!range && !steps)
        high = low;
    if (low > high)
        return refuse(it, "a range that rises");
    int n = high - low + 1 - (star && it->field == &fields[WEEKDAY]); /* 7 is 0 */
    if (step > n)
        return refuse_step(it, n);
    it->low = low;
    for (int value = low; value <= high; value += step) {
        *bits |= UINT64_C(1) << value;
        if (step > high)
            break;
    }
    return HF_OK;
}

static hf_err take_field(item *it, hf_cron *out, uint64_t *bits)
{
    const char *end = it->end;
    for (const char *at = it->text;; at = it->end + 1) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        it->text = it->at = at;
        it->end = comma != NULL ? comma : end;
        it->low = 0;
        hf_err err = take_item(it, out, bits);
        if (err == HF_OK && it->low > it->latest) {
            it->latest = it->low;
            it->latest_text = it->text;
            it->latest_end = it->end;
        }
        if (err != HF_OK || comma == NULL)
            return err;
    }
}

/* The last day that one of these months has. */
static int last_day_of(uint64_t months)
{
    static const int longest[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int last = 0;
    for (int month = 1; month <= 12; month++)
        if ((months >> month & 1) != 0 && longest[month] > last)
            last = longest[month];
    return last;
}

/* A day in months that have no such day. */
static hf_err check_days(const item *day, uint64_t months)
{
    item it = *day;
    char expected[2 * WORD_MAX];
    int last = last_day_of(months);
    if (day->latest <= last)
        return HF_OK;
    it.text = day->latest_text;
    it.end = day->latest_end;
    (void)snprintf(expected, sizeof expected, "a day that its months have, at most %d",
                   last);
    return refuse(&it, expected);
}

/* The short forms of crontab(5). */
static const char *long_form(const char *text)
{
    static const char *const forms[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    for (size_t i = 0; i < HF_COUNT(forms); i++)
        if (strcmp(text, forms[i][0]) == 0)
            return forms[i][1];
    return text;
}

/* Where the words of the text are; how many. */
static size_t split(const char *text, const char *starts[FIELDS + 1],
                    size_t lens[FIELDS + 1])
{
    size_t n = 0;
    for (const char *at = text + strspn(text, " \t"); *at != '\0' && n <= FIELDS; n++) {
        starts[n] = at;
        lens[n] = strcspn(at, " \t");
        at += lens[n];
        at += strspn(at, " \t");
    }
    return n;
}

hf_err hf_cron_parse(hf_cron *out, const char *text, char detail[HF_DETAIL_SIZE])
{
    const char *starts[FIELDS + 1];
    size_t lens[FIELDS + 1];
    uint64_t bits[FIELDS] = {1};
    *out = (hf_cron){0};
    size_t n = strlen(text) > HF_CRON_TEXT_MAX ? 0 : split(long_form(text), starts, lens);
    if (n < FIELDS - 1 || n > FIELDS)
        return hf_say(
            detail, HF_INVALID,
            "cron: expected 5 fields (minute hour day month weekday) or 6 (second "
            "first), found '%s'",
            HF_FOUND(text));
    size_t first = FIELDS - n;
    if (first == 0)
        bits[SECOND] = 0;
    item day_item = {.text = text};
    for (size_t i = 0; i < n; i++) {
        item it = {.text = starts[i],
                   .at = starts[i],
                   .end = starts[i] + lens[i],
                   .field = &fields[first + i],
                   .detail = detail,
                   .whole = text};
        hf_err err = take_field(&it, out, &bits[first + i]);
        if (err != HF_OK)
            return err;
        if (first + i == DAY)
            day_item = it;
    }
    hf_err err = check_days(&day_item, bits[MONTH]);
    if (err != HF_OK)
        return err;
    const char *minute = starts[MINUTE - first], *hour = starts[HOUR - first];
    const char *day = starts[DAY - first], *weekday = starts[WEEKDAY - first];
    out->seconds = bits[SECOND];
    out->minutes = bits[MINUTE];
    out->hours = (uint32_t)bits[HOUR];
    out->days = (uint32_t)bits[DAY];
    out->months = (uint32_t)bits[MONTH];
    out->weekdays = (uint8_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f);
    out->both_days = *day == '*' || *weekday == '*';
    out->real_time = *minute == '*' || *hour == '*';
    return HF_OK;
}

/* ---- its local times ---- */

static bool weekday_matches(const hf_cron *cron, hf_date date, int weekday)
{
    uint8_t bit = (uint8_t)(1U << weekday);
    int last = hf_days_in_month(date.year, date.month);
    return (cron->weekdays & bit) != 0 ||
           (cron->weekdays_nth[(date.day - 1) / 7 + 1] & bit) != 0 ||
           ((cron->weekdays_last & bit) != 0 && date.day + 7 > last);
}

static bool month_day_matches(const hf_cron *cron, hf_date date, int weekday)
{
    int last = hf_days_in_month(date.year, date.month);
    if ((cron->days >> date.day & 1) != 0 || (cron->last_day && date.day == last))
        return true;
    if (!cron->last_workday || weekday == 0 || weekday == 6)
        return false;
    /* On a Friday the days that are left may be a weekend. */
    return date.day == last || (weekday == 5 && date.day + 2 >= last);
}

static bool day_matches(const hf_cron *cron, int64_t days)
{
    hf_date date = hf_date_of_days(days);
    if ((cron->months >> date.month & 1) == 0)
        return false;
    int weekday = hf_weekday_of_days(days);
    bool of_month = month_day_matches(cron, date, weekday);
    bool of_week = weekday_matches(cron, date, weekday);
    return cron->both_days ? of_month && of_week : of_month || of_week;
}

/* The first bit that is set at `from` or above; -1: none. */
static int first_bit(uint64_t bits, int from)
{
    bits = from > 63 ? 0 : bits >> from << from;
    return bits == 0 ? -1 : __builtin_ctzll(bits);
}

/* The first time of day at `from` or after it, in seconds; -1: none. */
static int time_of_day(const hf_cron *cron, int from)
{
    int hour = from / 3600, minute = from / 60 % 60, second = from % 60;
    for (int h = first_bit(cron->hours, hour); h >= 0;
         h = first_bit(cron->hours, h + 1)) {
        int m0 = h == hour ? minute : 0;
        for (int m = first_bit(cron->minutes, m0); m >= 0;
             m = first_bit(cron->minutes, m + 1)) {
            int s = first_bit(cron->seconds, h == hour && m == minute ? second : 0);
            if (s >= 0)
                return h * 3600 + m * 60 + s;
        }
    }
    return -1;
}

/* The first time of the local clock with from <= time < until. */
static bool next_local(const hf_cron *cron, int64_t from, int64_t until, int64_t *out)
{
    for (int64_t day = hf_days_of_seconds(from); day * HF_DAY_S < until; day++) {
        int64_t begin = day * HF_DAY_S;
        if (!day_matches(cron, day))
            continue;
        int time = time_of_day(cron, from > begin ? (int)(from - begin) : 0);
        if (time < 0)
            continue;
        *out = begin + time;
        return *out < until;
    }
    return false;
}

/* ---- and the instants ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool next_real_time(const hf_cron *cron, const hf_zone *zone, int64_t after,
                           int64_t limit, int64_t *out)
{
    for (int64_t t = after + 1; t < limit;) {
        hf_zone_span span = hf_zone_span_at(zone, t);
        int64_t until = smaller(span.until, limit);
        if (next_local(cron, t + span.offset, until + span.offset, out)) {
            *out -= span.offset;
            return true;
        }
        t = until;
    }
    return false;
}

/* `seen`: all local times before it have had their tick. It begins a day before, so that
 * what happened to the clocks in the last hours counts. */
static bool next_fixed(const hf_cron *cron, const hf_zone *zone, int64_t after,
                       int64_t limit, int64_t *out)
{
    int64_t t = after - HF_DAY_S, tick = 0;
    int64_t seen = t + hf_zone_span_at(zone, t).offset;
    while (t < limit) {
        hf_zone_span span = hf_zone_span_at(zone, t);
        int64_t until = smaller(span.until, limit);
        int64_t begin = t + span.offset;
        if (begin - seen >= JUMP_S || seen - begin > JUMP_S)
            seen = begin;
        if (begin > seen) {
            if (t > after && next_local(cron, seen, begin, &tick)) {
                *out = t;
                return true;
            }
            seen = begin;
        }
        int64_t from = after + 1 + span.offset;
        if (from < seen)
            from = seen;
        if (next_local(cron, from, until + span.offset, &tick)) {
            *out = tick - span.offset;
            return true;
        }
        if (seen < until + span.offset)
            seen = until + span.offset;
        t = until;
    }
    return false;
}

bool hf_cron_next(const hf_cron *cron, const hf_zone *zone, int64_t after_s,
                  int64_t *out_s)
{
    int64_t limit =
        smaller(after_s + (int64_t)HF_CRON_YEARS * YEAR_S, HF_TIME_MAX_MS / 1000 + 1);
    if (cron->real_time)
        return next_real_time(cron, zone, after_s, limit, out_s);
    return next_fixed(cron, zone, after_s, limit, out_s);
}

/* ---- how many there are ---- */

static int64_t below(uint64_t bits, int n)
{
    return __builtin_popcountll(n > 63 ? bits : bits & ((UINT64_C(1) << n) - 1));
}

/* Times of day before `end`, in seconds. */
static int64_t count_times(const hf_cron *cron, int end)
{
    int hour = end / 3600, minute = end / 60 % 60, second = end % 60;
    int64_t a_minute = below(cron->seconds, 60);
    int64_t an_hour = below(cron->minutes, 60) * a_minute;
    int64_t n = below(cron->hours, hour) * an_hour;
    if ((cron->hours >> hour & 1) == 0)
        return n;
    n += below(cron->minutes, minute) * a_minute;
    return n + ((cron->minutes >> minute & 1) != 0 ? below(cron->seconds, second) : 0);
}

/* Times of the local clock with from <= time < until. */
static int64_t count_local(const hf_cron *cron, int64_t from, int64_t until)
{
    int64_t n = 0;
    for (int64_t day = hf_days_of_seconds(from); day * HF_DAY_S < until; day++) {
        int64_t begin = day * HF_DAY_S;
        if (!day_matches(cron, day))
            continue;
        int first = from > begin ? (int)(from - begin) : 0;
        int end = (int)(smaller(until, begin + HF_DAY_S) - begin);
        n += count_times(cron, end) - count_times(cron, first);
    }
    return n;
}

static int64_t count_real_time(const hf_cron *cron, const hf_zone *zone, int64_t after,
                               int64_t limit)
{
    int64_t n = 0;
    for (int64_t t = after + 1; t < limit;) {
        hf_zone_span span = hf_zone_span_at(zone, t);
        int64_t until = smaller(span.until, limit);
        n += count_local(cron, t + span.offset, until + span.offset);
        t = until;
    }
    return n;
}

/* As next_fixed(). */
static int64_t count_fixed(const hf_cron *cron, const hf_zone *zone, int64_t after,
                           int64_t limit)
{
    int64_t t = after - HF_DAY_S, n = 0, tick;
    int64_t seen = t + hf_zone_span_at(zone, t).offset;
    while (t < limit) {
        hf_zone_span span = hf_zone_span_at(zone, t);
        int64_t until = smaller(span.until, limit);
        int64_t begin = t + span.offset;
        if (begin - seen >= JUMP_S || seen - begin > JUMP_S)
            seen = begin;
        if (begin > seen) {
            bool missed = t > after && next_local(cron, seen, begin, &tick);
            n += missed;
            seen = begin + missed; /* a time that is right behind the gap is this tick */
        }
        int64_t from = after + 1 + span.offset;
        if (from < seen)
            from = seen;
        if (from < until + span.offset)
            n += count_local(cron, from, until + span.offset);
        if (seen < until + span.offset)
            seen = until + span.offset;
        t = until;
    }
    return n;
}

int64_t hf_cron_count(const hf_cron *cron, const hf_zone *zone, int64_t after_s,
                      int64_t until_s)
{
    int64_t limit = smaller(until_s, HF_TIME_MAX_MS / 1000) + 1;
    if (after_s >= limit)
        return 0;
    return cron->real_time ? count_real_time(cron, zone, after_s, limit)
                           : count_fixed(cron, zone, after_s, limit);
}
