/* Inputs of an inference request: as JSON, in the binary part, or in shared memory. */
#pragma once

#include "api/json/json_cursor.h"
#include "api/loss/call.h"

/* api_oip_raw: an input whose elements are in the binary part, which is read after the JSON. */
struct api_oip_raw {
    struct api_tensor *tensor;
    enum kl_dtype dtype;
    bool has_size;
    size_t size; /* its binary_data_size */
};

/* api_oip_reader: a request that is read. */
struct api_oip_reader {
    struct api_json_cursor
        json;                  /* the JSON part; there is a binary one unless it ends at raw_end */
    const char *raw, *raw_end; /* the unread rest of the binary part; empty if there is none */
    struct api_call *call;
    struct api_problem *problem;
    uint64_t options; /* bits: those that were read */
    size_t data_size; /* bytes of the JSON part that are arrays of data */
    struct api_oip_raw raws[API_TENSORS];
    size_t n_raws;
    bool has_form;                         /* true once non_finite was given */
    bool is_binary;                        /* of outputs, by the request's parameters */
    unsigned binary_outputs, json_outputs; /* bits: those whose own parameters say so */
    unsigned gradients;                    /* bits: those that outputs name */
};

/* api_oip_parameters: those of an input or output, zeroed but for `writes` and `number` of the slice. */
struct api_oip_parameters {
    struct api_slice slice; /* in shared memory (Triton's extension) */
    bool is_shared, has_size, has_binary, is_binary, has_classes;
    size_t binary_size; /* SIZE_MAX if it is no size */
    unsigned given;
    char region[API_JSON_TEXT];
};
bool api_oip_read_parameters(struct api_oip_reader *reader, struct api_oip_parameters *parameters);

/* Begins the slice of parameters that have one. */
bool api_oip_slice_begin(struct api_oip_reader *reader, struct api_slice *slice,
                         const struct api_oip_parameters *parameters);

/* Reads a value that is true or means false. */
bool api_oip_read_flag(struct api_json_cursor *c, bool *flag);

/* Fails at a field of an input or an output: "#/inputs/2/datatype"; `list` is "inputs". */
bool api_oip_fail(struct api_oip_reader *reader, const char *list, size_t number, const char *field,
                  const char *code, const char *detail);

/* Reads the array of inputs to tensors of the call; then, after the JSON part, those of the binary part. */
bool api_oip_read_inputs(struct api_oip_reader *reader);
bool api_oip_read_raws(struct api_oip_reader *reader);
