#include "api/text/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 40 };

size_t api_word_index(const char *const *words, const char *text)
{
    size_t i = 0;
    while (words[i] && strcmp(words[i], text) != 0)
        i++;
    return i;
}

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

static bool differ(char a, char b)
{
    return tolower((unsigned char)a) != tolower((unsigned char)b);
}

/* Damerau–Levenshtein distance with adjacent transpositions only; the case of letters does not count. Both words have at
 * most LONGEST characters. */
static size_t distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    size_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= m; i++) {
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            size_t changed = d[i - 1][j - 1] + (size_t)differ(a[i - 1], b[j - 1]);
            d[i][j] = min(changed, min(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && !differ(a[i - 1], b[j - 2]) && !differ(a[i - 2], b[j - 1]))
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[m][n];
}

const char *api_nearest(const char *word, const char *const *known, size_t n)
{
    const char *nearest = NULL;
    size_t length = strlen(word), best = 1 + length / 3;
    if (length > LONGEST)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t edits = distance(word, known[i]);
        if (edits <= best && (!nearest || edits < best)) {
            nearest = known[i];
            best = edits;
        }
    }
    return nearest;
}

const char *api_mean(char to[API_MEAN], const char *nearest, const char *otherwise)
{
    snprintf(to, API_MEAN, "; did you mean '%s'?", nearest ? nearest : "");
    return nearest ? to : otherwise;
}

void api_append_word(char *list, size_t size, const char *word)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? ", " : "", word);
}
