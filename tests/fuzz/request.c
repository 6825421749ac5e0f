/* A query and a body, split at the first NUL, through the whole service. */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, 0, size);
    size_t query_size = nul ? (size_t)(nul - data) : 0, start = nul ? query_size + 1 : 0;
    char *query = calloc(1, query_size + 1), *body = calloc(1, size - start + API_PADDING);
    if (!query || !body)
        abort();
    memcpy(query, data, query_size);
    memcpy(body, data + start, size - start);

    struct api_budget budget = {.limit = 64 << 20};
    struct api_service service = {.budget = &budget, .max_body = 1 << 20};
    struct api_request request = {.method = "POST",
                                  .path = "/kl_div",
                                  .query = query,
                                  .body = body,
                                  .body_size = size - start};
    struct api_reply reply;
    if (api_begin(&service, &request, &reply))
        api_handle(&service, &request, &reply);
    if (reply.status < 200 || reply.status == 500 || (reply.body.size == 0))
        abort();
    api_buffer_free(&reply.body);
    if (atomic_load(&budget.used) != 0)
        abort();
    free(query);
    free(body);
    return 0;
}
