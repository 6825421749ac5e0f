/* Lists of words: finding one, and naming the nearest or all of them in messages. */
#pragma once

#include <stddef.h>

/* Number of the word that equals `text`, in a list with NULL at its end; the number of words if none does. */
size_t api_word_index(const char *const *words, const char *text);

/* Known word with the smallest edit distance to `word` (insertions, deletions, substitutions,
 * adjacent transpositions), or NULL if the distance exceeds one edit per three letters. */
const char *api_nearest(const char *word, const char *const *known, size_t n);

/* "; did you mean 'WORD'?" of the nearest word; `otherwise` if that is NULL. */
enum { API_MEAN = 64 };
const char *api_mean(char to[API_MEAN], const char *nearest, const char *otherwise);

/* Appends a word to a list with ", " between; truncates to `size` bytes. */
void api_append_word(char *list, size_t size, const char *word);
