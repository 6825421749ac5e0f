/* Suggests the known word for a misspelt one. */
#pragma once

#include <stddef.h>

/* Known word with the smallest edit distance to `word` (insertions, deletions, substitutions,
 * adjacent transpositions), or NULL if the distance exceeds one edit per three letters. */
const char *api_nearest(const char *word, const char *const *known, size_t n);
