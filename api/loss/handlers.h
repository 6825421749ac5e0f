/* Functions of the endpoints of this folder, for the rows of endpoints.c. */
#pragma once

#include "api/request/exchange.h"

/* kl_div.c: POST /kl_div and POST /v2/models/kl_div/infer. */
bool api_kl_div_begin(struct api_exchange *x);
bool api_infer_begin(struct api_exchange *x);
bool api_loss_prepare(struct api_exchange *x, double max_ns);
bool api_loss(struct api_exchange *x);
void api_kl_div_end(struct api_exchange *x);
void api_infer_end(struct api_exchange *x);

/* health.c: /livez, /readyz, /metrics. */
bool api_live(struct api_exchange *x);
bool api_ready(struct api_exchange *x);
bool api_metrics_prepare(struct api_exchange *x, double max_ns);
bool api_metrics(struct api_exchange *x);

/* oip_model.c: metadata of the server and its one model for the Open Inference Protocol. */
bool api_oip_server(struct api_exchange *x);
bool api_oip_live(struct api_exchange *x);
bool api_oip_ready(struct api_exchange *x);
bool api_oip_model(struct api_exchange *x);
bool api_oip_model_ready(struct api_exchange *x);
bool api_oip_config(struct api_exchange *x);
bool api_oip_stats(struct api_exchange *x);
bool api_oip_index(struct api_exchange *x);
bool api_oip_load(struct api_exchange *x);
bool api_oip_unload(struct api_exchange *x);

/* oip_settings.c: settings of Triton's trace and logging extensions. */
bool api_oip_setting_begin(struct api_exchange *x);
bool api_oip_logging(struct api_exchange *x);
bool api_oip_set_logging(struct api_exchange *x);
bool api_oip_trace(struct api_exchange *x);
bool api_oip_set_trace(struct api_exchange *x);
