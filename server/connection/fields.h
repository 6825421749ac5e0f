/* srv_fields: the header fields of a request that are read for every request, filed in one pass:
 * libmicrohttpd searches its list of them by name, which was done ten times for each request. */
#pragma once

#include "server/net/client_address.h"

#include <microhttpd.h>
#include <stdbool.h>

/* SRV_SLOT: the index of a field, by the length and the first letter of its name in lower case;
 * fields.c has the names. No two of them share an index. */
enum { SRV_SLOTS = 64 };
#define SRV_SLOT(size, letter) (((size) + (size_t)7 * (letter)) % SRV_SLOTS)
enum {
    SRV_EXPECT = SRV_SLOT(6, 'e'),
    SRV_ACCEPT = SRV_SLOT(6, 'a'),
    SRV_CONNECTION = SRV_SLOT(10, 'c'),
    SRV_TRACEPARENT = SRV_SLOT(11, 't'),
    SRV_X_REQUEST_ID = SRV_SLOT(12, 'x'),
    SRV_CONTENT_LENGTH = SRV_SLOT(14, 'c'),
    SRV_TRANSFER_ENCODING = SRV_SLOT(17, 't'),
};

enum { SRV_MAX_ACCEPT = 512 };

struct srv_fields {
    struct MHD_Connection *connection;
    const char *values[SRV_SLOTS]; /* NULL if absent; the first one of several lines, but of
                                    traceparent then "" */
    char accept[SRV_MAX_ACCEPT];   /* several lines of Accept, joined by commas */
    const char *repeated;          /* name of a field that may come once and came again; or NULL */
    bool closes;                   /* Connection has the token close, in any of its lines */
};

/* Files the fields of a complete header, which libmicrohttpd keeps to the end of the request. */
void srv_fields_read(struct srv_fields *fields, struct MHD_Connection *connection);

/* Gives all lines of X-Forwarded-For, in order. */
void srv_fields_forwarded(const struct srv_fields *fields, struct srv_forwarded *forwarded);

/* Value of any field, found by name in any case; NULL if it is absent. All lines of Accept are one. */
const char *srv_fields_find(const struct srv_fields *fields, const char *name);
