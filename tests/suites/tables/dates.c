/* Dates and times in texts, beside the C library's calendar. */
#include "api/text/date.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY API_DAY_FIRST
#define MONTH API_MONTH_FIRST

/* Seconds since 1970 of texts, and a fraction in microseconds. */
static const struct {
    const char *text;
    enum api_date_order order;
    int64_t seconds, us;
    bool has_zone;
} good[] = {
    {"2026-11-25", DAY, 1795564800, 0, false},
    {" 2026-11-25\t", DAY, 1795564800, 0, false},
    {"2026/11/25", MONTH, 1795564800, 0, false},
    {"2026.11.25", DAY, 1795564800, 0, false},
    {"2026-1-5", DAY, 1767571200, 0, false},
    {"2026-11", DAY, 1793491200, 0, false},
    {"20261125", DAY, 1795564800, 0, false},
    {"202611251030", DAY, 1795602600, 0, false},
    {"20261125103015", DAY, 1795602615, 0, false},
    {"20261125T103015Z", DAY, 1795602615, 0, true},
    {"2026-329", DAY, 1795564800, 0, false},
    {"2024-366", DAY, 1735603200, 0, false},
    {"2026-W48-3", DAY, 1795564800, 0, false},
    {"2026W48-3T10:30", DAY, 1795602600, 0, false},
    {"2025-W01-1", DAY, 1735516800, 0, false},
    {"2027-W01-1", DAY, 1799020800, 0, false},
    {"25.11.26", DAY, 1795564800, 0, false},
    {"11/25/26", MONTH, 1795564800, 0, false},
    {"1/5/26 10:30", MONTH, 1767609000, 0, false},
    {"25-Nov-26", DAY, 1795564800, 0, false},
    {"Wed Nov 25 10:30:15 2026", DAY, 1795602615, 0, false},
    {"Wed Nov 25 10:30:15 UTC 2026", DAY, 1795602615, 0, true},
    {"2026-11-25 10:30:15 +0000 UTC", DAY, 1795602615, 0, true},
    {"2026\u5e7411\u670825\u65e5", DAY, 1795564800, 0, false},
    {"2026\u5e7411\u670825\u65e5 10:30", DAY, 1795602600, 0, false},
    {"202611", DAY, 1793491200, 0, false},
    {"Nov-26", DAY, 1793491200, 0, false},
    {"November 2026", DAY, 1793491200, 0, false},
    {"2026-W48", DAY, 1795392000, 0, false},
    {"2026-Q4", DAY, 1790812800, 0, false},
    {"2026q4", DAY, 1790812800, 0, false},
    {"Q4 2026", DAY, 1790812800, 0, false},
    {"25.11.2026", DAY, 1795564800, 0, false},
    {"25.11.2026", MONTH, 1795564800, 0, false},
    {"11/12/2026", DAY, 1797033600 - 86400, 0, false},
    {"11/12/2026", MONTH, 1794441600, 0, false},
    {"25/11/2026", DAY, 1795564800, 0, false},
    {"11/25/2026", MONTH, 1795564800, 0, false},
    {"11-25-2026 3:04 PM", MONTH, 1795619040, 0, false},
    {"Nov 25, 2026", DAY, 1795564800, 0, false},
    {"november 25 2026", DAY, 1795564800, 0, false},
    {"Nov. 25th, 2026, 12:00 am", DAY, 1795564800, 0, false},
    {"25 Nov 2026", DAY, 1795564800, 0, false},
    {"25th November, 2026", DAY, 1795564800, 0, false},
    {"25-NOV-2026", DAY, 1795564800, 0, false},
    {"25/Nov/2026:10:30:15 +0000", DAY, 1795602615, 0, true},
    {"Wed, 25 Nov 2026 10:30:15 GMT", DAY, 1795602615, 0, true},
    {"Wed Nov 25 2026 10:30:15 GMT+0100 (Central European Standard Time)", DAY, 1795599015, 0,
     true},
    {"2026-11-25T10:30", DAY, 1795602600, 0, false},
    {"2026-11-25t10:30:15z", DAY, 1795602615, 0, true},
    {"2026-11-25 10:30:15.5", DAY, 1795602615, 500000, false},
    {"2026-11-25T10:30:15,123456789+02:00", DAY, 1795595415, 123456, true},
    {"2026-11-25 10:30:15 UTC", DAY, 1795602615, 0, true},
    {"2026-11-25 10:30:15-0330", DAY, 1795615215, 0, true},
    {"2026-11-25 10:30:15 +05", DAY, 1795584615, 0, true},
    {"2026-11-25T24:00", DAY, 1795651200, 0, false},
    {"2016-12-31T23:59:60Z", DAY, 1483228800, 0, true},
    {"0001-01-01", DAY, -62135596800, 0, false},
    {"9999-12-31T23:59:59", DAY, 253402300799, 0, false},
    {"2024-02-29", DAY, 1709164800, 0, false},
    {"1795602615", DAY, 1795602615, 0, true},
    {"1795602615.25", DAY, 1795602615, 250000, true},
    {"1795602615123", DAY, 1795602615, 123000, true},
    {"1795602615123456", DAY, 1795602615, 123456, true},
    {"1795602615123456789", DAY, 1795602615, 123456, true},
};

