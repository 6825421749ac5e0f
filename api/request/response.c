#include "api/request/response.h"

/* WORTH_COPYING: bytes whose copy costs less than one more piece of the response. */
enum { WORTH_COPYING = 32 << 10 };

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
