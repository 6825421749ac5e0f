/* Functions of the endpoints of this folder, for the rows of endpoints.c. */
#pragma once

#include "api/request/endpoint.h"

extern const struct api_steps api_kl_div, api_infer;                  /* kl_div.c */
extern const struct api_steps api_oip_set_trace, api_oip_set_logging; /* oip_settings.c */

/* Functions that only write a response. */

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
bool api_oip_logging(struct api_exchange *x);
bool api_oip_trace(struct api_exchange *x);
