#include "api/monitors/model/unseen.h"

#include "api/json/format.h"
#include "api/text/hash.h"

#include <string.h>

/* MAX_DISTINCT: texts of a column that a request counts. */
enum { MAX_DISTINCT = 4096 };

void api_unseen_add(struct api_label_table *unseen, const char *text, size_t size)
{
    size = api_utf8_cut(text, strnlen(text, size), API_UNSEEN_BYTES);
    if (!api_labels_count_known(unseen, text, size) && unseen->n < MAX_DISTINCT)
        api_labels_add(unseen, text, size, false);
}

uint64_t api_unseen_hash(const char *text, size_t size)
{
    unsigned char hash[API_HASH];
    uint64_t first;
    api_hash(text, size, hash);
    memcpy(&first, hash, sizeof first);
    return first;
}

void api_unseen_keep(const char *text, size_t size, double count, struct api_unseen_counts *kept)
{
    enum { LONGEST_CHARACTER = 4 };
    if (kept->n == API_UNSEEN_KEPT || size > API_UNSEEN_BYTES - LONGEST_CHARACTER)
        return;
    kept->labels[kept->n++] =
        (struct api_unseen_count){.hash = api_unseen_hash(text, size), .count = count};
}

void api_unseen_clear(struct api_unseen *unseen)
{
    unseen->objects.size = unseen->told = unseen->count = unseen->kept.n = 0;
}

void api_unseen_write(const char *text, size_t size, size_t count, struct api_unseen *unseen)
{
    struct api_buffer *out = &unseen->objects;
    char copy[API_UNSEEN_BYTES + 1] = "";
    memcpy(copy, text, size <= API_UNSEEN_BYTES ? size : API_UNSEEN_BYTES);
    api_unseen_keep(text, size, (double)count, &unseen->kept);
    if (unseen->told == API_UNSEEN_TOLD)
        return;
    if (unseen->told++ == 0) {
        memcpy(unseen->first, copy, sizeof copy);
        unseen->count = count;
    }
    api_append(out, ",", out->size > 0);
    api_write_json(out, "{'label':%s,'count':%zu}", copy, count);
}

void api_unseen_write_top(struct api_label_table *unseen, struct api_unseen *out)
{
    size_t n;
    const struct api_label *top = api_labels_sort(unseen, false, API_UNSEEN_KEPT, &n);
    for (size_t i = 0; i < n; i++)
        api_unseen_write(top[i].text, strlen(top[i].text), top[i].count, out);
}
