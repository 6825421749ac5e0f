#include "api/security.h"

#include "api/reply.h"

#include <string.h>

void api_security_headers(struct api_exchange *x)
{
    struct api_reply *reply = &x->reply;
    const char *method = x->request.method;
    api_reply_header(reply, "X-Content-Type-Options", "nosniff");
    if (x->service->tls)
        api_reply_header(reply, "Strict-Transport-Security", "max-age=31536000");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return;
    api_reply_header(reply, "Content-Security-Policy",
                     reply->policy ? reply->policy : "default-src 'none'; frame-ancestors 'none'");
    api_reply_header(reply, "Referrer-Policy", "no-referrer");
    if (!x->service->cors_origin)
        api_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}
