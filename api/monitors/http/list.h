/* Lists of monitors and groups, worst first. The store's thread reads all rows, and keeps those of the page; the page is written
 * by another thread. */
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

/* api_list: x->state. Its items begin with their ranks; those of the page are formatted once all are read. */
struct api_list {
    struct api_exchange *x;
    struct api_pagination page;
    const char *name; /* of the member of the response that is the list */
    size_t item_size, n;
    struct api_rank after, last; /* of the last items of the page before, and of this one */
    struct api_buffer items, objects;
};

/* Steps. Reads the query; in the store's thread begins a list anew, adds an item that is behind the cursor, and ends it: sorts
 * items, and writes those of the page by a function, whose failure is that of the store; writes the response. */
enum api_outcome api_list_parse(struct api_exchange *x, const char *name, size_t item_size,
                                const char *const *known);
void api_list_begin(struct api_list *list);
void api_list_add(struct api_list *list, const void *item);
bool api_list_end(struct api_list *list, struct api_monitors *monitors,
                  bool (*write)(struct api_monitors *monitors, const void *item,
                                struct api_buffer *out));
bool api_list_write(struct api_exchange *x);
void api_list_drop(struct api_exchange *x);
