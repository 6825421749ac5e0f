/* Monitors are read from the store: all of them first, then the ones that other servers changed. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Brings the registry up to date with the store, in a transaction that has done nothing else yet. False
 * if the store or memory fails; the registry is then as it was, and the next call tries again. Monitors
 * that cannot be read are left out. */
bool api_load(struct api_monitors *monitors);

/* Logs the monitors that were left out before there was a log. */
void api_load_tell(struct api_monitors *monitors);
