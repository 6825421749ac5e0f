/* Common parts of requests about monitors: names in the path, parameters, tables, warnings. */
#pragma once

#include "api/json/json_load.h"
#include "api/monitors/http/pagination.h"
#include "api/monitors/model/counting.h"
#include "api/monitors/state/transaction.h"
#include "api/request/route.h"
#include "api/tables/table.h"

/* Fails if the host keeps no monitors, if none were read from the store yet, or if Accept allows no
 * response. */
bool api_check_available(struct api_exchange *x);

/* Checks the names in the path, and Content-Type, Content-Encoding and declared size where there is
 * a body. */
bool api_check_names(struct api_exchange *x);
/* Has a problem of an unknown member tell how a table is sent, if a member holds values as one of pandas' to_json. Returns
 * false. */
bool api_fail_of_members(const json_t *members, struct api_problem *problem);
bool api_check_body(struct api_exchange *x);

/* Refuses parameters: a DELETE with dry_run=true, which it does not have, must not delete. */
bool api_check_no_query(struct api_exchange *x);
const char *api_group_of(const struct api_exchange *x);
const char *api_name_of(const struct api_exchange *x);     /* NULL for a group's path */
const char *api_stored_name(const struct api_exchange *x); /* as the store has it: "" for a group */

/* Fails with monitor_not_found, or group_not_found if the group has no monitor. */
bool api_find_monitor(struct api_exchange *x);

/* The monitor of the path, in the store's thread; NULL, with a problem as of api_find_monitor, if there is none. */
struct api_monitor *api_monitor_of(struct api_exchange *x);

/* Checks of a header. api_check_monitor: the names in the path and, unless another server may have made the monitor,
 * that it exists. api_check_change: also that there are no parameters. */
bool api_check_monitor(struct api_exchange *x);
bool api_check_change(struct api_exchange *x);

/* True if other servers may have changed monitors since this one read the store: parse returns API_REFRESH then. */
bool api_must_refresh(const struct api_exchange *x);

/* api_held: a monitor as it was at one moment. `config` is held; NULL if there is no monitor. */
struct api_held {
    struct api_config *config;
    int64_t id, revision, version;
    enum api_verdict state;
};
struct api_held api_hold_monitor(struct api_monitors *monitors, const char *group,
                                 const char *name);

/* Undoes the coding of a request's body and opens its table, which is empty if that fails. */
bool api_open_table(struct api_exchange *x, struct api_table *table);

/* Parses the body of a request as JSON, which api_json_free frees; fails with json_malformed. */
bool api_load_json(struct api_exchange *x, struct api_json *json);

/* Reads the members of a small body: values[i] becomes the value of the member known[i], unboxed; NULL if it is
 * absent or null. `known` has NULL at its end. Fails with body_not_object and an example, or with option_unknown. */
bool api_read_members(const json_t *root, const char *const *known, const json_t **values,
                      const char *example, struct api_problem *problem);

/* Reads a member `name` that is a text of at most `max` bytes without control characters. Fails with option_invalid. */
bool api_read_text(const json_t *member, const char *name, size_t max, char *to,
                   struct api_problem *problem);

/* Estimates of parse: of a body that is a table, or of one that becomes documents. */
bool api_estimate_table(struct api_exchange *x);
bool api_estimate_documents(struct api_exchange *x);

/* The column of a table for the monitor `name`: the column of that name, or `values`, or the only column. Fails with
 * column_missing. */
bool api_find_column(const struct api_table *table, const char *name, size_t *column,
                     struct api_problem *problem);

/* Reads the time of observations from a parameter or a member, either of which may be NULL; now if
 * both are. Fails with timestamp_invalid. */
bool api_read_timestamp(const json_t *parameter, const json_t *member, int64_t *time,
                        struct api_problem *problem);

/* Appends a warning to a list of objects with commas between. A count of 0 becomes null, and so
 * does a line of 0. */
void api_warn(struct api_buffer *warnings, const char *code, const char *column, size_t count,
              size_t line, const char *message);

/* Appends the member of a response that has these warnings, and a comma before it. */
void api_write_warnings(const struct api_buffer *warnings, struct api_buffer *out);

/* Appends a warning of a name that the table has not as it is: see enum api_flaw. */
void api_warn_of_name(struct api_buffer *warnings, const struct api_column *column);

/* Append warnings of a column without a monitor, or without a name; and, by name up to 1,000, of the group's monitors for
 * which a table has no column, if it has those of `n_present` alone. api_fail_unknown: fails with columns_unknown, or as api_find_monitor does. */
void api_warn_of_unknown(struct api_buffer *warnings, const char *name);
void api_warn_of_absent(const struct api_exchange *x, const struct api_table *table,
                        size_t n_present, struct api_buffer *warnings);
bool api_fail_unknown(struct api_exchange *x, const struct api_table *table);

/* The message of a column with API_NESTED. */
extern const char api_nested_message[];

/* Appends the warning of unreadable values of a column, if there are any. */
void api_warn_of_unreadable(struct api_buffer *warnings, const char *column,
                            const struct api_unreadable *unreadable);

/* Checks If-Match and If-None-Match of a request for one monitor, as it is now; under a lock of the registry, or in the
 * store's thread. */
bool api_check_conditions(struct api_exchange *x);

/* Makes room for the response before anything is stored, so that a request that is stored is not refused for memory. */
bool api_reserve_response(struct api_exchange *x, size_t size);

/* Responses: without content; JSON, whose content type it sets, and whose body it returns. */
bool api_write_nothing(struct api_exchange *x);
struct api_buffer *api_begin_json(struct api_exchange *x);
