/* api_statistics: counts and times of inference requests for GET /v2/models/kl_div/stats. */
#pragma once

#include <stdatomic.h>

/* api_duration: number of requests and their total time in ns. Initially zeroed. */
struct api_duration {
    atomic_ullong count, ns;
};

struct api_statistics {
    struct api_duration success, fail;           /* from the complete body on */
    struct api_duration decode, compute, encode; /* of successful requests */
    atomic_ullong last_ms;                       /* arrival of the last request, Unix time in ms */
};
