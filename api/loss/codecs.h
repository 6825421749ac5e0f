/* The table of wire formats of /kl_div, and content negotiation over it. */
#pragma once

#include "api/loss/call.h"
#include "api/request/exchange.h"

/* Time, in ns, to write an element as decimal text, and to copy it. */
#define API_TEXT_NS 45.0
#define API_COPY_NS 1.0

/* api_codec: one wire format, a row of its own file. `encode` is NULL in formats for requests only,
 * `decode` in formats for responses only. */
struct api_codec {
    const char *const *media_types; /* lower case, the preferred one first, NULL at the end */
    bool (*decode)(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem);
    void (*encode)(struct api_call *call, struct api_response *response); /* may empty buffers */
    double parsed;         /* maximum of bytes parsed or inflated for a byte of the body */
    double ns_per_element; /* to encode a response */
    bool compresses;       /* responses are worth a Content-Encoding */
    bool loss_only;        /* cannot hold gradients, nor a partial result */
};

/* Finds the format of a body by its Content-Type. A missing type counts as JSON, and so do the defaults of clients:
 * application/x-www-form-urlencoded of curl, text/plain. x->is_untyped becomes true for these, and for the type of
 * inferences without their header: api_codec_check_body then looks at the body. Fails with media_type_unsupported,
 * and Accept lists the types. */
const struct api_codec *api_codec_for_body(struct api_exchange *x);

/* Chooses the decoder of a complete body whose Content-Type leaves the format open, by its first
 * bytes: JSON, npz or safetensors. A body that looks like none fails, and the detail names the
 * Content-Type to send. */
bool api_codec_check_body(struct api_exchange *x);

/* Checks a planned call: fails with not_acceptable if the chosen format cannot hold the response, or
 * with partial_unsupported if that is an inference response. */
bool api_codec_check_response(struct api_exchange *x, const struct api_call *call);

/* Finds the format of a response by Accept (RFC 9110, 12.5.1): the highest q, then the order of
 * the table; JSON for clients that accept nothing but problems. *media_type is the name that the
 * client used. NULL accepts any format. Fails with not_acceptable. */
const struct api_codec *api_codec_for_response(const char *accept, const char **media_type,
                                               struct api_problem *problem);

/* Formats the media types of bodies: "application/json, ...". */
void api_codec_list_readable(char *to, size_t size);
