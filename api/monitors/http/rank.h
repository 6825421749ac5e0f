/* api_rank: the position of a monitor in a list, worst first. */
#pragma once

#include "api/monitors/http/pagination.h"
#include "api/monitors/state/registry.h"

struct api_rank {
    const struct api_monitor *monitor;
    int severity; /* the greater, the worse */
    double ratio; /* divergence, of the warning threshold */
    int64_t id;
};

/* Order of states, from 0 for ok: without enough data it is not known to be ok, and one that is stale is to be looked at,
 * unless it drifts. */
int api_severity(enum api_verdict state, bool stale);

struct api_rank api_rank_of(const struct api_monitor *monitor);

/* Compares ranks, for qsort. */
int api_rank_compare(const void *a, const void *b);

/* Checks the parameters `state` and `stale` of a list. */
bool api_check_states(const struct api_pagination *page, struct api_problem *problem);
