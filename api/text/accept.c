#include "api/text/accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *skip_blank(const char *p) { return p + strspn(p, " \t"); }

/* Length, in bytes, of the "type/subtype" or the coding at the start of a header's value or element. */
static size_t essence_length(const char *value) { return strcspn(value, "; \t,"); }

static bool is_word(const char *range, size_t length, const char *word)
{
    return length == strlen(word) && strncasecmp(range, word, length) == 0;
}

/* Specificity with which one element matches: 0 no match, 3 exact. */
static int specificity(const char *range, size_t length, const char *word)
{
    size_t slash = strcspn(word, "/");
    if (is_word(range, length, word))
        return 3;
    if (length == slash + 2 && range[slash] == '/' && range[slash + 1] == '*' &&
        strncasecmp(range, word, slash) == 0)
        return 2;
    return is_word(range, length, "*/*") || is_word(range, length, "*") ? 1 : 0;
}

/* Clamps q to [0, 1]; NaN becomes 0. */
static double within_one(double q) { return q > 1 ? 1 : q > 0 ? q : 0; }

/* Quality of the element whose parameters start at `parameters`; 1 if it has no q. */
static double quality(const char *parameters, const char *end)
{
    for (const char *p = parameters; p < end; p++) {
        if (*p != ';')
            continue;
        const char *name = skip_blank(p + 1);
        if ((*name == 'q' || *name == 'Q') && name[1] == '=')
            return within_one(strtod(name + 2, NULL));
    }
    return 1;
}

double api_accept_quality(const char *value, const char *word)
{
    int best = 0;
    double q = 0;
    for (const char *p = value; *p; p += *p == ',') {
        p = skip_blank(p);
        const char *end = p + strcspn(p, ",");
        size_t length = essence_length(p);
        int fit = specificity(p, length, word);
        if (fit > best) {
            best = fit;
            q = quality(p + length, end);
        }
        p = end;
    }
    return q;
}

bool api_is_media_type(const char *content_type, const char *const *types)
{
    const char *value = skip_blank(content_type);
    size_t length = essence_length(value);
    while (*types && !is_word(value, length, *types))
        types++;
    return *types != NULL;
}
