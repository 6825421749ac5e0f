/* What became of inference requests, counted for GET /v2/models/kl_div/stats. */
#ifndef KLDIV_API_STATISTICS_H
#define KLDIV_API_STATISTICS_H

#include <stdatomic.h>

/* Requests, and the nanoseconds they took. Zeroed, nothing has happened yet. */
struct api_duration {
    atomic_ullong count, ns;
};

struct api_statistics {
    struct api_duration success, fail;           /* from the whole body on */
    struct api_duration decode, compute, encode; /* of those that succeeded */
    atomic_ullong last_ms;                       /* when the last came, Unix time */
};

#endif
