/* Encodings of tables that are text: what is not UTF-8 becomes it. The C library's iconv is not used: it loads a module for
 * each encoding, which the sandbox of the server forbids and its image does not have. */
#pragma once

#include "api/tables/columns.h"

/* Reads the charset of a Content-Type, which may be NULL, as one of API_ENCODING_NAMES; UTF-8 if it has none. Fails with
 * media_type_unsupported. windows-1252 is meant by iso-8859-1, too, as browsers take it. */
enum api_encoding {
    API_UTF8,
    API_WINDOWS_1252,
    API_ISO_8859_15,
    API_UTF16, /* by its mark, else little-endian */
    API_UTF16LE,
    API_UTF16BE
};
#define API_ENCODING_NAMES                                                                         \
    "utf-8, windows-1252, iso-8859-1, iso-8859-15, utf-16, utf-16le, utf-16be"
bool api_encoding_of(const char *content_type, enum api_encoding *encoding,
                     struct api_problem *problem);

/* Converts the body of a table into table->text, which becomes the body, unless it is UTF-8; a mark of UTF-16 at its
 * begin tells that, too. Fails with csv_malformed for what is not in the encoding, and with body_too_large beyond
 * table->max_inflated. */
bool api_encoding_convert(struct api_table *table, enum api_encoding encoding,
                          struct api_problem *problem);

/* Fails with csv_malformed at a byte that is not UTF-8, and tells what the text may be. `line` is the byte's. */
bool api_encoding_fail(const struct api_table *table, const char *at, size_t line,
                       struct api_problem *problem);
