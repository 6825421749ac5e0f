#include "api/monitors/model/labels.h"

#include "api/text/hash.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* entry: `at` is the offset of the text among all texts. */
struct entry {
    size_t at, count, choosing;
    uint32_t size, hash;
};

void api_labels_set_budget(struct api_label_table *labels, struct api_budget *budget)
{
    labels->texts.budget = labels->entries.budget = budget;
    labels->slots.budget = labels->sorted.budget = budget;
}

void api_labels_free(struct api_label_table *labels)
{
    api_buffer_free(&labels->texts);
    api_buffer_free(&labels->entries);
    api_buffer_free(&labels->slots);
    api_buffer_free(&labels->sorted);
    labels->n = labels->n_slots = 0;
}

static struct entry *entry(const struct api_label_table *labels, size_t i)
{
    return (struct entry *)labels->entries.data + i;
}

static uint32_t *slot_of(const struct api_label_table *labels, const char *text, size_t size,
                         uint32_t hash)
{
    uint32_t *slots = (uint32_t *)labels->slots.data;
    for (size_t i = hash & (labels->n_slots - 1);; i = (i + 1) & (labels->n_slots - 1)) {
        if (slots[i] == 0)
            return &slots[i];
        const struct entry *e = entry(labels, slots[i] - 1);
        if (e->hash == hash && e->size == size &&
            memcmp(labels->texts.data + e->at, text, size) == 0)
            return &slots[i];
    }
}

/* Doubles the slots, and hashes all entries into them. */
static bool grow(struct api_label_table *labels)
{
    struct api_buffer slots = {.budget = labels->slots.budget};
    size_t n_slots = labels->n_slots ? 2 * labels->n_slots : 64;
    if (n_slots > UINT32_MAX / 2 || !api_buffer_grow(&slots, n_slots * sizeof(uint32_t)))
        return false;
    memset(slots.data, 0, n_slots * sizeof(uint32_t));
    for (size_t i = 0; i < labels->n; i++) {
        size_t at = entry(labels, i)->hash & (n_slots - 1);
        while (((uint32_t *)slots.data)[at])
            at = (at + 1) & (n_slots - 1);
        ((uint32_t *)slots.data)[at] = (uint32_t)i + 1;
    }
    api_buffer_free(&labels->slots);
    labels->slots = slots;
    labels->n_slots = n_slots;
    return true;
}

size_t api_labels_find(const struct api_label_table *labels, const char *text, size_t size)
{
    const uint32_t *slot =
        labels->n > 0 ? slot_of(labels, text, size, api_hash_text(text, size)) : NULL;
    return slot && *slot ? *slot - 1 : labels->n;
}

bool api_labels_count_known(struct api_label_table *labels, const char *text, size_t size)
{
    size_t i = api_labels_find(labels, text, size);
    if (i < labels->n)
        entry(labels, i)->count++;
    return i < labels->n;
}

bool api_labels_add(struct api_label_table *labels, const char *text, size_t size, bool chooses)
{
    uint32_t hash = api_hash_text(text, size);
    if (2 * (labels->n + 1) > labels->n_slots && !grow(labels))
        return false;
    uint32_t *slot = slot_of(labels, text, size, hash);
    if (*slot) {
        entry(labels, *slot - 1)->count++;
        entry(labels, *slot - 1)->choosing += chooses;
        return true;
    }
    const struct entry added = {labels->texts.size, 1, chooses, (uint32_t)size, hash};
    api_append(&labels->texts, text, size);
    api_append(&labels->texts, "", 1);
    api_append(&labels->entries, &added, sizeof added);
    if (labels->texts.failed || labels->entries.failed)
        return false;
    *slot = (uint32_t)++labels->n;
    return true;
}

struct api_label api_labels_get(const struct api_label_table *labels, size_t i)
{
    const struct entry *e = entry(labels, i);
    return (struct api_label){labels->texts.data + e->at, e->count, e->choosing};
}

static int compare(const void *a, const void *b, void *by_choosing)
{
    const struct api_label *first = a, *second = b;
    size_t x = by_choosing ? first->choosing : first->count,
           y = by_choosing ? second->choosing : second->count;
    return x != y ? (x > y ? -1 : 1) : strcmp(first->text, second->text);
}

struct api_label *api_labels_sort(struct api_label_table *labels, bool by_choosing, size_t max,
                                  size_t *n)
{
    *n = 0;
    if (!api_buffer_reserve(&labels->sorted, (labels->n + 1) * sizeof(struct api_label)))
        return NULL;
    struct api_label *sorted = (struct api_label *)labels->sorted.data;
    for (size_t i = 0; i < labels->n; i++)
        sorted[i] = api_labels_get(labels, i);
    qsort_r(sorted, labels->n, sizeof *sorted, compare, by_choosing ? labels : NULL);
    *n = labels->n < max ? labels->n : max;
    return sorted;
}
