/* Endpoints of probes and metrics: /livez, /readyz, /metrics. */
#pragma once

#include "api/request/endpoint.h"

bool api_live(struct api_exchange *x);
bool api_ready(struct api_exchange *x);
extern const struct api_steps api_metrics;
