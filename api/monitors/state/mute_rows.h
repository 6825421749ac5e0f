/* Mutes in the store, for its thread. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Reads all mutes into a list that is empty. */
bool api_mutes_read(struct api_monitors *monitors, struct api_mutes *mutes);

/* After a transaction has changed mutes, or deleted monitors: deletes those that are over or of nothing, tells other
 * servers, and reads what is left. */
bool api_mutes_renew(struct api_monitors *monitors, struct api_mutes *mutes);

/* Lets the registry have a list, under its lock; the former one is freed, and `mutes` is empty. */
void api_mutes_publish(struct api_monitors *monitors, struct api_mutes *mutes);
