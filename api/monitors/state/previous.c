#include "api/monitors/state/previous.h"

#include "api/monitors/state/window_rows.h"

#include <stdlib.h>
#include <string.h>

static const struct api_position last = {INT64_MAX, INT64_MAX};

void api_previous_free(struct api_previous *previous)
{
    free(previous->counts);
    *previous = (struct api_previous){.n = 0};
}

/* ---- Statements */

/* FROM: parameters of a statement on the windows before or after a position. */
#define FROM(of, at, limit) API_ROW((of)->monitor, (of)->revision, (at).start, (at).id, limit)

/* Adds the counts and the moments of up to `limit` windows before a position. */
static bool add_windows(const struct api_previous_of *of, struct api_store *store,
                        struct api_position before, int64_t limit, double *to,
                        struct api_moments *moments)
{
    const struct api_datum *from = FROM(of, before, limit);
    return api_counts_run(to, of->n_bins, store, API_SQL_COUNTS_BEFORE, from) &&
           api_moments_run(moments, store, API_SQL_MOMENTS_BEFORE, from);
}

/* Takes away the counts and the moments that two statements give. */
static bool take_away(const struct api_previous_of *of, struct api_store *store,
                      const enum api_statement statements[2], const struct api_datum *from,
                      double *to, struct api_moments *moments)
{
    struct api_moments taken = {.n = 0};
    double *counts = calloc(of->n_bins, sizeof *counts);
    if (!counts)
        api_store_run_out_of_memory(store);
    bool good = counts && api_counts_run(counts, of->n_bins, store, statements[0], from) &&
                api_moments_run(&taken, store, statements[1], from);
    for (size_t i = 0; good && i < of->n_bins; i++)
        to[i] -= counts[i];
    if (good)
        api_moments_subtract(moments, &taken);
    free(counts);
    return good;
}

static bool take_window_away(struct api_previous *previous, struct api_store *store,
                             struct api_position window)
{
    previous->n--;
    return take_away(
        &previous->of, store, (const enum api_statement[]){API_SQL_COUNTS, API_SQL_MOMENTS},
        API_ROW(previous->of.monitor, window.id), previous->counts, &previous->moments);
}

/* keys: positions that a statement gives: how many, the first and the last. */
struct keys {
    int64_t n;
    struct api_position first, last;
};

static void note_key(void *context, const struct api_datum *values)
{
    struct keys *keys = context;
    keys->last = (struct api_position){values[0].integer, values[1].integer};
    if (keys->n++ == 0)
        keys->first = keys->last;
}

static bool read_keys(const struct api_previous_of *of, struct api_store *store,
                      enum api_statement statement, struct api_position at, int64_t limit,
                      struct keys *keys)
{
    *keys = (struct keys){.n = 0};
    return api_store_read(store, statement, FROM(of, at, limit), note_key, keys);
}

/* ---- Reading */

static void read_row(void *context, const struct api_datum *values)
{
    struct api_previous *previous = context;
    const struct api_previous_of *of = &previous->of;
    size_t size = of->n_bins * sizeof *previous->counts;
    previous->holds = values[0].integer == of->revision && values[1].integer == of->k &&
                      values[7].kind == API_SQL_BYTES && values[7].size == size &&
                      values[8].kind == API_SQL_BYTES && values[8].size == sizeof previous->moments;
    if (!previous->holds)
        return;
    previous->n = values[2].integer;
    previous->oldest = (struct api_position){values[3].integer, values[4].integer};
    previous->newest = (struct api_position){values[5].integer, values[6].integer};
    memcpy(previous->counts, values[7].text, size);
    memcpy(&previous->moments, values[8].text, sizeof previous->moments);
}

static bool make(struct api_previous *previous, struct api_store *store)
{
    struct keys keys;
    const struct api_previous_of *of = &previous->of;
    if (!read_keys(of, store, API_SQL_KEYS_OF_WINDOWS_BEFORE, last, of->k, &keys) ||
        !add_windows(of, store, last, of->k, previous->counts, &previous->moments))
        return false;
    previous->n = keys.n;
    previous->newest = keys.first;
    previous->oldest = keys.last;
    previous->holds = previous->has_changed = true;
    return true;
}

static bool read(struct api_previous *previous, struct api_store *store,
                 const struct api_previous_of *of)
{
    previous->of = *of;
    previous->counts = calloc(of->n_bins, sizeof *previous->counts);
    if (!previous->counts) {
        api_store_run_out_of_memory(store);
        return false;
    }
    previous->is_read =
        api_store_read(store, API_SQL_SUM, API_ROW(of->monitor), read_row, previous);
    return previous->is_read;
}

bool api_previous_read(struct api_previous *previous, struct api_store *store,
                       const struct api_previous_of *of, bool may_build)
{
    return (previous->is_read || read(previous, store, of)) &&
           (previous->holds || !may_build || make(previous, store));
}

/* ---- Windows before a position */

