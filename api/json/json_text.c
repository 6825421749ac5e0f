#include "api/json/json_text.h"

#include "api/text/percent.h"

#include <stdio.h>

static const char *skip_string(const char *p)
{
    for (p++; *p != '"'; p++) {
        if (*p == '\0')
            return NULL;
        if (*p == '\\' && *++p == '\0')
            return NULL;
    }
    return p + 1;
}

const char *api_json_skip_value(const char *p)
{
    /* Table lookup: strcspn has a start-up cost above the length of most values. */
    static const bool structure[256] = {['\0'] = true, ['"'] = true, ['['] = true, [']'] = true,
                                        ['{'] = true,  ['}'] = true, [','] = true};
    size_t depth = 0;
    for (;;) {
        while (!structure[(unsigned char)*p])
            p++;
        switch (*p) {
        case '"':
            p = skip_string(p);
            if (!p)
                return NULL;
            continue;
        case '[':
        case '{':
            depth++;
            break;
        case ',':
            if (depth == 0)
                return p;
            break;
        case '\0':
            return NULL;
        default:
            if (depth == 0)
                return p;
            depth--;
        }
        p++;
    }
}

/* Reads the four hexadecimal digits of \uXXXX; -1 if they are malformed. */
static long read_unit(const char *p)
{
    long unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = api_hex_digit(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Reads an escape, *size bytes from its backslash. Returns -1 for an invalid one, half of a
 * surrogate pair, or NUL. */
static long read_escape(const char *p, size_t *size)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    *size = 2;
    if (letter)
        return meanings[letter - letters];
    long unit = p[1] == 'u' ? read_unit(p + 2) : -1;
    *size = 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit > 0 ? unit : -1;
    long low = unit < 0xdc00 && p[6] == '\\' && p[7] == 'u' ? read_unit(p + 8) : -1;
    *size = 12;
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : -1;
}

size_t api_utf8_write(char *to, long c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(c | (0xf0 << (4 - n) & 0xff));
    return n;
}

const char *api_json_check_rest(const char *p, bool *has_escapes, const char **what)
{
    for (size_t size; *p != '"'; p += size) {
        const unsigned char c = (unsigned char)*p;
        size = 1;
        if (c >= 0x20 && c < 0x80 && c != '\\')
            continue;
        *has_escapes |= c == '\\';
        if (c == '\0')
            *what = "expected the end of a string";
        else if (c < 0x20)
            *what = "a control character in a string";
        else if (c == '\\' && read_escape(p, &size) < 0)
            *what = strncmp(p, "\\u0000", 6) == 0
                        ? "not an escape: a text may not hold the character \\u0000"
                        : "not an escape, or half of a surrogate pair";
        else if (c >= 0x80 && (size = api_utf8_length((const unsigned char *)p)) == 0)
            *what = "a string is not UTF-8";
        else
            continue;
        return p;
    }
    return p + 1;
}

size_t api_json_unescape(char *to, const char *p, const char *end)
{
    char *start = to;
    for (size_t size = 1; p < end; p += size) {
        size = 1;
        if (*p == '\\')
            to += api_utf8_write(to, read_escape(p, &size));
        else
            *to++ = *p;
    }
    return (size_t)(to - start);
}

bool api_json_malformed(const char *text, const char *at, const char *end, const char *what,
                        struct api_problem *problem)
{
    size_t line = 1, column = 1;
    char found[24] = "";
    for (const char *p = api_json_skip_mark(text); p < at; p++) {
        bool continuation = (*p & 0xc0) == 0x80;
        column += !continuation;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    const unsigned char c = (unsigned char)*at;
    bool tells = strncmp(what, "expected ", 9) == 0, is_end = end ? at >= end : c == '\0';
    if (tells && is_end)
        strcpy(found, ", found the end");
    else if (tells)
        snprintf(found, sizeof found,
                 c < 0x20 || c >= 0x7f ? ", found byte 0x%02x" : ", found '%c'", c);
    return api_fail(problem, "json_malformed", "line %zu, column %zu: %s%s", line, column, what,
                    found);
}
