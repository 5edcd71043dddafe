/* time.c - points in time of base/text.h, in the proleptic Gregorian calendar, without
 * the C library's time zone (that is state of the whole process). */
#include <stdio.h>

#include "base/base.h"
#include "base/date.h"
#include "base/text.h"
#include "holdfast/job.h"

/* A position in the text; `ok` stays false once something did not match. */
typedef struct reader {
    const char *at;
    bool ok;
} reader;

/* Exactly `digits` digits, as a number of min..max. */
static int take_number(reader *r, int digits, int min, int max)
{
    int value = 0;
    for (int i = 0; i < digits && r->ok; i++) {
        if (*r->at < '0' || *r->at > '9') {
            r->ok = false;
            return min;
        }
        value = value * 10 + (*r->at++ - '0');
    }
    if (value < min || value > max)
        r->ok = false;
    return r->ok ? value : min;
}

static void take_char(reader *r, char upper, char lower)
{
    if (r->ok && (*r->at == upper || *r->at == lower))
        r->at++;
    else
        r->ok = false;
}

/* ".5" is 500; digits after the third are read and dropped. None at all is 0. */
static int take_fraction_ms(reader *r)
{
    if (!r->ok || *r->at != '.')
        return 0;
    r->at++;
    int ms = take_number(r, 1, 0, 9) * 100;
    for (int weight = 10; r->ok && *r->at >= '0' && *r->at <= '9'; weight /= 10)
        ms += take_number(r, 1, 0, 9) * weight;
    return ms;
}

/* "Z", "+01:00" or "-05:30", in minutes east. */
static int take_zone_min(reader *r)
{
    if (!r->ok)
        return 0;
    if (*r->at == 'Z' || *r->at == 'z') {
        r->at++;
        return 0;
    }
    int sign = *r->at == '-' ? -1 : 1;
    take_char(r, '+', '-');
    int hours = take_number(r, 2, 0, 23);
    take_char(r, ':', ':');
    return sign * (hours * 60 + take_number(r, 2, 0, 59));
}

/* False: it is later than any time may be. */
static bool set_time(int64_t seconds, int ms, int64_t *out)
{
    if (seconds > HF_TIME_MAX_MS / 1000)
        return false;
    *out = seconds * 1000 + ms;
    return true;
}

static bool parse_seconds(const char *text, int64_t *out)
{
    reader r = {text, true};
    int64_t seconds = take_number(&r, 1, 0, 9);
    while (r.ok && *r.at >= '0' && *r.at <= '9' && seconds < INT64_MAX / 10000)
        seconds = seconds * 10 + take_number(&r, 1, 0, 9);
    int ms = take_fraction_ms(&r);
    return r.ok && *r.at == '\0' && set_time(seconds, ms, out);
}

bool hf_parse_time_ms(const char *text, int64_t *out)
{
    if (text[0] == '@')
        return parse_seconds(text + 1, out);
    reader r = {text, true};
    int year = take_number(&r, 4, 0, HF_YEAR_MAX);
    take_char(&r, '-', '-');
    int month = take_number(&r, 2, 1, 12);
    take_char(&r, '-', '-');
    int day = take_number(&r, 2, 1, hf_days_in_month(year, month));
    take_char(&r, 'T', 't');
    int hour = take_number(&r, 2, 0, 23);
    take_char(&r, ':', ':');
    int minute = take_number(&r, 2, 0, 59);
    take_char(&r, ':', ':');
    int second =
        take_number(&r, 2, 0, 60); /* 60 is a leap second: the next one's first */
    int ms = take_fraction_ms(&r);
    int zone = take_zone_min(&r);
    if (!r.ok || *r.at != '\0')
        return false;
    int64_t seconds = hf_days_of_date(year, month, day) * HF_DAY_S + hour * 3600 +
                      (minute - zone) * 60 + second;
    return set_time(seconds, ms, out);
}

const char *hf_time_needs(const char *text)
{
    static const struct {
        const char *end, *said;
    } ways[] = {
        {"Z", " (add Z for UTC, or an offset such as +01:00)"},
        {":00Z", " (add :00Z for UTC, or :00 and an offset such as +01:00)"},
        {"T00:00:00Z", " (add T00:00:00Z for its beginning in UTC)"},
    };
    enum { TEXT_SIZE = 64 };
    char whole[TEXT_SIZE];
    int64_t ms;
    for (size_t i = 0; i < HF_COUNT(ways) && text[0] != '@'; i++) {
        int len = snprintf(whole, sizeof whole, "%s%s", text, ways[i].end);
        if (len < TEXT_SIZE && hf_parse_time_ms(whole, &ms))
            return ways[i].said;
    }
    return "";
}

/* The last `digits` digits of value, then `end`; gives the place after it. */
static char *put_digits(char *at, int digits, int64_t value, char end)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    at[digits] = end;
    return at + digits + 1;
}

void hf_format_time(int64_t unix_ms, char out[HF_TIME_SIZE])
{
    const int64_t first = hf_days_of_date(0, 1, 1) * HF_DAY_S * 1000;
    const int64_t end = hf_days_of_date(HF_YEAR_MAX + 1, 1, 1) * HF_DAY_S * 1000;
    if (unix_ms < first)
        unix_ms = first;
    if (unix_ms >= end)
        unix_ms = end - 1;
    int64_t since = unix_ms - first; /* not negative: / and % round down */
    int64_t ms = since % (HF_DAY_S * 1000);
    hf_date date = hf_date_of_days((unix_ms - ms) / (HF_DAY_S * 1000));
    char *at = out;
    at = put_digits(at, 4, date.year, '-');
    at = put_digits(at, 2, date.month, '-');
    at = put_digits(at, 2, date.day, 'T');
    at = put_digits(at, 2, ms / 3600000, ':');
    at = put_digits(at, 2, ms / 60000 % 60, ':');
    at = put_digits(at, 2, ms / 1000 % 60, '.');
    at = put_digits(at, 3, ms % 1000, 'Z');
    *at = '\0';
}
