/* Rows of the table of settings, for the files that read it. */
#ifndef KLDIV_API_MONITORS_MODEL_SETTINGS_ROWS_H
#define KLDIV_API_MONITORS_MODEL_SETTINGS_ROWS_H

#include "api/monitors/model/settings.h"

/* api_setting_kind: NUMBER is one, WHOLE one without a fraction; null resets either. The others have
 * forms of their own. */
enum api_setting_kind {
    API_SETTING_NUMBER,
    API_SETTING_WHOLE,
    API_SETTING_METHOD,
    API_SETTING_WINDOW,
    API_SETTING_COMPARE
};

struct api_setting_row {
    const char *name;   /* as a query parameter, and as a member */
    const char *parent; /* the member that it is a member of, or NULL */
    size_t offset;
    double fallback, least, most; /* `least` is allowed, or where it is an open 0, not */
    enum api_setting_kind kind;
    bool open;
};

/* Ends with a row without a name. */
extern const struct api_setting_row api_setting_rows[];

/* Field of a setting. */
double *api_setting_field(struct api_settings *settings, const struct api_setting_row *row);

/* Reads one value. Fails with option_invalid. */
bool api_setting_read(const struct api_setting_row *row, const json_t *value,
                      struct api_settings *settings, struct api_problem *problem);

/* True for a name in a list with NULL at its end. */
bool api_setting_is_among(const char *name, const char *const *names);

/* api_setting_scope: the names that are valid somewhere: settings, unless `others` alone are, below
 * `parent` or at the top with `others` beside them. */
struct api_setting_scope {
    enum api_place where;
    const char *parent;        /* or NULL */
    const char *const *others; /* NULL at the end */
    bool settings;
};

/* Fails with option_unknown, the nearest name and all of them. */
bool api_setting_fail_unknown(const struct api_setting_scope *scope, const char *name,
                              struct api_problem *problem);

#endif
