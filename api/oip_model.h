/* Metadata of the server and its one model for the Open Inference Protocol. */
#pragma once

#include "api/exchange.h"

bool api_oip_server(struct api_exchange *x);
bool api_oip_live(struct api_exchange *x);
bool api_oip_ready(struct api_exchange *x);
bool api_oip_model(struct api_exchange *x);
bool api_oip_model_ready(struct api_exchange *x);
bool api_oip_config(struct api_exchange *x);
bool api_oip_stats(struct api_exchange *x);
bool api_oip_index(struct api_exchange *x);
