/* Endpoints of Triton's shared memory extension: system and CUDA, of which there is none. */
#pragma once

#include "api/request/endpoint.h"

extern const struct api_steps api_region_register, api_cuda_region_register;
bool api_region_status(struct api_exchange *x);
bool api_region_unregister(struct api_exchange *x);

/* There are no CUDA regions: the list is empty, all are unregistered, and none can be registered. */
bool api_cuda_region_status(struct api_exchange *x);
bool api_cuda_region_unregister(struct api_exchange *x);
