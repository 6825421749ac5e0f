/* api_timeline: the windows that the rows of a table go to, by the times in one of its columns. */
#pragma once

#include "api/monitors/model/labels.h"
#include "api/monitors/model/window.h"
#include "api/tables/table.h"

/* api_stretch: a window of a timeline, and the last time of its rows. */
struct api_stretch {
    int64_t start, end, last;
};

/* Zeroed, but for the settings of the windows and the zone of times that have none. */
struct api_timeline {
    const struct api_monitor_settings *settings;
    const struct api_zone *zone;
    struct api_buffer stretches;   /* struct api_stretch, in the order in which rows meet them */
    struct api_label_table starts; /* of the stretches, in that order; bytes of numbers */
    struct api_buffer rows;        /* uint32_t: the stretch of each row, or API_NO_PART */
    struct api_tz_span to_utc;     /* the last one: most rows are of one */
};
void api_timeline_free(struct api_timeline *timeline);

static inline const struct api_stretch *api_timeline_at(const struct api_timeline *timeline,
                                                        size_t i)
{
    return (const struct api_stretch *)(const void *)timeline->stretches.data + i;
}
static inline size_t api_timeline_size(const struct api_timeline *timeline)
{
    return timeline->stretches.size / sizeof(struct api_stretch);
}

/* api_times: what a column of times is like. */
struct api_times {
    size_t unreadable, line, row; /* of the first: a line of CSV, or 0 */
    const char *period;           /* what the first names instead of a day: "a month"; or NULL */
    int64_t latest;               /* API_NO_TIME if there is none */
    size_t latest_line, latest_row;
};

/* Reads a column into timelines. Fails for a malformed table, without memory, and once *stop is true. */
bool api_timelines_read(struct api_timeline *timelines, size_t n, struct api_table *table,
                        size_t column, const atomic_bool *stop, struct api_times *times,
                        struct api_problem *problem);
