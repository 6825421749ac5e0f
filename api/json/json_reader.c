#include "api/json/json_reader.h"

#include "api/json/json_text.h"
#include "api/memory/buffer.h"
#include "api/text/number.h"

#include <stdint.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

struct check {
    const char *p, *end;
    const char *what; /* the error at p */
    int depth;
    bool is_large;
};

static bool wrong(struct check *c, const char *what)
{
    c->what = what;
    return false;
}

static void skip_space(struct check *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool skip(struct check *c, char character)
{
    if (c->p == c->end || *c->p != character)
        return false;
    c->p++;
    return true;
}

static bool check_string(struct check *c)
{
    const char *start = c->p;
    if (!skip(c, '"'))
        return wrong(c, "expected a string");
    while (c->p < c->end && *c->p != '"') {
        if (*c->p >= ' ' && *c->p < 0x7f && *c->p != '\\') {
            c->p++;
            continue;
        }
        size_t size = api_utf8_length((const unsigned char *)c->p);
        if (size == 0 || (unsigned char)*c->p < 0x20)
            return wrong(c, size ? "a control character in a string" : "not UTF-8");
        if (*c->p == '\\' && api_json_escape(c->p, &size) < 0)
            return wrong(c, "not an escape");
        c->p += size;
    }
    if (c->p >= c->end)
        return wrong(c, "a string does not end");
    if (c->p - start > API_JSON_TEXT && !c->is_large)
        return wrong(c, "a string is longer than 1024 bytes");
    c->p++;
    return true;
}

static bool check_value(struct check *c);

static bool is_repeated(const char *object, const char *key)
{
    char name[API_JSON_TEXT], other[API_JSON_TEXT];
    struct api_json_reader reader = api_json_read_object(object);
    const char *value;
    api_json_string(key, name);
    while (reader.next < key && api_json_next_member(&reader, other, &value))
        if (strcmp(name, other) == 0)
            return true;
    return false;
}

/* keys: the members of an object so far. */
struct keys {
    const char *object, *start[API_JSON_MEMBERS];
    size_t n;
    bool escaped; /* true if a key has an escape: then others may mean the same */
};

/* Adds a key of `size` bytes with its quotes, if there is room; true if it is there already. */
static bool add_key(const struct check *c, struct keys *keys, const char *key, size_t size)
{
    keys->escaped |= memchr(key, '\\', size) != NULL;
    if (keys->escaped && !c->is_large)
        return is_repeated(keys->object, key);
    for (size_t i = 0; i < keys->n; i++)
        if (memcmp(keys->start[i], key, size) == 0)
            return true;
    if (keys->n < API_JSON_MEMBERS)
        keys->start[keys->n++] = key;
    return false;
}

static bool check_member(struct check *c, struct keys *keys)
{
    const char *key = c->p;
    if (!check_string(c))
        return false;
    size_t size = (size_t)(c->p - key);
    skip_space(c);
    if (!skip(c, ':'))
        return wrong(c, "expected ':'");
    if (add_key(c, keys, key, size)) {
        c->p = key;
        return wrong(c, "a name stands twice in an object");
    }
    skip_space(c);
    return check_value(c);
}

/* Checks the list between brackets, of members if `keys` is set, else of values. */
static bool check_list(struct check *c, struct keys *keys, char closing)
{
    c->p++;
    skip_space(c);
    if (skip(c, closing))
        return true;
    for (size_t n = 1;; n++) {
        if (keys && n > API_JSON_MEMBERS && !c->is_large)
            return wrong(c, "an object has more than 64 members");
        if (!(keys ? check_member(c, keys) : check_value(c)))
            return false;
        skip_space(c);
        if (skip(c, closing))
            return true;
        if (!skip(c, ','))
            return wrong(c, keys ? "expected ',' or '}'" : "expected ',' or ']'");
        skip_space(c);
    }
}

static bool check_number(struct check *c)
{
    double value;
    const char *end = api_number_read(c->p, KL_FLOAT64, &value);
    if (!end || end > c->end)
        return wrong(c, "expected a value");
    c->p = end;
    return true;
}

static bool check_word(struct check *c)
{
    const char *word = *c->p == 't' ? "true" : *c->p == 'f' ? "false" : "null";
    size_t size = strlen(word);
    if ((size_t)(c->end - c->p) < size || memcmp(c->p, word, size) != 0)
        return check_number(c);
    c->p += size;
    return true;
}

static bool check_object(struct check *c)
{
    struct keys keys = {.object = c->p};
    return check_list(c, &keys, '}');
}

static bool check_value(struct check *c)
{
    if (c->p == c->end)
        return wrong(c, "expected a value, found the end");
    if (*c->p == '"')
        return check_string(c);
    if (*c->p != '{' && *c->p != '[')
        return check_word(c);
    if (++c->depth > MAX_DEPTH)
        return wrong(c, "nested too deep");
    bool good = *c->p == '{' ? check_object(c) : check_list(c, NULL, ']');
    c->depth--;
    return good;
}

bool api_json_check(const char *text, size_t size, bool is_large, const char **at,
                    const char **what)
{
    struct check c = {.p = text, .end = text + size, .is_large = is_large};
    skip_space(&c);
    bool good = check_value(&c);
    if (good) {
        skip_space(&c);
        good = c.p == c.end || wrong(&c, "expected the end");
    }
    *at = c.p;
    *what = c.what;
    return good;
}

static struct api_json_reader read_from(const char *value, char opening)
{
    return (struct api_json_reader){value && *value == opening ? api_json_skip_space(value + 1)
                                                               : ""};
}

struct api_json_reader api_json_read_object(const char *object) { return read_from(object, '{'); }

struct api_json_reader api_json_read_array(const char *array) { return read_from(array, '['); }

/* Next token after the end `p` of a string or a value; `p` is not NULL in checked text. */
static const char *next_token(const char *p) { return p ? api_json_skip_space(p) : ""; }

bool api_json_next_item(struct api_json_reader *reader, const char **value)
{
    if (*reader->next == ']' || *reader->next == '\0')
        return false;
    *value = reader->next;
    reader->next = next_token(api_json_skip_value(*value));
    if (*reader->next == ',')
        reader->next = api_json_skip_space(reader->next + 1);
    return true;
}

const char *api_json_scalar(const char *value)
{
    struct api_json_reader reader = api_json_read_array(value);
    const char *first = value, *other;
    return api_json_next_item(&reader, &first) && api_json_next_item(&reader, &other) ? value
                                                                                      : first;
}

/* Skips the next member, whose key ends at `key_end`; returns its value. */
static const char *skip_member(struct api_json_reader *reader, const char *key_end)
{
    const char *colon = next_token(key_end);
    const char *value = *colon ? next_token(colon + 1) : colon;
    reader->next = next_token(api_json_skip_value(value));
    if (*reader->next == ',')
        reader->next = api_json_skip_space(reader->next + 1);
    return value;
}

bool api_json_next_member(struct api_json_reader *reader, char name[API_JSON_TEXT],
                          const char **value)
{
    if (*reader->next != '"')
        return false;
    api_json_string(reader->next, name);
    *value = skip_member(reader, api_json_skip_string(reader->next));
    return true;
}

/* True if a string with escapes is well-formed, and means `text`. */
bool api_json_means_text(const char *string, const char *end, const char *text)
{
    char decoded[API_JSON_TEXT];
    struct check check = {.p = string, .end = end};
    return check_string(&check) && check.p == end && api_json_string(string, decoded) &&
           strcmp(decoded, text) == 0;
}

const char *api_json_members(const char *object, const char *const *names, const char **values,
                             size_t n)
{
    const char *other = NULL;
    struct api_json_reader reader = api_json_read_object(object);
    for (size_t i = 0; i < n; i++)
        values[i] = NULL;
    while (*reader.next == '"') {
        const char *key = reader.next, *key_end = api_json_skip_string(key);
        const char *value = skip_member(&reader, key_end);
        size_t i = 0;
        while (i < n && !api_json_is_text(key, key_end, names[i]))
            i++;
        if (i < n)
            values[i] = value;
        else if (!other)
            other = key;
    }
    return other;
}

const char *api_json_member(const char *object, const char *name)
{
    const char *value;
    api_json_members(object, &name, &value, 1);
    return value;
}

bool api_json_string(const char *value, char to[API_JSON_TEXT])
{
    size_t n = 0;
    *to = '\0';
    if (!value || *value != '"')
        return false;
    for (const char *p = value + 1; *p != '"';) {
        char text[4] = {*p};
        size_t size = 1, length = *p == '\\' ? api_utf8_write(text, api_json_escape(p, &size)) : 1;
        if (n + length >= API_JSON_TEXT) {
            *to = '\0';
            return false;
        }
        memcpy(to + n, text, length);
        n += length;
        p += size;
    }
    to[n] = '\0';
    return true;
}

bool api_json_characters(const char *value, char to[API_JSON_TEXT])
{
    if (api_json_string(value, to))
        return true;
    const char *end = api_json_skip_value(value);
    size_t size = end ? (size_t)(end - value) : strlen(value);
    while (size > 0 && strchr(" \t\r\n", value[size - 1]))
        size--;
    if (size >= API_JSON_TEXT)
        return false;
    memcpy(to, value, size);
    to[size] = '\0';
    return true;
}

bool api_json_size(const char *value, size_t *size)
{
    size_t n = 0;
    if (!value || *value < '0' || *value > '9')
        return false;
    for (; *value >= '0' && *value <= '9'; value++)
        if (__builtin_mul_overflow(n, (size_t)10, &n) ||
            __builtin_add_overflow(n, (size_t)(*value - '0'), &n) || n > INT64_MAX)
            return false;
    *size = n;
    return *value != '.' && *value != 'e' && *value != 'E';
}

bool api_json_sizes(const char *value, size_t *sizes, size_t max, size_t *n)
{
    const char *item;
    struct api_json_reader reader = api_json_read_array(value);
    if (!value || *value != '[')
        return false;
    for (*n = 0; api_json_next_item(&reader, &item); ++*n)
        if (*n == max || !api_json_size(item, &sizes[*n]))
            return false;
    return true;
}