static const char *const bad[] = {
    "",
    " ",
    "2026",
    "26-11-25",
    "2026-13-01",
    "2026-02-29",
    "2026-11-25T",
    "2026-11-25,",
    "2026-11-25T25:00",
    "2026-11-25T24:01",
    "2026-11-25 10",
    "2026-11-25 10:30 CET",
    "2026-11-25 10:30:15.",
    "2026-11-25 10:30:15+2",
    "2026-11-25 10:30:15Zx",
    "2026-11/25",
    "2026.1.2",
    "2026.11",
    "5.11.26",
    "25/11.2026",
    "32/01/2026",
    "0/1/2026",
    "31/04/2026",
    "99999999",
    "20261325",
    "1.2.3.4",
    "10.0.0.1",
    "192.168.1.100",
    "1-2-3",
    "2026-11-25x",
    "Nov 26",
    "Novel 25, 2026",
    "2026-W54",
    "Monday",
    "Mon Nov",
    "may",
    "January",
    "Marching on 25",
    "12:30",
    "12:30:15",
    "13:00 PM",
    "2026-11-25 13:00 PM",
    "2026-11-25 0:30 AM",
    "631151999",
    "4102444800",
    "123456",
    "abcdefghij",
    "0x7f0000001",
    "17956026151",
    "1795602615.",
    "179560261512345678901",
    "00501",
    "555-1234",
    "12-34-5678",
    "+2026-11-25",
    "-2026-11-25",
};

Test(tables_dates, are_read_as_people_and_programs_write_them)
{
    struct api_date date;
    for (size_t i = 0; i < COUNT(good); i++) {
        bool is = api_date_read(good[i].text, strlen(good[i].text), good[i].order, &date);
        cr_expect(is, "%s", good[i].text);
        if (is)
            cr_expect(date.us == good[i].seconds * 1000000 + good[i].us &&
                          date.has_zone == good[i].has_zone,
                      "%s: %lld us, zone %d", good[i].text, (long long)date.us, date.has_zone);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int order = DAY; order <= MONTH; order++)
            cr_expect(!api_date_read(bad[i], strlen(bad[i]), (enum api_date_order)order, &date),
                      "%s", bad[i]);
}

/* forms: of strftime, with a zone or not, in seconds or in days. */
static const struct {
    const char *format;
    enum api_date_order order;
    int64_t unit;
} forms[] = {
    {"%Y-%m-%d", DAY, 86400},         {"%Y/%m/%d", DAY, 86400},
    {"%d.%m.%Y", DAY, 86400},         {"%d/%m/%Y", DAY, 86400},
    {"%m/%d/%Y", MONTH, 86400},       {"%b %d, %Y", DAY, 86400},
    {"%d %B %Y", DAY, 86400},         {"%A, %d-%b-%Y", DAY, 86400},
    {"%Y-%m-%dT%H:%M:%SZ", DAY, 1},   {"%Y-%m-%d %H:%M:%S", DAY, 1},
    {"%d/%m/%Y %I:%M:%S %p", DAY, 1}, {"%m/%d/%Y %H:%M", MONTH, 60},
    {"%a, %d %b %Y %T GMT", DAY, 1},  {"%d/%b/%Y:%T +0000", DAY, 1},
    {"%Y%m%dT%H%M%S", DAY, 1},        {"%B %d %Y %I:%M %p", DAY, 60},
};

