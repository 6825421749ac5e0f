/* The table of wire formats of /kl_div, and content negotiation over it. */
#ifndef KLDIV_API_FORMATS_CODECS_H
#define KLDIV_API_FORMATS_CODECS_H

#include "api/api.h"
#include "api/call.h"

/* One wire format. A format that only reads has no encode, one that only writes no decode. */
struct api_codec {
    const char *const *media_types; /* lower case, the preferred first, NULL at the end */
    bool (*decode)(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem);

    /* Bytes of a body that are parsed or inflated, rather than read where they lie, at worst. NULL is
     * none to speak of. */
    double (*parsed_size)(const struct api_request *request);
    void (*encode)(struct api_call *call, struct api_reply *reply); /* may take call's buffers */
    double ns_per_element;                                          /* to encode one */
    bool loss_only;                                                 /* has no room for gradients */
};

/* Inference requests and answers, whatever their Content-Type. */
extern const struct api_codec *const api_inference_codec;

/* The format of a body, by its Content-Type. Bodies without one, and those of types that clients make
 * up (application/x-www-form-urlencoded by curl, text/plain), count as JSON; api_codec_check_body
 * checks that when the body is there. Fails with media_type_unsupported. */
const struct api_codec *api_codec_for_body(const char *content_type, struct api_problem *problem);

/* With the body there: JSON that came as application/octet-stream is decoded as JSON, and a body that
 * looks like another format fails with a word on its Content-Type. */
bool api_codec_check_body(struct api_exchange *x);

/* With the call planned: fails with not_acceptable if the chosen format cannot hold its answer. */
bool api_codec_check_answer(struct api_exchange *x, const struct api_call *call);

/* The format of an answer, by Accept (RFC 9110, 12.5.1): the writable one of the highest q; of
 * equal ones the first in the table. *media_type is the name that was asked for. NULL accepts
 * anything. Fails with not_acceptable. */
const struct api_codec *api_codec_for_answer(const char *accept, const char **media_type,
                                             struct api_problem *problem);

/* "application/json, ...": the media types that bodies may have. */
void api_codec_list_readable(char *to, size_t size);

#endif
