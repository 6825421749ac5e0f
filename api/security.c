#include "api/security.h"

#include "api/response.h"

#include <string.h>

void api_security_headers(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    const char *method = x->request.method;
    api_response_header(response, "X-Content-Type-Options", "nosniff");
    if (x->service->tls)
        api_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return;
    api_response_header(response, "Content-Security-Policy",
                        response->policy ? response->policy
                                         : "default-src 'none'; frame-ancestors 'none'");
    api_response_header(response, "Referrer-Policy", "no-referrer");
    if (!x->service->cors_origin)
        api_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}
