#include "api/monitors/http/segments.h"

#include "api/monitors/model/segment.h"
#include "api/monitors/rows/known_rows.h"
#include "api/request/access.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char other[] = "other";

static struct api_segment *segment_at(const struct api_exchange *x, size_t i)
{
    return ((struct api_segment **)(void *)x->segments->list.data)[i];
}

static size_t count(const struct api_exchange *x)
{
    return x->segments ? x->segments->list.size / sizeof(struct api_segment *) : 0;
}

bool api_segments_wanted(struct api_exchange *x)
{
    struct api_parameter parameter;
    const char *rest = x->request.query ? x->request.query : "";
    if (api_name_of(x) || x->segments)
        return x->segments && x->segments->by;
    while (api_query_next(&rest, &parameter, &x->problem))
        if (strcmp(parameter.name, "by") == 0 && *parameter.value && !x->segments) {
            x->segments = calloc(1, sizeof *x->segments);
            if (x->segments)
                x->segments->by = strdup(parameter.value);
        }
    if (!x->segments)
        return false;
    if (!x->segments->by)
        return api_fail_oom(&x->problem);
    if (strchr(api_group_of(x), '['))
        return api_fail_at(&x->problem, API_QUERY, "by", "option_conflict",
                           "the group '%.128s' has no segments: with '[' in its name it is one, or "
                           "may be taken for one",
                           api_group_of(x));
    if (strpbrk(x->segments->by, "[=]"))
        return api_fail_at(&x->problem, API_QUERY, "by", "option_invalid",
                           "a column whose name has '[', '=' or ']' makes no segments: rename it");
    return true;
}

/* ---- Values */

/* reading: a pass over the column: its distinct values, and the number of that of each row. */
struct reading {
    struct api_label_table values;
    struct api_buffer *rows; /* uint32_t; API_NO_PART of a missing value */
    const atomic_bool *stop;
};

static bool add_value(struct reading *r, const char *text, size_t size, struct api_problem *problem)
{
    bool good = size == 0 || api_labels_add(&r->values, text, size, true);
    uint32_t value = size == 0 ? API_NO_PART : (uint32_t)api_labels_find(&r->values, text, size);
    api_append(r->rows, &value, sizeof value);
    return (good && !r->rows->failed) || api_fail_oom(problem);
}

static bool add_number(struct reading *r, enum kl_dtype dtype, double number,
                       struct api_problem *problem)
{
    char text[API_DECIMAL_MAX];
    return add_value(r, text, isnan(number) ? 0 : api_label_of_value(text, dtype, number), problem);
}

/* A value is as a label is: a number is its shortest decimal, unless it is a code such as 00501, a boolean `true` or `false`. A long text
 * is none. */
static bool read_cell(void *context, size_t column, const struct api_cell *cell,
                      struct api_problem *problem)
{
    struct reading *r = context;
    bool is_text = api_cell_is_text(cell), value;
    double number;
    (void)column;
    if (!api_check_cancelled(r->stop, cell, problem))
        return false;
    if (api_cell_is_missing(cell) || (is_text && cell->size > API_MAX_NAME))
        return add_value(r, "", 0, problem);
    if (api_cell_is_boolean(cell, &value))
        return add_value(r, value ? "true" : "false", value ? 4 : 5, problem);
    if (is_text ? !api_text_is_code(cell->text, cell->size) &&
                      api_field_number(cell, API_POINT, &number)
                : api_cell_number(cell, API_POINT, &number))
        return add_number(r, KL_FLOAT64, number, problem);
    return add_value(r, cell->text, cell->size, problem);
}

static bool read_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                         size_t row, size_t n, struct api_problem *problem)
{
    (void)column;
    (void)row;
    for (size_t i = 0; i < n; i++)
        if (!add_number(context, dtype, kl_load(dtype, values, i), problem))
            return false;
    return true;
}

