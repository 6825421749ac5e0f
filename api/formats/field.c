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

bool api_text_is_boolean(const char *text, size_t size, bool *value)
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

bool api_field_number(const struct api_cell *cell, bool decimal_comma, double *number)
{
    const char *p = cell->text, *end = p + cell->size;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (p == end || ((unsigned)(*p - '0') >= 10 && !strchr("+-.,iI", *p)))
        return false;
    return api_number_read(p, KL_FLOAT64, number) == end ||
           read_loosely(p, (size_t)(end - p), decimal_comma, number);
}
