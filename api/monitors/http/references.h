/* Reference tables: a config for each column, made of its values. */
#pragma once

#include "api/monitors/state/replace.h"
#include "api/tables/table.h"

/* api_references: what a table is turned into. Once *stop is true, a read fails; it may be NULL. */
struct api_references {
    const atomic_bool *stop;
    struct api_monitors *monitors; /* whose configs are kept where they are the same */
    struct api_replacement *replacements;
    size_t n;
    struct api_buffer memory; /* of the replacements */
    struct api_buffer warnings;
    struct api_buffer left_out; /* names of columns that get no monitor, and why, for people */
    struct api_monitor_settings settings; /* of the query */
    const char *include, *exclude;        /* names of columns with commas between, or NULL */
    const char *time; /* a column that has times, which gets no monitor; or NULL */
    bool renews;      /* of a group: columns without a monitor are left out, and warned of */
};

/* Makes room for the replacements of n monitors, in the place of those that there are. Adds one of them, which takes the
 * config; NULL without memory. */
bool api_references_reserve(struct api_references *references, size_t n,
                            struct api_problem *problem);
struct api_replacement *api_references_add(struct api_references *references, const char *group,
                                           const char *name, struct api_config *config,
                                           struct api_problem *problem);

/* Makes configs of the columns that have a name and values, by the settings among `members`: of the columns that
 * `include` names, otherwise of all but nearly unique ones; never of those that `exclude` names. Fails with
 * column_missing if a name in either list is no column. */
bool api_references_read(struct api_references *references, struct api_table *table,
                         const char *group, const json_t *members, struct api_problem *problem);

/* Makes the config of one monitor of its column, or of `members` alone. */
bool api_reference_read(struct api_references *references, struct api_table *table,
                        const char *group, const char *name, const json_t *members,
                        struct api_problem *problem);
void api_references_free(struct api_references *references);

/* Warnings. api_warn_of_header: of a header line that looks like data, or that has another delimiter. api_warn_of_counts: of
 * counts that look cumulative. api_warn_of_reset: of settings that `known` has and a table does not set, so that `made`, the
 * config of the table, has their defaults; `given` are bits of those that the query has. */
void api_warn_of_header(struct api_buffer *warnings, const struct api_table *table);
void api_warn_of_counts(struct api_buffer *warnings, const char *name,
                        const struct api_config *config);
void api_warn_of_reset(struct api_buffer *warnings, const char *name,
                       const struct api_config *known, const struct api_config *made,
                       unsigned given, const json_t *members);
