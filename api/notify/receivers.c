#include "api/notify/receivers.h"

#include "api/json/json_load.h"
#include "api/text/nearest.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const api_notify_format_names[API_NOTIFY_FORMATS] = {"json", "slack", "alertmanager"};

/* default_states: states that are default_states unless a receiver says otherwise. */
static const unsigned default_states =
    1 << API_OK | 1 << API_WARNING | 1 << API_CRITICAL | 1 << API_STALE;

/* ---- Members */

/* location: of a value in the file, for problems. */
struct location {
    char pointer[200];
    struct api_problem *problem;
};

static bool fail(const struct location *location, const char *what)
{
    return api_fail_at(location->problem, API_BODY, location->pointer, "option_invalid", "%s",
                       what);
}

static struct location within(const struct location *location, const char *name)
{
    struct location inner = {.problem = location->problem};
    char slash[sizeof location->pointer + 2];
    snprintf(slash, sizeof slash, "%s/", location->pointer);
    api_pointer_to_member(inner.pointer, sizeof inner.pointer, slash, name);
    return inner;
}

/* True for a text that may be a part of a header field or of a log line. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

static bool copy(char **to, const json_t *value, size_t max, const struct location *location)
{
    const char *text = json_string_value(value);
    if (!text || !*text || strlen(text) > max || !is_printable(text))
        return fail(location, max == 128
                                  ? "must be a text of 1 to 128 bytes without control characters"
                                  : "must be a text of at most 2000 bytes without control "
                                    "characters");
    *to = strdup(text);
    return *to || api_fail_oom(location->problem);
}

/* True for "HOST", "HOST:PORT" and either with an address of IPv6 in brackets. */
static bool is_authority(const char *text, size_t size)
{
    enum { MAX_PORT = 65535 };
    const char *end = text + size, *p = text;
    long port = 0;
    if (*p == '[') {
        struct in6_addr ignored;
        char address[INET6_ADDRSTRLEN] = "";
        size_t length = strcspn(p + 1, "]%"); /* a zone may follow: fe80::1%25eth0 */
        p = memchr(p, ']', size);
        if (!p || length >= sizeof address)
            return false;
        p++;
        memcpy(address, text + 1, length);
        if (inet_pton(AF_INET6, address, &ignored) != 1)
            return false;
    } else {
        for (; p < end && *p != ':'; p++)
            if (strchr("[]\\\"<>^`{|}", *p))
                return false;
    }
    if (p == end || p == text)
        return p > text;
    const char *digits = p + 1;
    if (*p != ':' || digits == end)
        return false;
    for (p = digits; p < end && isdigit((unsigned char)*p) && port <= MAX_PORT; p++)
        port = 10 * port + (*p - '0');
    return p == end && port > 0 && port <= MAX_PORT;
}

/* A password in a URL would be shown by proxies: it belongs into a header. */
const char *api_receiver_url_reason(const char *url)
{
    const char *host = strstr(url, "://");
    bool is_http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~' || *p == '#')
            return "must be ASCII without blanks and without a fragment";
    if (!is_http || strcspn(host + 3, "/?") == 0)
        return "must begin with http:// or https:// and a host";
    if (memchr(host + 3, '@', strcspn(host + 3, "/?")))
        return "must not have a user or a password: use header";
    if (!is_authority(host + 3, strcspn(host + 3, "/?")))
        return "must have a host and, if any, a port from 1 to 65535; an address of IPv6 stands in "
               "brackets: http://[::1]:9093";
    return strlen(url) <= 1900 ? NULL : "must have at most 1900 bytes";
}

static bool check_url(struct api_receiver *receiver, const json_t *value,
                      const struct location *location)
{
    (void)value;
    const char *reason = api_receiver_url_reason(receiver->url);
    return !reason || fail(location, reason);
}

static bool read_format(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && i < API_NOTIFY_FORMATS; i++)
        if (strcmp(text, api_notify_format_names[i]) == 0) {
            receiver->format = (enum api_notify_format)i;
            return true;
        }
    return fail(location, "must be json, slack or alertmanager");
}

static bool read_groups(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    size_t n = json_array_size(value);
    if (n < 1 || n > API_MAX_GROUP_PATTERNS)
        return fail(location,
                    "must be an array of 1 to 64 names of groups, in which * is any text");
    free(receiver->groups[0]); /* the default */
    receiver->groups[0] = NULL;
    for (size_t i = 0; i < n; i++)
        if (!copy(&receiver->groups[i], json_array_get(value, i), 128, location))
            return false;
    return true;
}

