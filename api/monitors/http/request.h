/* Common parts of requests about monitors: names in the path, parameters, tables, warnings. */
#pragma once

#include "api/json/json_load.h"
#include "api/monitors/http/pagination.h"
#include "api/monitors/model/counting.h"
#include "api/monitors/rows/touch.h"
#include "api/request/route.h"
#include "api/tables/table.h"

/* Fails if the host keeps no monitors, if none were read from the store yet, or if Accept allows no
 * response. */
bool api_check_available(struct api_exchange *x);

/* Fails if Accept allows no JSON. DELETE has a response without content, and needs none. Clients that accept nothing but
 * problems also take JSON. */
bool api_check_accept(struct api_exchange *x);

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

/* Checks of a header: the names in the path, and that there are no parameters. */
bool api_check_change(struct api_exchange *x);

/* ---- Monitors, by which a body is read */

/* Has x->known be the monitors of the path, if they are in memory, or were read for this request; else API_REFRESH. */
enum api_outcome api_know(struct api_exchange *x);

/* Reads them in the store's thread; false if the store or memory fails. */
bool api_know_again(struct api_exchange *x, struct api_monitors *monitors);

/* Forgets them: they have changed. */
void api_forget_known(struct api_exchange *x);

/* True if other servers may have changed them since they were read. */
bool api_may_be_outdated(const struct api_exchange *x);

/* Fails with group_not_found; or with monitor_not_found, if there is the group. */
bool api_fail_missing(struct api_exchange *x, bool has_group);

/* ---- In the store's thread: false, or NULL, with a problem as of api_fail_missing, or without one if the store fails */

/* That there is the group, or the monitor, of the path. */
bool api_check_exists(struct api_exchange *x, struct api_monitors *monitors);

/* The monitor of the path. */
struct api_monitor *api_monitor_of(struct api_exchange *x, struct api_monitors *monitors);

/* Undoes the coding of a request's body and opens its table, which is empty if that fails. `part`: the file of that name in a
 * form of several; NULL: the body itself, or the only file of a form. */
bool api_open_table(struct api_exchange *x, const char *part, struct api_table *table);

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

/* Append warnings of a column without a monitor, or without a name; and, by name up to 1,000, of the monitors of x->known for
 * which a table has no column, in the words of `message`, if it has those of `n_present` alone. api_fail_unknown: fails with columns_unknown, or as
 * api_fail_missing does. */
void api_warn_of_unknown(struct api_buffer *warnings, const char *name);
void api_warn_of_absent(const struct api_exchange *x, const struct api_table *table,
                        size_t n_present, const char *message, struct api_buffer *warnings);
bool api_fail_unknown(struct api_exchange *x, const struct api_table *table);

/* The message of a column with API_NESTED. */
extern const char api_nested_message[];

/* The message of a monitor without a column. */
extern const char api_absent_message[];

/* Appends the warning of unreadable values of a column, if there are any. */
void api_warn_of_unreadable(struct api_buffer *warnings, const char *column,
                            const struct api_unreadable *unreadable);

/* Checks If-Match and If-None-Match of a request for one monitor, by its row; NULL: there is none. */
bool api_check_conditions(struct api_exchange *x, const struct api_monitor *monitor);

/* Responses: without content; JSON, whose content type it sets, and whose body it returns. */
bool api_write_nothing(struct api_exchange *x);
struct api_buffer *api_begin_json(struct api_exchange *x);
