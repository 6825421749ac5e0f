#include "api/monitors/model/unseen.h"

#include <string.h>

/* MAX_DISTINCT: texts of a column that a request counts. */
enum { MAX_DISTINCT = 4096 };

/* The bytes of a text in UTF-8 that are kept. */
static size_t kept_size(const char *text, size_t size)
{
    size = strnlen(text, size);
    if (size <= API_UNSEEN_BYTES)
        return size;
    size = API_UNSEEN_BYTES;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    return size;
}

void api_unseen_add(struct api_label_table *unseen, const char *text, size_t size)
{
    size = kept_size(text, size);
    if (!api_labels_count_known(unseen, text, size) && unseen->n < MAX_DISTINCT)
        api_labels_add(unseen, text, size);
}

void api_unseen_write(const char *text, size_t size, size_t count, struct api_buffer *out)
{
    char copy[API_UNSEEN_BYTES + 1] = "";
    memcpy(copy, text, size <= API_UNSEEN_BYTES ? size : API_UNSEEN_BYTES);
    api_append_text(out, out->size ? ",{\"label\":" : "{\"label\":");
    api_append_json_string(out, copy);
    api_append_format(out, ",\"count\":%zu}", count);
}

void api_unseen_write_top(struct api_label_table *unseen, struct api_buffer *out)
{
    size_t n;
    const struct api_label *top = api_labels_sort(unseen, API_UNSEEN_TOLD, &n);
    for (size_t i = 0; i < n; i++)
        api_unseen_write(top[i].text, strlen(top[i].text), top[i].count, out);
}
