/* The table of wire formats of /kl_div, and content negotiation over it. */
#ifndef KLDIV_API_FORMATS_CODECS_H
#define KLDIV_API_FORMATS_CODECS_H

#include "api/api.h"
#include "api/call.h"

/* One wire format. A format that only reads has no encode, one that only writes no decode. */
struct api_codec {
    const char *const *media_types; /* lower case, the preferred first, NULL at the end */
    bool inflates;                  /* bodies may hold far more than their size */
    bool (*decode)(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem);
    void (*encode)(struct api_call *call, struct api_reply *reply); /* may take call's buffers */
};

/* The format of a body, by its Content-Type. Bodies without one, or with the one that curl
 * makes up (application/x-www-form-urlencoded), count as JSON; api_codec_body_fits checks that
 * when the body is there. Fails with media_type_unsupported. */
const struct api_codec *api_codec_for_body(const char *content_type, struct api_problem *problem);
bool api_codec_body_fits(const char *content_type, const char *body, struct api_problem *problem);

/* The format of an answer, by Accept (RFC 9110, 12.5.1): the writable one of the highest q; of
 * equal ones the first in the table. *media_type is the name that was asked for. NULL accepts
 * anything. Fails with not_acceptable. */
const struct api_codec *api_codec_for_answer(const char *accept, const char **media_type,
                                             struct api_problem *problem);

/* "application/json, ...": the media types that bodies may have. */
void api_codec_list_readable(char *to, size_t size);

#endif
