/* POST reference: closed windows become the reference. */
#pragma once

#include "api/exchange.h"
#include "api/monitors/state/transaction.h"

/* api_reference_range: windows that start at `from` or later, and before `to`. */
struct api_reference_range {
    int64_t from, to;
};

/* Reads the body, {"from": TIME, "to": TIME}. */
bool api_reference_range_read(struct api_exchange *x, struct api_reference_range *range);

/* Makes the config that has the counts of these windows as its reference; in a transaction. NULL with a
 * problem, as windows_missing; or without one if the store fails. */
struct api_config *api_reference_promote(struct api_monitors *monitors,
                                         const struct api_monitor *monitor,
                                         const struct api_reference_range *range,
                                         struct api_problem *problem);
