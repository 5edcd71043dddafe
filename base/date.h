/* date.h - days and dates of the proleptic Gregorian calendar. */
#ifndef HF_BASE_DATE_H
#define HF_BASE_DATE_H

#include <stdint.h>

enum { HF_DAY_S = 86400, HF_YEAR_MAX = 9999 };

typedef struct hf_date {
    int year, month, day; /* month 1..12, day 1..31 */
} hf_date;

int hf_days_in_month(int year, int month);

/* Days from 1970-01-01 to a date, and back; years 0 to HF_YEAR_MAX, one more or less. */
int64_t hf_days_of_date(int year, int month, int day);
hf_date hf_date_of_days(int64_t days);

/* 0: Sunday. */
int hf_weekday_of_days(int64_t days);

/* Of local or Unix seconds; rounds down before 1970 as well. */
int64_t hf_days_of_seconds(int64_t seconds);

#endif
