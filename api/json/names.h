/* api_names: a list of names that is searched by name. */
#pragma once

#include "api/memory/buffer.h"

/* Empty if zeroed, the budgets of its buffers aside. Names are any bytes without NUL. */
struct api_names {
    struct api_buffer text;   /* the names, each with a NUL after it */
    struct api_buffer starts; /* size_t: the offset of each name in `text` */
    struct api_buffer order;  /* size_t: the names' numbers, sorted by their bytes */
    size_t n;
};

/* Name number `i`, with its NUL; valid until the next one is added. */
const char *api_names_get(const struct api_names *names, size_t i);

/* True if name number `i` has these bytes. */
bool api_names_is(const struct api_names *names, size_t i, const char *name, size_t size);

/* Finds a name in O(log n) comparisons; false if it is not there. */
bool api_names_find(const struct api_names *names, const char *name, size_t size, size_t *i);

/* Adds a name, present or not, at the end; false if memory is exhausted. Moves n numbers at most: meant
 * for some 10,000 names. */
bool api_names_add(struct api_names *names, const char *name, size_t size);
void api_names_free(struct api_names *names);
