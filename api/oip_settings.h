/* Settings of Triton's trace and logging extensions
 * (https://github.com/triton-inference-server/server/tree/main/docs/protocol). They are fixed here: a
 * request that sets what is set succeeds, another fails. */
#pragma once

#include "api/exchange.h"

bool api_oip_setting_begin(struct api_exchange *x);
bool api_oip_logging(struct api_exchange *x);
bool api_oip_set_logging(struct api_exchange *x);
bool api_oip_trace(struct api_exchange *x);
bool api_oip_set_trace(struct api_exchange *x);
