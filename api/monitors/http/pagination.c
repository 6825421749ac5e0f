#include "api/monitors/http/pagination.h"

#include "api/request/access.h"
#include "api/request/response.h"

#include "api/json/format.h"
#include "api/monitors/model/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 100, MAX_LIMIT = 1000 };

const char *api_pagination_text(const struct api_pagination *page, const char *name)
{
    return json_string_value(json_object_get(page->parameters, name));
}

static bool read_limit(struct api_pagination *page, struct api_problem *problem)
{
    const char *text = api_pagination_text(page, "limit");
    int64_t limit = LIMIT;
    bool good =
        !text || (api_pagination_numbers(text, &limit, 1) && limit >= 1 && limit <= MAX_LIMIT);
    page->limit = (size_t)limit;
    return good || api_fail_at(problem, API_QUERY, "limit", "option_invalid",
                               "limit must be a whole number from 1 to %d", MAX_LIMIT);
}

bool api_pagination_time(const struct api_pagination *page, const char *name, int64_t *time,
                         struct api_problem *problem)
{
    const json_t *value = json_object_get(page->parameters, name);
    return !value || api_read_time(value, API_QUERY, name, time, problem);
}

bool api_pagination_read(struct api_exchange *x, struct api_pagination *page,
                         const char *const *known)
{
    struct api_problem *problem = &x->problem;
    *page = (struct api_pagination){.from = INT64_MIN, .to = INT64_MAX, .cursor = ""};
    page->parameters = api_settings_from_query(NULL, x->request.query, known, problem);
    if (!page->parameters || !read_limit(page, problem) ||
        !api_pagination_time(page, "from", &page->from, problem) ||
        !api_pagination_time(page, "since", &page->from, problem) ||
        !api_pagination_time(page, "to", &page->to, problem))
        return false;
    if (api_pagination_text(page, "cursor"))
        page->cursor = api_pagination_text(page, "cursor");
    const char *group = api_pagination_text(page, "group");
    return !group || api_check_group(x, group);
}

void api_pagination_free(struct api_pagination *page)
{
    json_decref(page->parameters);
    page->parameters = NULL;
}

bool api_pagination_numbers(const char *text, int64_t *numbers, size_t n)
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

bool api_pagination_cursor(const struct api_pagination *page, int64_t *numbers, size_t n,
                           struct api_problem *problem)
{
    return !*page->cursor || api_pagination_numbers(page->cursor, numbers, n) ||
           api_pagination_fail(problem);
}

bool api_pagination_fail(struct api_problem *problem)
{
    return api_fail_at(problem, API_QUERY, "cursor", "cursor_invalid",
                       "cursor must be the member next of a response");
}

void api_pagination_end(const int64_t *numbers, size_t n, struct api_buffer *out)
{
    api_append_text(out, "],\"next\":");
    for (size_t i = 0; i < n; i++)
        api_append_format(out, "%c%" PRId64, i ? '_' : '"', numbers[i]);
    api_append_text(out, n > 0 ? "\"}\n" : "null}\n");
}

/* ---- Rows of the store */

enum api_outcome api_row_page_parse(struct api_exchange *x, const char *name, size_t key,
                                    const char *const *known)
{
    struct api_row_page *page = x->state;
    page->x = x;
    page->name = name;
    page->rows.budget = x->service->budget;
    page->key = key;
    for (size_t i = 0; i < key; i++)
        page->after[i] = INT64_MAX;
    return api_outcome_of(api_pagination_read(x, &page->page, known) &&
                          api_pagination_cursor(&page->page, page->after, key, &x->problem));
}

bool api_row_page_run(struct api_exchange *x, struct api_monitors *monitors,
                      enum api_statement statement, const struct api_datum *parameters,
                      api_row_reader *row)
{
    struct api_row_page *page = x->state;
    page->rows.size = page->n = 0;
    page->more = false;
    return api_store_read(monitors->store, statement, parameters, row, page) &&
           (!page->rows.failed || api_fail_oom(&x->problem));
}

bool api_row_page_add(struct api_row_page *page)
{
    page->more = page->n == page->page.limit;
    if (!page->more)
        api_append(&page->rows, ",", page->n++ > 0);
    return !page->more;
}

bool api_row_page_write(struct api_exchange *x)
{
    const struct api_row_page *page = x->state;
    struct api_buffer *out = &x->response.body;
    api_response_json(&x->response, "");
    api_write_json(out, "{%s:[", page->name);
    api_append(out, page->rows.data, page->rows.size);
    api_pagination_end(page->last, page->more ? page->key : 0, out);
    return true;
}

void api_row_page_drop(struct api_exchange *x)
{
    struct api_row_page *page = x->state;
    api_buffer_free(&page->rows);
    api_pagination_free(&page->page);
}
