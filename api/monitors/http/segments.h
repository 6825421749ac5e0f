/* Segments: groups of the rows of a table that have one value in a column, which `?by=COLUMN` names: orders[country=DE] beside orders.
 * Each is an exchange of its own with that group as its path, whose steps are those of the request, on the rows of its value alone and in the
 * same transaction. */
#pragma once

#include "api/monitors/http/request.h"

/* API_MAX_SEGMENTS: values that have one, beside `other`. API_SEGMENT_ROWS: rows that a value needs. API_KNOWN_SEGMENTS: those of a
 * group, by one column, that a table may have. */
enum { API_MAX_SEGMENTS = 50, API_SEGMENT_ROWS = 50, API_KNOWN_SEGMENTS = 1000 };

struct api_segment {
    struct api_exchange x;
    size_t rows; /* of the table */
};

struct api_segments {
    char *by;               /* NULL: they are of all columns that the group has segments by */
    struct api_buffer list; /* struct api_segment * */
    struct api_buffer part_of_row; /* uint32_t: the segment of each row; API_NO_PART: none */
};

/* True if the query of a group's request asks for segments: x->segments is made. A problem may be set. */
bool api_segments_wanted(struct api_exchange *x);

/* Adds a segment for each of the most frequent values of the column, and `other` if rows are left. Fails with column_missing. */
bool api_segments_choose(struct api_exchange *x, struct api_table *table);

/* Reads the segments of the group, and their monitors, in the store's thread. Fails with too_many_segments. */
bool api_segments_know(struct api_exchange *x, struct api_monitors *monitors);

/* Finds the segment of each row among those: that of its value, or else `other`; *left becomes the number of rows without one. Fails with
 * segments_missing if there is no segment. */
bool api_segments_find(struct api_exchange *x, struct api_table *table, size_t *left);

/* Appends the warning of rows without a segment, if there are any. */
void api_segments_warn(const struct api_exchange *x, size_t left, struct api_buffer *warnings);

/* Calls a step for each segment that has rows: with a table on these alone. The first problem of one becomes that of the request. */
typedef bool api_segment_step(struct api_exchange *segment, void *context);
bool api_segments_each(struct api_exchange *x, struct api_table *table, api_segment_step *step,
                       void *context);

/* Has a change of a group reach its segments, by all columns, in the store's thread: calls the step for each, with an empty state. Does
 * nothing for a segment. */
bool api_segments_follow(struct api_exchange *x, struct api_monitors *monitors,
                         api_segment_step *step, void *context);

/* Adds the bodies of the segments' responses, if there are segments, to that of the request: `"segments":[...]`. */
void api_segments_write(struct api_exchange *x);

/* Drop what parse made of the segments; end them. */
void api_segments_drop(struct api_exchange *x);
void api_segments_end(struct api_exchange *x);
