#include "api/files/npy_header.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MEMBERS = 3 };

/* reader: parses the header, a Python dictionary literal that ends with a NUL. */
struct reader {
    const char *header, *p;
    struct api_npy *npy;
    unsigned seen; /* members, as bits */
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *what)
{
    return api_fail(r->problem, "npy_malformed", "%s", what);
}

static bool malformed_here(struct reader *r, const char *expected)
{
    return api_fail(r->problem, "npy_malformed", "byte %zu of the .npy header: expected %s",
                    (size_t)(r->p - r->header), expected);
}

static bool skip(struct reader *r, const char *word)
{
    r->p += strspn(r->p, " \t\n");
    size_t size = strlen(word);
    bool there = strncmp(r->p, word, size) == 0;
    r->p += there ? size : 0;
    return there;
}

/* Reads a string without escapes, which no member of a header needs. */
static bool read_string(struct reader *r, const char **text, size_t *size)
{
    const char *quote = skip(r, "'") ? "'" : skip(r, "\"") ? "\"" : NULL;
    const char *end = quote ? strchr(r->p, *quote) : NULL;
    if (!end)
        return malformed_here(r, "a string");
    *text = r->p;
    *size = (size_t)(end - r->p);
    r->p = end + 1;
    return true;
}

static bool read_descr(struct reader *r)
{
    const char *text = "";
    size_t size = 0;
    if (skip(r, "[") || skip(r, "("))
        return api_fail(r->problem, "dtype_unsupported",
                        "a structured dtype is not a tensor of numbers");
    if (!read_string(r, &text, &size))
        return false;
    size_t kept = size < sizeof r->npy->descr ? size : sizeof r->npy->descr - 1;
    memcpy(r->npy->descr, text, kept);
    r->npy->descr[kept] = '\0';
    return true;
}

static bool read_order(struct reader *r)
{
    r->npy->fortran_order = skip(r, "True");
    if (!r->npy->fortran_order && !skip(r, "False"))
        return malformed_here(r, "True or False");
    return true;
}

/* Reads a shape: "()", "(3,)", "(2, 3)", or "(2L, 3L)" of numpy on Python 2. */
static bool read_shape(struct reader *r)
{
    if (!skip(r, "("))
        return malformed_here(r, "'('");
    while (!skip(r, ")")) {
        char *end;
        r->p += strspn(r->p, " ");
        unsigned long long size = strtoull(r->p, &end, 10);
        if (*r->p < '0' || *r->p > '9' || size > INT64_MAX)
            return malformed_here(r, "a size");
        if (r->npy->ndim == KL_MAX_DIMS)
            return api_fail(r->problem, "tensor_too_deep",
                            "a tensor may have at most 64 dimensions");
        r->npy->shape[r->npy->ndim++] = (size_t)size;
        r->p = end;
        skip(r, "L");
        if (!skip(r, ",") && (r->npy->ndim == 1 || strncmp(r->p, ")", 1) != 0))
            return malformed_here(r, "','");
    }
    return true;
}

static bool read_member(struct reader *r)
{
    static const struct {
        const char *name;
        bool (*read)(struct reader *r);
    } members[MEMBERS] = {
        {"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    const char *key = NULL;
    size_t size = 0;
    if (!read_string(r, &key, &size))
        return false;
    if (!skip(r, ":"))
        return malformed_here(r, "':'");
    for (unsigned i = 0; i < MEMBERS; i++)
        if (strlen(members[i].name) == size && memcmp(members[i].name, key, size) == 0 &&
            !(r->seen >> i & 1)) {
            r->seen |= 1u << i;
            return members[i].read(r);
        }
    return malformed(r, "the .npy header has an unknown member, or a member twice");
}

static bool read_header(struct reader *r)
{
    if (!skip(r, "{"))
        return malformed_here(r, "'{'");
    while (!skip(r, "}")) {
        if (!read_member(r))
            return false;
        if (!skip(r, ",") && strncmp(r->p, "}", 1) != 0)
            return malformed_here(r, "',' or '}'");
    }
    skip(r, "");
    if (*r->p)
        return malformed_here(r, "nothing more");
    if (r->seen != (1u << MEMBERS) - 1)
        return malformed(r, "the .npy header lacks descr, fortran_order or shape");
    return true;
}

bool api_npy_is(const char *bytes, size_t size)
{
    return size >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}

size_t api_npy_start(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    size_t length = b[8] | (size_t)b[9] << 8;
    return b[6] == 1 ? MAGIC + 4 + length
                     : MAGIC + 6 + (length | (size_t)b[10] << 16 | (size_t)b[11] << 24);
}

bool api_npy_parse(const char *bytes, size_t size, struct api_npy *npy, struct api_problem *problem)
{
    char header[API_NPY_HEADER + 1];
    *npy = (struct api_npy){.start = 0};
    struct reader r = {.header = header, .p = header, .npy = npy, .problem = problem};
    const unsigned char *b = (const unsigned char *)bytes;
    if (size < MAGIC + 4 || !api_npy_is(bytes, size))
        return malformed(&r, "it does not begin with the magic string of .npy");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return api_fail(problem, "npy_malformed",
                        "it has version %d.%d of .npy; supported are 1.0, 2.0 and 3.0", b[6], b[7]);
    size_t start = b[6] == 1 ? MAGIC + 4 : MAGIC + 6;
    if (size < start || api_npy_start(bytes) > size)
        return malformed(&r, "the file ends within its .npy header");
    npy->start = api_npy_start(bytes);
    size_t length = npy->start - start;
    if (length > API_NPY_HEADER)
        return malformed(&r, "the .npy header is longer than 10000 bytes");
    memcpy(header, bytes + start, length);
    header[length] = '\0';
    if (strlen(header) != length)
        return malformed(&r, "the .npy header holds a NUL");
    return read_header(&r);
}
