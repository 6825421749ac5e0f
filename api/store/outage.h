/* api_outage: since when the store cannot be written, and why. */
#pragma once

#include <stdint.h>

struct api_outage {
    int64_t since;   /* microseconds since 1970; 0: no outage */
    char error[200]; /* one line, cut if it is longer */
};

/* Notes a failure: the first one begins an outage, others change its error. */
void api_outage_note(struct api_outage *outage, int64_t now, const char *reason);
