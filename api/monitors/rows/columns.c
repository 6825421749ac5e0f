#include "api/monitors/rows/columns.h"

#include "api/json/json_text.h"
#include "api/monitors/model/labels.h"
#include "api/monitors/rows/monitor.h"

#include <stdlib.h>
#include <string.h>

void api_columns_add(struct api_buffer *names, const char *name)
{
    api_append(names, name, strlen(name) + 1);
}

/* noting: names of a table, and rows of the group: their names, and struct row in the same order. */
struct noting {
    struct api_label_table of_table, of_rows;
    struct api_buffer rows;
};
struct row {
    bool left_out;
    int64_t missed;
};

static void add_row(void *context, const struct api_datum *values)
{
    struct noting *noting = context;
    const struct row row = {values[1].integer != 0, values[2].integer};
    if (api_labels_add(&noting->of_rows, values[0].text, values[0].size, true))
        api_append(&noting->rows, &row, sizeof row);
    else
        noting->rows.failed = true;
}

static bool read_all(struct noting *noting, struct api_monitors *monitors, const char *group,
                     const struct api_buffer *names)
{
    size_t size = 0;
    for (size_t at = 0; at < names->size; at += size + 1) {
        size = strlen(names->data + at);
        if (!api_labels_add(&noting->of_table, names->data + at, size, true))
            return api_transaction_fail_oom(monitors);
    }
    return api_store_read(monitors->store, API_SQL_COLUMNS, API_ROW(group), add_row, noting) &&
           (!noting->rows.failed || api_transaction_fail_oom(monitors));
}

static bool put(struct api_monitors *monitors, const char *group, const char *name, bool left_out,
                int64_t missed)
{
    bool goes = !left_out && missed >= API_MISSED;
    return api_store_run(monitors->store, goes ? API_SQL_COLUMN_DELETE : API_SQL_COLUMN_PUT,
                         API_ROW(group, name, left_out, missed));
}

/* Writes columns of the table that are not known; `n_new` of the group are. */
static bool add_new(struct noting *noting, struct api_monitors *monitors, const char *group,
                    const struct api_buffer *names, size_t n_new)
{
    int64_t n = 0;
    size_t size;
    bool good =
        names->size == 0 || api_store_number(monitors->store, API_SQL_COLUMNS_COUNT, NULL, &n);
    for (size_t at = 0; good && at < names->size && n_new < API_MAX_NEW && n < API_MAX_UNMONITORED;
         at += size + 1) {
        const char *name = names->data + at;
        size = strlen(name);
        if (api_labels_find(&noting->of_rows, name, size) < noting->of_rows.n)
            continue;
        good = put(monitors, group, name, false, 0);
        n_new++;
        n++;
    }
    return good;
}

bool api_columns_note(struct api_monitors *monitors, const char *group,
                      const struct api_buffer *names)
{
    struct noting noting = {.rows.size = 0};
    size_t n_new = 0;
    bool good = read_all(&noting, monitors, group, names);
    const struct row *rows = (const void *)noting.rows.data;
    for (size_t i = 0; good && i < noting.of_rows.n; i++) {
        const char *name = api_labels_get(&noting.of_rows, i).text;
        bool is_there = api_labels_find(&noting.of_table, name, strlen(name)) < noting.of_table.n;
        n_new += !rows[i].left_out;
        if (!rows[i].left_out && (!is_there || rows[i].missed > 0))
            good = put(monitors, group, name, false, is_there ? 0 : rows[i].missed + 1);
    }
    good = good && add_new(&noting, monitors, group, names, n_new);
    api_labels_free(&noting.of_table);
    api_labels_free(&noting.of_rows);
    api_buffer_free(&noting.rows);
    return good;
}

bool api_columns_leave_out(struct api_monitors *monitors, const char *group,
                           const struct api_buffer *names)
{
    int64_t n = 0;
    bool good =
        names->size == 0 || api_store_number(monitors->store, API_SQL_COLUMNS_COUNT, NULL, &n);
    for (size_t at = 0; good && at < names->size && n++ < API_MAX_UNMONITORED;
         at += strlen(names->data + at) + 1)
        good = put(monitors, group, names->data + at, true, 0);
    return good;
}

bool api_columns_prune(struct api_monitors *monitors)
{
    int64_t n = 0;
    return api_store_number(monitors->store, API_SQL_COLUMNS_COUNT, NULL, &n) &&
           (n == 0 || api_store_run(monitors->store, API_SQL_COLUMNS_PRUNE, NULL));
}

static void write_new(void *context, const struct api_datum *values)
{
    struct api_buffer *out = context;
    if (values[1].integer != 0)
        return;
    api_append(out, ",", out->size > 0 && out->data[out->size - 1] != '[');
    api_append_json_string(out, values[0].text);
}

bool api_columns_write_new(struct api_monitors *monitors, const char *group, struct api_buffer *out)
{
    return api_store_read(monitors->store, API_SQL_COLUMNS, API_ROW(group), write_new, out);
}
