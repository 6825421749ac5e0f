/* srv_post: one message on its way to a receiver, by libcurl. */
#pragma once

#include "api/notify/message.h"
#include "api/notify/notifier.h"

#include <curl/curl.h>

struct srv_post {
    CURL *easy; /* NULL: none */
    struct curl_slist *headers;
    struct api_buffer body;
    size_t received;  /* bytes of the answer's body */
    char answer[300]; /* the begin of its first line */
    bool has_line;    /* which is whole */
    double begun;
};

/* srv_outcome: what became of it. */
struct srv_outcome {
    enum api_notify_result result;
    long status;        /* of the answer, or 0 */
    double retry_after; /* seconds that the receiver asks for, or 0 */
    double seconds;     /* that it took */
    char failure[200];  /* empty if it was delivered */
};

/* Makes a post, for the caller to add to a multi handle. False if memory is exhausted; it is empty then. */
bool srv_post_begin(struct srv_post *post, const struct api_receiver *receiver,
                    const struct api_message *message, struct api_budget *budget);

/* Tells what became of it, and frees it; the caller has removed it from the multi handle. */
struct srv_outcome srv_post_end(struct srv_post *post, CURLcode result);
void srv_post_free(struct srv_post *post); /* may be empty */
