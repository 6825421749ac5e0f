/* Counts of windows as the schemas up to 11 had them: a row for each bin in kldiv_counts, for each server that adds to an open
 * window one in kldiv_server_counts, with doubles, and doubles that a window was compared with. */
#pragma once

#include "api/store/engine.h"

/* Moves them to the rows of their windows. */
bool api_move_former_counts(struct api_database *database);
