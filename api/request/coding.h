/* Content codings, both ways: gzip and deflate (RFC 9110, 8.4.1), through zlib. */
#pragma once

#include "api/json/problem.h"
#include "api/request/exchange.h"

/* The codings that api_inflate undoes: "gzip, deflate". */
extern const char api_codings[];

/* True if api_inflate undoes this coding; "" and "identity" mean no coding. */
bool api_coding_is_known(const char *coding);
bool api_coding_is_identity(const char *coding);

/* True if there is no coding; most requests have no such header. */
static inline bool api_coding_is_none(const char *coding)
{
    return !coding || api_coding_is_identity(coding);
}

/* api_inflation: a coded body and the bounds of its size. */
struct api_inflation {
    const char *coding, *bytes;
    size_t size;
    size_t max;              /* bytes that it may inflate to */
    size_t affordable;       /* bytes above which it stops, as the caller has no time for more */
    const atomic_bool *stop; /* as of api_exchange */

    /* Set by api_inflate: */
    bool is_partial; /* true if it stopped at `affordable` */
    double estimate; /* then: bytes that the whole may inflate to */
};

/* Appends the decoded bytes to `out`, with API_PADDING zero bytes beyond its size. Fails with
 * body_too_large beyond `max` bytes, and where more than 1 MiB is more than 256 times the bytes it
 * came from. "deflate" is accepted with the zlib wrapper, which RFC 9110 demands, and without, as
 * some clients send it. */
bool api_inflate(struct api_inflation *inflation, struct api_buffer *out,
                 struct api_problem *problem);

/* Selects the coding of a response by Accept-Encoding: "gzip", "deflate", or NULL for none. A NULL header
 * selects none. */
const char *api_coding_choose(const char *accept_encoding);

/* A gzip stream of two parts, the first of which many responses have: the first part, after the header of
 * the stream, ends at a byte without a last block; *crc becomes its CRC-32. The second one needs that, and
 * the size of the first part, for the end of the stream. False if memory is exhausted. */
bool api_gzip_begin(const struct api_buffer *first, uint32_t *crc, struct api_buffer *out);
bool api_gzip_end(const struct api_buffer *second, uint32_t crc, size_t first_size,
                  struct api_buffer *out);

/* Compresses a response's content, tensors included, and adds Content-Encoding. False if memory is exhausted;
 * the response is then as it was. */
bool api_deflate_response(struct api_response *response, const char *coding);
