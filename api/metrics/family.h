/* Families of metrics, as Prometheus reads them. */
#pragma once

#include "api/memory/buffer.h"

/* Appends the lines before those of a family. */
void api_metrics_head(struct api_buffer *out, const char *name, const char *type, const char *help);

/* Appends a family of one value, without labels: a counter if its name ends in _total, otherwise a gauge. */
void api_metrics_value(struct api_buffer *out, const char *name, const char *help, double value);