static bool read_states(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    receiver->states = 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *text = json_string_value(json_array_get(value, i));
        int state = API_OK;
        while (text && state < API_STATES && strcmp(text, api_state_name(state)) != 0)
            state++;
        if (!text || state == API_STATES)
            return fail(location, "must be of ok, warning, critical and stale");
        receiver->states |= 1u << state;
    }
    return receiver->states ||
           fail(location, "must be an array of ok, warning, critical and stale");
}

/* True for a token of HTTP that is no field which a message has anyway. */
static bool is_free(const char *name)
{
    static const char *const taken[] = {"Host",           "Content-Length",    "Content-Type",
                                        "Expect",         "Transfer-Encoding", "Connection",
                                        "Idempotency-Key"};
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p))
            return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcasecmp(name, taken[i]) == 0)
            return false;
    return *name && strncasecmp(name, "X-Kldiv-", 8) != 0;
}

static bool read_header(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    size_t n = 0;
    if (!json_is_object(value) || json_object_size(value) > API_MAX_NOTIFY_HEADERS)
        return fail(location, "must be an object of at most 16 header fields");
    for (void *at = json_object_iter((json_t *)value); at;
         at = json_object_iter_next((json_t *)value, at)) {
        const char *name = json_object_iter_key(at);
        const char *text = json_string_value(json_object_iter_value(at));
        const struct location field = within(location, name);
        if (!is_free(name))
            return fail(&field, "is no header field that may be set");
        if (!text || strlen(text) > 4000 || !is_printable(text))
            return fail(&field, "must be a text of at most 4000 bytes without control characters");
        if (asprintf(&receiver->headers[n], "%s: %s", name, text) < 0) {
            receiver->headers[n] = NULL;
            return api_fail_oom(location->problem);
        }
        n++;
    }
    return true;
}

/* Reads the time between two reminders: 24h, 7d. */
static bool read_remind(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    enum { HOUR = 3600, DAY = 24 * HOUR, MAX = 30 * DAY };
    const char *text = json_string_value(value);
    char *end = NULL;
    unsigned long n = text && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0,
                  unit = !end                    ? 0
                         : strcmp(end, "h") == 0 ? HOUR
                         : strcmp(end, "d") == 0 ? DAY
                                                 : 0;
    if (n == 0 || unit == 0 || n > MAX / unit)
        return fail(location, "must be a time such as 24h or 7d, of 1 hour to 30 days");
    receiver->remind = (unsigned)(n * unit);
    return true;
}

/* ---- The file */

/* member: a text of at most `max` bytes is copied to `offset`; then, or where max is 0, `read` does the rest, if any. */
#define TEXT(member) offsetof(struct api_receiver, member)
static const struct member {
    const char *name;
    bool is_needed;
    size_t offset, max;
    bool (*read)(struct api_receiver *receiver, const json_t *value,
                 const struct location *location);
} members[] = {
    {"name", true, TEXT(name), 128, NULL}, {"url", true, TEXT(url), 2000, check_url},
    {"format", true, 0, 0, read_format},   {"groups", false, 0, 0, read_groups},
    {"states", false, 0, 0, read_states},  {"secret_file", false, TEXT(secret_file), 2000, NULL},
    {"header", false, 0, 0, read_header},  {"ca_file", false, TEXT(ca_file), 2000, NULL},
    {"remind", false, 0, 0, read_remind}};
#define N_MEMBERS (sizeof members / sizeof *members)

static bool read_member(const struct member *member, struct api_receiver *receiver,
                        const json_t *value, const struct location *location)
{
    char **text = (char **)((char *)receiver + member->offset);
    return (member->max == 0 || copy(text, value, member->max, location)) &&
           (!member->read || member->read(receiver, value, location));
}

static bool fail_unknown(const char *name, const struct location *location)
{
    const char *known[N_MEMBERS];
    char mean[API_MEAN];
    for (size_t i = 0; i < N_MEMBERS; i++)
        known[i] = members[i].name;
    const char *nearest = api_nearest(name, known, N_MEMBERS);
    const struct location at = within(location, name);
    return api_fail_at(location->problem, API_BODY, at.pointer, "option_unknown",
                       "is no member%s %shey are name, url, format, groups, states, secret_file, "
                       "header, ca_file and remind",
                       api_mean(mean, nearest, ";"), nearest ? "T" : "t");
}

