#include "api/json/format.h"

#include "api/text/date.h"
#include "api/text/decimal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t api_label_of_value(char *to, enum kl_dtype dtype, double number)
{
    if (number >= 0 && number < 1e15 && number == (double)(uint64_t)number)
        return api_unsigned_write(to, (uint64_t)number);
    size_t size = api_decimal_write(to, dtype, number);
    if (size > 2 && memcmp(to + size - 2, ".0", 2) == 0)
        size -= 2;
    if (to[0] == '"') {
        size -= 2;
        memmove(to, to + 1, size);
    }
    return size;
}

size_t api_label_of_number(char *to, double number)
{
    return api_label_of_value(to, KL_FLOAT64, number);
}

void api_write_number(struct api_buffer *out, double number)
{
    char text[API_DECIMAL_MAX];
    size_t size = isfinite(number) ? api_label_of_number(text, number) : 0;
    if (size > 0)
        api_append(out, text, size);
    else
        api_append(out, "null", 4);
}

void api_write_member(struct api_buffer *out, const char *name, double number)
{
    api_append(out, ",\"", 2);
    api_append_text(out, name);
    api_append(out, "\":", 2);
    api_write_number(out, number);
}

void api_write_numbers(struct api_buffer *out, const double *numbers, size_t n)
{
    api_append(out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        api_append(out, ",", i > 0);
        api_write_number(out, numbers[i]);
    }
    api_append(out, "]", 1);
}

void api_write_names(struct api_buffer *out, const char *group, const char *name)
{
    api_append_text(out, "{\"group\":");
    api_append_json_string(out, group);
    if (name) {
        api_append_text(out, ",\"name\":");
        api_append_json_string(out, name);
    }
}

