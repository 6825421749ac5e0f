#include "api/tables/field.h"

#include "api/text/date.h"
#include "api/text/number.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool api_text_is_missing(const char *text, size_t size)
{
    static const char *const words[] = {"NaN",     "nan",    "NA",       "N/A",    "n/a",
                                        "null",    "NULL",   "None",     "\\N",    "-NaN",
                                        "-nan",    "#N/A",   "#N/A N/A", "#NA",    "<NA>",
                                        "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN"};
    enum { LONGEST = 8 };
    static const bool may_begin[256] = {['N'] = true, ['n'] = true, ['\\'] = true, ['-'] = true,
                                        ['#'] = true, ['<'] = true, ['1'] = true};
    if (size == 0)
        return true;
    if (size > LONGEST || size < 2 || !may_begin[(unsigned char)*text])
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*words[i] == *text && strlen(words[i]) == size && memcmp(words[i], text, size) == 0)
            return true;
    return false;
}

bool api_cell_is_mark(const struct api_cell *cell)
{
    return cell->kind == API_CELL_FIELD && cell->size == 1 && memchr(".-?", *cell->text, 3);
}

bool api_text_infinity(const char *text, size_t size, double *number)
{
    static const char *const words[] = {"Infinity", "Inf"};
    bool negative = size > 0 && *text == '-';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size - negative &&
            memcmp(words[i], text + negative, size - negative) == 0) {
            *number = negative ? -(double)INFINITY : (double)INFINITY;
            return true;
        }
    return false;
}

/* True for "true" and "false" in any case. */
static bool is_boolean(const char *text, size_t size, bool *value)
{
    *value = size == 4;
    return (size == 4 && strncasecmp(text, "true", 4) == 0) ||
           (size == 5 && strncasecmp(text, "false", 5) == 0);
}

/* Reads what is no number of JSON, by strtod, with a point for a decimal comma: "+1", "007", ".5", "5.", "1,5",
 * "inf"; but not the hexadecimal numbers and NaN that strtod knows, too. MAX_LOOSE: bytes of such a number; a
 * longer field is text. */
static bool read_loosely(const char *p, size_t size, bool decimal_comma, double *number)
{
    enum { MAX_LOOSE = 4096 };
    char text[MAX_LOOSE + API_PADDING], *comma, *end;
    if (size > MAX_LOOSE)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!p[i] || !strchr("0123456789+-.,eEinftyINFTY", p[i]))
            return false;
    memcpy(text, p, size);
    memset(text + size, 0, API_PADDING);
    if (decimal_comma && (comma = memchr(text, ',', size)))
        *comma = '.';
    if (api_number_read(text, KL_FLOAT64, number) == text + size)
        return true;
    *number = api_strtod(text, &end);
    return end == text + size;
}

