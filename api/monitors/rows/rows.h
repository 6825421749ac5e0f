/* Rows of many monitors, for lists and metrics: those in memory whose number of writes is that of the store are not read again. */
#pragma once

#include "api/monitors/rows/touch.h"

/* Gives the monitors of a group, or all if it is NULL, in any order; without those that cannot be read. A row has
 * at least its first API_SAMPLE_VALUES columns; one in memory, which has a config, all, and stays until the transaction ends. Called in the store's thread, when what jobs
 * have changed is written. False if the store or memory fails. */
bool api_each_row(struct api_monitors *monitors, const char *group,
                  void (*take)(void *context, const struct api_monitor *row), void *context);
