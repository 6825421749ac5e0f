#include "api/monitors/http/pagination.h"

#include "api/request/access.h"

#include "api/json/format.h"
#include "api/monitors/model/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 100, MAX_LIMIT = 1000 };

const char *api_page_text(const struct api_page *page, const char *name)
{
    return json_string_value(json_object_get(page->parameters, name));
}

bool api_page_time(const struct api_page *page, const char *name, int64_t *time)
{
    const json_t *value = json_object_get(page->parameters, name);
    return !value || api_read_time(value, API_QUERY, name, time, &page->x->problem);
}

bool api_page_read(struct api_exchange *x, struct api_page *page, const char *const *known)
{
    int64_t limit = LIMIT;
    *page = (struct api_page){.x = x, .from = INT64_MIN, .to = INT64_MAX};
    page->parameters = api_settings_from_query(NULL, x->request.query, known, &x->problem);
    if (!page->parameters)
        return false;
    const char *text = api_page_text(page, "limit"), *group = api_page_text(page, "group");
    if (text && (!api_read_numbers(text, &limit, 1) || limit < 1 || limit > MAX_LIMIT))
        return api_fail_at(&x->problem, API_QUERY, "limit", "option_invalid",
                           "limit must be a whole number from 1 to %d", MAX_LIMIT);
    page->limit = (size_t)limit;
    return api_page_time(page, "from", &page->from) && api_page_time(page, "since", &page->from) &&
           api_page_time(page, "to", &page->to) && (!group || api_check_group(x, group));
}

void api_page_free(struct api_page *page)
{
    json_decref(page->parameters);
    page->parameters = NULL;
}

bool api_page_read_none(struct api_exchange *x)
{
    struct api_page page;
    bool good = api_page_read(x, &page, API_NAMES(NULL));
    api_page_free(&page);
    return good;
}

bool api_read_numbers(const char *text, int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *digits = text + (*text == '-');
        char *end;
        errno = 0;
        numbers[i] = strtoll(text, &end, 10);
        if (*digits < '0' || *digits > '9' || errno || *end != (i + 1 < n ? '_' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

bool api_page_fail(struct api_exchange *x)
{
    return api_fail_at(&x->problem, API_QUERY, "cursor", "cursor_invalid",
                       "cursor must be the member next of a response");
}

bool api_page_begin(struct api_page *page, const char *name, size_t key)
{
    const char *cursor = api_page_text(page, "cursor");
    page->key = key;
    page->is_first = !cursor;
    for (size_t i = 0; i < key; i++)
        page->after[i] = INT64_MAX;
    api_write_json(&page->x->response.body, "{%s:[", name);
    return !cursor || api_read_numbers(cursor, page->after, key) || api_page_fail(page->x);
}

bool api_page_add(struct api_page *page)
{
    page->more = page->n == page->limit;
    if (!page->more)
        api_append(&page->x->response.body, ",", page->n++ > 0);
    return !page->more;
}

bool api_page_end(struct api_page *page, bool good)
{
    struct api_buffer *out = &page->x->response.body;
    api_append_text(out, "],\"next\":");
    for (size_t i = 0; i < page->key && page->more; i++)
        api_append_format(out, "%c%" PRId64, i ? '_' : '"', page->last[i]);
    api_append_text(out, page->more ? "\"}\n" : "null}\n");
    api_page_free(page);
    return good;
}

void api_append_comma(struct api_buffer *out)
{
    api_append(out, ",", out->size > 0 && out->data[out->size - 1] != '[');
}
