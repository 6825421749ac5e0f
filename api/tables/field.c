#include "api/tables/field.h"

#include "api/text/number.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool api_text_is_missing(const char *text, size_t size)
{
    static const char *const words[] = {"", "NaN", "NA", "null", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size && memcmp(words[i], text, size) == 0)
            return true;
    return false;
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

bool api_field_number(const struct api_cell *cell, bool decimal_comma, double *number)
{
    const char *p = cell->text, *end = p + cell->size;
    trim(&p, &end);
    if (p == end || ((unsigned)(*p - '0') >= 10 && !strchr("+-.,iI", *p)))
        return false;
    return api_number_read(p, KL_FLOAT64, number) == end ||
           read_loosely(p, (size_t)(end - p), decimal_comma, number);
}

/* ---- Numbers as people write them */

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

bool api_cell_number(const struct api_cell *cell, bool decimal_comma, double *number)
{
    *number = cell->number;
    return cell->kind == API_CELL_FIELD    ? api_field_number(cell, decimal_comma, number)
           : cell->kind == API_CELL_STRING ? api_text_infinity(cell->text, cell->size, number)
                                           : cell->kind != API_CELL_MISSING;
}
