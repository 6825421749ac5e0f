/* Requests that make or replace monitors: PUT, PATCH, POST reference. Their parse, or `make` in the store's thread, adds
 * replacements, a config for each monitor; the rest is here. */
#pragma once

#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/change.h"

struct api_replacing {
    struct api_exchange *x;
    json_t *parameters;
    struct api_monitor_settings settings; /* of the query */
    bool leaves_out;                      /* columns of ids, dates and free text get no monitor */
    const char *include, *exclude;        /* names with commas between, of the query; or NULL */
    const char *segment_by; /* the column whose value the rows of a segment have in common */
    bool is_dry;   /* true if nothing is to be stored: the client wants to see the result */
    bool previews; /* a dry run tells what the windows of a monitor would have raised */
    struct api_replacement *replacements; /* in `list` */
    size_t n;
    struct api_buffer list, warnings;
    struct api_buffer left_out; /* names of columns that get no monitor, and why, for people */

    /* Makes replacements, in the place of those that there are, once conditions are checked; fails with a problem, or if the
     * store fails. NULL: parse made them. */
    bool (*make)(struct api_replacing *d, struct api_monitors *monitors);

    /* PUT: */
    struct api_buffer columns;  /* names of those that get no monitor: see api_columns_leave_out */
    struct api_problem problem; /* of labels that only a monitor may have that has them already */
    unsigned given;             /* bits of the settings that the query or the body has */
    bool gives_annotations;     /* the body has them */
    bool warns_of_reset;        /* settings that a table does not give get their defaults */

    /* PATCH, and POST reference: */
    bool reaches_segments;                      /* of a group */
    struct api_period period;                   /* whose windows become the reference */
    int64_t counts_left;                        /* of windows, for the references of segments */
    const struct api_known_set *known_of_group; /* of a segment: `include` may name these, too */
};

/* Begins the state: reads the query, whose parameters are `known`, and settings if `takes_settings`. With dry_run the request only
 * reads the store. */
bool api_replacing_begin(struct api_exchange *x, const char *const *known, bool takes_settings);

/* Adds a replacement, which takes the config. Forgets all of them. */
bool api_replacing_add(struct api_replacing *d, const char *name, struct api_config *config);
void api_replacing_clear(struct api_replacing *d);

/* Makes configs of the columns of a table that have a name and values, by the settings among `members`: of the columns that
 * `include` names, otherwise of all but nearly unique ones; never of those that `exclude` names. With x->known, of those alone
 * that have a monitor; others are warned of. Fails with column_missing if a name in either list is no column. */
bool api_references_read(struct api_replacing *d, struct api_table *table, const json_t *members);

/* Ends the read of a segment's rows: the whole table has the warnings. True if they were read, or make no reference for any column: the
 * segment is left out then. */
bool api_replacing_end_segment(struct api_replacing *d, bool is_read);

/* Fails with reference_empty: no column got a config, and why. */
bool api_fail_empty_reference(const struct api_replacing *d, const struct api_table *table);

/* Makes the config of the monitor of the path, of its column, or of `members` alone. */
bool api_reference_read(struct api_replacing *d, struct api_table *table, const json_t *members);

/* Goes through a list of names with commas between; a name may itself have commas. Gives `take` each text that may be the
 * next name, until it takes one; if it takes none, fails with column_missing at the parameter, in the words of `none`. */
bool api_names_take(const char *list, const char *parameter, const char *none,
                    bool (*take)(void *context, const char *name, size_t size), void *context,
                    struct api_problem *problem);

/* Warnings. api_warn_of_header: of a header line that looks like data, or that has another delimiter. api_warn_of_counts: of
 * counts that look cumulative. api_note_given: notes which settings are given. api_warn_of_change: of settings that the former config
 * has and a table does not set, so that they have their defaults; and of a new reference that holds none of the labels. */
void api_warn_of_header(struct api_buffer *warnings, const struct api_table *table);
void api_warn_of_counts(struct api_buffer *warnings, const char *name,
                        const struct api_config *config);
void api_note_given(struct api_replacing *d, const json_t *members);
void api_warn_of_change(struct api_replacing *d, const struct api_replacement *r);

/* Steps. Checks conditions, changes the monitors, and writes the response. */
bool api_replacing_handle(struct api_exchange *x, struct api_monitors *monitors);
void api_replacing_drop(struct api_exchange *x);

/* API_REPLACES: what those endpoints have in common. */
#define API_REPLACES                                                                               \
    .place = API_STORE_WRITES, .state = sizeof(struct api_replacing),                              \
    .estimate = api_estimate_documents, .handle = api_replacing_handle, .drop = api_replacing_drop
