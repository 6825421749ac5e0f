/* Lists of monitors and groups, worst first: all rows are read, and those of the page are written. */
#pragma once

#include "api/monitors/http/pagination.h"
#include "api/monitors/rows/touch.h"

/* api_rank: the position in a list. */
struct api_rank {
    int severity; /* the greater, the worse */
    double ratio; /* divergence, of the warning threshold */
    int64_t id;
};

/* Order of states, from 0 for ok: without enough data it is not known to be ok, and one that is stale is to be looked at,
 * unless it drifts. */
int api_severity(enum api_verdict state, bool stale);

struct api_rank api_rank_of(const struct api_monitor *monitor);

/* Compares ranks, or what begins with one, for qsort. */
int api_rank_compare(const void *a, const void *b);

/* api_list: the items begin with their ranks. */
struct api_list {
    struct api_page page;
    struct api_buffer items;
    struct api_rank after; /* of the last item of the page before */
};

/* Reads the query, and begins the response; ends it: sorts items of a size, and writes those of the page by a function, whose
 * failure is that of the store. */
bool api_list_begin(struct api_exchange *x, struct api_list *list, const char *name,
                    const char *const *known);
bool api_list_end(struct api_list *list, bool good, size_t size, struct api_monitors *monitors,
                  bool (*write)(struct api_monitors *monitors, const void *item,
                                struct api_buffer *out));
