/* Samples of monitors in the store, for its thread. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Reads the numbers of the monitors that a token is for, in the store's thread; unless it is for all, and there are lines of the
 * format that are not older than `since`. False if the store or memory fails. */
bool api_metric_samples_read(struct api_monitors *monitors, const struct api_token *token,
                             enum api_metrics_format format, double since,
                             struct api_metric_samples *samples);
