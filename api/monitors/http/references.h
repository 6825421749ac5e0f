/* Reference tables: a config for each column, made of its values. */
#pragma once

#include "api/monitors/state/change.h"
#include "api/tables/table.h"

/* api_references: what a table is turned into. Once *stop is true, a read fails; it may be NULL. */
struct api_references {
    const atomic_bool *stop;
    struct api_budget *budget;
    struct api_replacement *replacements;
    size_t n;
    struct api_buffer memory; /* of the replacements */
    struct api_buffer warnings;
    struct api_buffer left_out; /* names of columns that get no monitor, and why, for people */
    struct api_monitor_settings settings; /* of the query */
    const char *include, *exclude;        /* names of columns with commas between, or NULL */
    unsigned given;                       /* bits of the settings that the query or the body has */
    bool gives_annotations;               /* the body has them */
    bool warns_of_reset; /* settings that a table does not give get their defaults */
};

/* Makes room for the replacements of n monitors, in the place of those that there are. Adds one of them, which takes the
 * config; NULL without memory. */
bool api_references_reserve(struct api_references *references, size_t n,
                            struct api_problem *problem);
struct api_replacement *api_references_add(struct api_references *references, const char *name,
                                           struct api_config *config, struct api_problem *problem);

/* Makes configs of the columns that have a name and values, by the settings among `members`: of the columns that
 * `include` names, otherwise of all but nearly unique ones; never of those that `exclude` names. With `known`, of those alone
 * that have a monitor; others are warned of. Fails with column_missing if a name in either list is no column. */
bool api_references_read(struct api_references *references, struct api_table *table,
                         const json_t *members, const struct api_known_set *known,
                         struct api_problem *problem);

/* Makes the config of one monitor of its column, or of `members` alone. */
bool api_reference_read(struct api_references *references, struct api_table *table,
                        const char *name, const json_t *members, struct api_problem *problem);
/* Goes through a list of names with commas between; a name may itself have commas. Gives `take` each text that may be the
 * next name, until it takes one; if it takes none, fails with column_missing at the parameter, in the words of `none`. */
bool api_names_take(const char *list, const char *parameter, const char *none,
                    bool (*take)(void *context, const char *name, size_t size), void *context,
                    struct api_problem *problem);

void api_references_free(struct api_references *references);

/* Warnings. api_warn_of_header: of a header line that looks like data, or that has another delimiter. api_warn_of_counts: of
 * counts that look cumulative. api_note_given: notes which settings are given. api_warn_of_change: of settings that the former config
 * has and a table does not set, so that they have their defaults; and of a new reference that holds none of the labels. */
void api_warn_of_header(struct api_buffer *warnings, const struct api_table *table);
void api_warn_of_counts(struct api_buffer *warnings, const char *name,
                        const struct api_config *config);
void api_note_given(struct api_references *references, const json_t *members);
void api_warn_of_change(struct api_references *references, const struct api_replacement *r);