/* Reads the column; fails with column_missing. */
static bool read_values(struct api_exchange *x, struct api_table *table, struct reading *r)
{
    const char *by = x->segments->by;
    const struct api_sink sink = {r, read_cell, read_numbers};
    size_t column;
    if (!api_names_find(&table->names, by, strlen(by), &column))
        return api_fail_at(&x->problem, API_QUERY, "by", "column_missing",
                           "the table has no column '%.128s'", by);
    x->segments->part_of_row.budget = x->service->budget;
    api_labels_set_budget(&r->values, x->service->budget);
    x->segments->part_of_row.size = 0;
    r->rows = &x->segments->part_of_row;
    r->stop = x->stop;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i == column;
    return api_table_read(table, &sink, &x->problem);
}

/* ---- Segments */

static bool name_segment(const struct api_exchange *x, const char *value, char *name)
{
    struct api_problem ignored = {0};
    return !strstr(value, "][") &&
           api_segment_name(api_group_of(x), x->segments->by, value, name, API_MAX_NAME + 1) &&
           api_name_check("group", name, &ignored);
}

/* Bytes before the value in the name of a segment; without a column, before that of its column. */
static size_t prefix_size(const struct api_exchange *x)
{
    const char *by = x->segments->by;
    return strlen(api_group_of(x)) + strlen("[") + (by ? strlen(by) + strlen("=") : 0);
}

/* The value of a segment, which ends with a bracket. */
static void value_of(const struct api_exchange *x, const struct api_exchange *segment, char *value)
{
    snprintf(value, API_MAX_NAME + 1, "%s", api_group_of(segment) + prefix_size(x));
    value[strlen(value) - 1] = '\0';
}

/* Bytes of a segment, with its state. */
static size_t size_of(const struct api_exchange *x)
{
    return sizeof(struct api_segment) + x->response.endpoint->steps->state;
}

/* A segment that is counted for the budget, at the end of the list; NULL without memory. */
static struct api_segment *new_segment(struct api_exchange *x)
{
    struct api_buffer *list = &x->segments->list;
    list->budget = x->service->budget;
    if (!api_budget_reserve(list->budget, size_of(x)))
        return NULL;
    struct api_segment *segment = calloc(1, sizeof *segment);
    if (segment)
        api_append(list, &segment, sizeof segment);
    if (segment && !list->failed)
        return segment;
    api_budget_release(list->budget, size_of(x));
    free(segment);
    return NULL;
}

/* Adds a segment of this group. */
static bool add(struct api_exchange *x, const char *group)
{
    struct api_segment *segment = new_segment(x);
    if (!segment)
        return api_fail_oom(&x->problem);
    segment->x = (struct api_exchange){.service = x->service,
                                       .request = x->request,
                                       .token = x->token,
                                       .trace = x->trace,
                                       .stop = x->stop,
                                       .is_refreshed = true};
    segment->x.response.endpoint = x->response.endpoint;
    segment->x.response.body.budget = x->service->budget;
    segment->x.captures.n = 1;
    segment->x.captures.value[0] = segment->x.captures.text;
    snprintf(segment->x.captures.text, API_CAPTURED, "%s", group);
    bool is_allowed = api_check_group(&segment->x, group);
    if (!is_allowed)
        x->problem = segment->x.problem;
    return is_allowed;
}

/* Replaces the number of each row's value by that of its segment: `to` has one for each value, and rest is that of other rows. Returns the
 * number of rows without one. */
static size_t assign(struct api_exchange *x, const uint32_t *to, uint32_t rest)
{
    size_t left = 0;
    uint32_t *rows = (uint32_t *)(void *)x->segments->part_of_row.data;
    size_t n = x->segments->part_of_row.size / sizeof *rows;
    for (size_t i = 0; i < n; i++) {
        rows[i] = rows[i] == API_NO_PART || to[rows[i]] == API_NO_PART ? rest : to[rows[i]];
        if (rows[i] != API_NO_PART)
            segment_at(x, rows[i])->rows++;
        else
            left++;
    }
    return left;
}

