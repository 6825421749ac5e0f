/* srv_framing: reads the bytes of a connection, and refuses those that a proxy might read in another way, by which
 * requests are smuggled past it.
 *
 * It follows requests, header lines, bodies and chunks (RFC 9112) and keeps neither headers nor bodies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of a request. */
enum {
    SRV_HEADER_SIZE = 16 << 10, /* bytes of the request line and all fields, a trailer's too */
    SRV_HEADER_FIELDS = 100,    /* with a trailer's */
    SRV_CHUNKS = 65536,         /* that are not empty */
};

/* srv_error: the problem for which a request is refused and its connection closed. `code` is
 * in api/json/problem.c, NULL if there is none. */
struct srv_error {
    const char *code, *detail;
};

/* srv_framing_state: the part of a request that comes next. */
enum srv_framing_state {
    SRV_REQUEST_LINE,
    SRV_FIELD,
    SRV_BODY_BYTES,
    SRV_CHUNK_SIZE,
    SRV_CHUNK_BYTES,
    SRV_CHUNK_END,
    SRV_TRAILER,
};

/* Zeroed at the start of a connection. */
struct srv_framing {
    enum srv_framing_state state;
    uint64_t left;      /* bytes of the body or of the chunk that are still to come */
    size_t header_size; /* bytes of the complete lines of the header, and of the trailer */
    unsigned fields, chunks;
    unsigned hosts, lengths, codings, types, expectations; /* lines of these names */
    bool is_http_1_0;                                      /* HTTP/1.0, of the last request read */
    char method[24]; /* of the request that is read, its beginning; "" before its first line */
    char *line;      /* the beginning of a line whose end has not arrived */
    size_t line_size;
    struct srv_error error; /* the first one */
};

/* srv_part: what a step has read. */
enum srv_part { SRV_PART_LINE, SRV_PART_HEADER_END, SRV_PART_BODY };

/* Reads the next bytes of the connection, one or more: a line or the beginning of one, or bytes of the body, which are
 * not looked at. Returns their number. If framing->error is set, the request is refused: nothing is read any more. */
size_t srv_framing_step(struct srv_framing *framing, const char *bytes, size_t size,
                        enum srv_part *part);

/* True if no byte of a further request has arrived, empty lines aside. */
bool srv_framing_is_between_requests(const struct srv_framing *framing);

/* Frees what it holds. */
void srv_framing_free(struct srv_framing *framing);
