/* The two parts of an inference request: JSON, without its arrays of data, and binary data. */
#pragma once

#include "api/loss/call.h"

/* All of it is borrowed from the request's body, but for the envelope, which the
 * caller frees. */
struct api_oip_body {
    const char *text, *end;     /* the JSON part; there is a binary one unless it ends at raw_end */
    const char *raw, *raw_end;  /* the unread rest of the binary part; empty if there is none */
    struct api_buffer envelope; /* the JSON part, with [] for each array of data; checked JSON */
    struct {
        size_t at;               /* of the brackets in the envelope */
        const char *value, *end; /* the array in the JSON part; what follows it */
    } cuts[API_TENSORS];
    size_t n_cuts;
};

/* Bytes of the JSON part: of the whole body without the header Inference-Header-Content-Length, 0 if that
 * is malformed. */
size_t api_oip_json_size(const struct api_request *request);

/* Splits the body by its header Inference-Header-Content-Length and checks the JSON part. *root becomes
 * the request, an object in the envelope. Set `envelope.budget` before. */
bool api_oip_body_read(struct api_oip_body *body, const struct api_request *request,
                       const char **root, struct api_problem *problem);

/* The array of data whose brackets are at `brackets` in the envelope, or NULL. *end becomes the position
 * of the comma or brace after it, which whoever reads the array must find there. */
const char *api_oip_body_data(const struct api_oip_body *body, const char *brackets,
                              const char **end);
