/* date.c - see date.h. A year begins in March here: its leap day is the last one, and the
 * days before a month follow a linear formula. */
#include "base/date.h"

#include <stdbool.h>

enum {
    DAYS_400 = 146097,    /* 400 years */
    BEFORE_1970 = 719468, /* from 0000-03-01 */
    SHIFT = 400,          /* years that are added: no dividend is negative */
};

int hf_days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

int64_t hf_days_of_date(int year, int month, int day)
{
    int64_t y = (month > 2 ? year : year - 1) + SHIFT;
    int64_t m = month > 2 ? month - 3 : month + 9;
    int64_t days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    return days - (BEFORE_1970 + DAYS_400);
}

hf_date hf_date_of_days(int64_t days)
{
    int64_t since = days + BEFORE_1970 + DAYS_400;
    int64_t era = since / DAYS_400;
    int64_t of_era = since % DAYS_400;
    int64_t year =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_400 - 1)) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t m = (5 * of_year + 2) / 153;
    hf_date date = {.day = (int)(of_year - (153 * m + 2) / 5 + 1),
                    .month = (int)(m < 10 ? m + 3 : m - 9)};
    date.year = (int)(era * 400 + year - SHIFT + (date.month <= 2));
    return date;
}

int hf_weekday_of_days(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7);
}

int64_t hf_days_of_seconds(int64_t seconds)
{
    return seconds / HF_DAY_S - (seconds % HF_DAY_S < 0);
}
