/* api_settings: what a monitor is told beside its bins and its reference. */
#ifndef KLDIV_API_MONITORS_MODEL_SETTINGS_H
#define KLDIV_API_MONITORS_MODEL_SETTINGS_H

#include "api/problem.h"

#include <jansson.h>

enum api_method { API_AUTO, API_QUANTILE, API_WIDTH, API_LABELS };
enum api_window_kind { API_BATCH, API_SECONDS, API_COUNT };

/* Numbers are doubles, so that one table reads them all; those that count are whole. */
struct api_settings {
    double method, bins; /* enum api_method; of bins that are made */
    double window;       /* enum api_window_kind */
    double window_size;  /* seconds, or the number of observations that closes it */
    double grace;        /* seconds that a window stays open after its end */
    double previous;     /* windows before that a window is compared with; 0: with the reference */
    double pseudocount;
    double min_observations; /* NaN: max(50, 5 times the bins) */
    double warning, critical, significance;
    double fire_after, clear_after;
    double retention_days;
};

/* Sets all defaults. */
void api_settings_init(struct api_settings *settings);

/* Reads the members of `object` that are settings; `known` lists other names, NULL at the end, that
 * are valid there. Fails for names that are neither. Places are below "#/". */
bool api_settings_from_json(struct api_settings *settings, const json_t *object,
                            const char *const *known, struct api_problem *problem);

/* Adds the parameters of a raw query to `object`, as the members that they stand for. `known` lists
 * parameters that are no settings, NULL at the end; their values become members of `others`, as
 * strings. Fails for other names, and for a setting that is given twice with different values. */
bool api_settings_from_query(json_t *object, const char *query, const char *const *known,
                             json_t *others, struct api_problem *problem);

/* Checks what settings say of each other: critical below warning is refused. */
bool api_settings_check(const struct api_settings *settings, struct api_problem *problem);

/* Appends the members, `"window":...,"compare":...`, in the form that is read. */
void api_settings_write(const struct api_settings *settings, struct api_buffer *out);

#endif
