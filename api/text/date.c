#include "api/text/date.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)
#define DAY_US (86400 * SECOND_US)

struct cursor {
    const char *p, *end;
};

/* parts: of a date, as they are read. */
struct parts {
    unsigned year, month, day, hour, minute, second, us;
    int offset; /* minutes east of UTC */
    bool has_zone;
    const char *period; /* as in struct api_date */
    unsigned days;      /* that the day is behind the one that year, month and day say */
};

/* ---- Pieces */

static bool is_digit(const struct cursor *c)
{
    return c->p < c->end && (unsigned)(*c->p - '0') < 10;
}

/* Reads at most `max` digits; returns how many there were. */
static size_t read_digits(struct cursor *c, size_t max, unsigned *value)
{
    size_t n = 0;
    for (*value = 0; n < max && is_digit(c); n++)
        *value = 10 * *value + (unsigned)(*c->p++ - '0');
    return n;
}

static bool read_two(struct cursor *c, unsigned *value) { return read_digits(c, 2, value) == 2; }

static bool take(struct cursor *c, char byte)
{
    bool is_there = c->p < c->end && *c->p == byte;
    c->p += is_there;
    return is_there;
}

static bool take_any(struct cursor *c, const char *bytes)
{
    bool is_there = c->p < c->end && *c->p && strchr(bytes, *c->p);
    c->p += is_there;
    return is_there;
}

static void skip_blanks(struct cursor *c)
{
    while (take_any(c, " \t"))
        ;
}

/* Takes a word in any case. */
static bool take_word(struct cursor *c, const char *word)
{
    size_t size = strlen(word);
    bool is_there = (size_t)(c->end - c->p) >= size && strncasecmp(c->p, word, size) == 0;
    c->p += is_there ? size : 0;
    return is_there;
}

/* Takes a name of a list, in full or its first three letters, and a dot behind these; returns 1 + its index, or 0. */
static unsigned take_name(struct cursor *c, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const char *start = c->p;
        char letters[4] = {names[i][0], names[i][1], names[i][2]};
        if (c->p == c->end || (*c->p | 0x20) != (letters[0] | 0x20))
            continue;
        if (!take_word(c, names[i]) && (!take_word(c, letters) || (take(c, '.'), false))) {
            c->p = start;
            continue;
        }
        if (c->p == c->end || ((unsigned)(*c->p | 0x20) - 'a') >= 26)
            return i + 1;
        c->p = start;
    }
    return 0;
}

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                       "Friday", "Saturday", "Sunday"};

/* ---- Times and zones */

/* Reads Z, a name of UTC, or an offset. */
static bool read_zone(struct cursor *c, struct parts *parts)
{
    unsigned hours, minutes = 0;
    bool is_named = take_word(c, "UTC") || take_word(c, "GMT");
    parts->has_zone = is_named || take_word(c, "Z");
    bool is_west = take(c, '-');
    if ((parts->has_zone && !is_named) || (!is_west && !take(c, '+')))
        return parts->has_zone && !is_west;
    if (!read_two(c, &hours) || hours > 23)
        return false;
    bool has_colon = take(c, ':');
    if ((has_colon || is_digit(c)) && (!read_two(c, &minutes) || minutes > 59))
        return false;
    parts->offset = (int)(60 * hours + minutes) * (is_west ? -1 : 1);
    parts->has_zone = true;
    const char *name = c->p;
    skip_blanks(c);
    if (take(c, '(') && c->end[-1] == ')')
        c->p = c->end;
    while (c->p < c->end && (unsigned)(*c->p - 'A') < 26)
        c->p++;
    if (c->p < c->end)
        c->p = name;
    return true;
}

/* Reads the digits of a fraction of a second. */
static bool read_fraction(struct cursor *c, struct parts *parts)
{
    unsigned scale = 1000000;
    if (!is_digit(c))
        return false;
    for (; is_digit(c); c->p++) {
        scale /= 10;
        parts->us += scale * (unsigned)(*c->p - '0');
    }
    return true;
}

