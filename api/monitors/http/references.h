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
    struct api_buffer warnings;
    struct api_buffer left_out; /* names of columns that get no monitor, and why, for people */
    struct api_monitor_settings settings; /* of the query */
    const char *include, *exclude;        /* names of columns with commas between, or NULL */
    const char *time; /* a column that has times, which gets no monitor; or NULL */
};

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
