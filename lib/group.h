/* Groups of rows, computed by one thread. */
#pragma once

#include "lib/workspace.h"

/* Computes a group, in `scratch`, which kl_start_chunk has prepared. */
void kl_run_group(const struct kl_group *group, void *scratch);