/* Reads 23:53, with seconds or not, or 235341 behind a T. */
static bool read_clock(struct cursor *c, bool is_basic, struct parts *parts)
{
    size_t n = read_digits(c, 2, &parts->hour);
    bool has_colon = n > 0 && take(c, ':');
    if (!(has_colon || (is_basic && n == 2)) || !read_two(c, &parts->minute))
        return false;
    if (has_colon ? take(c, ':') : is_digit(c)) {
        if (!read_two(c, &parts->second) || (take_any(c, ".,") && !read_fraction(c, parts)))
            return false;
    }
    const char *end = c->p;
    skip_blanks(c);
    bool is_pm = take_word(c, "PM"), is_am = !is_pm && take_word(c, "AM");
    if (!is_pm && !is_am) {
        c->p = end;
        return true;
    }
    if (parts->hour < 1 || parts->hour > 12)
        return false;
    parts->hour = parts->hour % 12 + (is_pm ? 12 : 0);
    return true;
}

/* Reads what is behind a date: nothing, or a time and a zone. */
static bool read_rest(struct cursor *c, struct parts *parts)
{
    bool is_basic = take_any(c, "Tt"), is_separated = is_basic || take_any(c, ",:");
    const char *start = c->p;
    skip_blanks(c);
    if (c->p == c->end)
        return !is_separated;
    if ((!is_separated && c->p == start) || !read_clock(c, is_basic, parts))
        return false;
    skip_blanks(c);
    return c->p == c->end || (read_zone(c, parts) && c->p == c->end);
}

/* ---- Dates */

/* Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms", 2013: years begin in March, and eras of 400 years have as many days each. */
int64_t api_days_since_1970(int64_t year, unsigned month, unsigned day)
{
    int64_t y = year - (month <= 2), era = y / 400 - (y % 400 < 0), of_era = y - 400 * era;
    int64_t of_year = (153 * (int64_t)(month + (month > 2 ? -3u : 9u)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_valid(const struct parts *parts)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = parts->year % 4 == 0 && (parts->year % 100 != 0 || parts->year % 400 == 0);
    bool is_midnight = parts->hour == 24 && parts->minute + parts->second + parts->us == 0;
    return parts->year >= 1 && parts->month >= 1 && parts->month <= 12 && parts->day >= 1 &&
           parts->day <= days[parts->month - 1] + (unsigned)(is_leap && parts->month == 2) &&
           (parts->hour <= 23 || is_midnight) && parts->minute <= 59 && parts->second <= 60;
}

static bool finish(const struct parts *parts, struct api_date *date)
{
    if (!is_valid(parts))
        return false;
    int64_t days = api_days_since_1970(parts->year, parts->month, parts->day) + parts->days;
    int64_t minutes = days * 1440 + (int64_t)parts->hour * 60 + parts->minute - parts->offset;
    date->us = (minutes * 60 + parts->second) * SECOND_US + parts->us;
    date->has_zone = parts->has_zone;
    date->period = parts->period;
    return true;
}

/* Sets the day of a week of ISO 8601, whose first has the fourth of January. */
static bool set_week(unsigned week, unsigned day, struct parts *parts)
{
    int64_t fourth = api_days_since_1970(parts->year, 1, 4), monday = (fourth % 7 + 10) % 7;
    parts->month = parts->day = 1;
    bool good = parts->year >= 1 && week >= 1 && week <= 53 && day >= 1 && day <= 7;
    int64_t behind = 3 - monday + 7 * ((int64_t)week - 1) + day - 1;
    if (behind < 0) { /* in December of the year before */
        parts->year--;
        parts->month = 12;
        parts->day = (unsigned)(32 + behind);
    }
    parts->days = behind > 0 ? (unsigned)behind : 0;
    return good;
}

static bool set_quarter(unsigned quarter, struct parts *parts)
{
    parts->month = 3 * quarter - 2;
    parts->day = 1;
    parts->period = "a quarter";
    return quarter >= 1 && quarter <= 4;
}

/* Reads what is behind the year of 2026-Q4, 2026-W48, 2026-W48-3 or 2026-329; *is_one tells if it may be one. */
static bool read_part_of_year(struct cursor *c, bool *is_one, struct parts *parts)
{
    enum { MAX_DAYS = 365 };
    struct cursor at = *c, digits;
    unsigned number, day = 1;
    bool has_dash = take(&at, '-');
    *is_one = true;
    if (take_any(&at, "Qq")) {
        bool good = read_digits(&at, 1, &number) == 1 && set_quarter(number, parts);
        c->p = at.p;
        return good && at.p == at.end;
    }
    if (take_any(&at, "Ww")) {
        bool good = read_two(&at, &number);
        parts->period = "a week";
        if (good && take(&at, '-')) {
            good = read_digits(&at, 1, &day) == 1;
            parts->period = NULL;
        }
        c->p = at.p;
        return good && (!parts->period || at.p == at.end) && set_week(number, day, parts);
    }
    digits = at;
    *is_one = has_dash && read_digits(&digits, 3, &number) == 3 && !is_digit(&digits);
    if (!*is_one)
        return false;
    c->p = digits.p;
    parts->month = parts->day = 1;
    parts->days = number - 1;
    bool is_leap = parts->year % 4 == 0 && (parts->year % 100 != 0 || parts->year % 400 == 0);
    return number >= 1 && number <= MAX_DAYS + (unsigned)is_leap;
}

/* Reads what is behind the year of 2026\u5e7411\u670825\u65e5. */
static bool read_from_ideograph(struct cursor *c, struct parts *parts)
{
    return read_digits(c, 2, &parts->month) > 0 && take_word(c, "\xe6\x9c\x88") &&
           read_digits(c, 2, &parts->day) > 0 && take_word(c, "\xe6\x97\xa5");
}

/* Reads what is behind the year of 2026-11-25. With dots numbers have two digits: 2026.1.2 is rather a version. */
static bool read_from_year(struct cursor *c, struct parts *parts)
{
    char delimiter = *c->p;
    size_t min = delimiter == '.' ? 2 : 1;
    bool is_part, good = read_part_of_year(c, &is_part, parts);
    if (is_part)
        return good;
    if (take_word(c, "\xe5\xb9\xb4"))
        return read_from_ideograph(c, parts);
    if (!take_any(c, "-/."))
        return false;
    size_t n = read_digits(c, 2, &parts->month);
    if (n >= min && take(c, delimiter))
        return read_digits(c, 2, &parts->day) >= min;
    parts->day = 1;
    parts->period = "a month";
    return n == 2 && delimiter == '-' && c->p == c->end;
}

/* The year of two digits that is nearest to today. */
static unsigned nearest_year(unsigned two)
{
    struct tm now;
    time_t seconds = time(NULL);
    gmtime_r(&seconds, &now);
    int year = 1900 + now.tm_year, found = year / 100 * 100 + (int)two;
    return (unsigned)(found > year + 50 ? found - 100 : found < year - 49 ? found + 100 : found);
}

/* Reads a year of four digits, or of two, behind which the date ends. */
static bool read_year(struct cursor *c, struct parts *parts)
{
    size_t n = read_digits(c, 4, &parts->year);
    if (n == 2 && (c->p == c->end || strchr(" \tTt,", *c->p)))
        parts->year = nearest_year(parts->year);
    else if (n != 4)
        return false;
    return !is_digit(c);
}

/* Reads what is behind the first number, of n digits, of 25.11.2026, 11/25/2026 or 25-Nov-2026. With a year of two digits
 * there are slashes, or dots and two digits each: 1.2.10 is rather a version, and 26-11-25 may begin with a year. */
static bool read_from_day(struct cursor *c, unsigned first, size_t n, enum api_date_order order,
                          struct parts *parts)
{
    static const char *const suffixes[] = {"st", "nd", "rd", "th"};
    char delimiter = '\0';
    unsigned second;
    if (c->p < c->end)
        delimiter = *c->p;
    bool is_delimited = take_any(c, "/.-");
    size_t n_second = is_delimited ? read_digits(c, 2, &second) : 0;
    if (n_second > 0) {
        bool is_month_first = order == API_MONTH_FIRST && delimiter != '.';
        parts->day = is_month_first ? second : first;
        parts->month = is_month_first ? first : second;
        const char *year = c->p + 1;
        return take(c, delimiter) && read_year(c, parts) &&
               (c->p - year > 2 || delimiter == '/' || (delimiter == '.' && n + n_second == 4));
    }
    for (size_t i = 0; !is_delimited && i < sizeof suffixes / sizeof *suffixes; i++)
        is_delimited = take_word(c, suffixes[i]);
    skip_blanks(c);
    parts->day = first;
    parts->month = take_name(c, months, 12);
    take_any(c, "/-,");
    skip_blanks(c);
    return parts->month > 0 && read_year(c, parts);
}

/* Reads the time and the year behind the day of Wed Nov 25 23:53:41 2026, as C writes it. */
static bool read_clock_and_year(struct cursor *c, struct parts *parts)
{
    if (!read_clock(c, false, parts))
        return false;
    skip_blanks(c);
    parts->has_zone = take_word(c, "UTC") || take_word(c, "GMT");
    skip_blanks(c);
    return read_digits(c, 4, &parts->year) == 4 && c->p == c->end;
}

/* Reads what is behind the month of Nov-26 or November 2026, which are no days. */
static bool read_month_alone(struct cursor *c, struct parts *parts)
{
    struct cursor at = *c;
    bool has_dash = take(&at, '-');
    skip_blanks(&at);
    size_t n = read_digits(&at, 4, &parts->year);
    if (at.p != at.end || !(n == 4 || (n == 2 && has_dash)))
        return false;
    c->p = at.p;
    parts->year = n == 2 ? nearest_year(parts->year) : parts->year;
    parts->day = 1;
    parts->period = "a month";
    return true;
}

/* Reads Nov 25, 2026, or 25 Nov 2026 behind a day of the week. */
static bool read_from_name(struct cursor *c, struct parts *parts)
{
    if (take_name(c, weekdays, 7)) {
        take(c, ',');
        skip_blanks(c);
    }
    unsigned number;
    if (is_digit(c)) {
        size_t n = read_digits(c, 2, &number);
        return read_from_day(c, number, n, API_DAY_FIRST, parts);
    }
    if (take_any(c, "Qq"))
        return read_digits(c, 1, &number) == 1 && take_any(c, " -") &&
               read_digits(c, 4, &parts->year) == 4 && set_quarter(number, parts);
    parts->month = take_name(c, months, 12);
    if (parts->month > 0 && read_month_alone(c, parts))
        return true;
    skip_blanks(c);
    if (parts->month == 0 || read_digits(c, 2, &parts->day) == 0)
        return false;
    if (!take_word(c, "st") && !take_word(c, "nd") && !take_word(c, "rd"))
        take_word(c, "th");
    bool has_comma = take(c, ',');
    skip_blanks(c);
    struct cursor year = *c;
    if (read_year(c, parts))
        return true;
    *c = year;
    return !has_comma && read_clock_and_year(c, parts);
}

/* Reads 20261125, and a time right behind it; or 202611. */
static bool read_compact(struct cursor *c, size_t n, struct parts *parts)
{
    read_digits(c, 4, &parts->year);
    if (n == 6) {
        parts->day = 1;
        parts->period = "a month";
        return read_two(c, &parts->month) && parts->year >= 1900 && parts->year <= 2100 &&
               c->p == c->end;
    }
    bool good = read_two(c, &parts->month) && read_two(c, &parts->day) && parts->year >= 1900 &&
                parts->year <= 2100;
    if (!good || n == 8)
        return good;
    return read_two(c, &parts->hour) && read_two(c, &parts->minute) &&
           (n == 12 || read_two(c, &parts->second));
}

/* ---- Numbers */

/* FIRST, END: seconds of the years 1990 and 2100. */
static const double first_second = 631152000, end_second = 4102444800;

/* Reads 20261125, 202611, and a time right behind the former, as whole numbers. */
static bool read_decimal_date(double number, struct api_date *date, size_t *form)
{
    static const struct {
        double first, end;
        uint64_t unit; /* of a day */
    } forms[] = {{19000101, 21001232, 1},
                 {190001, 210013, 0},
                 {190001010000, 210012312360, 10000},
                 {19000101000000, 21001231235960, 1000000}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!(number >= forms[i].first && number < forms[i].end))
            continue;
        uint64_t whole = (uint64_t)number, unit = forms[i].unit,
                 day = unit ? whole / unit : whole * 100 + 1, rest = unit ? whole % unit : 0;
        bool has_seconds = unit == 1000000;
        const struct parts parts = {.year = (unsigned)(day / 10000),
                                    .month = (unsigned)(day / 100 % 100),
                                    .day = (unsigned)(day % 100),
                                    .hour = (unsigned)(rest / (has_seconds ? 10000 : 100)),
                                    .minute = (unsigned)(rest / (has_seconds ? 100 : 1) % 100),
                                    .second = (unsigned)(has_seconds ? rest % 100 : 0),
                                    .period = unit ? NULL : "a month"};
        *form = 4 + i;
        return finish(&parts, date);
    }
    return false;
}

bool api_date_of_number(double number, struct api_date *date, size_t *form)
{
    static const double per_second[] = {1, 1e3, 1e6, 1e9};
    for (*form = 0; *form < 4; ++*form)
        if (number >= first_second * per_second[*form] && number < end_second * per_second[*form]) {
            date->us = (int64_t)floor(number * (1e6 / per_second[*form]));
            date->has_zone = true;
            date->period = NULL;
            return number == floor(number);
        }
    return number == floor(number) && read_decimal_date(number, date, form);
}

/* Reads a text of `n` digits, and a fraction, as a time since 1970. */
static bool read_epoch(struct cursor *c, size_t n, struct api_date *date)
{
    uint64_t whole = 0;
    struct parts parts = {0};
    size_t form;
    if (n > 19)
        return false;
    for (size_t i = 0; i < n; i++)
        whole = 10 * whole + (uint64_t)(*c->p++ - '0');
    if (!api_date_of_number((double)whole, date, &form) || form > 3)
        return false;
    static const uint64_t us[] = {1000000, 1000, 1, 1};
    date->us = (int64_t)(form == 3 ? whole / 1000 : whole * us[form]);
    if (form == 0 && take(c, '.') && !read_fraction(c, &parts))
        return false;
    date->us += parts.us;
    return c->p == c->end;
}

/* ---- Texts */

/* True if a text may begin with this letter: a name's. */
static bool is_initial(char letter) { return letter && strchr("adfjmnoqstw", letter | 0x20); }

bool api_date_read(const char *text, size_t size, enum api_date_order order, struct api_date *date)
{
    struct cursor c = {text, text + size};
    struct parts parts = {0};
    skip_blanks(&c);
    while (c.p < c.end && (c.end[-1] == ' ' || c.end[-1] == '\t'))
        c.end--;
    if (c.end - c.p < 6)
        return false;
    if (!is_digit(&c))
        return is_initial(*c.p) && read_from_name(&c, &parts) && read_rest(&c, &parts) &&
               finish(&parts, date);
    struct cursor ahead = c;
    while (is_digit(&ahead))
        ahead.p++;
    size_t n = (size_t)(ahead.p - c.p);
    bool good = false;
    unsigned number;
    if (n == 6 || n == 8 || n == 12 || n == 14)
        good = read_compact(&c, n, &parts);
    else if (n > 4)
        return read_epoch(&c, n, date);
    else if (n == 4 && ahead.p < ahead.end)
        good = read_digits(&c, 4, &parts.year) && read_from_year(&c, &parts);
    else if (n <= 2)
        good = read_digits(&c, 2, &number) && read_from_day(&c, number, n, order, &parts);
    return good && (n > 8 ? c.p == c.end : read_rest(&c, &parts)) && finish(&parts, date);
}

void api_date_add(struct api_date_tally *tally, const char *text, size_t size)
{
    struct api_date dates[2];
    bool are[2];
    struct cursor c = {text, text + size};
    skip_blanks(&c);
    if (c.end - c.p < 6 || (!is_digit(&c) && !is_initial(*c.p)))
        return;
    for (int order = API_DAY_FIRST; order <= API_MONTH_FIRST; order++) {
        are[order] = api_date_read(text, size, (enum api_date_order)order, &dates[order]);
        tally->n[order] += are[order];
    }
    tally->is_mixed |= are[0] && are[1] && dates[0].us != dates[1].us;
}

bool api_date_decide(const struct api_date_tally *tally, enum api_date_order *order)
{
    *order = tally->n[API_MONTH_FIRST] > tally->n[API_DAY_FIRST] ? API_MONTH_FIRST : API_DAY_FIRST;
    return tally->n[0] != tally->n[1] || !tally->is_mixed;
}
