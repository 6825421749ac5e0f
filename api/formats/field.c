#include "api/formats/field.h"

#include "api/text/number.h"

#include <math.h>
#include <string.h>

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

/* Reads a copy, with a point for a decimal comma, as a number of JSON or as what is none: "+1", "007", ".5",
 * "5.", "1,5", "inf"; but not the hexadecimal numbers and NaN that strtod knows, too. */
static bool read_copy(const struct api_table *table, const char *p, size_t size, double *number)
{
    char text[64], *end;
    struct api_buffer copy = {.budget = table->budget};
    api_buffer_borrow(&copy, text, sizeof text);
    api_append(&copy, p, size);
    api_append(&copy, (const char[API_PADDING]){0}, API_PADDING);
    char *comma = table->decimal_comma && !copy.failed ? memchr(copy.data, ',', size) : NULL;
    if (comma)
        *comma = '.';
    bool good = !copy.failed && !strpbrk(copy.data, "xXaA");
    if (good && api_number_read(copy.data, KL_FLOAT64, number) != copy.data + size) {
        *number = api_strtod(copy.data, &end);
        good = end == copy.data + size;
    }
    api_buffer_free(&copy);
    return good;
}

bool api_field_number(const struct api_table *table, const struct api_cell *cell, double *number)
{
    const char *p = cell->text, *end = p + cell->size;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (p == end || ((unsigned)(*p - '0') >= 10 && !strchr("+-.,iI", *p)))
        return false;
    return api_number_read(p, KL_FLOAT64, number) == end ||
           read_copy(table, p, (size_t)(end - p), number);
}
