/* Dates and times as people and programs write them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* api_date: a time. `us` are microseconds since 1970 in UTC; of a text without a zone, as if it were in UTC. `period` is what
 * a text names that is no day and no instant, "a week", "a month" or "a quarter", of which `us` is the begin; else NULL. */
struct api_date {
    int64_t us;
    bool has_zone;
    const char *period;
};

/* api_date_order: what the first number of 11/12/2026 is. */
enum api_date_order { API_DAY_FIRST, API_MONTH_FIRST };

/* Reads a text, blanks around it aside; false if it is none of these, with any time and zone behind a date:
 *
 *     2026-11-25   2026/11/25   2026.11.25   2026-329   2026-W48-3   20261125   20261125T235341   20261125235341
 *     25.11.2026   25.11.26   and, by `order`,   11/25/2026   11-25-2026   11/25/26
 *     Nov 25, 2026   25 November 2026   25-Nov-2026   25-Nov-26   Wed, 25 Nov 2026   Wed Nov 25 23:53:41 2026
 *     2026\u5e7411\u670825\u65e5 (year, month, day)
 *     2026-11   202611   Nov-26   November 2026   2026-W48   2026-Q4   Q4 2026, which name no day
 *     T23:53   23:53:41   11:53 PM   23:53:41.123456789   23:53:41,5   T235341
 *     Z   UTC   GMT   +02:00   +0200   +02   GMT+0200 (any name)   +0000 UTC
 *     1795650821   seconds, milliseconds, microseconds or nanoseconds since 1970, in UTC, between 1990 and 2100
 *
 * Years are 1 to 9999, of dates without a delimiter 1900 to 2100; one of two digits is the nearest to today. Days are those of the month; 24:00 is the end of a day,
 * and a 60th second the begin of the next minute. What is below a microsecond is cut. Takes some 50 ns; 5 for a text
 * that begins with none of these. */
bool api_date_read(const char *text, size_t size, enum api_date_order order, struct api_date *date);

/* Reads a whole number as api_date_read reads a text: a date without a delimiter, or a time since 1970. *form tells which, so that the numbers of a
 * column can be required to be alike; it is below API_DATE_FORMS. */
enum { API_DATE_FORMS = 8 };
bool api_date_of_number(double number, struct api_date *date, size_t *form);

/* Days since 1970 of a date of the proleptic Gregorian calendar. */
int64_t api_days_since_1970(int64_t year, unsigned month, unsigned day);

/* api_date_tally: how many texts of a column are dates. Empty if zeroed. */
struct api_date_tally {
    size_t n[2];   /* by each order */
    bool is_mixed; /* a text is one day by one order, and another by the other */
};
void api_date_add(struct api_date_tally *tally, const char *text, size_t size);

/* Decides the order of a column: that by which more texts are dates. False if both are equal, but give different days. */
bool api_date_decide(const struct api_date_tally *tally, enum api_date_order *order);
