/* The exposition of monitors, for Prometheus. Each monitor keeps its lines as text. */
#ifndef KLDIV_API_MONITORS_EXPOSITION_H
#define KLDIV_API_MONITORS_EXPOSITION_H

#include "api/monitors/registry.h"

/* Makes the lines of all monitors that have changed anew, with the registry locked for writing.
 * Monitors without memory for that keep their old ones. */
void api_registry_refresh(struct api_registry *registry);

/* Appends all families with the lines of all monitors. Call it with the registry locked for reading. */
void api_registry_expose(const struct api_registry *registry, struct api_buffer *out);

#endif
