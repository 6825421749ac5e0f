#include "api/json/json_cursor.h"

#include "api/json/json_text.h"
#include "api/text/number.h"

#include <stdint.h>
#include <string.h>

void api_json_begin(struct api_json_cursor *c, const char *text, size_t size, bool is_large,
                    struct api_problem *problem)
{
    const char *start = api_json_start(text);
    *c = (struct api_json_cursor){.text = text,
                                  .end = text + size,
                                  .p = start < text + size ? start : text + size,
                                  .problem = problem,
                                  .is_large = is_large};
}

bool api_json_wrong(struct api_json_cursor *c, const char *what)
{
    if (c->is_header)
        return api_fail(c->problem, "safetensors_malformed", "the header is not JSON: byte %zu: %s",
                        (size_t)(c->p - c->text), what);
    return api_json_malformed(c->text, c->p, c->end, what, c->problem);
}

bool api_json_repeated(struct api_json_cursor *c)
{
    c->p = c->key;
    return api_json_wrong(c, "a name stands twice in an object");
}

static void skip_space(struct api_json_cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

/* ---- Strings */

static void copy(char *to, const char *text, size_t size, bool has_escapes)
{
    enum { ESCAPE = 12 }; /* the longest; one that the cut divides is copied whole */
    if (size >= API_JSON_TEXT)
        size = API_JSON_TEXT - ESCAPE;
    if (has_escapes)
        size = api_json_unescape(to, text, text + size);
    else
        memcpy(to, text, size);
    to[size] = '\0';
}

/* Reads the string that must be there; copies it unless `to` is NULL. */
static bool read_string(struct api_json_cursor *c, char *to)
{
    const char *start = c->p, *what = NULL;
    bool has_escapes = false;
    if (api_json_peek(c) != '"')
        return api_json_wrong(c, "expected a string");
    c->p = api_json_check_string(start, &has_escapes, &what);
    if (c->p > c->end || (what && c->p == c->end)) {
        c->p = c->end;
        what = "expected the end of a string";
    } else if (what && *c->p == '\0') {
        what = "a control character in a string";
    }
    if (what)
        return api_json_wrong(c, what);
    size_t size = (size_t)(c->p - start) - 2;
    c->is_cut = size >= API_JSON_TEXT;
    if (c->is_cut && !c->is_large)
        return api_json_wrong(c, "a string is longer than 1024 bytes");
    if (to)
        copy(to, start + 1, size, has_escapes);
    return true;
}

bool api_json_string(struct api_json_cursor *c, char to[API_JSON_TEXT])
{
    *to = '\0';
    if (api_json_peek(c) == '"')
        return read_string(c, to);
    api_json_skip(c);
    return false;
}

/* ---- Lists */

bool api_json_open(struct api_json_cursor *c, char opening)
{
    if (api_json_peek(c) != opening)
        return api_json_wrong(c, opening == '{' ? "expected '{'" : "expected '['");
    if (c->depth == API_JSON_DEPTH)
        return api_json_wrong(c, "nested too deep");
    c->reached[++c->depth] = 0;
    c->p++;
    return true;
}

bool api_json_open_if(struct api_json_cursor *c, char opening)
{
    if (api_json_peek(c) == opening)
        return api_json_open(c, opening);
    api_json_skip(c);
    return false;
}

/* Moves to the next member or item; false at the end of the list, or with a problem. */
static bool next(struct api_json_cursor *c, char closing)
{
    skip_space(c);
    if (api_json_peek(c) == closing) {
        c->p++;
        c->depth--;
        return false;
    }
    if (c->reached[c->depth]++ == 0)
        return true;
    if (api_json_peek(c) != ',')
        return api_json_wrong(c, closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    c->p++;
    skip_space(c);
    return true;
}

bool api_json_item(struct api_json_cursor *c) { return next(c, ']'); }

bool api_json_member(struct api_json_cursor *c, char name[API_JSON_TEXT])
{
    if (!next(c, '}'))
        return false;
    if (c->reached[c->depth] > API_JSON_MEMBERS && !c->is_large)
        return api_json_wrong(c, "an object has more than 64 members");
    c->key = c->p;
    if (!read_string(c, name))
        return false;
    skip_space(c);
    if (api_json_peek(c) != ':')
        return api_json_wrong(c, "expected ':'");
    c->p++;
    skip_space(c);
    return true;
}

bool api_json_field(struct api_json_cursor *c, const char *const *names, unsigned *given,
                    char name[API_JSON_TEXT], size_t *i)
{
    if ((!*given && !api_json_open_if(c, '{')) || !api_json_member(c, name))
        return false;
    for (*i = 0; names[*i] && strcmp(name, names[*i]) != 0;)
        ++*i;
    if (names[*i] && *given >> *i & 1)
        return api_json_repeated(c);
    *given |= 1u << *i;
    return true;
}

/* ---- Values */

static bool skip_scalar(struct api_json_cursor *c)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *end = NULL;
    for (size_t i = 0; !end && i < sizeof words / sizeof *words; i++)
        if (strncmp(c->p, words[i], strlen(words[i])) == 0)
            end = c->p + strlen(words[i]);
    if (!end)
        end = api_number_end(c->p);
    if (!end || end > c->end)
        return api_json_wrong(c, "expected a value");
    c->p = end;
    return true;
}

bool api_json_skip(struct api_json_cursor *c)
{
    const char first = api_json_peek(c);
    if (first == '"')
        return read_string(c, NULL);
    if (first != '{' && first != '[')
        return skip_scalar(c);
    if (!api_json_open(c, first))
        return false;
    while (first == '{' ? api_json_member(c, NULL) : api_json_item(c))
        if (!api_json_skip(c))
            return false;
    return !c->problem->code;
}

bool api_json_size(struct api_json_cursor *c, size_t *size)
{
    const char *p = c->p;
    size_t n = 0;
    if (!api_json_skip(c))
        return false;
    for (; p < c->p; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, (size_t)10, &n) ||
            __builtin_add_overflow(n, (size_t)(*p - '0'), &n) || n > INT64_MAX)
            return false;
    *size = n;
    return true;
}

