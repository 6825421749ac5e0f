#include "api/request/etag.h"

#include "api/request/response.h"
#include "api/text/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool api_etag_is_listed(const char *list, const char *etag, bool weakly)
{
    static const char between[] = " \t,";
    const char *p = list + strspn(list, " \t"), *end;
    if (*p == '*')
        return p[1 + strspn(p + 1, " \t")] == '\0';
    for (;; p = end) {
        p += strspn(p, between);
        bool weak = strncmp(p, "W/", 2) == 0;
        p += weak ? 2 : 0;
        end = *p == '"' ? strchr(p + 1, '"') : NULL;
        if (!end || !strchr(between, *++end))
            return false;
        size_t size = (size_t)(end - p);
        if ((!weak || weakly) && size == strlen(etag) && memcmp(p, etag, size) == 0)
            return true;
    }
}

void api_etag_compare(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    const char *known = api_request_header(&x->request, "If-None-Match");
    unsigned char hash[API_HASH];
    uint64_t word;
    api_hash(response->body.data, response->body.size, hash);
    memcpy(&word, hash, sizeof word);
    snprintf(response->etag, sizeof response->etag, "W/\"%016" PRIx64 "\"", word);
    response->cache_control = "private, no-cache";
    api_response_header(response, "ETag", response->etag);
    if (!known || !api_etag_is_listed(known, response->etag + 2, true))
        return;
    response->status = 304;
    response->content_type = NULL;
    api_buffer_free(&response->body);
}
