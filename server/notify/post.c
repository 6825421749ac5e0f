#include "server/notify/post.h"

#include "api/text/clock.h"
#include "lib/kldiv.h"

#include <curl/curl.h>
#include <gnutls/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_ANSWER: bytes of an answer that are read. Seconds to connect, and for all of it. */
enum { MAX_ANSWER = 64 << 10, CONNECT_SECONDS = 10, SECONDS = 30 };

/* post: what a transfer needs. */
struct post {
    CURL *easy;
    const struct api_receiver *receiver;
    struct curl_slist *fields; /* of the header */
    struct api_buffer body;
    struct api_notify_outcome outcome;
    size_t received, kept; /* bytes of the answer's body */
    bool (*stops)(void *context, bool looks_up);
    void *context;
};

/* ---- Header */

static bool add(struct post *post, const char *format, ...)
{
    char *field;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&field, format, arguments);
    va_end(arguments);
    struct curl_slist *longer = size < 0 ? NULL : curl_slist_append(post->fields, field);
    if (size >= 0)
        free(field);
    if (longer)
        post->fields = longer;
    return longer != NULL;
}

/* Signs the time and the body, so that a receiver knows who sends, and that it is not an old message. */
static bool sign(struct post *post, long long seconds)
{
    unsigned char digest[32];
    char time[40], hex[2 * sizeof digest + 1];
    gnutls_hmac_hd_t hmac;
    if (!post->receiver->secret)
        return true;
    if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, post->receiver->secret,
                         post->receiver->secret_size) < 0)
        return false;
    gnutls_hmac(hmac, time, (size_t)snprintf(time, sizeof time, "%lld.", seconds));
    gnutls_hmac(hmac, post->body.data, post->body.size);
    gnutls_hmac_deinit(hmac, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return add(post, "X-Kldiv-Signature: sha256=%s", hex);
}

static bool add_fields(struct post *post, const struct api_message *message)
{
    const long long seconds = message->sent_at / 1000000;
    const struct api_trace *trace = api_message_trace(message);
    bool good = (!trace || add(post, "traceparent: %s", api_trace_child(trace).text)) &&
                add(post, "Content-Type: application/json") && add(post, "Expect:") &&
                add(post, "Idempotency-Key: %s", message->id) &&
                add(post, "X-Kldiv-Timestamp: %lld", seconds) && sign(post, seconds);
    for (char *const *field = post->receiver->headers; good && *field; field++)
        good = add(post, "%s", *field);
    return good;
}

/* ---- Answer */

/* Keeps the begin of an answer, up to a line's end, in which bytes that are not printable are blanks. */
static size_t receive(char *bytes, size_t one, size_t size, void *context)
{
    struct post *post = context;
    (void)one;
    post->received += size;
    for (size_t i = 0; i < size && post->kept + 1 < sizeof post->outcome.answer; i++) {
        if (bytes[i] == '\n' && post->kept > 0)
            post->kept = sizeof post->outcome.answer;
        else if (bytes[i] != '\n')
            post->outcome.answer[post->kept++] =
                (char)(bytes[i] < ' ' || bytes[i] > '~' ? ' ' : bytes[i]);
    }
    return post->received <= MAX_ANSWER ? size : 0;
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct post *post = context;
    curl_off_t looked_up = 0; /* microseconds that it took */
    (void)a, (void)b, (void)c, (void)d;
    curl_easy_getinfo(post->easy, CURLINFO_NAMELOOKUP_TIME_T, &looked_up);
    return post->stops(post->context, looked_up == 0);
}

/* Overwrites what an answer has of a secret, but for what may be chance. A receiver that sends back what it gets must
 * not show its URL and header to who may only send a test. */
static void mask(char *answer, const char *secret)
{
    enum { CHANCE = 5 };
    for (; secret && *secret; secret++)
        for (char *p = answer; *p; p++) {
            size_t n = 0;
            while (p[n] && p[n] == secret[n])
                n++;
            if (n > CHANCE)
                memset(p, '*', n);
        }
}

/* Tells what became of a transfer. A status counts, whatever comes after it: sent again, the message would be there twice. */
static void judge(struct post *post, CURL *easy, CURLcode result)
{
    struct api_notify_outcome *outcome = &post->outcome;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &outcome->status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
    outcome->retry_after = (double)retry_after;
    const long status = outcome->status;
    if (status / 100 == 2) {
        outcome->result = API_NOTIFY_DELIVERED;
        *outcome->failure = '\0';
        return;
    }
    if (status == 400 || status == 413 || status == 422)
        outcome->result = API_NOTIFY_REFUSED;
    if (status == 0)
        snprintf(outcome->failure, sizeof outcome->failure, "%s", curl_easy_strerror(result));
    else
        snprintf(outcome->failure, sizeof outcome->failure, "status %ld%s", status,
                 status / 100 == 3 ? "; redirects are not followed" : "");
}

/* ---- Post */

static void set_options(struct post *post, CURL *easy)
{
    const struct api_receiver *receiver = post->receiver;
    char url[2100];
    size_t size = strlen(receiver->url);
    bool is_alertmanager = receiver->format == API_NOTIFY_ALERTMANAGER;
    while (is_alertmanager && receiver->url[size - 1] == '/')
        size--;
    snprintf(url, sizeof url, "%.*s%s", (int)size, receiver->url,
             is_alertmanager ? "/api/v2/alerts" : "");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* waits for no look-up that takes longer */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)SECONDS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kldivd/" KLDIV_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->fields);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body.size);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, post);
    if (receiver->ca_file) { /* and no others */
        curl_easy_setopt(easy, CURLOPT_CAINFO, receiver->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

struct api_notify_outcome srv_post(const struct api_receiver *receiver,
                                   const struct api_message *message, struct api_budget *budget,
                                   bool (*stops)(void *context, bool looks_up), void *context)
{
    struct post post = {.easy = curl_easy_init(),
                        .receiver = receiver,
                        .body = {.budget = budget},
                        .outcome = {.result = API_NOTIFY_FAILED, .failure = "no memory is left"},
                        .stops = stops,
                        .context = context};
    const double begun = api_seconds();
    CURL *easy = post.easy;
    api_message_write(message, receiver->format, &post.body);
    if (easy && !post.body.failed && add_fields(&post, message)) {
        set_options(&post, easy);
        judge(&post, easy, curl_easy_perform(easy));
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(post.fields);
    api_buffer_free(&post.body);
    const char *host = strstr(receiver->url, "://") + 3;
    mask(post.outcome.answer, host + strcspn(host, "/?"));
    mask(post.outcome.answer, receiver->secret);
    for (char *const *field = receiver->headers; *field; field++)
        mask(post.outcome.answer, strstr(*field, ": ") + 2);
    post.outcome.seconds = api_seconds() - begun;
    return post.outcome;
}
