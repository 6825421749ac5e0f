/* The table of wire formats of /kl_div, and content negotiation over it. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

/* api_codec: one wire format. `encode` is NULL in formats for requests only, `decode` in formats
 * for answers only. */
struct api_codec {
    const char *const *media_types; /* lower case, the preferred one first, NULL at the end */
    bool (*decode)(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem);

    /* Upper bound of the bytes of a body that are parsed or inflated rather than read in place.
     * NULL if there are next to none. */
    double (*parsed_size)(const struct api_request *request);
    void (*encode)(struct api_call *call,
                   struct api_response *response);         /* may empty call's buffers */
    double (*ns_per_element)(const struct api_call *call); /* to encode an answer, if it does */
    bool compresses; /* answers are worth a Content-Encoding */
    bool loss_only;  /* cannot hold gradients, nor a partial result */
};

/* Codec of inference requests and answers, of any Content-Type. */
extern const struct api_codec *const api_inference_codec;

/* Finds the format of a body by its Content-Type. A missing type counts as JSON, and so do the
 * defaults of clients: application/x-www-form-urlencoded of curl, text/plain; api_codec_check_body
 * looks at the body, if x->is_untyped: a default, or that of inferences without their header. Fails with media_type_unsupported. */
const struct api_codec *api_codec_for_body(struct api_exchange *x);

/* Chooses the decoder of a complete body whose Content-Type leaves the format open, by its first
 * bytes: JSON, npz or safetensors. A body that looks like none fails, and the detail names the
 * Content-Type to send. */
bool api_codec_check_body(struct api_exchange *x);

/* Checks a planned call: fails with not_acceptable if the chosen format cannot hold the answer, or with
 * partial_unsupported if that is an inference answer. */
bool api_codec_check_answer(struct api_exchange *x, const struct api_call *call);

/* Finds the format of an answer by Accept (RFC 9110, 12.5.1): the highest q, then the order of
 * the table. *media_type is the name that the client used. NULL accepts any format. Fails with
 * not_acceptable. */
const struct api_codec *api_codec_for_answer(const char *accept, const char **media_type,
                                             struct api_problem *problem);

/* Formats the media types of bodies: "application/json, ...". */
void api_codec_list_readable(char *to, size_t size);
