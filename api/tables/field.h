/* Texts of tables as numbers: fields of CSV, and strings that stand for what JSON lacks. */
#pragma once

#include "api/tables/columns.h"

/* Parses a field of CSV as a number, rounded once: "1.5", with `decimal_comma` also "1,5"; "+1", "007", ".5", "5.",
 * "1E+05"; inf and infinity in any case, with signs; not NaN, not hexadecimal. Blanks around it are ignored. False if
 * the field is no such number. A field with a comma is quoted, or the delimiter is another character.
 *
 * A copy of a text must be followed by API_PADDING readable bytes, the first of them a NUL. */
bool api_field_number(const struct api_cell *cell, bool decimal_comma, double *number);

/* True for a whole number that begins with a zero, blanks aside: "00501", a code rather than a number. */
bool api_text_is_code(const char *text, size_t size);

/* True for a number as people and spreadsheets write it, which api_field_number may not take: "1,234.50", "1.234,5",
 * "$12", "(12.50)", "12.5 %", "12 EUR". Thousands have three digits each. */
bool api_text_is_formatted_number(const char *text, size_t size);

/* True for the texts that stand for no value: "", NaN, NA, null, None. */
bool api_text_is_missing(const char *text, size_t size);

/* Reads the strings that stand for the numbers that JSON lacks: "Infinity", "-Infinity", and R's "Inf",
 * "-Inf". False for others; "NaN" is a missing value. */
bool api_text_infinity(const char *text, size_t size, double *number);

/* True for a string of JSON or a field of CSV; for a value that is not there, or a text that says so. */
bool api_cell_is_text(const struct api_cell *cell);
bool api_cell_is_missing(const struct api_cell *cell);

/* Reads a value as a number, a boolean as 0 or 1, a string if it stands for an infinite number, a field also
 * with a decimal comma if that is allowed. False if it is none. */
bool api_cell_number(const struct api_cell *cell, bool decimal_comma, double *number);

/* True for a boolean, and for a text that is `true` or `false` in any case. */
bool api_cell_is_boolean(const struct api_cell *cell, bool *value);
