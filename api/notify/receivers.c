#include "api/notify/receivers.h"

#include "api/json/json_load.h"
#include "api/text/nearest.h"
#include "api/text/url.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const api_notify_format_names[] = {"json", "slack", "alertmanager", NULL};

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

/* The text of a value, if it may be a part of a header field or of a log line; else NULL. */
static const char *printable(const json_t *value, size_t max)
{
    const char *text = json_string_value(value);
    for (const char *p = text; p && *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return NULL;
    return text && strlen(text) <= max ? text : NULL;
}

static bool copy(char **to, const json_t *value, size_t max, const struct location *location)
{
    const char *text = printable(value, max);
    if (!text || !*text)
        return fail(location, max == 128
                                  ? "must be a text of 1 to 128 bytes without control characters"
                                  : "must be a text of at most 2000 bytes without control "
                                    "characters");
    *to = strdup(text);
    return *to || api_fail_oom(location->problem);
}

static bool read_url(struct api_receiver *receiver, const json_t *value,
                     const struct location *location)
{
    if (!copy(&receiver->url, value, 2000, location))
        return false;
    const char *reason = api_url_reason(receiver->url);
    return !reason || fail(location, reason);
}

static bool read_format(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    const char *text = json_string_value(value);
    size_t format = api_word_index(api_notify_format_names, text ? text : "");
    receiver->format = (enum api_notify_format)format;
    return format < API_NOTIFY_FORMATS || fail(location, "must be json, slack or alertmanager");
}

static bool read_groups(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
    size_t n = json_array_size(value);
    if (n < 1 || n > API_MAX_GROUP_PATTERNS)
        return fail(location,
                    "must be an array of 1 to 64 names of groups, in which * is any text");
    for (size_t i = 0; i < n; i++)
        if (!copy(&receiver->groups[i], json_array_get(value, i), 128, location))
            return false;
    return true;
}

static bool read_states(struct api_receiver *receiver, const json_t *value,
                        const struct location *location)
{
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
    const char *name;
    json_t *member;
    if (!json_is_object(value) || json_object_size(value) > API_MAX_NOTIFY_HEADERS)
        return fail(location, "must be an object of at most 16 header fields");
    json_object_foreach((json_t *)value, name, member)
    {
        const char *text = printable(member, 4000);
        const struct location field = within(location, name);
        if (!is_free(name))
            return fail(&field, "is no header field that may be set");
        if (!text)
            return fail(&field, "must be a text of at most 4000 bytes without control characters");
        if (asprintf(&receiver->headers[n++], "%s: %s", name, text) < 0) {
            receiver->headers[n - 1] = NULL;
            return api_fail_oom(location->problem);
        }
    }
    return true;
}

/* ---- The file */

/* member: a text of at most `max` bytes is copied to `offset`; where max is 0, `read` reads it. */
#define TEXT(member) offsetof(struct api_receiver, member)
static const struct member {
    const char *name;
    bool is_needed;
    size_t offset, max;
    bool (*read)(struct api_receiver *receiver, const json_t *value,
                 const struct location *location);
} members[] = {
    {"name", true, TEXT(name), 128, NULL}, {"url", true, 0, 0, read_url},
    {"format", true, 0, 0, read_format},   {"groups", false, 0, 0, read_groups},
    {"states", false, 0, 0, read_states},  {"secret_file", false, TEXT(secret_file), 2000, NULL},
    {"header", false, 0, 0, read_header},  {"ca_file", false, TEXT(ca_file), 2000, NULL}};
enum { N_MEMBERS = sizeof members / sizeof *members };

/* Fails for a member that is not known. */
static bool check_member(const char *name, const struct location *location)
{
    const char *known[N_MEMBERS + 1] = {NULL};
    char mean[API_MEAN];
    for (size_t i = 0; i < N_MEMBERS; i++)
        known[i] = members[i].name;
    if (api_word_index(known, name) < N_MEMBERS)
        return true;
    const char *nearest = api_nearest(name, known, N_MEMBERS);
    const struct location at = within(location, name);
    if (strcmp(name, "remind") == 0)
        return fail(&at, "is gone: an Alertmanager repeats what lasts, by its repeat_interval");
    return api_fail_at(location->problem, API_BODY, at.pointer, "option_unknown",
                       "is no member%s %shey are name, url, format, groups, states, secret_file, "
                       "header and ca_file",
                       api_mean(mean, nearest, ";"), nearest ? "T" : "t");
}

static bool read_receiver(struct api_receiver *receiver, const json_t *object,
                          const struct location *location)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return fail(location, "must be an object");
    json_object_foreach((json_t *)object, name,
                        value) if (!check_member(name, location)) return false;
    for (const struct member *member = members; member < members + N_MEMBERS; member++) {
        const struct location at = within(location, member->name);
        char **text = (char **)((char *)receiver + member->offset);
        value = json_object_get(object, member->name);
        if (!value && member->is_needed)
            return fail(&at, "is missing");
        if (value && !(member->read ? member->read(receiver, value, &at)
                                    : copy(text, value, member->max, &at)))
            return false;
    }
    if (!receiver->states)
        receiver->states = 1 << API_OK | 1 << API_WARNING | 1 << API_CRITICAL | 1 << API_STALE;
    if (!receiver->groups[0])
        receiver->groups[0] = strdup("*");
    return receiver->groups[0] || api_fail_oom(location->problem);
}

static bool read_all(struct api_receivers *receivers, const json_t *root,
                     struct api_problem *problem)
{
    const struct location top = {.pointer = "#", .problem = problem};
    if (!json_is_array(root) || json_array_size(root) > API_MAX_RECEIVERS)
        return fail(&top, "must be an array of at most 32 objects");
    for (size_t i = 0; i < json_array_size(root); i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        const struct location location = within(&top, index), name = within(&location, "name");
        struct api_receiver *receiver = &receivers->list[receivers->n++];
        if (!read_receiver(receiver, json_array_get(root, i), &location))
            return false;
        if (api_receivers_find(receivers, receiver->name) != i)
            return fail(&name, "is the name of another");
    }
    return true;
}

struct api_receivers *api_receivers_read(const char *text, size_t size, struct api_problem *problem)
{
    struct api_json json = {.budget = NULL};
    struct api_receivers *receivers = calloc(1, sizeof *receivers);
    bool good = false;
    if (!receivers || (!api_json_load(&json, text, size) && json.out_of_memory))
        api_fail_oom(problem);
    else if (!json.root)
        api_fail(problem, "json_malformed", "line %d, column %d: %s", json.error.line,
                 json.error.column, json.error.text);
    else
        good = read_all(api_receivers_hold(receivers), json.root, problem);
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

void api_receivers_release(struct api_receivers *receivers)
{
    if (!receivers || atomic_fetch_sub(&receivers->refcount, 1) > 1)
        return;
    for (size_t i = 0; i < receivers->n; i++) {
        struct api_receiver *receiver = &receivers->list[i];
        free(receiver->name);
        free(receiver->url);
        for (char **group = receiver->groups; *group; group++)
            free(*group);
        for (char **field = receiver->headers; *field; field++)
            free(*field);
        free(receiver->secret_file);
        free(receiver->ca_file);
        if (receiver->secret)
            explicit_bzero(receiver->secret, receiver->secret_size);
        free(receiver->secret);
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
