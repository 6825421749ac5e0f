#include "api/monitors/rows/window_rows.h"

#include "api/store/columns.h"
#include "api/store/counts.h"
#include "api/store/row_fields.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields */

/* Columns in their order. */
enum {
#define COLUMN(number, name) COLUMN_##name,
    API_WINDOW_COLUMNS(COLUMN) COLUMNS
#undef COLUMN
};

#define FIELD(kind, member, ...)                                                                   \
    {                                                                                              \
        API_MEMBER_##kind, offsetof(struct api_window, member), __VA_ARGS__                        \
    }
#define MEMBER(kind, member) FIELD(kind, member, 0, INT64_MIN)
#define STRUCT(member) FIELD(STRUCT, member, sizeof(((struct api_window *)0)->member), 0)
#define BYTES(member) FIELD(BYTES, member, offsetof(struct api_window, member##_size), 0)

static const struct api_row_field fields[COLUMNS] = {
    [COLUMN_id] = MEMBER(WHOLE, id),
    [COLUMN_revision] = MEMBER(WHOLE, revision),
    [COLUMN_start_at] = MEMBER(WHOLE, start),
    [COLUMN_end_at] = MEMBER(WHOLE, end),
    [COLUMN_closed] = MEMBER(FLAG, closed),
    [COLUMN_restated] = MEMBER(FLAG, restated),
    [COLUMN_n] = MEMBER(COUNT, n),
    [COLUMN_kl] = MEMBER(REAL, scores.drift.kl),
    [COLUMN_kl_reverse] = MEMBER(REAL, scores.drift.kl_reverse),
    [COLUMN_js] = MEMBER(REAL, scores.drift.js),
    [COLUMN_psi] = MEMBER(REAL, scores.drift.psi),
    [COLUMN_p_value] = MEMBER(REAL, scores.drift.p_value),
    [COLUMN_unseen_ratio] = MEMBER(REAL, scores.drift.unseen_ratio),
    [COLUMN_missing_ratio] = MEMBER(REAL, scores.missing_ratio),
    [COLUMN_verdict] = MEMBER(ENUM, scores.verdict),
    [COLUMN_state] = MEMBER(ENUM, state),
    [COLUMN_top] = FIELD(WHOLE, scores.top, 0, API_TOP_UNKNOWN),
    [COLUMN_top_share] = MEMBER(REAL, scores.top_share),
    [COLUMN_pooled_windows] = MEMBER(SIZE, scores.pooled.windows),
    [COLUMN_pooled_n] = MEMBER(COUNT, scores.pooled.n),
    [COLUMN_pooled_kl] = MEMBER(REAL, scores.pooled.kl),
    [COLUMN_pooled_p_value] = MEMBER(REAL, scores.pooled.p_value),
    [COLUMN_pooled_noise_floor] = MEMBER(REAL, scores.pooled.noise_floor),
    [COLUMN_pooled_bins] = MEMBER(SIZE, scores.pooled.bins),
    [COLUMN_pooled_ratio] = STRUCT(scores.pooled.ratio),
    [COLUMN_volume] = STRUCT(scores.volume),
    [COLUMN_moments] = STRUCT(moments),
    [COLUMN_reference_spread] = STRUCT(scores.reference_spread),
    [COLUMN_settings] = MEMBER(TEXT, settings),
    [COLUMN_reference] = BYTES(reference),
    [COLUMN_counts] = BYTES(counts),
};

/* ---- Values of rows */

enum { MAX_COUNTS = API_MAX_BINS + KL_OUTER_BINS, MAX_BYTES = MAX_COUNTS * API_COUNT_BYTES };

void api_moments_read(const struct api_datum *datum, struct api_moments *moments)
{
    struct api_moments added;
    if (datum->kind != API_SQL_BYTES || datum->size != sizeof added)
        return;
    memcpy(&added, datum->text, sizeof added);
    api_moments_add(moments, &added);
}

void api_volume_read(const struct api_datum *datum, struct api_volume *volume)
{
    *volume = (struct api_volume){.windows = 0};
    if (datum->kind == API_SQL_BYTES && datum->size == sizeof *volume)
        memcpy(volume, datum->text, sizeof *volume);
}

struct api_datum api_moments_datum(const struct api_moments *moments)
{
    return moments->covered > 0 ? API_BYTES((const char *)moments, sizeof *moments)
                                : (struct api_datum){.kind = API_SQL_NULL};
}

struct api_datum api_time_datum(int64_t time)
{
    if (time == API_NO_TIME)
        return (struct api_datum){.kind = API_SQL_NULL};
    return API_INTEGER(time);
}

int64_t api_time_of(const struct api_datum *datum)
{
    return datum->kind == API_SQL_INTEGER ? datum->integer : API_NO_TIME;
}

/* Reads a row, whose first value is the monitor; false if memory is exhausted. Windows of versions without pools decided alone. */
static bool read_window(struct api_window *window, const struct api_datum *values)
{
    *window =
        (struct api_window){.monitor = values[0].integer, .scores.reference_spread = API_NO_SPREAD};
    bool good = api_row_read(fields, COLUMNS, values + 1, window);
    struct api_scores *scores = &window->scores;
    scores->verdict = api_verdict_of(scores->verdict);
    window->state = api_verdict_of(window->state);
    if (scores->pooled.windows == 0 && scores->verdict != API_INSUFFICIENT)
        scores->pooled.windows = 1;
    if (!good)
        api_window_free(window);
    return good;
}

