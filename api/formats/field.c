#include "api/formats/field.h"

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

/* MAX_DIGITS: significant digits that may decide how a decimal rounds to a double: 768 (halfway
 * between two subnormal ones), and one for all that follow. */
enum { MAX_DIGITS = 800, MAX_EXPONENT = 100000 };

/* decimal: a number's digits without its point and leading zeros, as text that api_number_read reads:
 * "-123e-2". */
struct decimal {
    char text[1 + MAX_DIGITS + 40];
    size_t size;
    long exponent;
};

static bool is_digit(char c) { return (unsigned)(c - '0') < 10; }

/* Adds a digit. Digits past the most are dropped, and any that is not 0 makes the last one odd, so that
 * the number is not taken for a tie. */
static void add_digit(struct decimal *d, char digit, size_t first)
{
    if (d->size == first && digit == '0')
        return;
    if (d->size < first + MAX_DIGITS) {
        d->text[d->size++] = digit;
        return;
    }
    d->exponent++;
    if (digit != '0')
        d->text[d->size - 1] |= 1;
}

/* Reads digits, with a point in or around them; returns their end, or NULL if there are none. */
static const char *read_digits(struct decimal *d, const char *p, const char *end, char point)
{
    size_t first = d->size;
    bool any = false, fraction = false;
    for (; p < end && (is_digit(*p) || (*p == point && !fraction)); p++) {
        fraction |= *p == point;
        if (*p == point)
            continue;
        any = true;
        d->exponent -= fraction;
        add_digit(d, *p, first);
    }
    if (d->size == first)
        d->text[d->size++] = '0';
    return any ? p : NULL;
}

static const char *read_exponent(struct decimal *d, const char *p, const char *end)
{
    long value = 0;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end)
        return NULL;
    for (; p < end && is_digit(*p); p++)
        if (value < MAX_EXPONENT)
            value = value * 10 + (*p - '0');
    d->exponent += negative ? -value : value;
    return p;
}

/* Appends the exponent, and zeros that end the text. */
static void end_decimal(struct decimal *d)
{
    long left = d->exponent < 0 ? -d->exponent : d->exponent;
    char digits[20];
    size_t n = 0;
    d->text[d->size++] = 'e';
    if (d->exponent < 0)
        d->text[d->size++] = '-';
    do
        digits[n++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    while (n > 0)
        d->text[d->size++] = digits[--n];
    memset(d->text + d->size, 0, API_PADDING);
}

static bool read_infinity(const char *p, const char *end, bool negative, double *number)
{
    size_t size = (size_t)(end - p);
    if (!(size == 3 && strncasecmp(p, "inf", 3) == 0) &&
        !(size == 8 && strncasecmp(p, "infinity", 8) == 0))
        return false;
    *number = negative ? -(double)INFINITY : (double)INFINITY;
    return true;
}

/* Reads all that is no number of JSON: "+1", "007", ".5", "5.", "1,5". */
static bool read_loosely(const char *p, const char *end, char point, double *number)
{
    struct decimal d = {.size = 0};
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (negative)
        d.text[d.size++] = '-';
    if (read_infinity(p, end, negative, number))
        return true;
    p = read_digits(&d, p, end, point);
    if (p && p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(&d, p + 1, end);
    if (p != end)
        return false;
    end_decimal(&d);
    return api_number_read(d.text, KL_FLOAT64, number) != NULL;
}

/* Reads a short number of JSON's grammar, but for its point, which is a comma: most are. */
static bool read_with_comma(const char *p, const char *end, double *number)
{
    enum { SHORT = 32 };
    char text[SHORT + API_PADDING];
    size_t size = (size_t)(end - p);
    const char *comma = memchr(p, ',', size);
    if (!comma)
        return api_number_read(p, KL_FLOAT64, number) == end;
    if (size > SHORT)
        return false;
    memcpy(text, p, size);
    memset(text + size, 0, API_PADDING);
    text[comma - p] = '.';
    return api_number_read(text, KL_FLOAT64, number) == text + size;
}

bool api_field_number(const struct api_table *table, const struct api_cell *cell, double *number)
{
    const char *p = cell->text, *end = p + cell->size;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (p == end || (!is_digit(*p) && *p != '-' && !strchr("+-.,iI", *p)))
        return false;
    if (table->decimal_comma)
        return read_with_comma(p, end, number) || read_loosely(p, end, ',', number);
    return api_number_read(p, KL_FLOAT64, number) == end || read_loosely(p, end, '.', number);
}
