/* The parameters by which inputs and outputs of inferences are in shared memory (Triton's extension). */
#pragma once

#include "api/exchange.h"
#include "api/regions/slice.h"

/* True if a parameter has a name of that kind, known or not; `parameters` may be NULL. */
bool api_oip_has_slice(const char *parameters);

/* Begins the slice that the parameters name; its `writes` and `number` are set. */
bool api_oip_slice_begin(struct api_slice *slice, const char *parameters,
                         const struct api_service *service, struct api_problem *problem);
