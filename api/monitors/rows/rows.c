#include "api/monitors/rows/rows.h"

/* known: a row's id, the number of its last write, and its observations. */
struct known {
    int64_t id, changed, observations;
};

/* reading: rows that are given on. */
struct reading {
    struct api_monitors *monitors;
    size_t n_in_memory;
    void (*take)(void *context, const struct api_monitor *row);
    void *context;
    struct api_buffer known;
};

static void give(const struct reading *reading, const struct api_monitor *row)
{
    if (!api_is_unreadable(reading->monitors, row->id, row->version))
        reading->take(reading->context, row);
}

static const struct api_monitor *find(const struct reading *reading, const struct known *known)
{
    return api_touched_row(reading->monitors, known->id, known->changed, known->observations);
}

static void add_known(void *context, const struct api_datum *values)
{
    struct reading *reading = context;
    const struct known known = {values[0].integer, values[1].integer, values[2].integer};
    api_append(&reading->known, &known, sizeof known);
    reading->n_in_memory += find(reading, &known) != NULL;
}

static void give_row(void *context, const struct api_datum *values)
{
    const struct reading *reading = context;
    struct api_monitor row = {.config = NULL};
    api_monitor_read_part(&row, values, API_SAMPLE_VALUES);
    give(reading, &row);
}

/* Gives rows of which most are in memory. */
static bool give_known(const struct reading *reading, size_t n)
{
    const struct known *known = (const void *)reading->known.data;
    for (size_t i = 0; i < n; i++) {
        const struct api_monitor *row = find(reading, &known[i]);
        if (row)
            give(reading, row);
        else if (!api_store_read(reading->monitors->store, API_SQL_MONITOR, API_ROW(known[i].id),
                                 give_row, (void *)reading))
            return false;
    }
    return true;
}

bool api_each_row(struct api_monitors *monitors, const char *group,
                  void (*take)(void *context, const struct api_monitor *row), void *context)
{
    struct reading reading = {.monitors = monitors, .take = take, .context = context};
    const struct api_datum *of = API_ROW(group ? group : "");
    bool good = api_store_read(monitors->store, group ? API_SQL_CHANGES_OF_GROUP : API_SQL_CHANGES,
                               of, add_known, &reading);
    size_t n = reading.known.size / sizeof(struct known);
    if (reading.known.failed)
        good = api_transaction_fail_oom(monitors);
    else if (good && reading.n_in_memory >= n - n / 4)
        good = give_known(&reading, n);
    else if (good)
        good = api_store_read(monitors->store, group ? API_SQL_SAMPLES_OF_GROUP : API_SQL_SAMPLES,
                              of, give_row, &reading);
    api_buffer_free(&reading.known);
    return good;
}