/* An array for a number of each value, all API_NO_PART. */
static uint32_t *new_numbers(struct api_exchange *x, const struct reading *r)
{
    uint32_t *numbers = malloc((r->values.n + 1) * sizeof *numbers);
    if (numbers)
        memset(numbers, 0xff, (r->values.n + 1) * sizeof *numbers);
    else
        api_fail_oom(&x->problem);
    return numbers;
}

/* Adds the segments of the most frequent values; `to` becomes their numbers, *left the number of rows without one. */
static bool add_frequent(struct api_exchange *x, struct reading *r, uint32_t *to, size_t *left)
{
    size_t n, max = r->values.n;
    char name[API_MAX_NAME + 1];
    const struct api_label *labels = api_labels_sort(&r->values, false, max, &n);
    for (size_t i = 0; i < n && labels[i].count >= API_SEGMENT_ROWS && count(x) < API_MAX_SEGMENTS;
         i++) {
        if (strcmp(labels[i].text, other) == 0 || !name_segment(x, labels[i].text, name))
            continue;
        to[api_labels_find(&r->values, labels[i].text, strlen(labels[i].text))] =
            (uint32_t)count(x);
        *left -= labels[i].count;
        if (!add(x, name))
            return false;
    }
    return true;
}

bool api_segments_choose(struct api_exchange *x, struct api_table *table)
{
    struct reading r = {.stop = x->stop};
    char name[API_MAX_NAME + 1];
    uint32_t *to = NULL;
    bool good = read_values(x, table, &r) && (to = new_numbers(x, &r));
    size_t left = x->segments->part_of_row.size / sizeof *to;
    good = good && (r.values.n == 0 || add_frequent(x, &r, to, &left));
    uint32_t rest = left > 0 && name_segment(x, other, name) ? (uint32_t)count(x) : API_NO_PART;
    good = good && (rest == API_NO_PART || add(x, name));
    if (good)
        assign(x, to, rest);
    api_labels_free(&r.values);
    free(to);
    return good;
}

static void add_group(void *context, const struct api_datum *values)
{
    char group[API_MAX_NAME + 1];
    snprintf(group, sizeof group, "%.*s", (int)values[0].size, values[0].text);
    if (api_segment_parent(group) > 0 && strlen(group) > prefix_size(context) + 1 &&
        !strstr(group + prefix_size(context), "]["))
        add(context, group);
}

static void clear(struct api_exchange *x)
{
    for (size_t i = 0; i < count(x); i++) {
        struct api_segment *segment = segment_at(x, i);
        api_known_release(segment->x.known);
        api_buffer_free(&segment->x.response.body);
        api_budget_release(x->service->budget, size_of(x));
        free(segment);
    }
    x->segments->list.size = 0;
}

bool api_segments_know(struct api_exchange *x, struct api_monitors *monitors)
{
    char prefix[API_CAPTURED];
    size_t n = api_segment_prefix(api_group_of(x), x->segments->by, prefix, sizeof prefix);
    int64_t max = x->segments->by ? API_KNOWN_SEGMENTS + 1 : INT64_MAX;
    clear(x);
    if (!api_store_read(monitors->store, API_SQL_SEGMENTS, API_ROW(n, prefix, max), add_group, x) ||
        x->problem.code)
        return false;
    if (x->segments->by && count(x) > API_KNOWN_SEGMENTS)
        return api_fail(
            &x->problem, "too_many_segments",
            "the group has more than %d segments: delete those that are not used any more",
            API_KNOWN_SEGMENTS);
    for (size_t i = 0; i < count(x); i++)
        if (!api_know_again(&segment_at(x, i)->x, monitors))
            return false;
    return true;
}

bool api_segments_find(struct api_exchange *x, struct api_table *table, size_t *left)
{
    struct reading r = {.stop = x->stop};
    char value[API_MAX_NAME + 1];
    uint32_t *to = NULL, rest = API_NO_PART;
    bool good =
        read_values(x, table, &r) && (to = new_numbers(x, &r)) &&
        (count(x) > 0 ||
         api_fail_at(&x->problem, API_QUERY, "by", "segments_missing",
                     "the group has no segments by '%.100s': PUT a reference with by=%.100s",
                     x->segments->by, x->segments->by));
    for (size_t i = 0; good && i < count(x); i++) {
        value_of(x, &segment_at(x, i)->x, value);
        size_t found = api_labels_find(&r.values, value, strlen(value));
        segment_at(x, i)->rows = 0;
        if (found < r.values.n)
            to[found] = (uint32_t)i;
        if (strcmp(value, other) == 0)
            rest = (uint32_t)i;
    }
    if (good)
        *left = assign(x, to, rest);
    api_labels_free(&r.values);
    free(to);
    return good;
}

