/* api_error_format: the form of problems, which differs between the Open Inference Protocol and the rest. */
#pragma once

#include "api/request/exchange.h"

struct api_error_format {
    const char *content_type;
    bool compresses; /* true if JSON responses are compressed for clients that accept it */
    void (*write)(const struct api_exchange *x, struct api_buffer *out);

    /* Fails for a path that is not served; the detail names what is, a model or a list. */
    bool (*fail_not_found)(const char *path, struct api_problem *problem);
};

/* The format for a path. */
const struct api_error_format *api_error_format_of(const char *path);
