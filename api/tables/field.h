/* Texts of tables as numbers: fields of CSV, and strings that stand for what JSON lacks. */
#pragma once

#include "api/tables/columns.h"
#include "api/text/zone.h"

/* api_style: what separators mean in the numbers of a column.
 *
 *     API_PLAIN   1.5          a decimal point, and no groups
 *     API_POINT   1,234.5      a decimal point; commas, blanks (also U+00A0, U+2009, U+202F) or apostrophes group
 *     API_COMMA   1.234,5      a decimal comma; points, blanks or apostrophes group
 *     API_EITHER  1.5 and 1,5  of a column with both, each decimal: no groups
 *     API_DATES, API_DATES_MONTH_FIRST     dates and times, in seconds since 1970: see api_date_read
 *
 * Groups have three digits each, but the first, which has one to three and does not begin with 0, and one separator. */
enum api_style {
    API_PLAIN,
    API_POINT,
    API_COMMA,
    API_EITHER,
    API_DATES,
    API_DATES_MONTH_FIRST,
    API_STYLES
};

/* Names of styles that references keep; NULL of others. */
extern const char *const api_style_names[API_STYLES];

/* Parses a field of CSV as a number of a style, rounded once; also "+1", "007", ".5", "5.", "1E+05"; inf and infinity in any
 * case, with signs; not NaN, not hexadecimal. Blanks around it are ignored. False if the field is no such number. A field
 * with a comma is quoted, or the delimiter is another character.
 *
 * A copy of a text must be followed by API_PADDING readable bytes, the first of them a NUL. */
bool api_field_number(const struct api_cell *cell, enum api_style style, double *number);

/* api_style_tally: how many fields of a column are numbers by one style alone, and of these have groups; are numbers by both and
 * have a comma, or a point; and have groups by each style. Empty if zeroed. */
struct api_style_tally {
    size_t points, commas, point_groups, comma_groups, both, both_points, grouped[API_STYLES];
};

/* Looks at a field; true if it is a number by API_POINT or by API_COMMA. */
bool api_style_add(struct api_style_tally *tally, const struct api_cell *cell);

/* The style of a column: what its own fields show, if they show both the more frequent one if it has groups, else API_EITHER; else the
 * style before, of a reference, unless that is API_PLAIN; else a comma groups. But in a file whose delimiter is a semicolon it is
 * decimal then, beside points as API_EITHER. */
enum api_style api_style_decide(const struct api_style_tally *tally, enum api_style before,
                                char delimiter);

/* True for a whole number that begins with a zero, blanks aside: "00501", a code rather than a number. */
bool api_text_is_code(const char *text, size_t size);

/* True for a number as people and spreadsheets write it, which api_field_number may not take: "1,234.50", "1.234,5",
 * "$12", "(12.50)", "12.5 %", "12 EUR". Thousands have three digits each. */
bool api_text_is_formatted_number(const char *text, size_t size);

/* True for the texts that stand for no value: "" and what pandas takes for it, NaN, NA, N/A, #N/A, NULL, None and so on; and
 * \N, which databases write. api_cell_is_mark: for fields that stand for none where all others are numbers: . - ? */
bool api_text_is_missing(const char *text, size_t size);
bool api_cell_is_mark(const struct api_cell *cell);

/* Reads the strings that stand for the numbers that JSON lacks: "Infinity", "-Infinity", and R's "Inf",
 * "-Inf". False for others; "NaN" is a missing value. */
bool api_text_infinity(const char *text, size_t size, double *number);

/* True for a string of JSON or a field of CSV; for a value that is not there, or a text that says so. */
bool api_cell_is_text(const struct api_cell *cell);
bool api_cell_is_missing(const struct api_cell *cell);

/* Reads a value as a number, a boolean as 0 or 1, a string if it stands for an infinite number, a field by a style. By a style
 * of dates any value is one; of a zone, which may be NULL, for UTC, if it names none. False if it is none. */
bool api_cell_number(const struct api_cell *cell, enum api_style style, double *number);
bool api_cell_date(const struct api_cell *cell, enum api_style style, const struct api_zone *zone,
                   double *number);

/* True for a boolean, and for a text that is `true` or `false` in any case. */
bool api_cell_is_boolean(const struct api_cell *cell, bool *value);
