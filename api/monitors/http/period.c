#include "api/monitors/http/period.h"

#include "api/monitors/state/window_rows.h"

#include <inttypes.h>

static void read_period(void *context, const struct api_datum *values)
{
    struct api_period *period = context;
    period->windows = values[0].integer;
    period->first = values[1].integer;
    period->newest = values[2].integer;
    period->end = values[3].integer;
}

bool api_period_add_up(struct api_monitors *monitors, const struct api_monitor *monitor,
                       const char *const names[2], int64_t max, struct api_period *period,
                       double *counts, struct api_moments *moments, struct api_problem *problem)
{
    const struct api_datum *between = API_ROW(monitor->id, monitor->revision, period->from,
                                              period->to, max < INT64_MAX ? max + 1 : max);
    if (!api_store_read(monitors->store, API_SQL_WINDOWS_SPAN, between, read_period, period))
        return false;
    if (period->windows == 0)
        return api_fail(problem, "windows_missing",
                        "no closed window of this revision starts between %s and %s", names[0],
                        names[1]);
    if (period->windows > max)
        return api_fail_at(problem, API_QUERY, names[0], "option_invalid",
                           "more than %" PRId64 " windows start between %s and %s, which have more "
                           "counts than are added up for a request; ask for a shorter period",
                           max, names[0], names[1]);
    return api_counts_run(counts, monitor->config->bins.n_bins, monitors->store,
                          API_SQL_COUNTS_BETWEEN, between) &&
           api_moments_run(moments, monitors->store, API_SQL_MOMENTS_BETWEEN, between);
}
