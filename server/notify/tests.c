#include "server/notify/tests.h"

#include "api/text/clock.h"

#include <string.h>

/* ---- Secrets */

/* Overwrites a secret wherever it stands in a text, also where the text ends within it. */
static void mask(char *text, const char *secret, size_t size)
{
    enum { SHORTEST = 4 }; /* of a part that is no chance */
    for (char *p = text; *p; p++) {
        size_t n = 0;
        while (n < size && p[n] && p[n] == secret[n])
            n++;
        if (n == size || (n >= SHORTEST && !p[n]))
            memset(p, '*', n);
    }
}

/* Masks a text that is secret, and each word of it that is long enough to be one. */
static void mask_all(char *text, const char *secret)
{
    enum { SHORTEST = 8 };
    static const char between[] = "/?&= ";
    if (strlen(secret) > 1)
        mask(text, secret, strlen(secret));
    for (size_t n; *secret; secret += n + (secret[n] != '\0')) {
        n = strcspn(secret, between);
        if (n >= SHORTEST)
            mask(text, secret, n);
    }
}

/* A receiver that sends back what it gets must not show its URL and header to who may only send a test. */
static void mask_secrets(char *answer, const struct api_receiver *receiver)
{
    const char *host = strstr(receiver->url, "://") + 3;
    mask_all(answer, host + strcspn(host, "/?"));
    for (char *const *field = receiver->headers; *field; field++)
        mask_all(answer, strstr(*field, ": ") + 2);
    if (receiver->secret)
        mask_all(answer, receiver->secret);
}

/* ---- Tests */

static void end(struct srv_tests *tests, struct srv_test *t, const struct srv_outcome *outcome)
{
    struct api_notify_test *test = t->test;
    test->status = outcome->status;
    test->seconds = outcome->seconds;
    memcpy(test->failure, outcome->failure, sizeof test->failure);
    memcpy(test->answer, t->post.answer, sizeof test->answer);
    if (t->receiver)
        mask_secrets(test->answer, t->receiver);
    srv_post_free(&t->post);
    *t = (struct srv_test){.test = NULL};
    api_notify_test_end(test, tests->sender->notifier);
}

static void begin(struct srv_tests *tests, struct srv_test *t)
{
    static const struct api_change change = {.group = "kldiv",
                                             .name = "test",
                                             .sentence = "nothing has happened; this is a test",
                                             .from = API_OK,
                                             .to = API_WARNING,
                                             .kl = 0};
    const struct srv_sender *sender = tests->sender;
    struct api_change now = change;
    now.at = now.since = now.queued = api_now();
    now.began = API_NO_TIME;
    struct api_message message = srv_message_of(&now, 1, now.at, sender->notifier->public_url);
    message.is_test = true;
    if (!t->receiver ||
        !srv_post_begin(&t->post, sender->multi, t->receiver, &message, sender->budget))
        end(tests, t,
            &(struct srv_outcome){.failure = "it is not there any more, or memory is exhausted"});
}

void srv_tests_take(struct srv_tests *tests, const struct api_receivers *receivers, bool ends)
{
    struct api_notify_test *next, *test = api_notify_tests_take(tests->sender->notifier, ends);
    for (size_t i = 0; test; test = next, i++) {
        while (tests->list[i].test)
            i++;
        size_t place = api_receivers_find(receivers, test->name);
        next = test->next;
        tests->list[i].test = test;
        tests->list[i].receiver = place < receivers->n ? &receivers->list[place] : NULL;
        begin(tests, &tests->list[i]);
    }
}

size_t srv_tests_look(struct srv_tests *tests)
{
    size_t n = 0;
    for (struct srv_test *t = tests->list; t < tests->list + API_MAX_TESTS; t++) {
        if (t->test && api_notify_test_is_left(t->test)) {
            end(tests, t, &(struct srv_outcome){.failure = "the client has left"});
        } else if (t->test && srv_post_has_no_address(&t->post, tests->sender->multi)) {
            const struct srv_outcome outcome = srv_post_end(&t->post, CURLE_COULDNT_RESOLVE_HOST);
            end(tests, t, &outcome);
        }
        n += t->test != NULL;
    }
    return n;
}

const struct api_receiver *srv_tests_finish(struct srv_tests *tests, const CURL *easy,
                                            CURLcode result)
{
    struct srv_test *t = tests->list;
    while (t < tests->list + API_MAX_TESTS && t->post.easy != easy)
        t++;
    if (t == tests->list + API_MAX_TESTS)
        return NULL;
    const struct srv_outcome outcome = srv_post_end(&t->post, result);
    const struct api_receiver *receiver = t->receiver;
    end(tests, t, &outcome);
    return *outcome.failure ? NULL : receiver;
}

void srv_tests_abort(struct srv_tests *tests, const char *why)
{
    struct srv_outcome outcome = {.result = API_NOTIFY_FAILED};
    snprintf(outcome.failure, sizeof outcome.failure, "%s", why);
    for (struct srv_test *t = tests->list; t < tests->list + API_MAX_TESTS; t++)
        if (t->test)
            end(tests, t, &outcome);
}
