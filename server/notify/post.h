/* srv_post: one message on its way to a receiver, by libcurl. */
#pragma once

#include "api/notify/message.h"
#include "api/notify/notifier.h"
#include "server/notify/lookup.h"

struct srv_post {
    CURL *easy;   /* NULL: none */
    CURLM *multi; /* that has it; NULL while the look-up is under way */
    struct srv_lookup *lookup;
    struct curl_slist *headers;
    struct api_buffer body;
    size_t received;                /* bytes of the answer's body */
    char answer[API_NOTIFY_ANSWER]; /* the begin of its first line */
    bool has_line;                  /* which is whole */
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

/* A message of changes, whose id is its number. */
struct api_message srv_message_of(const struct api_change *changes, size_t n, int64_t number,
                                  const char *public_url);

/* Begins a post, by a multi handle once the addresses of the receiver are known. False if memory is exhausted; it is empty
 * then. */
bool srv_post_begin(struct srv_post *post, CURLM *multi, const struct api_receiver *receiver,
                    const struct api_message *message, struct api_budget *budget);

/* True if a post waits for the addresses of its receiver. */
bool srv_post_looks_up(const struct srv_post *post);

/* Goes on with a post whose look-up has ended. True if the post has failed, as there are no addresses, or not in time. */
bool srv_post_has_no_address(struct srv_post *post, CURLM *multi);

/* Tells what became of a post. */
struct srv_outcome srv_post_end(const struct srv_post *post, CURLcode result);

/* Ends a post, and frees it; it may be empty. */
void srv_post_free(struct srv_post *post);
