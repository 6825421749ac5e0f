/* Endpoints for those who watch the server: /livez, /readyz, /metrics. */
#pragma once

#include "api/exchange.h"

bool api_live(struct api_exchange *x);
bool api_ready(struct api_exchange *x);

/* Lines for Prometheus: those of the host and of the store, and those of monitors, which all who ask share. */
bool api_metrics_prepare(struct api_exchange *x, double max_ns);
bool api_metrics(struct api_exchange *x);
