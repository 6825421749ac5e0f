/* api_period: closed windows of a monitor's revision that start in [from, to), and what they add up to. */
#pragma once

#include "api/monitors/state/transaction.h"

struct api_period {
    int64_t from, to;
    int64_t windows;            /* how many there are */
    int64_t first, newest, end; /* starts of the first and the last of them; the latest end */
};

/* Finds the windows, and adds their counts to `counts`, their moments to `moments`. Fails with windows_missing if there are none, and if they
 * have more than `max` counts. `names` are the parameters or members that give the period, for the problem. Called in
 * the store's thread. */
bool api_period_add_up(struct api_monitors *monitors, const struct api_monitor *monitor,
                       const char *const names[2], int64_t max, struct api_period *period,
                       double *counts, struct api_moments *moments, struct api_problem *problem);
