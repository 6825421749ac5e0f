/* Lists of monitors and groups from memory; api_rank: the position in one, worst first. */
#pragma once

#include "api/monitors/http/pagination.h"
#include "api/monitors/state/registry.h"

struct api_rank {
    const struct api_monitor *monitor; /* of a group the first one */
    int severity;                      /* the greater, the worse */
    double ratio;                      /* divergence, of the warning threshold */
    int64_t id;
};

/* Order of states, from 0 for ok: without enough data it is not known to be ok, and one that is stale is to be looked at,
 * unless it drifts. */
int api_severity(enum api_verdict state, bool stale);

struct api_rank api_rank_of(const struct api_monitor *monitor);

/* Compares ranks, for qsort. */
int api_rank_compare(const void *a, const void *b);

/* Steps of lists. Reads the query into x->state, a pagination, once changes of other servers are known. */
enum api_outcome api_list_parse(struct api_exchange *x, const char *const *known);
void api_list_drop(struct api_exchange *x);
#define API_LISTS .state = sizeof(struct api_pagination), .drop = api_list_drop

/* Writes a page of a list by ranks, the member `name`. `next` gives the rank of what begins with monitor number *i of the
 * registry, and moves on behind that; false if it does not pass the filter. `write` appends it. */
bool api_list_write(struct api_exchange *x, const char *name, const void *filter,
                    bool (*next)(const struct api_registry *registry, const void *filter, size_t *i,
                                 struct api_rank *rank),
                    void (*write)(const struct api_registry *registry,
                                  const struct api_monitor *monitor, struct api_buffer *out));
