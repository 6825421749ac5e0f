/* The exposition of monitors, for Prometheus. Each monitor keeps its lines as text. */
#ifndef KLDIV_API_MONITORS_EXPOSITION_H
#define KLDIV_API_MONITORS_EXPOSITION_H

#include "api/monitors/registry.h"

/* Makes the lines of a monitor anew: for each family in order, its lines, then a NUL. Keeps the old
 * ones if memory is exhausted. */
void api_monitor_expose(struct api_monitor *monitor);

/* Appends all families with the lines of all monitors. Call it with the registry locked for reading. */
void api_registry_expose(const struct api_registry *registry, struct api_buffer *out);

#endif
