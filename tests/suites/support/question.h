/* question: a request of a test or a fuzzer, with a member for each header field. */
#pragma once

#include "api/api.h"
#include "api/endpoints.h"
#include "api/request/response.h"

#include <strings.h>

/* Members are NULL if absent. */
struct question {
    const char *method, *path, *query; /* NULL: POST, /kl_div and no query */
    const char *content_type, *content_encoding, *accept, *accept_encoding;
    const char *inference_header_length;
    struct api_header others[4];
    bool chunked; /* true if no length is declared */
    bool unread;  /* true if nobody asks for the JSON of the answer */
};

static inline const char *question_header(const void *question, const char *name)
{
    const struct question *q = question;
    const struct api_header known[] = {
        {"Content-Type", q->content_type},
        {"Content-Encoding", q->content_encoding},
        {"Accept", q->accept},
        {"Accept-Encoding", q->accept_encoding},
        {"Inference-Header-Content-Length", q->inference_header_length}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(known[i].name, name) == 0)
            return known[i].value;
    for (size_t i = 0; i < sizeof q->others / sizeof *q->others && q->others[i].name; i++)
        if (strcasecmp(q->others[i].name, name) == 0)
            return q->others[i].value;
    return NULL;
}

/* Makes the exchange of a question, before api_begin. */
static inline struct api_exchange question_exchange(const struct question *question,
                                                    const struct api_service *service,
                                                    size_t body_size)
{
    return (struct api_exchange){.service = service,
                                 .request = {.method = question->method ? question->method : "POST",
                                             .path = question->path ? question->path : "/kl_div",
                                             .query = question->query,
                                             .header = question_header,
                                             .headers = question,
                                             .content_length = question->chunked ? 0 : body_size}};
}
