/* Functions by which endpoints and wire formats build a response. */
#pragma once

#include "api/request/exchange.h"

/* Adds a header; both are static or in response->header_text. One for which there is no room makes the response
 * internal_error. */
static inline void api_response_header(struct api_response *response, const char *name,
                                       const char *value)
{
    response->lost_header =
        response->n_headers == sizeof response->headers / sizeof *response->headers;
    if (!response->lost_header)
        response->headers[response->n_headers++] = (struct api_header){name, value};
}

/* Appends JSON to the content; true, so that a handler ends with it. */
static inline bool api_response_json(struct api_response *response, const char *text)
{
    response->content_type = "application/json";
    api_append_text(&response->body, text);
    return true;
}

/* Takes ownership of a tensor's bytes, which are sent after the response's content so far; small
 * ones are copied. Leaves the buffer empty. Nothing may be appended to the response's body
 * afterwards. */
void api_response_take(struct api_response *response, struct api_buffer *tensor);

/* Size of the content, in bytes. */
static inline size_t api_response_size(const struct api_response *response)
{
    size_t size = response->body.size + response->file_size;
    size += response->shared ? response->shared->bytes.size : 0;
    for (size_t i = 0; i < response->n_tensors; i++)
        size += response->tensors[i].size;
    return size;
}

/* Frees the content; the response stays usable. */
static inline void api_response_free(struct api_response *response)
{
    response->file = NULL;
    response->file_size = 0;
    if (response->shared)
        api_shared_release(response->shared);
    response->shared = NULL;
    api_buffer_free(&response->body);
    while (response->n_tensors > 0)
        api_buffer_free(&response->tensors[--response->n_tensors]);
}
