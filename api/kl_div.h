/* POST /kl_div and POST /v2/models/kl_div/infer. */
#pragma once

#include "api/exchange.h"

bool api_kl_div_begin(struct api_exchange *x);
bool api_infer_begin(struct api_exchange *x);
bool api_loss_prepare(struct api_exchange *x, double max_ns);
bool api_loss(struct api_exchange *x);
void api_kl_div_end(struct api_exchange *x);
void api_infer_end(struct api_exchange *x);
