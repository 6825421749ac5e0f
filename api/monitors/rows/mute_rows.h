/* Mutes in the store, for its thread. False if the store or memory fails. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Reads all of the store; does nothing if they are read. */
bool api_mutes_read(struct api_monitors *monitors, struct api_mutes *mutes);

/* Ends those that are over, or that are of what is gone. */
bool api_mutes_end(struct api_monitors *monitors);
