#include "api/monitors/state/window_rows.h"

#include "api/store/counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_settings(struct api_window *window, const struct api_datum *datum)
{
    if (datum->kind != API_SQL_TEXT)
        return true;
    window->settings = strndup(datum->text, datum->size);
    return window->settings != NULL;
}

/* ---- Values of rows */

enum { MAX_COUNTS = API_MAX_BINS + KL_OUTER_BINS, MAX_BYTES = MAX_COUNTS * API_COUNT_BYTES };

static struct api_datum counts_datum(const struct api_snapshot *snapshot, char bytes[MAX_BYTES])
{
    return API_BYTES(bytes,
                     api_counts_write(snapshot->counts, snapshot->config->bins.n_bins, bytes));
}

/* A copy of bytes, NULL if there are none or memory is exhausted, which sets *good to false. */
static char *read_bytes(const struct api_datum *datum, size_t *size, bool *good)
{
    bool is_there = datum->kind == API_SQL_BYTES;
    *size = is_there ? datum->size : 0;
    char *copy = is_there ? malloc(*size + 1) : NULL;
    if (copy && *size > 0)
        memcpy(copy, datum->text, *size);
    *good &= copy || !is_there;
    return copy;
}

void api_moments_read(const struct api_datum *datum, struct api_moments *moments)
{
    struct api_moments added;
    if (datum->kind != API_SQL_BYTES || datum->size != sizeof added)
        return;
    memcpy(&added, datum->text, sizeof added);
    api_moments_add(moments, &added);
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

/* Windows of versions without pools decided alone. */
static void read_pooled(struct api_scores *scores, const struct api_datum *values)
{
    bool alone = values[0].kind != API_SQL_INTEGER && scores->verdict != API_INSUFFICIENT;
    scores->pooled = (struct api_pooled){.windows = alone ? 1 : (size_t)values[0].integer,
                                         .n = api_datum_number(&values[1]),
                                         .kl = api_datum_number(&values[2]),
                                         .p_value = api_datum_number(&values[3]),
                                         .noise_floor = api_datum_number(&values[4]),
                                         .bins = (size_t)values[5].integer};
    if (values[6].kind == API_SQL_BYTES && values[6].size == sizeof scores->pooled.ratio)
        memcpy(&scores->pooled.ratio, values[6].text, values[6].size);
}

/* Mean and standard deviation of the windows that a window was compared with. */
static struct api_spread read_spread(const struct api_datum *datum)
{
    struct api_spread spread = API_NO_SPREAD;
    if (datum->kind == API_SQL_BYTES && datum->size == sizeof spread)
        memcpy(&spread, datum->text, sizeof spread);
    return spread;
}

/* Reads a row; false if memory is exhausted. */
static bool read_window(struct api_window *window, const struct api_datum *values)
{
    *window = (struct api_window){
        .id = values[0].integer,
        .revision = values[1].integer,
        .start = values[2].integer,
        .end = values[3].integer,
        .closed = values[4].integer != 0,
        .restated = values[5].integer != 0,
        .n = (double)values[6].integer,
        .scores = {.drift = {.kl = api_datum_number(&values[7]),
                             .kl_reverse = api_datum_number(&values[8]),
                             .js = api_datum_number(&values[9]),
                             .psi = api_datum_number(&values[10]),
                             .p_value = api_datum_number(&values[11]),
                             .unseen_ratio = api_datum_number(&values[12])},
                   .missing_ratio = api_datum_number(&values[13]),
                   .verdict = api_verdict_of(values[14].integer),
                   .top = values[16].kind == API_SQL_INTEGER ? values[16].integer : API_TOP_UNKNOWN,
                   .top_share = api_datum_number(&values[17])},
        .state = api_verdict_of(values[15].integer)};
    read_pooled(&window->scores, &values[18]);
    api_moments_read(&values[25], &window->moments);
    window->scores.reference_spread = read_spread(&values[26]);
    bool good = read_settings(window, &values[27]);
    window->reference = read_bytes(&values[28], &window->reference_size, &good);
    window->counts = read_bytes(&values[29], &window->counts_size, &good);
    if (!good)
        api_window_free(window);
    return good;
}

bool api_window_store_n(struct api_store *store, int64_t monitor,
                        const struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    char bytes[MAX_BYTES];
    const struct api_datum *row = API_ROW(window->start, window->end, API_INTEGER(window->n),
                                          api_moments_datum(&window->moments),
                                          counts_datum(snapshot, bytes), monitor, window->id);
    return api_store_run(store, API_SQL_WINDOW_N, row);
}

bool api_window_store(struct api_store *store, int64_t monitor, const struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    char bytes[MAX_BYTES];
    const struct api_scores *scores = &window->scores;
    const struct kl_drift *drift = &scores->drift;
    const struct api_pooled *pooled = &scores->pooled;
    const struct api_datum null = {.kind = API_SQL_NULL};
    bool has_pool =
        pooled->windows > 1 || /* else it is the window as it is, or none */
        (pooled->windows == 1 &&
         (pooled->kl != drift->kl || pooled->p_value != drift->p_value || pooled->ratio.bin > 0));
    const struct api_datum parameters[] = {
        API_INTEGER(monitor),
        API_INTEGER(window->id),
        API_INTEGER(window->revision),
        API_INTEGER(window->start),
        API_INTEGER(window->end),
        API_INTEGER(window->closed),
        API_INTEGER(window->restated),
        API_INTEGER(window->n),
        api_datum_real(drift->kl),
        api_datum_real(drift->kl_reverse),
        api_datum_real(drift->js),
        api_datum_real(drift->psi),
        api_datum_real(drift->p_value),
        api_datum_real(drift->unseen_ratio),
        api_datum_real(scores->missing_ratio),
        API_INTEGER(scores->verdict),
        API_INTEGER(window->state),
        scores->top == API_TOP_UNKNOWN ? null : API_INTEGER(scores->top),
        api_datum_real(scores->top_share),
        has_pool ? API_INTEGER(pooled->windows) : null,
        has_pool ? API_INTEGER(pooled->n) : null,
        has_pool ? api_datum_real(pooled->kl) : null,
        has_pool ? api_datum_real(pooled->p_value) : null,
        pooled->windows > 0 ? api_datum_real(pooled->noise_floor) : null,
        has_pool && pooled->bins > 0 ? API_INTEGER(pooled->bins) : null,
        pooled->ratio.bin > 0 ? API_BYTES((const char *)&pooled->ratio, sizeof pooled->ratio)
                              : null,
        api_moments_datum(&window->moments),
        window->reference && !isnan(scores->reference_spread.mean)
            ? API_BYTES((const char *)&scores->reference_spread, sizeof scores->reference_spread)
            : null,
        window->settings ? api_datum_text(window->settings) : null,
        window->reference ? API_BYTES(window->reference, window->reference_size) : null,
        counts_datum(snapshot, bytes)};
    return api_store_run(store, API_SQL_WINDOW_PUT, parameters);
}

/* ---- Lists */

static void add_row(void *context, const struct api_datum *values)
{
    struct api_buffer *rows = &((struct api_window_list *)context)->rows;
    if (!api_buffer_room(rows, sizeof(struct api_window)))
        return;
    if (read_window((struct api_window *)(rows->data + rows->size), values))
        rows->size += sizeof(struct api_window);
    else
        rows->failed = true;
}

bool api_window_list_run(struct api_window_list *list, struct api_store *store,
                         enum api_statement statement, const struct api_datum *parameters)
{
    *list = (struct api_window_list){.n = 0};
    bool good = api_store_read(store, statement, parameters, add_row, list);
    list->windows = (struct api_window *)list->rows.data;
    list->n = list->rows.size / sizeof *list->windows;
    if (list->rows.failed)
        api_store_run_out_of_memory(store);
    return good && !list->rows.failed;
}

void api_window_list_free(struct api_window_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        api_window_free(&list->windows[i]);
    api_buffer_free(&list->rows);
    *list = (struct api_window_list){.n = 0};
}

/* ---- Counts */

struct counts {
    double *counts;
    size_t n_bins;
    struct api_moments *moments;
};

static void add_counts(void *context, const struct api_datum *values)
{
    const struct counts *to = context;
    api_counts_add(values[0].text, values[0].size, to->counts, to->n_bins);
    api_moments_read(&values[1], to->moments);
}

bool api_counts_run(double *counts, size_t n_bins, struct api_moments *moments,
                    struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters)
{
    struct counts to = {counts, n_bins, moments};
    return api_store_read(store, statement, parameters, add_counts, &to);
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