Test(tables_dates, are_those_of_the_calendar)
{
    unsigned long long seed = 1;
    char text[80];
    struct api_date date;
    for (int i = 0; i < 100000; i++) {
        size_t form = (size_t)(uniform(&seed) * COUNT(forms));
        bool is_compact = forms[form].format[2] == '%';
        double span = is_compact ? 6e9 : 3e11, first = is_compact ? -2e9 : -6e10;
        time_t seconds = (time_t)(first + uniform(&seed) * span);
        seconds -= (seconds % forms[form].unit + forms[form].unit) % forms[form].unit;
        struct tm parts;
        gmtime_r(&seconds, &parts);
        char year[16];
        strftime(text, sizeof text, forms[form].format, &parts);
        snprintf(year, sizeof year, "%d", parts.tm_year + 1900);
        if (strlen(year) < 4) /* strftime does not pad */
            continue;
        bool is = api_date_read(text, strlen(text), forms[form].order, &date);
        cr_expect(is && date.us == (int64_t)seconds * 1000000, "%s: %d %lld", text, is,
                  (long long)date.us);
    }
}

/* No text of any length is read beyond its end, or is a date by chance of what follows. */
Test(tables_dates, end_where_the_text_ends)
{
    unsigned long long seed = 2;
    static const char letters[] = "0123456789-/.:, TZ+GMUNovAP()\t";
    struct api_date date, again;
    for (int i = 0; i < 300000; i++) {
        const char *from = good[(size_t)(uniform(&seed) * COUNT(good))].text;
        size_t size = strlen(from);
        char *text = before_the_edge(size + 1);
        memcpy(text + 1, from, size);
        for (int changes = (int)(uniform(&seed) * 3); changes > 0 && size > 0; changes--)
            text[1 + (size_t)(uniform(&seed) * (double)size)] =
                letters[(size_t)(uniform(&seed) * (sizeof letters - 1))];
        size_t cut = (size_t)(uniform(&seed) * (double)(size + 1));
        enum api_date_order order = uniform(&seed) < 0.5 ? DAY : MONTH;
        memmove(text + 1 + size - cut, text + 1, cut);
        bool is = api_date_read(text + 1 + size - cut, cut, order, &date);
        char copy[100];
        snprintf(copy, sizeof copy, "%.*s5", (int)cut, text + 1 + size - cut);
        cr_expect_eq(api_date_read(copy, cut, order, &again), is, "%s", copy);
        cr_expect(!is || (again.us == date.us && again.has_zone == date.has_zone), "%s", copy);
        unmap(text, size + 1);
        i += 29;
    }
}

Test(tables_dates, have_the_order_that_their_column_decides)
{
    static const struct {
        const char *texts[4];
        size_t n[2];
        bool is_decided;
        enum api_date_order order;
    } cases[] = {
        {{"1/2/2026", "13/2/2026"}, {2, 1}, true, DAY},
        {{"1/2/2026", "2/13/2026"}, {1, 2}, true, MONTH},
        {{"1/2/2026", "3/4/2026"}, {2, 2}, false, DAY},
        {{"1/1/2026", "3/3/2026"}, {2, 2}, true, DAY},
        {{"1.2.2026", "2026-01-01", "x"}, {2, 2}, true, DAY},
        {{"13/2/2026", "2/13/2026", "1/2/2026"}, {2, 2}, false, DAY},
        {{"x"}, {0, 0}, true, DAY},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_date_tally tally = {.is_mixed = false};
        enum api_date_order order;
        for (const char *const *text = cases[i].texts; *text; text++)
            api_date_add(&tally, *text, strlen(*text));
        cr_expect(tally.n[0] == cases[i].n[0] && tally.n[1] == cases[i].n[1], "%zu: %zu %zu", i,
                  tally.n[0], tally.n[1]);
        cr_expect_eq(api_date_decide(&tally, &order), cases[i].is_decided, "%zu", i);
        cr_expect_eq(order, cases[i].order, "%zu", i);
    }
}
