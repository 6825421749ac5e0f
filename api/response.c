#include "api/response.h"

/* WORTH_COPYING: bytes whose copy costs less than one more piece of the response. */
enum { WORTH_COPYING = 32 << 10 };

void api_response_header(struct api_response *response, const char *name, const char *value)
{
    if (response->n_headers < sizeof response->headers / sizeof *response->headers)
        response->headers[response->n_headers++] = (struct api_header){name, value};
}

void api_response_take(struct api_response *response, struct api_buffer *tensor)
{
    if (tensor->size <= WORTH_COPYING && response->n_tensors == 0) {
        api_append(&response->body, tensor->data, tensor->size);
        api_buffer_free(tensor);
        return;
    }
    if (!api_buffer_own(tensor)) {
        response->body.failed = true;
        return;
    }
    response->tensors[response->n_tensors++] = *tensor;
    *tensor = (struct api_buffer){.budget = tensor->budget};
}

size_t api_response_size(const struct api_response *response)
{
    size_t size = response->body.size + response->file_size;
    size += response->shared ? response->shared->bytes.size : 0;
    for (size_t i = 0; i < response->n_tensors; i++)
        size += response->tensors[i].size;
    return size;
}

void api_response_free(struct api_response *response)
{
    response->file = NULL;
    response->file_size = 0;
    response->cache_control = response->policy = NULL;
    api_shared_release(response->shared);
    response->shared = NULL;
    api_buffer_free(&response->body);
    while (response->n_tensors > 0)
        api_buffer_free(&response->tensors[--response->n_tensors]);
}
