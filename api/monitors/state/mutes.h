/* Mutes: monitors and groups that are muted until a time: no receiver is told about them. Their states, events
 * and pages go on. Columns of tables that have no monitor in their group: new ones, which observations have; and those that
 * were left out when the group got its reference, or whose monitor was deleted, which are no news. Guarded by the lock of the
 * registry that holds them. */
#pragma once

#include "api/json/problem.h"
#include "api/memory/buffer.h"
#include "api/request/tokens.h"

#include <stdint.h>

/* API_MAX_NAME: bytes of the name of a monitor or a group. API_MAX_MUTE_REASON: those of a reason. */
enum { API_MAX_NAME = 128, API_MAX_MUTE_REASON = 200 };

/* API_UNTIL_OK: end of a mute that lasts until what it is of is ok, or all monitors of the group are. */
#define API_UNTIL_OK INT64_MAX

/* api_named: whose a row of a list is: a monitor's or a column's; or a group's, with the name "". */
struct api_named {
    char group[API_MAX_NAME + 1], name[API_MAX_NAME + 1];
};

/* api_named_rows: mutes, or columns: structures that begin with api_named, in its order. */
struct api_named_rows {
    struct api_buffer list;
    size_t counted; /* bytes that the budget has */
    bool is_read;   /* from the store, also if there are none */
};

/* Sets names; false if one is too long, as only a damaged store has it. */
bool api_named_set(struct api_named *named, const char *group, size_t group_size, const char *name,
                   size_t name_size);

/* Of rows of `size` bytes each: sorts them; finds one, NULL if it is not there; finds those of a group, *n of them from the
 * one that it returns. */
void api_named_sort(struct api_named_rows *rows, size_t size);
const void *api_named_find(const struct api_named_rows *rows, size_t size, const char *group,
                           const char *name);
const void *api_named_group(const struct api_named_rows *rows, size_t size, const char *group,
                            size_t *n);

/* Free rows, of which there are none then; or move them in the place of others, which are freed. */
void api_named_free(struct api_named_rows *rows, struct api_budget *budget);
void api_named_move(struct api_named_rows *to, struct api_named_rows *from,
                    struct api_budget *budget);

/* api_mute: until when, API_NO_TIME if not at all; a text without control characters, which may be empty. */
struct api_mute {
    int64_t until;
    bool of_group; /* the mute is of the whole group */
    char reason[API_MAX_MUTE_REASON + 1];
    char by[API_TOKEN_NAME]; /* name of the token that muted; empty without tokens */
};
extern const struct api_mute api_no_mute;

/* api_muted: a row of mutes. */
struct api_muted {
    struct api_named of;
    struct api_mute mute;
};

/* The mute at a time of a monitor: its own or that of its group, whichever ends last; with the name NULL, of the
 * group alone. */
struct api_mute api_mutes_find(const struct api_named_rows *mutes, const char *group,
                               const char *name, int64_t now);

/* Appends {"until","reason","by","scope"}, without an empty `by`, or null. API_MUTE_SIZE: bytes that it has at most. */
enum { API_MUTE_SIZE = 2 * (API_MAX_MUTE_REASON + API_TOKEN_NAME) + 100 };
void api_mute_write(const struct api_mute *mute, struct api_buffer *out);

/* ---- Columns. The store has a row for each, up to API_MAX_UNMONITORED in all */

/* API_MAX_NEW: new ones of a group. */
enum { API_MAX_UNMONITORED = 10000, API_MAX_NEW = 100 };

/* api_column_of: a row. `missed`: requests of the group in a row that lacked a new one; after API_MISSED it is forgotten. */
struct api_column_of {
    struct api_named of;
    bool left_out;
    int64_t missed;
};

/* Finds a column; NULL if it is not known. */
static inline const struct api_column_of *api_columns_find(const struct api_named_rows *columns,
                                                           const char *group, const char *name)
{
    return api_named_find(columns, sizeof(struct api_column_of), group, name);
}

/* Finds the columns of a group: *n of them from the one that it returns. */
static inline const struct api_column_of *api_columns_group(const struct api_named_rows *columns,
                                                            const char *group, size_t *n)
{
    return api_named_group(columns, sizeof(struct api_column_of), group, n);
}
