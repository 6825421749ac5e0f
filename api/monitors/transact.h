/* Transactions of the store's thread. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Runs jobs, or maintenance, in one transaction; it is concurrent or exclusive: see api_store_begin. False if it
 * failed: nothing has changed then. */
bool api_transact(struct api_monitors *monitors, struct api_store_job *jobs,
                  bool (*upkeep)(struct api_monitors *monitors), bool is_concurrent);

/* Fails jobs whose transaction failed; `is_uncertain`: its commit may have been done. */
void api_fail_jobs(const struct api_monitors *monitors, struct api_store_job *jobs,
                   bool is_uncertain);
