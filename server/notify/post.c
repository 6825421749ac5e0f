#include "server/notify/post.h"

#include "api/text/clock.h"
#include "lib/kldiv.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

/* MAX_ANSWER: bytes of an answer that are read. Seconds to connect, and for all of it. */
enum { MAX_ANSWER = 64 << 10, CONNECT_SECONDS = 10, SECONDS = 30 };

/* Keeps the begin of the first line, in which bytes that are not printable are blanks. */
static size_t receive(char *bytes, size_t one, size_t size, void *context)
{
    struct srv_post *post = context;
    size_t used = strlen(post->answer);
    (void)one;
    for (size_t i = 0; i < size && used + 1 < sizeof post->answer && !post->has_line; i++) {
        char byte = bytes[i];
        post->has_line = byte == '\n' && used > 0;
        if (byte != '\n')
            post->answer[used++] = byte;
        if (byte != '\n' && (byte < ' ' || byte > '~'))
            post->answer[used - 1] = ' ';
    }
    post->received += size;
    return post->received <= MAX_ANSWER ? size : 0;
}

/* ---- Header */

static bool add(struct srv_post *post, const char *field)
{
    struct curl_slist *longer = curl_slist_append(post->headers, field);
    if (longer)
        post->headers = longer;
    return longer != NULL;
}

/* Signs the time and the body, so that a receiver knows who sends, and that it is not an old message. */
static bool sign(struct srv_post *post, const struct api_receiver *receiver, int64_t now)
{
    unsigned char digest[32];
    char time[40], field[40 + 2 * sizeof digest] = "X-Kldiv-Signature: sha256=";
    gnutls_hmac_hd_t hmac;
    if (!receiver->secret)
        return true;
    snprintf(time, sizeof time, "%lld.", (long long)(now / 1000000));
    if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, receiver->secret, receiver->secret_size) < 0)
        return false;
    gnutls_hmac(hmac, time, strlen(time));
    gnutls_hmac(hmac, post->body.data, post->body.size);
    gnutls_hmac_deinit(hmac, digest);
    size_t used = strlen(field);
    for (size_t i = 0; i < sizeof digest; i++)
        used += (size_t)snprintf(field + used, sizeof field - used, "%02x", digest[i]);
    return add(post, field);
}

static bool set_headers(struct srv_post *post, const struct api_receiver *receiver,
                        const struct api_message *message)
{
    char id[60], time[60];
    snprintf(id, sizeof id, "Idempotency-Key: %s", message->id);
    snprintf(time, sizeof time, "X-Kldiv-Timestamp: %lld", (long long)(message->sent_at / 1000000));
    const struct api_trace *trace = api_message_trace(message);
    char parent[API_TRACEPARENT + 20];
    snprintf(parent, sizeof parent, "traceparent: %s", trace ? api_trace_child(trace).text : "");
    bool good = (!trace || add(post, parent)) && add(post, "Content-Type: application/json") &&
                add(post, "Expect:") && add(post, id) && add(post, time) &&
                sign(post, receiver, message->sent_at);
    for (char *const *field = receiver->headers; good && *field; field++)
        good = add(post, *field);
    return good;
}

/* ---- Post */

static void set_url(CURL *easy, const struct api_receiver *receiver)
{
    char url[2100];
    size_t size = strlen(receiver->url);
    bool is_alertmanager = receiver->format == API_NOTIFY_ALERTMANAGER;
    while (is_alertmanager && receiver->url[size - 1] == '/')
        size--;
    snprintf(url, sizeof url, "%.*s%s", (int)size, receiver->url,
             is_alertmanager ? "/api/v2/alerts" : "");
    curl_easy_setopt(easy, CURLOPT_URL, url);
}

static void set_options(struct srv_post *post, const struct api_receiver *receiver)
{
    CURL *easy = post->easy;
    set_url(easy, receiver);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)SECONDS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kldivd/" KLDIV_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body.size);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    if (receiver->ca_file) { /* and no others */
        curl_easy_setopt(easy, CURLOPT_CAINFO, receiver->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

struct api_message srv_message_of(const struct api_change *changes, size_t n, int64_t number,
                                  const char *public_url)
{
    struct api_message message = {
        .sent_at = api_now(), .public_url = public_url, .n = n, .changes = changes};
    snprintf(message.id, sizeof message.id, "%016llx", (unsigned long long)number);
    return message;
}

/* Gives a post to a multi handle; false if memory is exhausted. */
static bool transfer(struct srv_post *post, CURLM *multi)
{
    post->multi = curl_multi_add_handle(multi, post->easy) == CURLM_OK ? multi : NULL;
    return post->multi;
}

bool srv_post_begin(struct srv_post *post, CURLM *multi, const struct api_receiver *receiver,
                    const struct api_message *message, struct api_budget *budget)
{
    bool failed;
    *post = (struct srv_post){.begun = api_seconds(), .body = {.budget = budget}};
    api_message_write(message, receiver->format, &post->body);
    post->easy = post->body.failed ? NULL : curl_easy_init();
    bool good = post->easy && set_headers(post, receiver, message);
    if (good) {
        set_options(post, receiver);
        post->lookup = srv_lookup_begin(receiver->url, multi, &failed);
        good = post->lookup || (!failed && transfer(post, multi));
    }
    if (!good)
        srv_post_free(post);
    return good;
}

bool srv_post_looks_up(const struct srv_post *post) { return post->lookup && !post->multi; }

bool srv_post_has_no_address(struct srv_post *post, CURLM *multi)
{
    if (!srv_post_looks_up(post))
        return false;
    if (!srv_lookup_is_done(post->lookup))
        return api_seconds() - post->begun > CONNECT_SECONDS;
    struct curl_slist *addresses = srv_lookup_result(post->lookup);
    if (addresses)
        curl_easy_setopt(post->easy, CURLOPT_RESOLVE, addresses);
    return !addresses || !transfer(post, multi);
}

void srv_post_free(struct srv_post *post)
{
    if (post->multi)
        curl_multi_remove_handle(post->multi, post->easy);
    curl_easy_cleanup(post->easy);
    srv_lookup_release(post->lookup);
    curl_slist_free_all(post->headers);
    api_buffer_free(&post->body);
    *post = (struct srv_post){.easy = NULL};
}

/* An answer counts from its status on, whatever comes after: sent again, the message would be there twice. */
struct srv_outcome srv_post_end(const struct srv_post *post, CURLcode result)
{
    struct srv_outcome outcome = {.result = API_NOTIFY_FAILED,
                                  .seconds = api_seconds() - post->begun};
    curl_off_t retry_after = 0;
    curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &outcome.status);
    curl_easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &retry_after);
    outcome.retry_after = (double)retry_after;
    long status = outcome.status;
    if (status / 100 == 2)
        outcome.result = API_NOTIFY_DELIVERED;
    else if (status == 400 || status == 413 || status == 422)
        outcome.result = API_NOTIFY_REFUSED;
    if (status == 0)
        snprintf(outcome.failure, sizeof outcome.failure, "%s", curl_easy_strerror(result));
    else if (status / 100 == 3)
        snprintf(outcome.failure, sizeof outcome.failure, "status %ld; redirects are not followed",
                 status);
    else if (outcome.result != API_NOTIFY_DELIVERED)
        snprintf(outcome.failure, sizeof outcome.failure, "status %ld", status);
    return outcome;
}