bool api_window_store_n(struct api_store *store, int64_t monitor,
                        const struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    char bytes[MAX_BYTES];
    size_t size = api_counts_write(snapshot->counts, snapshot->config->bins.n_bins, bytes);
    const struct api_datum *row =
        API_ROW(window->start, window->end, API_INTEGER(window->n),
                api_moments_datum(&window->moments), API_BYTES(bytes, size), monitor, window->id);
    return api_store_run(store, API_SQL_WINDOW_N, row);
}

/* Leaves out what tells nothing: a pool that is the window as it is; a spread of what it was not compared with. */
static void shorten(struct api_window *row)
{
    const struct kl_drift *drift = &row->scores.drift;
    struct api_pooled *pooled = &row->scores.pooled;
    bool has_ratio = pooled->ratio.bin > 0;
    if (pooled->windows == 0)
        pooled->noise_floor = (double)NAN;
    if (!has_ratio)
        memset(&pooled->ratio, 0, sizeof pooled->ratio);
    if (pooled->windows == 0 || (pooled->windows == 1 && pooled->kl == drift->kl &&
                                 pooled->p_value == drift->p_value && !has_ratio)) {
        pooled->windows = pooled->bins = 0;
        pooled->n = pooled->kl = pooled->p_value = (double)NAN;
    }
    if (!row->reference || isnan(row->scores.reference_spread.mean))
        memset(&row->scores.reference_spread, 0, sizeof row->scores.reference_spread);
    if (row->moments.covered == 0)
        row->moments = (struct api_moments){.n = 0};
}

bool api_window_store(struct api_store *store, int64_t monitor, const struct api_snapshot *snapshot)
{
    struct api_datum values[1 + COLUMNS] = {API_INTEGER(monitor)};
    struct api_window row = snapshot->window;
    char bytes[MAX_BYTES];
    shorten(&row);
    row.counts = bytes;
    row.counts_size = api_counts_write(snapshot->counts, snapshot->config->bins.n_bins, bytes);
    api_row_write(fields, COLUMNS, &row, values + 1);
    return api_store_run(store, API_SQL_WINDOW_PUT, values);
}

/* ---- Lists */

void api_window_list_add(void *context, const struct api_datum *values)
{
    struct api_buffer *rows = &((struct api_window_list *)context)->rows;
    if (!api_buffer_room(rows, sizeof(struct api_window)))
        return;
    if (read_window((struct api_window *)(rows->data + rows->size), values))
        rows->size += sizeof(struct api_window);
    else
        rows->failed = true;
}

bool api_window_list_end(struct api_window_list *list, struct api_store *store)
{
    list->windows = (struct api_window *)list->rows.data;
    list->n = list->rows.size / sizeof *list->windows;
    if (list->rows.failed)
        api_store_run_out_of_memory(store);
    return !list->rows.failed;
}

bool api_window_list_run(struct api_window_list *list, struct api_store *store,
                         enum api_statement statement, const struct api_datum *parameters)
{
    *list = (struct api_window_list){.n = 0};
    bool good = api_store_read(store, statement, parameters, api_window_list_add, list);
    return api_window_list_end(list, store) && good;
}

void api_window_list_free(struct api_window_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        api_window_free(&list->windows[i]);
    api_buffer_free(&list->rows);
    *list = (struct api_window_list){.n = 0};
}

/* ---- Counts */

void api_counts_add_row(void *context, const struct api_datum *values)
{
    const struct api_counts_sum *to = context;
    api_counts_add(values[0].text, values[0].size, to->counts, to->n_bins);
    api_moments_read(&values[1], to->moments);
}

bool api_counts_run(double *counts, size_t n_bins, struct api_moments *moments,
                    struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters)
{
    struct api_counts_sum sum = {counts, n_bins, moments};
    return api_store_read(store, statement, parameters, api_counts_add_row, &sum);
}

/* ---- Texts that are no labels */

bool api_unseen_store(struct api_store *store, int64_t monitor, int64_t window,
                      struct api_label_table *unseen)
{
    size_t n = 0;
    const struct api_label *top =
        unseen->n > 0 ? api_labels_sort(unseen, false, API_UNSEEN_KEPT, &n) : NULL;
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = api_store_run(store, API_SQL_UNSEEN_ADD,
                             (struct api_datum[]){API_INTEGER(monitor), API_INTEGER(window),
                                                  API_BYTES(top[i].text, strlen(top[i].text)),
                                                  API_INTEGER(top[i].count)});
    return good && (n == 0 || api_store_run(store, API_SQL_UNSEEN_PRUNE,
                                            API_ROW(monitor, window, API_UNSEEN_KEPT)));
}

static void write_unseen(void *context, const struct api_datum *values)
{
    api_unseen_write(values[0].text, values[0].size, (size_t)values[1].integer, context);
}

bool api_unseen_run(struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters, struct api_unseen *unseen)
{
    return api_store_read(store, statement, parameters, write_unseen, unseen);
}

bool api_unseen_read(struct api_store *store, int64_t monitor, const struct api_snapshot *snapshot,
                     struct api_unseen *unseen)
{
    const struct api_bins *bins = &snapshot->config->bins;
    api_unseen_clear(unseen);
    return !bins->labelled || snapshot->counts[api_bins_other(bins)] == 0 ||
           api_unseen_run(store, API_SQL_UNSEEN,
                          API_ROW(monitor, snapshot->window.id, API_UNSEEN_KEPT), unseen);
}
