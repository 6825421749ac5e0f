/* Inputs of an inference request: as JSON, in the binary part, or in shared memory. */
#pragma once

#include "api/loss/oip_body.h"

/* api_oip_reader: a request that is read. */
struct api_oip_reader {
    struct api_call *call;
    struct api_oip_body body;
    size_t input;  /* the number of the one that is read */
    bool has_form; /* true once non_finite was given */
    struct api_problem *problem;
};

/* Fails at a field of an input or an output: "#/inputs/2/datatype"; `list` is "inputs". */
bool api_oip_fail(struct api_oip_reader *reader, const char *list, size_t number, const char *field,
                  const char *code, const char *detail);

/* Reads the array of inputs, NULL if it is absent, to tensors of the call. */
bool api_oip_read_inputs(struct api_oip_reader *reader, const char *inputs);

/* Parameters by which inputs and outputs are in shared memory (Triton's extension). */

/* True if a parameter has a name of that kind, known or not; `parameters` may be NULL. */
bool api_oip_has_slice(const char *parameters);

/* Begins the slice that the parameters name; its `writes` and `number` are set. */
bool api_oip_slice_begin(struct api_slice *slice, const char *parameters,
                         const struct api_service *service, struct api_problem *problem);
