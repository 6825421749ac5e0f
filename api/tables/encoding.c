#include "api/tables/encoding.h"

#include "api/files/form.h"
#include "api/json/json_text.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

static const struct name {
    const char *name;
    enum api_encoding encoding;
} names[] = {{"utf-8", API_UTF8},
             {"utf8", API_UTF8},
             {"us-ascii", API_UTF8},
             {"ascii", API_UTF8},
             {"windows-1252", API_WINDOWS_1252},
             {"cp1252", API_WINDOWS_1252},
             {"iso-8859-1", API_WINDOWS_1252},
             {"iso8859-1", API_WINDOWS_1252},
             {"iso_8859-1", API_WINDOWS_1252},
             {"latin1", API_WINDOWS_1252},
             {"latin-1", API_WINDOWS_1252},
             {"iso-8859-15", API_ISO_8859_15},
             {"iso8859-15", API_ISO_8859_15},
             {"latin-9", API_ISO_8859_15},
             {"latin9", API_ISO_8859_15},
             {"utf-16", API_UTF16},
             {"utf16", API_UTF16},
             {"utf-16le", API_UTF16LE},
             {"utf-16be", API_UTF16BE}};

bool api_encoding_of(const char *content_type, enum api_encoding *encoding,
                     struct api_problem *problem)
{
    char charset[40];
    *encoding = API_UTF8;
    if (!content_type || !api_form_parameter(content_type, "charset", charset, sizeof charset))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i].name, charset) == 0) {
            *encoding = names[i].encoding;
            return true;
        }
    return api_fail(problem, "media_type_unsupported",
                    "the charset '%s' is not supported for tables; use one of: " API_ENCODING_NAMES,
                    charset);
}

/* ---- Characters */

/* Characters of windows-1252 from 0x80 to 0x9f; 0: the same as in Unicode. */
static const uint16_t of_windows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* Characters of ISO 8859-15 that differ from Unicode. */
static const struct {
    unsigned char byte;
    uint16_t character;
} of_latin_9[] = {{0xa4, 0x20ac}, {0xa6, 0x0160}, {0xa8, 0x0161}, {0xb4, 0x017d},
                  {0xb8, 0x017e}, {0xbc, 0x0152}, {0xbd, 0x0153}, {0xbe, 0x0178}};

static uint32_t character_of(enum api_encoding encoding, unsigned char byte)
{
    if (encoding == API_WINDOWS_1252 && byte >= 0x80 && byte < 0xa0 && of_windows[byte - 0x80])
        return of_windows[byte - 0x80];
    for (size_t i = 0; encoding == API_ISO_8859_15 && i < sizeof of_latin_9 / sizeof *of_latin_9;
         i++)
        if (of_latin_9[i].byte == byte)
            return of_latin_9[i].character;
    return byte;
}

/* MAX_UNITS: bytes that a character of UTF-16 takes. */
enum { MAX_UNITS = 4 };

static uint32_t unit(const unsigned char *p, enum api_encoding encoding)
{
    return encoding == API_UTF16BE ? (uint32_t)(p[0] << 8 | p[1]) : (uint32_t)(p[1] << 8 | p[0]);
}

/* Reads the character at `p`; returns the bytes that it takes, or 0 if it is none. */
static size_t read_character(enum api_encoding encoding, const unsigned char *p, size_t left,
                             uint32_t *character)
{
    if (encoding < API_UTF16) {
        *character = character_of(encoding, *p);
        return 1;
    }
    if (left < 2)
        return 0;
    *character = unit(p, encoding);
    if (*character < 0xd800 || *character > 0xdfff)
        return 2;
    uint32_t low = *character < 0xdc00 && left >= MAX_UNITS ? unit(p + 2, encoding) : 0;
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    *character = 0x10000 + ((*character - 0xd800) << 10 | (low - 0xdc00));
    return MAX_UNITS;
}

/* ---- Bodies */

/* Converts a text to `to`, or only counts the bytes of UTF-8 if that is NULL. */
static bool convert(enum api_encoding encoding, const struct api_table *table, char *to, size_t *n,
                    struct api_problem *problem)
{
    const unsigned char *p = (const unsigned char *)table->body, *start = p,
                        *end = start + table->size;
    char bytes[4] = {0};
    uint32_t character;
    for (*n = 0; p < end;) {
        size_t size = read_character(encoding, p, (size_t)(end - p), &character);
        if (size == 0)
            return api_fail(problem, "csv_malformed", "byte %zu is not UTF-16",
                            (size_t)(p - start));
        p += size;
        *n += api_utf8_write(to ? to + *n : bytes, (long)character);
    }
    return true;
}

/* The encoding by the mark at the begin of a text. */
static enum api_encoding by_mark(const struct api_table *table, enum api_encoding encoding)
{
    if (table->size >= 2 && memcmp(table->body, "\xff\xfe", 2) == 0)
        return API_UTF16LE;
    if (table->size >= 2 && memcmp(table->body, "\xfe\xff", 2) == 0)
        return API_UTF16BE;
    return encoding;
}

bool api_encoding_convert(struct api_table *table, enum api_encoding encoding,
                          struct api_problem *problem)
{
    size_t size;
    encoding = encoding == API_UTF8 || encoding >= API_UTF16 ? by_mark(table, encoding) : encoding;
    if (encoding == API_UTF8)
        return true;
    if (!convert(encoding, table, NULL, &size, problem))
        return false;
    if (size > table->max_inflated)
        return api_fail(problem, "body_too_large",
                        "the body has more than %zu bytes as UTF-8, the most this server accepts",
                        table->max_inflated);
    if (!api_buffer_reserve(&table->text, size + API_PADDING))
        return api_fail_oom(problem);
    convert(encoding, table, table->text.data, &size, problem);
    memset(table->text.data + size, 0, API_PADDING);
    table->body = table->text.data;
    table->size = size;
    return true;
}

bool api_encoding_fail(const struct api_table *table, const char *at, size_t line,
                       struct api_problem *problem)
{
    unsigned char byte = (unsigned char)*at;
    size_t offset = (size_t)(at - table->body);
    if (byte == 0)
        return api_fail(
            problem, "csv_malformed",
            "line %zu: there is a NUL at byte %zu, as in images and archives; a table as text is "
            "UTF-8, or UTF-16 with its mark or charset=utf-16 in its Content-Type",
            line, offset);
    return api_fail(problem, "csv_malformed",
                    "line %zu: byte %zu (0x%02X) is not UTF-8: save the file as UTF-8, or name its "
                    "encoding, as in Content-Type: text/csv; charset=windows-1252; these are "
                    "known: " API_ENCODING_NAMES,
                    line, offset, byte);
}