bool api_json_sizes(struct api_json_cursor *c, size_t *sizes, size_t max, size_t *n)
{
    *n = 0;
    if (!api_json_open_if(c, '['))
        return false;
    for (; api_json_item(c); ++*n)
        if (*n == max || !api_json_size(c, &sizes[*n]))
            return false;
    return !c->problem->code;
}

bool api_json_is_boxed(const struct api_json_cursor *c)
{
    if (api_json_peek(c) != '[')
        return false;
    struct api_problem problem = {0};
    struct api_json_cursor ahead = *c;
    ahead.problem = &problem;
    return api_json_open(&ahead, '[') && api_json_item(&ahead) && api_json_peek(&ahead) != '[' &&
           api_json_peek(&ahead) != '{' && api_json_skip(&ahead) && !api_json_item(&ahead) &&
           !problem.code;
}

bool api_json_characters(struct api_json_cursor *c, char to[API_JSON_TEXT])
{
    bool is_boxed = api_json_is_boxed(c);
    if (is_boxed) {
        api_json_open(c, '[');
        api_json_item(c);
    }
    const char *start = c->p;
    bool is_string = api_json_peek(c) == '"';
    bool good = is_string ? read_string(c, to) : api_json_skip(c);
    size_t size = (size_t)(c->p - start);
    if (good && !is_string && (good = size < API_JSON_TEXT))
        copy(to, start, size, false);
    if (is_boxed)
        api_json_item(c);
    return good;
}

bool api_json_end(struct api_json_cursor *c)
{
    skip_space(c);
    return c->p == c->end || api_json_wrong(c, "expected the end");
}
