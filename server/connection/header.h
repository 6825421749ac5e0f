/* srv_header: the header of a request, whose fields are filed in one pass. */
#pragma once

#include "server/net/client_address.h"

#include <stdbool.h>
#include <stddef.h>

/* SRV_SLOT: the index of a field, by the length and the first letter of its name in lower case;
 * header.c has the names. No two of them share an index. */
enum { SRV_SLOTS = 64 };
#define SRV_SLOT(size, letter) (((size) + (size_t)7 * (letter)) % SRV_SLOTS)
enum {
    SRV_EXPECT = SRV_SLOT(6, 'e'),
    SRV_ACCEPT = SRV_SLOT(6, 'a'),
    SRV_CONNECTION = SRV_SLOT(10, 'c'),
    SRV_TRACEPARENT = SRV_SLOT(11, 't'),
    SRV_X_REQUEST_ID = SRV_SLOT(12, 'x'),
    SRV_CONTENT_LENGTH = SRV_SLOT(14, 'c'),
    SRV_X_FORWARDED_FOR = SRV_SLOT(15, 'x'),
    SRV_TRANSFER_ENCODING = SRV_SLOT(17, 't'),
};

enum { SRV_MAX_ACCEPT = 512 };

struct srv_header {
    const char *method, *target;
    const char *values[SRV_SLOTS]; /* NULL if absent; the first one of several lines, but of
                                    traceparent then "" */
    char accept[SRV_MAX_ACCEPT];   /* several lines of Accept, joined by commas */
    const char *repeated;          /* name of a field that may come once and came again; or NULL */
    struct srv_forwarded forwarded;
    bool closes, stays; /* Connection has the token close, or keep-alive, in any of its lines */
};

/* Files a complete header, which the framing has found in order. `text` is cut into strings and ends with NUL; the
 * header points into it. */
void srv_header_read(struct srv_header *header, char *text);

/* Files what there is of a header that is not in order or not complete: the beginning of its target, if the first line has
 * one. The method is "". */
void srv_header_guess(struct srv_header *header, char *text);

/* Value of a field that header.c has the name of, in any case; NULL if it is absent. All lines of Accept are one. */
const char *srv_header_find(const struct srv_header *header, const char *name);
