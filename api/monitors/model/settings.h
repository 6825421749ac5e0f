/* api_monitor_settings: what a monitor is told beside its bins and its reference. */
#pragma once

#include "api/json/fields.h"
#include "api/text/nearest.h"
#include "api/text/zone.h"

#include <jansson.h>

enum api_method { API_AUTO, API_QUANTILE, API_WIDTH, API_LABELS };
enum api_window_kind { API_BATCH, API_SECONDS, API_COUNT };

/* Numbers are doubles, so that one table reads them all; those that count are whole. */
struct api_monitor_settings {
    unsigned given; /* bits of the rows that a query has; 0 once JSON was read after it */
    int method;     /* enum api_method, of bins that are made */
    double bins;
    double window;      /* enum api_window_kind; a row of the table reads this and the next two */
    double window_size; /* seconds, or the number of observations that closes it */
    double grace;       /* seconds that a window stays open after its end */
    double previous;    /* windows before that a window is compared with; 0: with the reference */
    double period; /* seconds between those, of a season, or API_MONTH; 0: they are the last ones */
    const struct api_zone *zone; /* of days, weeks, and periods of whole days */
    double pseudocount;
    double min_observations; /* NaN: max(50, 5 times the bins) */
    double warning, critical, significance;
    double ratio_warning,
        ratio_critical; /* of one cell's share to the reference's; 0: it is not judged */
    double volume_warning,
        volume_critical; /* of the rows of a window to what is usual; 0: they are not judged */
    double pool; /* windows of the largest pool, a power of two: see api/monitors/model/pool.h */
    double fire_after, clear_after;
    double stale_after; /* seconds; NaN: three windows of time, or never */
    double retention_days;
};

/* Windows before that a verdict by numbers of rows needs. */
enum { API_VOLUME_MIN = 5 };

/* A period that is a calendar month: the seconds of the longest. Other periods are whole numbers. */
#define API_MONTH 2678400.5

/* Sets all defaults. */
void api_settings_init(struct api_monitor_settings *settings);

/* Reads the members of `object` that are settings; `known` lists other names, NULL at the end, that
 * are valid there. Fails for names that are neither. Places are below "#/". */
bool api_settings_from_json(struct api_monitor_settings *settings, const json_t *object,
                            const char *const *known, struct api_problem *problem);

/* Reads the parameters of a raw query that are settings; `settings` NULL: none are valid. Gives an object with the
 * values of those that `known` lists, as strings. NULL for other names, and for a setting that is given twice with
 * different values. JSON that is read after that may repeat them, with the same values. */
json_t *api_settings_from_query(struct api_monitor_settings *settings, const char *query,
                                const char *const *known, struct api_problem *problem);

/* Checks what settings say of each other: critical below warning is refused. */
bool api_settings_check(const struct api_monitor_settings *settings, struct api_problem *problem);

/* Appends the members, `"window":...,"compare":...`, in the form that is read. */
void api_settings_write(const struct api_monitor_settings *settings, struct api_buffer *out);

/* Number of windows before that are added up as they close; 0 if a window is compared with others. */
int64_t api_settings_running(const struct api_monitor_settings *settings);

/* Windows of the largest pool: 1 if a window is compared with the ones right before, to which it would be
 * added. */
enum { API_MAX_POOL = 64 };
size_t api_settings_pool(const struct api_monitor_settings *settings);

/* Seconds without an observation after which a monitor is stale; infinite if it never is. */
double api_settings_stale_after(const struct api_monitor_settings *settings);

/* Append the value of `compare`, of `thresholds`. */
void api_write_compare(const struct api_monitor_settings *settings, struct api_buffer *out);
void api_write_thresholds(const struct api_monitor_settings *settings, struct api_buffer *out);

/* ---- The table of settings */

extern const struct api_field api_monitor_setting_rows[];

/* API_NAMES: a list of names with NULL at its end. */
#define API_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* True for a name in such a list. */
static inline bool api_setting_is_among(const char *name, const char *const *names)
{
    return names[api_word_index(names, name)];
}

/* api_setting_scope: the names that are valid somewhere: settings, unless `others` alone are, below
 * `parent` or at the top with `others` beside them. */
struct api_setting_scope {
    enum api_location where;
    const char *parent;        /* or NULL */
    const char *const *others; /* NULL at the end */
    bool settings;
};

/* Fails with option_unknown, the nearest name and all of them. */
bool api_setting_fail_unknown(const struct api_setting_scope *scope, const char *name,
                              struct api_problem *problem);