void api_segments_warn(const struct api_exchange *x, size_t left, struct api_buffer *warnings)
{
    if (left > 0)
        api_warn(warnings, "rows_without_segment", x->segments->by, left, 0,
                 "the reference has no segment for these rows, and no `other`: they count for the "
                 "group alone");
}

/* ---- Steps */

/* Takes the problem of a segment, and names the segment. */
static void take_problem(struct api_exchange *x, const struct api_exchange *segment)
{
    const struct api_problem *problem = &segment->problem;
    x->problem = *problem;
    if (problem->code && api_problem_status(problem) == 422)
        snprintf(x->problem.detail, sizeof x->problem.detail, "in %.128s: %.370s",
                 api_group_of(segment), problem->detail);
}

bool api_segments_each(struct api_exchange *x, struct api_table *table, api_segment_step *step,
                       void *context)
{
    const uint32_t *rows = x->segments ? (const void *)x->segments->part_of_row.data : NULL;
    size_t state = x->response.endpoint->steps->state;
    bool good = true;
    for (size_t i = 0; good && i < count(x); i++) {
        struct api_segment *segment = segment_at(x, i);
        if (segment->rows == 0 && x->segments->by)
            continue;
        if (table)
            api_table_select(table, rows, (uint32_t)i, segment->rows);
        if (!segment->x.state)
            segment->x.state = calloc(1, state > 0 ? state : 1);
        segment->x.problem.code = NULL;
        good = segment->x.state ? step(&segment->x, context) : api_fail_oom(&segment->x.problem);
        if (!good)
            take_problem(x, &segment->x);
    }
    if (table)
        api_table_select(table, NULL, 0, 0);
    return good;
}

bool api_segments_follow(struct api_exchange *x, struct api_monitors *monitors,
                         api_segment_step *step, void *context)
{
    if (strchr(api_group_of(x), '['))
        return true;
    if (!x->segments)
        x->segments = calloc(1, sizeof *x->segments);
    if (!x->segments)
        return api_fail_oom(&x->problem);
    api_segments_drop(x); /* of a transaction that is repeated */
    return api_segments_know(x, monitors) && api_segments_each(x, NULL, step, context);
}

void api_segments_write(struct api_exchange *x)
{
    struct api_buffer *out = &x->response.body;
    bool is_first = true;
    if (count(x) == 0)
        return;
    out->size -= strlen("}\n");
    api_append_text(out, ",\"segments\":[");
    for (size_t i = 0; i < count(x); i++) {
        struct api_buffer *body = &segment_at(x, i)->x.response.body;
        if (body->size == 0)
            continue;
        api_append(out, ",", !is_first);
        api_append(out, body->data, body->size - 1); /* its line ends */
        out->failed |= body->failed;
        api_buffer_free(body);
        is_first = false;
    }
    api_append_text(out, "]}\n");
}

void api_segments_drop(struct api_exchange *x)
{
    for (size_t i = 0; i < count(x); i++) {
        struct api_exchange *segment = &segment_at(x, i)->x;
        if (segment->state && x->response.endpoint->steps->drop)
            x->response.endpoint->steps->drop(segment);
        free(segment->state);
        segment->state = NULL;
    }
}

void api_segments_end(struct api_exchange *x)
{
    if (!x->segments)
        return;
    api_segments_drop(x);
    clear(x);
    api_buffer_free(&x->segments->list);
    api_buffer_free(&x->segments->part_of_row);
    free(x->segments->by);
    free(x->segments);
    x->segments = NULL;
}
