/* Requests of /kl_div as multipart/form-data (RFC 7578), as curl -F and browsers send forms. */
#include "api/formats/codecs.h"
#include "api/formats/json_tensor.h"
#include "api/formats/npy.h"
#include "api/formats/npy_header.h"
#include "api/text/json_text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* RFC 2046, 5.1.1: a boundary has 1 to 70 characters. */
enum { MAX_BOUNDARY = 70, MAX_NAME = 100, MAX_OPTION = 1024 };

struct part {
    char *content, *end;
};

/* reader: the parts of a body, which delimiters separate: "\r
 * --" and the boundary. */
struct reader {
    struct api_call *call;
    char *body, *p, *end;
    char delimiter[4 + MAX_BOUNDARY + 1];
    size_t delimiter_size;
    struct part parts[API_TENSORS]; /* the parts that are tensors */
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *what)
{
    return api_fail(r->problem, "multipart_malformed", "byte %zu of the body: %s",
                    (size_t)(r->p - r->body), what);
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

/* Reads the name from the header lines of a part; advances past them. */
static bool read_part_header(struct reader *r, char *name)
{
    static const char disposition[] = "Content-Disposition:",
                      encoding[] = "Content-Transfer-Encoding:";
    *name = '\0';
    for (;;) {
        char *line = r->p, *end = memmem(line, (size_t)(r->end - line), "\r\n", 2);
        if (!end)
            return malformed(r, "the header of a part does not end");
        r->p = end + 2;
        if (end == line)
            break;
        size_t size = (size_t)(end - line);
        if (size >= sizeof disposition &&
            strncasecmp(line, disposition, sizeof disposition - 1) == 0 &&
            !find_parameter(line, end, "name", name, MAX_NAME))
            return malformed(r, "a part's Content-Disposition has no name of 1 to 99 characters");
        if (size >= sizeof encoding && strncasecmp(line, encoding, sizeof encoding - 1) == 0 &&
            !sends_as_it_is(line + sizeof encoding - 1, end))
            return malformed(r, "parts must not have a Content-Transfer-Encoding");
    }
    return *name ? true : malformed(r, "a part has no Content-Disposition with a name");
}

static bool read_content(struct reader *r, const char *name, char *content, char *end)
{
    size_t size = (size_t)(end - content);
    *end = '\0';
    for (size_t i = 0; i < API_TENSORS; i++) {
        if (strcmp(name, api_tensor_names[i]) != 0)
            continue;
        r->call->tensors[i].present = r->parts[i].content != NULL;
        r->parts[i] = (struct part){content, end};
        return api_tensor_find(r->call->tensors, name, NULL, r->problem) != NULL;
    }
    if (api_option_find(name) >= 0 && (size > MAX_OPTION || strlen(content) != size))
        return malformed(r, "the text of an option has at most 1024 characters, and no NUL");
    return api_option_set_text(&r->call->options, (struct api_origin){"#/", name}, content,
                               api_tensor_names, r->problem);
}

/* Reads a part up to the next delimiter; advances past that. */
static bool read_part(struct reader *r)
{
    char name[MAX_NAME];
    if (!read_part_header(r, name))
        return false;
    /* Search from the header's line end: an empty part shares it with the delimiter. */
    char *content = r->p, *from = content - 2;
    char *delimiter = memmem(from, (size_t)(r->end - from), r->delimiter, r->delimiter_size);
    if (!delimiter)
        return malformed(r, "no boundary ends this part");
    if (!read_content(r, name, content, delimiter < content ? content : delimiter))
        return false;
    r->p = delimiter + r->delimiter_size;
    return true;
}

/* Reads parts until the last delimiter, which "--" follows. */
static bool read_parts(struct reader *r)
{
    for (;;) {
        if (r->end - r->p >= 2 && memcmp(r->p, "--", 2) == 0)
            return true;
        while (*r->p == ' ' || *r->p == '\t')
            r->p++;
        if (r->end - r->p < 2 || memcmp(r->p, "\r\n", 2) != 0)
            return malformed(r, "expected a line end after the boundary");
        r->p += 2;
        if (!read_part(r))
            return false;
    }
}

static bool read_json(struct reader *r, struct api_tensor *tensor, const struct part *part)
{
    struct api_call *call = r->call;
    const char *p = api_json_start(part->content);
    if (p == part->end)
        return api_tensor_fail(tensor, NULL, r->problem, "multipart_malformed",
                               "the part is empty: it must hold a .npy file, or a JSON array");
    p = api_json_tensor_read(tensor, part->content, p, call->options.dtype, r->problem);
    if (!p && r->problem->where == API_NOWHERE) {
        char words[64];
        snprintf(words, sizeof words, "part %s, ", api_tensor_name(tensor));
        api_problem_prefix(r->problem, words);
    }
    if (!p)
        return false;
    return api_json_skip_space(p) == part->end ||
           api_tensor_fail(tensor, NULL, r->problem, "json_malformed", "bytes follow the array");
}

/* Reads the tensors after all options, which determine the dtype of JSON. */
static bool read_tensors(struct reader *r)
{
    for (size_t i = 0; i < API_TENSORS; i++) {
        const struct part *part = &r->parts[i];
        struct api_tensor *tensor = &r->call->tensors[i];
        size_t size = (size_t)(part->end - part->content);
        tensor->present = false;
        if (!part->content)
            continue;
        if (!(api_npy_is(part->content, size)
                  ? api_npy_read(tensor, part->content, size, r->problem)
                  : read_json(r, tensor, part)))
            return false;
    }
    return true;
}

/* Decodes a form. Parts named as tensors (input, target, mask) are tensors: .npy files or JSON arrays. All
 * other parts are options as text. Changes the body: a NUL ends each part. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    const char *type = api_request_header(request, "Content-Type");
    struct reader r = {.call = call,
                       .body = request->body,
                       .p = request->body,
                       .end = request->body + request->body_size,
                       .delimiter = "\r\n--",
                       .problem = problem};
    if (!find_parameter(type, type + strlen(type), "boundary", r.delimiter + 4, MAX_BOUNDARY + 1))
        return api_fail(problem, "multipart_malformed",
                        "the Content-Type has no boundary of 1 to 70 characters");
    r.delimiter_size = strlen(r.delimiter);
    /* Skip the preamble. At the start of the body the delimiter lacks its line end. */
    size_t first_size = r.delimiter_size - 2;
    if (request->body_size >= first_size && memcmp(r.body, r.delimiter + 2, first_size) == 0) {
        r.p += first_size;
    } else {
        char *first = memmem(r.body, request->body_size, r.delimiter, r.delimiter_size);
        if (!first)
            return malformed(&r, "the boundary in the Content-Type is not in the body");
        r.p = first + r.delimiter_size;
    }
    return read_parts(&r) && read_tensors(&r);
}

static const char *const media_types[] = {"multipart/form-data", NULL};
const struct api_codec api_codec_multipart = {
    .media_types = media_types, .decode = decode, .parsed = 1};
