/* asked: requests of every format, as the bytes of a connection; calls fail under them one by one. */
#pragma once

#include "api/memory/buffer.h"

struct asked {
    const char *name;
    struct api_buffer bytes;
    bool slow;        /* the answer is not read for a while */
    bool varies;      /* no two answers have the same body */
    int libzip_loses; /* blocks at most, in a sweep: libzip 1.7.3 keeps one for ever where a source of
                       * its own cannot be allocated */
};

enum { MAX_ASKED = 32 };

/* Writes the script, and returns the number of its requests. The first is the smallest: what others
 * ask next. */
size_t write_script(struct asked script[MAX_ASKED]);
void free_script(struct asked *script, size_t n);
