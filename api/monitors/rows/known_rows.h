/* Known monitors in the store, for its thread. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Reads a set of the store into the cache; NULL if the store or memory fails. */
struct api_known_set *api_known_read(struct api_monitors *monitors, const char *group,
                                     const char *name);
