#include "api/store/former_counts.h"

#include "api/memory/buffer.h"
#include "api/store/counts.h"

#include <stdlib.h>

static bool read(struct api_database *database, enum api_statement statement,
                 const struct api_datum *parameters, api_row_reader *row, void *context)
{
    const struct api_rows rows = {row, context};
    return database->engine->run(database, statement, parameters, row ? &rows : NULL);
}

static bool run(struct api_database *database, enum api_statement statement,
                const struct api_datum *parameters)
{
    return read(database, statement, parameters, NULL, NULL);
}

static void run_out_of_memory(struct api_database *database)
{
    database->last.out_of_memory = true;
    (void)api_database_fail(database, "no memory is left");
}

/* count: of a bin of a window. */
struct count {
    int64_t window, bin;
    double count;
};

/* MAX_BINS: more than a monitor has; a damaged row has others. */
enum { MAX_BINS = 2000 };

static void append(struct api_buffer *counts, int64_t window, int64_t bin, double count)
{
    if (bin < 0 || bin >= MAX_BINS)
        return;
    api_append(counts, &(struct count){window, bin, count}, sizeof(struct count));
}

static void read_count(void *context, const struct api_datum *values)
{
    append(context, values[0].integer, values[1].integer, (double)values[2].integer);
}

static void read_server_counts(void *context, const struct api_datum *values)
{
    for (size_t i = 0; i < values[1].size / sizeof(double); i++) {
        double count;
        memcpy(&count, values[1].text + i * sizeof count, sizeof count);
        append(context, values[0].integer, (int64_t)i, count);
    }
}

static int by_window_and_bin(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    return x->window != y->window ? (x->window > y->window) - (x->window < y->window)
                                  : (x->bin > y->bin) - (x->bin < y->bin);
}

/* Writes the counts of a window, the first n of `counts`, which are in order of bins. */
static bool write_window(struct api_database *database, int64_t monitor, const struct count *counts,
                         size_t n)
{
    size_t n_bins = (size_t)counts[n - 1].bin + 1;
    double *bins = calloc(n_bins, sizeof *bins);
    char *bytes = malloc(n_bins * API_COUNT_BYTES);
    bool good = bins && bytes;
    for (size_t i = 0; good && i < n; i++)
        bins[counts[i].bin] += counts[i].count;
    if (good) {
        size_t size = api_counts_write(bins, n_bins, bytes);
        good = run(database, API_SQL_WINDOW_COUNTS,
                   API_ROW(API_BYTES(bytes, size), monitor, counts->window));
    } else {
        run_out_of_memory(database);
    }
    free(bins);
    free(bytes);
    return good;
}

static bool write_windows(struct api_database *database, int64_t monitor, struct count *counts,
                          size_t n)
{
    bool good = true;
    qsort(counts, n, sizeof *counts, by_window_and_bin);
    for (size_t i = 0, size; good && i < n; i += size) {
        for (size = 1; i + size < n && counts[i + size].window == counts[i].window; size++)
            ;
        good = write_window(database, monitor, counts + i, size);
    }
    return good;
}

/* ---- What windows were compared with */

/* reference: of a window; doubles follow. */
struct reference {
    int64_t window;
    size_t n;
};

static void read_reference(void *context, const struct api_datum *values)
{
    struct reference reference = {values[0].integer, values[1].size / sizeof(double)};
    api_append(context, &reference, sizeof reference);
    api_append(context, values[1].text, reference.n * sizeof(double));
}

static bool write_reference(struct api_database *database, int64_t monitor, int64_t window,
                            const double *counts, size_t n)
{
    char *bytes = malloc(n * API_COUNT_BYTES + 1);
    if (!bytes) {
        run_out_of_memory(database);
        return false;
    }
    size_t size = api_counts_write(counts, n, bytes);
    bool good =
        run(database, API_SQL_WINDOW_REFERENCE, API_ROW(API_BYTES(bytes, size), monitor, window));
    free(bytes);
    return good;
}

static bool write_references(struct api_database *database, int64_t monitor,
                             const struct api_buffer *references)
{
    bool good = true;
    for (size_t at = 0; good && at < references->size;) {
        const struct reference *reference = (const void *)(references->data + at);
        at += sizeof *reference;
        good = write_reference(database, monitor, reference->window,
                               (const double *)(const void *)(references->data + at), reference->n);
        at += reference->n * sizeof(double);
    }
    return good;
}

