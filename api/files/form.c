#include "api/files/form.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool api_form_malformed(const struct api_form *form, const char *what, struct api_problem *problem)
{
    return api_fail(problem, "multipart_malformed", "byte %zu of the body: %s",
                    (size_t)(form->p - form->body), what);
}

/* Reads a parameter's value, a token or a quoted string, into `to`; returns the position after
 * it. Writes "" if the value is too long, unterminated, or holds a NUL. */
static const char *read_value(const char *p, const char *end, char *to, size_t size)
{
    size_t n = 0;
    bool quoted = p < end && *p == '"';
    for (p += quoted; p < end && (!*p || !strchr(quoted ? "\"" : "; \t", *p)); p++) {
        if (quoted && *p == '\\' && p + 1 < end)
            p++;
        if (n < size)
            to[n++] = *p;
    }
    bool whole = n < size && (!quoted || p < end) && !memchr(to, '\0', n);
    to[whole ? n : 0] = '\0';
    return p;
}

/* Finds the value of a parameter such as `; name="input"` in a header value that ends at `end`. */
static bool find_parameter(const char *value, const char *end, const char *name, char *to,
                           size_t size)
{
    const char *p = value;
    while ((p = memchr(p, ';', (size_t)(end - p)))) {
        do
            p++;
        while (p < end && (*p == ' ' || *p == '\t'));
        const char *start = p;
        while (p < end && *p != '=' && *p != ';')
            p++;
        if (p == end || *p == ';')
            continue;
        bool found =
            (size_t)(p - start) == strlen(name) && strncasecmp(start, name, strlen(name)) == 0;
        p = read_value(p + 1, end, to, size);
        if (found)
            return *to != '\0';
    }
    return false;
}

bool api_form_parameter(const char *value, const char *name, char *to, size_t size)
{
    return find_parameter(value, value + strlen(value), name, to, size);
}

/* True if a Content-Transfer-Encoding does not change the content. */
static bool sends_as_it_is(const char *value, const char *end)
{
    static const char *const codings[] = {"binary", "8bit", "7bit"};
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if ((size_t)(end - value) == strlen(codings[i]) &&
            strncasecmp(value, codings[i], strlen(codings[i])) == 0)
            return true;
    return false;
}

/* The value of a header line that has this name, which ends with a colon; NULL if it has another. */
static const char *value_of(const char *line, const char *end, const char *name)
{
    size_t size = strlen(name);
    return (size_t)(end - line) > size && strncasecmp(line, name, size) == 0 ? line + size : NULL;
}

/* Reads one line of a part's header. */
static bool read_line(const struct api_form *form, const char *line, const char *end,
                      struct api_form_part *part, struct api_problem *problem)
{
    const char *disposition = value_of(line, end, "Content-Disposition:"),
               *encoding = value_of(line, end, "Content-Transfer-Encoding:"),
               *type = value_of(line, end, "Content-Type:");
    if (disposition && !find_parameter(disposition, end, "name", part->name, API_MAX_PART))
        return api_form_malformed(
            form, "a part's Content-Disposition has no name of 1 to 99 characters", problem);
    if (encoding && !sends_as_it_is(encoding, end))
        return api_form_malformed(form, "parts must not have a Content-Transfer-Encoding", problem);
    if (type && end - type < API_MAX_PART)
        snprintf(part->content_type, API_MAX_PART, "%.*s", (int)(end - type), type);
    return true;
}

/* Reads the header lines of a part; advances past them. */
static bool read_header(struct api_form *form, struct api_form_part *part,
                        struct api_problem *problem)
{
    *part = (struct api_form_part){.name = ""};
    for (;;) {
        const char *line = form->p, *end = memmem(line, (size_t)(form->end - line), "\r\n", 2);
        if (!end)
            return api_form_malformed(form, "the header of a part does not end", problem);
        form->p = end + 2;
        if (end == line)
            break;
        if (!read_line(form, line, end, part, problem))
            return false;
    }
    return *part->name ||
           api_form_malformed(form, "a part has no Content-Disposition with a name", problem);
}

/* Reads a part up to the next delimiter; advances past that. */
static bool read_part(struct api_form *form, struct api_form_part *part,
                      struct api_problem *problem)
{
    if (!read_header(form, part, problem))
        return false;
    /* Search from the header's line end: an empty part shares it with the delimiter. */
    const char *content = form->p, *from = content - 2;
    const char *delimiter =
        memmem(from, (size_t)(form->end - from), form->delimiter, form->delimiter_size);
    if (!delimiter)
        return api_form_malformed(form, "no boundary ends this part", problem);
    part->content = content;
    part->size = delimiter < content ? 0 : (size_t)(delimiter - content);
    form->p = delimiter + form->delimiter_size;
    return true;
}

bool api_form_next(struct api_form *form, struct api_form_part *part, struct api_problem *problem)
{
    if (form->end - form->p >= 2 && memcmp(form->p, "--", 2) == 0)
        return false;
    while (*form->p == ' ' || *form->p == '\t')
        form->p++;
    if (form->end - form->p < 2 || memcmp(form->p, "\r\n", 2) != 0)
        return api_form_malformed(form, "expected a line end after the boundary", problem);
    form->p += 2;
    return read_part(form, part, problem);
}

bool api_form_begin(struct api_form *form, const char *content_type, const char *body, size_t size,
                    struct api_problem *problem)
{
    const char *type = content_type ? content_type : "";
    *form = (struct api_form){.body = body, .p = body, .end = body + size, .delimiter = "\r\n--"};
    if (!api_form_parameter(type, "boundary", form->delimiter + 4, API_MAX_BOUNDARY + 1))
        return api_fail(problem, "multipart_malformed",
                        "the Content-Type has no boundary of 1 to 70 characters");
    form->delimiter_size = strlen(form->delimiter);
    /* Skip the preamble. At the start of the body the delimiter lacks its line end. */
    size_t first_size = form->delimiter_size - 2;
    if (size >= first_size && memcmp(body, form->delimiter + 2, first_size) == 0) {
        form->p += first_size;
        return true;
    }
    const char *first = memmem(body, size, form->delimiter, form->delimiter_size);
    if (!first)
        return api_form_malformed(form, "the boundary in the Content-Type is not in the body",
                                  problem);
    form->p = first + form->delimiter_size;
    return true;
}
