/* Content codings, both ways: gzip and deflate (RFC 9110, 8.4.1), through zlib. */
#ifndef KLDIV_API_FORMATS_CODING_H
#define KLDIV_API_FORMATS_CODING_H

#include "api/api.h"
#include "api/problem.h"

/* "gzip, deflate": what api_inflate undoes. */
extern const char api_codings[];

/* Whether it undoes this coding; NULL, "" and "identity" are none. */
bool api_coding_known(const char *coding);
bool api_coding_is_none(const char *coding);

/* Appends to `out`, which then ends with API_PADDING zero bytes beyond its size, what `coding`
 * made into the bytes. More than `most` bytes fail with body_too_large. "deflate" is taken with
 * the zlib wrapper that the RFC demands, and without, as some clients send it. */
bool api_inflate(const char *coding, const char *bytes, size_t size, size_t most,
                 struct api_buffer *out, struct api_problem *problem);

/* The coding for an answer, by Accept-Encoding (NULL is none): "gzip", "deflate", or NULL to leave
 * it as it is. */
const char *api_coding_for_answer(const char *accept_encoding);

/* Codes a reply's content, tensors and all, and says so in its header. */
void api_deflate_reply(struct api_reply *reply, const char *coding);

#endif