/* ---- All windows, WINDOWS of a monitor at once */

enum { WINDOWS = 100 };

/* Moves what a monitor's windows from one number to another have. */
static bool move_windows(struct api_database *database, int64_t monitor, int64_t from, int64_t to)
{
    struct api_buffer counts = {0}, references = {0};
    const struct api_datum *row = API_ROW(monitor, from, to);
    bool good = read(database, API_SQL_FORMER_COUNTS, row, read_count, &counts) &&
                read(database, API_SQL_FORMER_SERVER_COUNTS, row, read_server_counts, &counts) &&
                read(database, API_SQL_FORMER_REFERENCES, row, read_reference, &references);
    if (counts.failed || references.failed)
        run_out_of_memory(database);
    good = good && !counts.failed && !references.failed &&
           write_windows(database, monitor, (struct count *)counts.data,
                         counts.size / sizeof(struct count)) &&
           write_references(database, monitor, &references);
    api_buffer_free(&counts);
    api_buffer_free(&references);
    return good;
}

/* window: its monitor and number. */
struct window {
    int64_t monitor, id;
};

static void read_window(void *context, const struct api_datum *values)
{
    const struct window window = {values[0].integer, values[1].integer};
    api_append(context, &window, sizeof window);
}

static bool move_all(struct api_database *database)
{
    struct api_buffer rows = {0};
    bool good = read(database, API_SQL_FORMER_WINDOWS, NULL, read_window, &rows) && !rows.failed;
    const struct window *windows = (const struct window *)rows.data;
    size_t n = rows.size / sizeof *windows;
    for (size_t i = 0, size; good && i < n; i += size) {
        for (size = 1;
             size < WINDOWS && i + size < n && windows[i + size].monitor == windows[i].monitor;
             size++)
            ;
        good = move_windows(database, windows[i].monitor, windows[i].id, windows[i + size - 1].id);
    }
    if (rows.failed)
        run_out_of_memory(database);
    api_buffer_free(&rows);
    return good;
}

/* ---- Sums of values that servers have added to open windows */

/* sums: struct api_moments as six doubles: two numbers of values, and two sums of two doubles each. */
struct sums {
    int64_t monitor, window;
    double sums[6];
};

static void read_sums(void *context, const struct api_datum *values)
{
    struct sums sums = {.monitor = values[0].integer, .window = values[1].integer};
    if (values[2].kind != API_SQL_BYTES || values[2].size != sizeof sums.sums)
        return;
    memcpy(sums.sums, values[2].text, sizeof sums.sums);
    api_append(context, &sums, sizeof sums);
}

/* Adds a sum of two doubles to another (Dekker, 1971). */
static void add_long(double to[2], const double added[2])
{
    for (int i = 0; i < 2; i++) {
        double high = to[0] + added[i], part = high - to[0];
        to[1] += (to[0] - (high - part)) + (added[i] - part);
        to[0] = high;
    }
}

/* Adds the sums that servers kept to those of their windows. Rows are in order of windows. */
static bool move_sums(struct api_database *database)
{
    struct api_buffer rows = {0};
    bool good = read(database, API_SQL_FORMER_SUMS, NULL, read_sums, &rows) && !rows.failed;
    const struct sums *sums = (const struct sums *)rows.data;
    if (rows.failed)
        run_out_of_memory(database);
    size_t n = rows.size / sizeof *sums;
    for (size_t i = 0; good && i < n;) {
        struct sums total = sums[i++];
        for (; i < n && sums[i].monitor == total.monitor && sums[i].window == total.window; i++) {
            total.sums[0] += sums[i].sums[0];
            total.sums[1] += sums[i].sums[1];
            add_long(total.sums + 2, sums[i].sums + 2);
            add_long(total.sums + 4, sums[i].sums + 4);
        }
        good = run(database, API_SQL_WINDOW_MOMENTS,
                   API_ROW(API_BYTES((const char *)total.sums, sizeof total.sums), total.monitor,
                           total.window));
    }
    api_buffer_free(&rows);
    return good;
}

bool api_move_former_counts(struct api_database *database)
{
    return move_all(database) && move_sums(database);
}