static bool read_receiver(struct api_receiver *receiver, const json_t *object,
                          const struct location *location)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return fail(location, "must be an object");
    json_object_foreach((json_t *)object, name, value)
    {
        size_t i = 0;
        while (i < N_MEMBERS && strcmp(members[i].name, name) != 0)
            i++;
        if (i == N_MEMBERS)
            return fail_unknown(name, location);
    }
    receiver->states = default_states;
    receiver->groups[0] = strdup("*");
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const struct location at = within(location, members[i].name);
        value = json_object_get(object, members[i].name);
        if (!value && members[i].is_needed)
            return fail(&at, "is missing");
        if (value && !read_member(&members[i], receiver, value, &at))
            return false;
    }
    const struct location remind = within(location, "remind");
    if (receiver->remind > 0 && receiver->format == API_NOTIFY_ALERTMANAGER)
        return fail(&remind,
                    "is not for an Alertmanager, which reminds by itself (repeat_interval)");
    return receiver->groups[0] || api_fail_oom(location->problem);
}

static bool read_all(struct api_receivers *receivers, const json_t *root,
                     struct api_problem *problem)
{
    struct location top = {.pointer = "#", .problem = problem};
    size_t n = json_array_size(root);
    if (!json_is_array(root) || n > API_MAX_RECEIVERS)
        return fail(&top, "must be an array of at most 32 objects");
    for (size_t i = 0; i < n; i++) {
        char index[12];
        snprintf(index, sizeof index, "%zu", i);
        const struct location location = within(&top, index), name = within(&location, "name");
        struct api_receiver *receiver = &receivers->list[receivers->n++];
        if (!read_receiver(receiver, json_array_get(root, i), &location))
            return false;
        if (!receiver->name || api_receivers_find(receivers, receiver->name) != i)
            return fail(&name, "is the name of another");
    }
    return true;
}

struct api_receivers *api_receivers_read(const char *text, size_t size, struct api_problem *problem)
{
    struct api_json json = {.budget = NULL};
    struct api_receivers *receivers = calloc(1, sizeof *receivers);
    bool good = receivers != NULL;
    if (good)
        receivers->refcount = 1;
    if (!good || (!api_json_load(&json, text, size) && json.out_of_memory))
        good = api_fail_oom(problem);
    else if (!json.root)
        good = api_fail(problem, "json_malformed", "line %d, column %d: %s", json.error.line,
                        json.error.column, json.error.text);
    good = good && read_all(receivers, json.root, problem);
    api_json_free(&json);
    if (good)
        return receivers;
    api_receivers_release(receivers);
    return NULL;
}

struct api_receivers *api_receivers_hold(struct api_receivers *receivers)
{
    atomic_fetch_add(&receivers->refcount, 1);
    return receivers;
}

static void free_texts(char **texts)
{
    for (; *texts; texts++)
        free(*texts);
}

static void free_secret(char *secret, size_t size)
{
    if (secret)
        explicit_bzero(secret, size);
    free(secret);
}

void api_receivers_release(struct api_receivers *receivers)
{
    if (!receivers || atomic_fetch_sub(&receivers->refcount, 1) > 1)
        return;
    for (size_t i = 0; i < receivers->n; i++) {
        struct api_receiver *receiver = &receivers->list[i];
        free(receiver->name);
        free(receiver->url);
        free_texts(receiver->groups);
        free_texts(receiver->headers);
        free(receiver->secret_file);
        free(receiver->ca_file);
        free_secret(receiver->secret, receiver->secret_size);
    }
    free(receivers);
}

size_t api_receivers_find(const struct api_receivers *receivers, const char *name)
{
    for (size_t i = 0; i < receivers->n; i++)
        if (receivers->list[i].name && strcmp(receivers->list[i].name, name) == 0)
            return i;
    return receivers->n;
}

bool api_receiver_wants(const struct api_receiver *receiver, const char *group, int from, int to)
{
    unsigned either = 1u << to;
    if (receiver->format == API_NOTIFY_ALERTMANAGER)
        either |= 1u << from;
    if (!(receiver->states & either))
        return false;
    for (char *const *pattern = receiver->groups; *pattern; pattern++)
        if (fnmatch(*pattern, group, 0) == 0)
            return true;
    return false;
}

/* True if a pattern matches only groups that a token is for, judged by its characters before the first wildcard. */
static bool is_within(const char *pattern, const struct api_token *token)
{
    size_t fixed = strcspn(pattern, "*?[\\");
    if (pattern[fixed] == '\0')
        return api_token_has_group(token, pattern);
    for (size_t i = 0; i < token->n_patterns; i++) {
        const char *text = token->groups + token->patterns[i].at;
        if (token->patterns[i].is_prefix && strlen(text) <= fixed &&
            memcmp(text, pattern, strlen(text)) == 0)
            return true;
    }
    return !api_token_is_bound(token);
}

bool api_receiver_is_of_token(const struct api_receiver *receiver, const struct api_token *token)
{
    for (char *const *pattern = receiver->groups; *pattern; pattern++)
        if (!is_within(*pattern, token))
            return false;
    return true;
}