/* Adds the sum, without its windows from the position on, and with as many windows before its oldest. */
static bool add_except_newest(const struct api_previous *previous, struct api_store *store,
                              struct api_position before, int64_t n, double *to,
                              struct api_moments *moments)
{
    const struct api_previous_of *of = &previous->of;
    for (size_t i = 0; i < of->n_bins; i++)
        to[i] += previous->counts[i];
    api_moments_add(moments, &previous->moments);
    if (n == 0)
        return true;
    return take_away(of, store,
                     (const enum api_statement[]){API_SQL_COUNTS_FROM, API_SQL_MOMENTS_FROM},
                     FROM(of, before, INT64_MAX), to, moments) &&
           (previous->n < of->k || add_windows(of, store, previous->oldest, n, to, moments));
}

bool api_previous_add_up(const struct api_previous *previous, struct api_store *store,
                         struct api_position before, double *to, struct api_moments *moments)
{
    const struct api_previous_of *of = &previous->of;
    int64_t n = 0;
    bool is_last = previous->n == 0 || api_position_compare(before, previous->newest) > 0;
    if (previous->holds && !is_last &&
        !api_store_number(store, API_SQL_WINDOWS_COUNT_FROM, FROM(of, before, of->k / 2 + 1), &n))
        return false;
    if (previous->holds && n <= of->k / 2)
        return add_except_newest(previous, store, before, n, to, moments);
    return add_windows(of, store, before, of->k, to, moments);
}

/* ---- Changes */

/* Makes the sum begin after its oldest window, which is taken out. */
static bool drop_oldest(struct api_previous *previous, struct api_store *store)
{
    struct keys keys;
    if (!take_window_away(previous, store, previous->oldest) ||
        !read_keys(&previous->of, store, API_SQL_KEY_OF_WINDOW_AFTER, previous->oldest, 1, &keys))
        return false;
    previous->oldest = keys.first;
    return true;
}

bool api_previous_close(struct api_previous *previous, struct api_store *store,
                        struct api_position window, const double *counts,
                        const struct api_moments *moments)
{
    bool is_older = previous->n > 0 && api_position_compare(window, previous->oldest) < 0;
    if (!previous->holds || (is_older && previous->n == previous->of.k))
        return true;
    if (previous->n == 0 || is_older)
        previous->oldest = window;
    if (previous->n == 0 || api_position_compare(window, previous->newest) > 0)
        previous->newest = window;
    for (size_t i = 0; i < previous->of.n_bins; i++)
        previous->counts[i] += counts[i];
    api_moments_add(&previous->moments, moments);
    previous->n++;
    previous->has_changed = true;
    return previous->n <= previous->of.k || drop_oldest(previous, store);
}

/* True if the window is in the sum. */
static bool has(const struct api_previous *previous, struct api_position window)
{
    return previous->holds && previous->n > 0 &&
           api_position_compare(window, previous->oldest) >= 0 &&
           api_position_compare(window, previous->newest) <= 0;
}

void api_previous_restate(struct api_previous *previous, struct api_position window,
                          const double *added, const struct api_moments *moments)
{
    if (!has(previous, window))
        return;
    for (size_t i = 0; i < previous->of.n_bins; i++)
        previous->counts[i] += added[i];
    api_moments_add(&previous->moments, moments);
    previous->has_changed = true;
}

bool api_previous_delete(struct api_previous *previous, struct api_store *store,
                         struct api_position window)
{
    if (!has(previous, window))
        return true;
    previous->has_changed = true;
    return take_window_away(previous, store, window);
}

/* Finds the ends of what is left. */
static bool find_ends(struct api_previous *previous, struct api_store *store)
{
    struct api_position below = {previous->oldest.start, previous->oldest.id - 1};
    struct api_position above = {previous->newest.start, previous->newest.id + 1};
    struct keys oldest, newest;
    if (!read_keys(&previous->of, store, API_SQL_KEY_OF_WINDOW_AFTER, below, 1, &oldest) ||
        !read_keys(&previous->of, store, API_SQL_KEYS_OF_WINDOWS_BEFORE, above, 1, &newest))
        return false;
    previous->oldest = oldest.first;
    previous->newest = newest.first;
    return true;
}

bool api_previous_refill(struct api_previous *previous, struct api_store *store)
{
    const struct api_previous_of *of = &previous->of;
    struct keys older;
    if (!previous->holds || !previous->has_changed)
        return true;
    if (previous->n > 0 && !find_ends(previous, store))
        return false;
    struct api_position end = previous->n > 0 ? previous->oldest : last;
    int64_t lacks = of->k - previous->n;
    if (!read_keys(of, store, API_SQL_KEYS_OF_WINDOWS_BEFORE, end, lacks, &older))
        return false;
    if (older.n == 0)
        return true;
    if (!add_windows(of, store, end, lacks, previous->counts, &previous->moments))
        return false;
    previous->newest = previous->n > 0 ? previous->newest : older.first;
    previous->oldest = older.last;
    previous->n += older.n;
    return true;
}

bool api_previous_store(struct api_previous *previous, struct api_store *store)
{
    const struct api_previous_of *of = &previous->of;
    const struct api_datum *row =
        API_ROW(of->monitor, of->revision, of->k, previous->n, previous->oldest.start,
                previous->oldest.id, previous->newest.start, previous->newest.id,
                API_BYTES((const char *)previous->counts, of->n_bins * sizeof *previous->counts),
                API_BYTES((const char *)&previous->moments, sizeof previous->moments));
    previous->has_changed = false;
    return api_store_run(store, API_SQL_SUM_PUT, row);
}