/* Cuts blanks off both ends. */
static void trim(const char **text, const char **end)
{
    while (*text < *end && (**text == ' ' || **text == '\t'))
        ++*text;
    while (*text < *end && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        --*end;
}

bool api_text_is_code(const char *text, size_t size)
{
    const char *end = text + size;
    trim(&text, &end);
    if (end - text < 2 || *text != '0')
        return false;
    while (text < end && (unsigned)(*text - '0') < 10)
        text++;
    return text == end;
}

/* ---- Pieces */

/* Skips the first of these that `*p` begins with, up to `end`. */
static bool skip_one(const char **p, const char *end, const char *const *words)
{
    for (; *words; words++) {
        size_t size = strlen(*words);
        if ((size_t)(end - *p) >= size && memcmp(*p, *words, size) == 0) {
            *p += size;
            return true;
        }
    }
    return false;
}

/* blanks: with those that spreadsheets put between digits and units: U+00A0, U+2009, U+202F. */
#define BLANKS " ", "\t", "\xc2\xa0", "\xe2\x80\x89", "\xe2\x80\xaf"
static const char *const blanks[] = {BLANKS, NULL};
static const char *const separators[] = {",", ".", "'", "_", "\xe2\x80\x99", BLANKS, NULL};
static const char *const points[] = {".", ",", NULL};
static const char *const signs[] = {"+", "-", "\xe2\x88\x92", "(", NULL};
static const char *const units[] = {"%",   "$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "EUR",
                                    "USD", "GBP", "CHF",          "JPY",      "CNY",      "INR",
                                    NULL};

static size_t skip_digits(const char **p, const char *end)
{
    const char *start = *p;
    while (*p < end && (unsigned)(**p - '0') < 10)
        ++*p;
    return (size_t)(*p - start);
}

/* ---- Numbers by their style */

const char *const api_style_names[API_STYLES] = {[API_POINT] = "decimal_point",
                                                 [API_COMMA] = "decimal_comma",
                                                 [API_DATES] = "dates",
                                                 [API_DATES_MONTH_FIRST] = "dates_month_first"};

/* Separators of groups. */
static const char *const point_groups[] = {",", "'", "\xe2\x80\x99", BLANKS, NULL};
static const char *const comma_groups[] = {".", "'", "\xe2\x80\x99", BLANKS, NULL};

/* plain: a number as api_number_read takes it. */
struct plain {
    char text[800 + API_PADDING];
    size_t size;
};

static bool add(struct plain *plain, const char *bytes, size_t size)
{
    bool fits = size <= sizeof plain->text - API_PADDING - plain->size;
    memcpy(plain->text + plain->size, bytes, fits ? size : 0);
    plain->size += fits ? size : 0;
    return fits;
}

/* Adds digits, and groups of three behind them; false if they do not fit. *groups becomes how many groups there are. */
static bool add_whole(struct plain *plain, const char **p, const char *end, enum api_style style,
                      size_t *groups)
{
    const char *start = *p, *separator = NULL;
    const char *const *separators_of_style = style == API_COMMA ? comma_groups : point_groups;
    size_t n = skip_digits(p, end), size = 0;
    bool good = add(plain, start, n), may_have_groups = n >= 1 && n <= 3 && *start != '0';
    for (*groups = 0; good && may_have_groups; ++*groups) {
        const char *at = *p;
        if (!skip_one(p, end, separators_of_style) ||
            (separator && ((size_t)(*p - at) != size || memcmp(at, separator, size) != 0)) ||
            skip_digits(p, end) != 3) {
            *p = at;
            break;
        }
        separator = at;
        size = (size_t)(*p - 3 - at);
        good = add(plain, *p - 3, 3);
    }
    return good;
}

/* Reads a number by API_POINT or API_COMMA, which has groups or a decimal mark. */
static bool read_styled(const char *p, const char *end, enum api_style style, double *number,
                        bool *is_grouped)
{
    struct plain plain = {.size = 0};
    size_t groups;
    bool is_signed = *p == '+' || *p == '-';
    add(&plain, p, *p == '-');
    p += is_signed;
    bool good = add_whole(&plain, &p, end, style, &groups);
    if (good && p < end && *p == (style == API_COMMA ? ',' : '.')) {
        const char *digits = ++p;
        size_t n = skip_digits(&p, end);
        good = add(&plain, ".", 1) && add(&plain, digits, n);
    }
    if (good && p < end && groups == 0 && (*p == 'e' || *p == 'E')) {
        good = add(&plain, p, (size_t)(end - p));
        p = end;
    }
    char *read;
    *is_grouped = groups > 0;
    if (!good || p != end || plain.size == 0)
        return false;
    memset(plain.text + plain.size, 0, API_PADDING);
    *number = api_strtod(plain.text, &read);
    return read == plain.text + plain.size && strspn(plain.text, "0123456789.-+eE") == plain.size;
}

/* Reads a field that is not plain, or that its style may read otherwise, as read_field has it. */
static __attribute__((noinline)) bool read_by_style(const char *p, const char *end,
                                                    enum api_style style, bool is_plain,
                                                    double *number, bool *is_grouped)
{
    size_t size = (size_t)(end - p);
    bool has_point = memchr(p, '.', size) != NULL;
    if (is_plain && !has_point)
        return true;
    if (style == API_PLAIN || style == API_EITHER)
        return is_plain || read_loosely(p, size, style == API_EITHER, number);
    return read_styled(p, end, style, number, is_grouped) ||
           ((style == API_POINT || !has_point) && read_loosely(p, size, false, number));
}

/* As api_field_number, without blanks around the text. */
static inline bool read_field(const char *p, const char *end, enum api_style style, double *number,
                              bool *is_grouped)
{
    *is_grouped = false;
    if (p == end || ((unsigned)(*p - '0') >= 10 && !strchr("+-.,iI", *p)))
        return false;
    bool is_plain = api_number_read(p, KL_FLOAT64, number) == end;
    if (is_plain && style != API_COMMA)
        return true;
    return read_by_style(p, end, style, is_plain, number, is_grouped);
}

bool api_field_number(const struct api_cell *cell, enum api_style style, double *number)
{
    const char *p = cell->text, *end = p + cell->size;
    bool ignored;
    trim(&p, &end);
    return read_field(p, end, style, number, &ignored);
}

bool api_style_add(struct api_style_tally *tally, const struct api_cell *cell)
{
    const char *p = cell->text, *end = p + cell->size;
    double ignored;
    bool is_grouped[2], is_number[2];
    trim(&p, &end);
    for (int i = 0; i < 2; i++) {
        enum api_style style = i == 0 ? API_POINT : API_COMMA;
        is_number[i] = read_field(p, end, style, &ignored, &is_grouped[i]);
        tally->grouped[style] += is_number[i] && is_grouped[i];
    }
    tally->points += is_number[0] && !is_number[1];
    tally->commas += is_number[1] && !is_number[0];
    tally->point_groups += is_number[0] && !is_number[1] && is_grouped[0];
    tally->comma_groups += is_number[1] && !is_number[0] && is_grouped[1];
    bool is_both = is_number[0] && is_number[1];
    tally->both += is_both && memchr(p, ',', (size_t)(end - p));
    tally->both_points += is_both && memchr(p, '.', (size_t)(end - p));
    return is_number[0] || is_number[1];
}

enum api_style api_style_decide(const struct api_style_tally *tally, enum api_style before,
                                char delimiter)
{
    bool has_groups =
        tally->points > tally->commas ? tally->point_groups > 0 : tally->comma_groups > 0;
    if (tally->points > 0 && tally->commas > 0 && !has_groups)
        return API_EITHER;
    if (tally->points > 0 || tally->commas > 0)
        return tally->points > tally->commas ? API_POINT : API_COMMA;
    if (before != API_PLAIN)
        return before;
    if (delimiter != ';' || tally->both == 0)
        return API_POINT;
    return tally->both_points > 0 ? API_EITHER : API_COMMA;
}

/* ---- Numbers as people write them */

/* Skips digits in groups: the first of one to three, the others of three, with the same separator between. */
static bool skip_groups(const char **p, const char *end)
{
    size_t n = skip_digits(p, end), size = 0;
    const char *first = *p;
    while (n >= 1 && n <= 3) {
        const char *separator = *p;
        if (!skip_one(p, end, separators) ||
            (separator != first &&
             ((size_t)(*p - separator) != size || memcmp(separator, first, size) != 0)) ||
            skip_digits(p, end) != 3) {
            *p = separator;
            break;
        }
        size = separator == first ? (size_t)(*p - 3 - first) : size;
    }
    return n > 0;
}

static void skip_all(const char **p, const char *end, const char *const *words,
                     const char *const *more)
{
    while (skip_one(p, end, words) || skip_one(p, end, more))
        ;
}

bool api_text_is_formatted_number(const char *text, size_t size)
{
    const char *p = text, *end = text + size, *digits;
    skip_all(&p, end, blanks, units);
    skip_all(&p, end, signs, units);
    skip_all(&p, end, blanks, blanks);
    digits = p;
    bool has_digits = skip_groups(&p, end);
    if (skip_one(&p, end, points))
        has_digits |= skip_digits(&p, end) > 0;
    if (p > digits && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        skip_one(&p, end, signs);
        has_digits &= skip_digits(&p, end) > 0;
    }
    skip_all(&p, end, blanks, units);
    p += p < end && (*p == ')' || *p == '-');
    return has_digits && p == end;
}

/* ---- Cells */

bool api_cell_is_text(const struct api_cell *cell)
{
    return cell->kind == API_CELL_STRING || cell->kind == API_CELL_FIELD;
}

bool api_cell_is_missing(const struct api_cell *cell)
{
    return cell->kind == API_CELL_MISSING ||
           (api_cell_is_text(cell) && api_text_is_missing(cell->text, cell->size));
}

bool api_cell_is_boolean(const struct api_cell *cell, bool *value)
{
    *value = cell->number != 0;
    return cell->kind == API_CELL_BOOLEAN ||
           (api_cell_is_text(cell) && is_boolean(cell->text, cell->size, value));
}

bool api_cell_date(const struct api_cell *cell, enum api_style style, const struct api_zone *zone,
                   double *number)
{
    struct api_date date;
    size_t ignored;
    enum api_date_order order = style == API_DATES_MONTH_FIRST ? API_MONTH_FIRST : API_DAY_FIRST;
    if (!(api_cell_is_text(cell)
              ? api_date_read(cell->text, cell->size, order, &date)
              : cell->kind == API_CELL_NUMBER && api_date_of_number(cell->number, &date, &ignored)))
        return false;
    if (!date.has_zone && zone)
        date.us = api_zone_to_utc(zone, date.us, NULL, NULL);
    *number = (double)date.us / 1e6;
    return true;
}

bool api_cell_number(const struct api_cell *cell, enum api_style style, double *number)
{
    if (style >= API_DATES)
        return api_cell_date(cell, style, NULL, number);
    *number = cell->number;
    return cell->kind == API_CELL_FIELD    ? api_field_number(cell, style, number)
           : cell->kind == API_CELL_STRING ? api_text_infinity(cell->text, cell->size, number)
                                           : cell->kind != API_CELL_MISSING;
}
