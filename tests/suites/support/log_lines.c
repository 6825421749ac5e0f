#include "tests/suites/support/log_lines.h"

#include <stdbool.h>
#include <string.h>

enum { TIME = sizeof "2026-11-21T01:02:03.004Z" - 1 };

static bool is_plain(char c) { return c > ' ' && c <= '~' && !strchr("\"=\\", c); }

/* Bytes of a value; 0 if it is none. */
static size_t value_size(const char *p)
{
    size_t n = 0;
    if (*p != '"') {
        while (p[n] && is_plain(p[n]))
            n++;
        return n;
    }
    for (n = 1; p[n] && p[n] != '"'; n += p[n] == '\\' ? 2 : 1)
        if (p[n] < ' ' || p[n] > '~' || (p[n] == '\\' && !p[n + 1]))
            return 0;
    return p[n] == '"' ? n + 1 : 0;
}

static bool add_field(json_t *fields, const char *key, size_t key_size, const char *value,
                      size_t size)
{
    char name[40];
    json_t *json =
        *value == '"' ? json_loadb(value, size, JSON_DECODE_ANY, NULL) : json_stringn(value, size);
    if (size == 0 || key_size >= sizeof name) {
        json_decref(json);
        return false;
    }
    memcpy(name, key, key_size);
    name[key_size] = '\0';
    bool good = json && !json_object_get(fields, name);
    return json_object_set_new(fields, name, json) == 0 && good;
}

/* Reads words up to the first field, then fields to the end. */
static bool read_rest(json_t *fields, const char *p)
{
    const char *message = p, *end = NULL;
    for (;; p++) {
        size_t n = 0;
        while (p[n] && is_plain(p[n]))
            n++;
        size_t size = p[n] == '=' ? value_size(p + n + 1) : 0;
        if (p[n] == '=' && strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_") < n)
            return false;
        if (p[n] == '=' ? !add_field(fields, p, n, p + n + 1, size) : n == 0 || end)
            return false;
        if (p[n] == '=' && !end)
            end = p > message ? p - 1 : p;
        p += p[n] == '=' ? n + 1 + size : n;
        if (*p == '\n' || !*p)
            break;
        if (*p != ' ')
            return false;
    }
    return json_object_set_new(fields, "message",
                               json_stringn(message, (size_t)((end ? end : p) - message))) == 0;
}

json_t *log_line_read(const char *line)
{
    static const char *const levels[] = {"error ", "warning ", "info ", "debug "};
    json_t *fields = json_object();
    if (strnlen(line, TIME + 1) <= TIME || line[TIME - 1] != 'Z' || line[TIME] != ' ' ||
        strspn(line, "0123456789-:.T") != TIME - 1) {
        json_decref(fields);
        return NULL;
    }
    json_object_set_new(fields, "time", json_stringn(line, TIME));
    for (size_t i = 0; i < 4; i++) {
        size_t size = strlen(levels[i]);
        const char *level = line + TIME + 1;
        if (strncmp(level, levels[i], size) == 0 &&
            json_object_set_new(fields, "level", json_stringn(level, size - 1)) == 0 &&
            read_rest(fields, level + size))
            return fields;
    }
    json_decref(fields);
    return NULL;
}
