/* api_rank: the position of a monitor, or of a group, in a list, worst first. */
#pragma once

#include "api/monitors/http/pagination.h"
#include "api/monitors/state/registry.h"

struct api_rank {
    const struct api_monitor *monitor; /* NULL for a group */
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

/* The cursor of a list by ranks. Reads that of the page before, the rank of its last row; ends a page, whose last row has
 * the rank `last`, or NULL if no row follows. */
bool api_rank_read(struct api_rank *rank, const struct api_pagination *page,
                   struct api_problem *problem);
void api_rank_end(const struct api_rank *last, struct api_buffer *out);

/* Checks the parameters `state` and `stale` of a list. */
bool api_check_states(const struct api_pagination *page, struct api_problem *problem);
