/* The word that was meant. */
#ifndef KLDIV_API_TEXT_NEAREST_H
#define KLDIV_API_TEXT_NEAREST_H

#include <stddef.h>

/* The known word nearest to `word` by edits (a letter put in, left out, changed, or two swapped),
 * or NULL if none is near enough to be a slip: at most one edit in three letters. */
const char *api_nearest(const char *word, const char *const *known, size_t n);

#endif