/* Writes digits, and the character after them; printf would take ten times as long. */
static char *put_digits(char *to, int value, int n, char after)
{
    for (int i = n; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    to[n] = after;
    return to + n + 1;
}

void api_write_bare_time(struct api_buffer *out, int64_t time)
{
    char text[API_TIME_TEXT], *to = text;
    int64_t micros = (time % API_SECOND_US + API_SECOND_US) % API_SECOND_US;
    time_t seconds = (time_t)((time - micros) / API_SECOND_US);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    to = put_digits(to, parts.tm_year + 1900, 4, '-');
    to = put_digits(to, parts.tm_mon + 1, 2, '-');
    to = put_digits(to, parts.tm_mday, 2, 'T');
    to = put_digits(to, parts.tm_hour, 2, ':');
    to = put_digits(to, parts.tm_min, 2, ':');
    to = put_digits(to, parts.tm_sec, 2, micros ? '.' : 'Z');
    if (micros)
        to = put_digits(to, (int)micros, 6, 'Z');
    api_append(out, text, (size_t)(to - text));
}

static void write_time(struct api_buffer *out, int64_t time)
{
    if (time == API_NO_TIME) {
        api_append(out, "null", 4);
        return;
    }
    api_append(out, "\"", 1);
    api_write_bare_time(out, time);
    api_append(out, "\"", 1);
}

const char *api_time_text(int64_t time, char to[API_TIME_TEXT])
{
    struct api_buffer text = {0};
    api_buffer_borrow(&text, to, API_TIME_TEXT);
    api_write_bare_time(&text, time);
    api_append(&text, "", 1);
    return to;
}

/* ---- Templates */

static void write_whole(struct api_buffer *out, int64_t number)
{
    api_append(out, "-", number < 0);
    api_append_unsigned(out, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

/* Appends the value of the conversion that begins at `p`; gives what follows it. */
static const char *write_value(struct api_buffer *out, const char *p, va_list *values)
{
    const char *text;
    switch (*p) {
    case 's':
        text = va_arg(*values, const char *);
        if (text)
            api_append_json_string(out, text);
        else
            api_append(out, "null", 4);
        return p + 1;
    case 'g':
        api_write_number(out, va_arg(*values, double));
        return p + 1;
    case 'd':
        api_append_text(out, va_arg(*values, int) ? "true" : "false");
        return p + 1;
    case 'j':
        write_time(out, va_arg(*values, intmax_t));
        return p + 2;
    case 'l':
        write_whole(out, va_arg(*values, long));
        return p + 2;
    default:
        api_append_unsigned(out, va_arg(*values, size_t));
        return p + 2;
    }
}

void api_write_json(struct api_buffer *out, const char *template, ...)
{
    va_list values;
    va_start(values, template);
    for (const char *p = template; *p;) {
        size_t size = (size_t)(strchrnul(p, '%') - p);
        if (!api_buffer_room(out, size))
            break;
        for (size_t i = 0; i < size; i++)
            out->data[out->size + i] = (char)(p[i] == '\'' ? '"' : p[i]);
        out->size += size;
        p = p[size] ? write_value(out, p + size + 1, &values) : p + size;
    }
    va_end(values);
}

/* ---- Reading */

/* FIRST, LAST: seconds at the begin of the year 1 and at the end of 9999. */
static const double first = -62135596800.0, last = 253402300799.0;

bool api_time_from_seconds(double seconds, int64_t *time)
{
    for (int i = 0; i < 3 && seconds > last; i++)
        seconds /= 1000;
    if (!(seconds >= first && seconds <= last))
        return false;
    *time = (int64_t)llround(seconds * 1e6);
    return true;
}

/* True if a text begins as a pattern does, in which 0 is any digit, and T also t and a blank. */
static bool is_like(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++)
        if (*pattern == '0'   ? *text < '0' || *text > '9'
            : *pattern == 'T' ? !*text || !strchr("Tt ", *text)
                              : *text != *pattern)
            return false;
    return true;
}

/* Reads a time of RFC 3339, or a date, which is its midnight in UTC. *lacks_zone: it is a time without a zone. */
static bool parse_time(const char *text, int64_t *time, bool *lacks_zone)
{
    char copy[60], *end, *blank;
    struct api_date date;
    double seconds = strtod(text, &end);
    *lacks_zone = false;
    if (end > text && !*end && strspn(text, "0123456789+-.eE") == strlen(text))
        return api_time_from_seconds(seconds, time);
    size_t size = strlen(text);
    bool is_date = size == 10;
    if (size >= sizeof copy || !is_like(text, "0000-00-00"))
        return false;
    if (!is_date && (!is_like(text + 10, "T00:00:00") || strncmp(text + 11, "24", 2) == 0 ||
                     text[19 + strspn(text + 19, "0123456789.Zz+-: ")]))
        return false;
    memcpy(copy, text, size + 1);
    if (!is_date && (blank = strchr(copy + 11, ' '))) /* a query turns + into a blank */
        *blank = '+';
    if (!api_date_read(copy, size, API_DAY_FIRST, &date))
        return false;
    *lacks_zone = !is_date && !date.has_zone;
    *time = date.us;
    return !*lacks_zone && date.us >= (int64_t)first * API_SECOND_US &&
           date.us < ((int64_t)last + 1) * API_SECOND_US;
}

bool api_read_time(const json_t *value, enum api_location where, const char *name, int64_t *time,
                   struct api_problem *problem)
{
    char pointer[40];
    const char *text = json_string_value(value);
    bool lacks_zone = false;
    if (text ? parse_time(text, time, &lacks_zone)
             : json_is_number(value) && api_time_from_seconds(json_number_value(value), time))
        return true;
    snprintf(pointer, sizeof pointer, where == API_QUERY ? "%s" : "#/%s", name);
    return lacks_zone ? api_fail_at(problem, where, pointer, "timestamp_invalid",
                                    "%s must have a zone: in UTC it is %sZ", name, text)
                      : api_fail_at(problem, where, pointer, "timestamp_invalid",
                                    "%s must be " API_TIME_FORMS, name);
}
