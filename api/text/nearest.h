/* Words in messages: suggestions and lists. */
#pragma once

#include <stddef.h>

/* Known word with the smallest edit distance to `word` (insertions, deletions, substitutions,
 * adjacent transpositions), or NULL if the distance exceeds one edit per three letters. */
const char *api_nearest(const char *word, const char *const *known, size_t n);

/* Appends a word to a list with ", " between; truncates to `size` bytes. */
void api_append_word(char *list, size_t size, const char *word);
