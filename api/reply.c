#include "api/reply.h"

/* WORTH_COPYING: bytes whose copy costs less than one more piece of the reply. */
enum { WORTH_COPYING = 32 << 10 };

void api_reply_header(struct api_reply *reply, const char *name, const char *value)
{
    if (reply->n_headers < sizeof reply->headers / sizeof *reply->headers)
        reply->headers[reply->n_headers++] = (struct api_header){name, value};
}

void api_reply_take(struct api_reply *reply, struct api_buffer *tensor)
{
    if (tensor->size <= WORTH_COPYING && reply->n_tensors == 0) {
        api_append(&reply->body, tensor->data, tensor->size);
        api_buffer_free(tensor);
        return;
    }
    if (!api_buffer_own(tensor)) {
        reply->body.failed = true;
        return;
    }
    reply->tensors[reply->n_tensors++] = *tensor;
    *tensor = (struct api_buffer){.budget = tensor->budget};
}

size_t api_reply_size(const struct api_reply *reply)
{
    size_t size = reply->body.size + reply->file_size;
    size += reply->shared ? reply->shared->bytes.size : 0;
    for (size_t i = 0; i < reply->n_tensors; i++)
        size += reply->tensors[i].size;
    return size;
}

void api_reply_free(struct api_reply *reply)
{
    reply->file = NULL;
    reply->file_size = 0;
    reply->cache_control = reply->policy = NULL;
    api_shared_release(reply->shared);
    reply->shared = NULL;
    api_buffer_free(&reply->body);
    while (reply->n_tensors > 0)
        api_buffer_free(&reply->tensors[--reply->n_tensors]);
}
