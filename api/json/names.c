#include "api/json/names.h"

#include <string.h>

static size_t start_of(const struct api_names *names, size_t i)
{
    return ((const size_t *)(const void *)names->starts.data)[i];
}

const char *api_names_get(const struct api_names *names, size_t i)
{
    return names->text.data + start_of(names, i);
}

static size_t size_of(const struct api_names *names, size_t i)
{
    size_t end = i + 1 < names->n ? start_of(names, i + 1) : names->text.size;
    return end - start_of(names, i) - 1;
}

bool api_names_is(const struct api_names *names, size_t i, const char *name, size_t size)
{
    return size_of(names, i) == size && memcmp(api_names_get(names, i), name, size) == 0;
}

static int compare(const struct api_names *names, size_t i, const char *name, size_t size)
{
    size_t own = size_of(names, i);
    int order = memcmp(api_names_get(names, i), name, own < size ? own : size);
    return order ? order : (own > size) - (own < size);
}

/* Place in `order` of the first name that is not before this one. */
static size_t slot_of(const struct api_names *names, const char *name, size_t size)
{
    const size_t *order = (const size_t *)(const void *)names->order.data;
    size_t from = 0, to = names->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare(names, order[middle], name, size) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool api_names_find(const struct api_names *names, const char *name, size_t size, size_t *i)
{
    size_t slot = slot_of(names, name, size);
    if (slot == names->n)
        return false;
    *i = ((const size_t *)(const void *)names->order.data)[slot];
    return api_names_is(names, *i, name, size);
}

bool api_names_add(struct api_names *names, const char *name, size_t size)
{
    size_t start = names->text.size, i = names->n, slot = slot_of(names, name, size);
    if (!api_buffer_room(&names->text, size + 1) || !api_buffer_room(&names->starts, sizeof i) ||
        !api_buffer_room(&names->order, sizeof i))
        return false;
    api_append(&names->text, name, size);
    api_append(&names->text, "", 1);
    api_append(&names->starts, &start, sizeof start);
    api_append(&names->order, &i, sizeof i);
    size_t *order = (size_t *)(void *)names->order.data;
    memmove(order + slot + 1, order + slot, (i - slot) * sizeof i);
    order[slot] = i;
    names->n++;
    return true;
}

void api_names_free(struct api_names *names)
{
    api_buffer_free(&names->text);
    api_buffer_free(&names->starts);
    api_buffer_free(&names->order);
    names->n = 0;
}
