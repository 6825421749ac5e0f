/* Tokens that are bound to groups: each endpoint shows and changes their groups alone, and tells of no other whether it is
 * there. */
#include "api/endpoints.h"
#include "api/notify/notifier.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"
#define SETTINGS "?warning=0.1&critical=0.25&significance=0.01&pool=1&clear_after=1"
#define ADMIN "Bearer admin-admin-admin-admin"
#define TENANT "Bearer tenant-tenant-tenant"
#define FEEDER "Bearer feeder-feeder-feeder"
#define STRANGER "Bearer stranger-stranger"

static const char tokens_text[] =
    "admin admin-admin-admin-admin\n"
    "tenant read,write groups=fraud-*,gr%C3%B6%C3%9Fe%20x tenant-tenant-tenant\n"
    "feeder observe groups=fraud-cards feeder-feeder-feeder\n"
    "stranger read,write groups=nobody stranger-stranger\n";

/* As in paths, then as they are; the tenant's first. */
static const char *const groups[][2] = {
    {"fraud-cards", "fraud-cards"},       {"fraud-loans", "fraud-loans"},
    {"gr%C3%B6%C3%9Fe%20x", "größe x"},   {"fraud", "fraud"},
    {"fraudulent", "fraudulent"},         {"Fraud-cards", "Fraud-cards"},
    {"gr%C3%B6%C3%9Fe%20x2", "größe x2"}, {"other", "other"}};

enum { TENANTS_GROUPS = 3 };

static bool is_tenants(const char *group)
{
    for (size_t i = 0; i < TENANTS_GROUPS; i++)
        if (strcmp(groups[i][1], group) == 0)
            return true;
    return false;
}

static struct answer ask_as(const struct api_service *service, const char *token, const char *line,
                            const char *body)
{
    const struct monitors_request request = {
        line, body ? "application/json" : NULL, body, 0, {{"Authorization", token}}};
    return monitors_send(service, &request);
}

static void expect_as(const struct api_service *service, const char *token, const char *line,
                      const char *body, int status, const char *code)
{
    struct answer answer = ask_as(service, token, line, body);
    cr_expect_eq(answer.status, status, "%s %s: %d %.*s", token, line, answer.status,
                 (int)answer.response.body.size, answer.response.body.data);
    cr_expect_str_eq(text_of(answer.json, "code"), code, "%s %s", token, line);
    answer_free(&answer);
}

/* Each group has two monitors, whose states change twice. */
static struct api_service make(void)
{
    struct api_service service = monitors_new(100);
    struct api_parse_error error;
    service.tokens = api_tokens_new();
    cr_assert(api_tokens_read(service.tokens, tokens_text, sizeof tokens_text - 1, &error), "%s",
              error.what);
    for (size_t i = 0; i < COUNT(groups); i++)
        for (size_t j = 0; j < 2; j++) {
            char line[200], body[100];
            snprintf(line, sizeof line, "PUT /monitors/%s/m%zu" SETTINGS, groups[i][0], j);
            expect_as(&service, ADMIN, line, CONFIG, 201, "");
            snprintf(line, sizeof line, "POST /monitors/%s/m%zu/observations", groups[i][0], j);
            for (size_t k = 0; k < 3; k++) {
                snprintf(body, sizeof body, "{\"counts\":[%d,%d],\"timestamp\":%zu}",
                         k % 2 ? 95 : 50, k % 2 ? 5 : 50, 10000 * (k + 1) + 10 * i + j);
                expect_as(&service, ADMIN, line, body, 200, "");
            }
        }
    return service;
}

static void end(struct api_service *service)
{
    api_tokens_free(service->tokens);
    service->tokens = NULL;
    monitors_end(service);
}

/* Reads all pages of a list; gives its items. */
static json_t *read_list(const struct api_service *service, const char *token, const char *path,
                         const char *member)
{
    json_t *items = json_array();
    char line[300], cursor[200] = "";
    do {
        snprintf(line, sizeof line, "GET %s%s%s", path, *cursor ? "&cursor=" : "", cursor);
        struct answer answer = ask_as(service, token, line, NULL);
        cr_assert_eq(answer.status, 200, "%s: %d", line, answer.status);
        json_array_extend(items, json_object_get(answer.json, member));
        snprintf(cursor, sizeof cursor, "%s", text_of(answer.json, "next"));
        answer_free(&answer);
    } while (*cursor);
    return items;
}

static json_t *only_tenants(const json_t *items)
{
    json_t *left = json_array(), *item;
    size_t i;
    json_array_foreach(items, i, item) if (is_tenants(text_of(item, "group")))
        json_array_append(left, item);
    return left;
}

Test(monitors_tenants, lists_are_those_of_all_without_what_is_not_theirs)
{
    static const struct {
        const char *path, *member;
        size_t n;
    } lists[] = {
        {"/monitors?limit=500", "monitors", 6},
        {"/monitors?limit=1", "monitors", 6},
        {"/monitors?limit=2&q=m1", "monitors", 3},
        {"/groups?limit=500", "groups", 3},
        {"/groups?limit=1", "groups", 3},
        {"/groups?limit=2&q=a", "groups", 2},
        {"/events?limit=500", "events", 18},
        {"/events?limit=1", "events", 18},
        {"/events?limit=5&since=15000", "events", 12},
    };
    struct api_service service = make();
    for (size_t i = 0; i < COUNT(lists); i++) {
        json_t *all = read_list(&service, ADMIN, lists[i].path, lists[i].member),
               *theirs = read_list(&service, TENANT, lists[i].path, lists[i].member),
               *none = read_list(&service, STRANGER, lists[i].path, lists[i].member),
               *wanted = only_tenants(all);
        cr_expect_gt(json_array_size(all), lists[i].n, "%s", lists[i].path);
        cr_expect_eq(json_array_size(wanted), lists[i].n, "%s: %zu", lists[i].path,
                     json_array_size(wanted));
        cr_expect(json_equal(theirs, wanted), "%s: %zu", lists[i].path, json_array_size(theirs));
        cr_expect_eq(json_array_size(none), 0, "%s", lists[i].path);
        json_decref(all);
        json_decref(theirs);
        json_decref(none);
        json_decref(wanted);
    }
    end(&service);
}

Test(monitors_tenants, a_filter_by_another_group_is_refused)
{
    static const char *const lines[] = {"/monitors?group=other", "/events?group=other",
                                        "/monitors?group=nowhere", "/events?group=nowhere"};
    struct api_service service = make();
    for (size_t i = 0; i < COUNT(lines); i++) {
        char line[60];
        snprintf(line, sizeof line, "GET %s", lines[i]);
        expect_as(&service, TENANT, line, NULL, 403, "group_forbidden");
    }
    json_t *own = read_list(&service, TENANT, "/events?group=fraud-cards", "events");
    cr_expect_eq(json_array_size(own), 6);
    json_decref(own);
    end(&service);
}

/* Appends the lines of a text that name a group, if it is the tenant's, or any. */
static void keep_lines(const char *text, size_t size, bool all, struct api_buffer *to)
{
    static const char label[] = "{group=\"";
    for (const char *line = text, *next; line < text + size; line = next) {
        char group[200];
        next = (const char *)memchr(line, '\n', (size_t)(text + size - line)) + 1;
        const char *at = memmem(line, (size_t)(next - line), label, sizeof label - 1);
        if (!at || sscanf(at + sizeof label - 1, "%199[^\"]", group) != 1)
            continue;
        if (all || is_tenants(group))
            api_append(to, line, (size_t)(next - line));
    }
}

static void read_metrics(const struct api_service *service, const char *token, bool all,
                         struct api_buffer *to)
{
    struct answer answer = ask_as(service, token, "GET /metrics", NULL);
    cr_assert_eq(answer.status, 200);
    if (answer.response.shared)
        keep_lines(answer.response.shared->bytes.data, answer.response.shared->bytes.size, all, to);
    keep_lines(answer.response.body.data, answer.response.body.size, all, to);
    api_append(to, "", 1);
    answer_free(&answer);
}

Test(monitors_tenants, metrics_are_those_of_all_without_what_is_not_theirs)
{
    struct api_service service = make();
    struct api_buffer wanted = {0}, theirs = {0}, none = {0};
    read_metrics(&service, ADMIN, false, &wanted);
    read_metrics(&service, TENANT, true, &theirs);
    read_metrics(&service, STRANGER, true, &none);
    cr_expect_gt(wanted.size, 3000);
    cr_expect_str_eq(theirs.data, wanted.data);
    cr_expect_str_eq(none.data, "");
    api_buffer_free(&wanted);
    api_buffer_free(&theirs);
    api_buffer_free(&none);
    end(&service);
}

/* Formats the request of an endpoint for a group. */
static void line_of(const struct api_endpoint *endpoint, const char *group, char *line, size_t size)
{
    size_t n = (size_t)snprintf(line, size, "%s ", endpoint->method);
    for (const char *p = endpoint->path; *p; p++) {
        if (*p == '[') {
            p = strchr(p, ']');
        } else if (*p == '{') {
            bool is_group = strncmp(p, "{group}", 7) == 0, is_window = strncmp(p, "{win", 4) == 0;
            n += (size_t)snprintf(line + n, size - n, "%s",
                                  is_group    ? group
                                  : is_window ? "latest"
                                              : "m0");
            p = strchr(p, '}');
        } else {
            line[n++] = *p;
            line[n] = '\0';
        }
    }
}

static void expect_detail(const struct api_service *service, const char *line, const char *group)
{
    char detail[200];
    struct answer answer = ask_as(service, TENANT, line, "{}");
    snprintf(detail, sizeof detail, "the token 'tenant' is not for the group '%s'", group);
    cr_expect_eq(answer.status, 403, "%s: %d", line, answer.status);
    cr_expect_str_eq(text_of(answer.json, "code"), "group_forbidden", "%s", line);
    cr_expect_str_eq(text_of(answer.json, "detail"), detail, "%s", line);
    answer_free(&answer);
}

/* Each endpoint of the table: below a group, and not. */
Test(monitors_tenants, no_endpoint_reads_or_writes_what_is_not_theirs)
{
    struct api_service service = make();
    size_t below = 0, common = 0;
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        char line[300];
        if (strstr(e->path, "{group}")) {
            line_of(e, "nowhere", line, sizeof line);
            expect_detail(&service, line, "nowhere");
            line_of(e, "other", line, sizeof line);
            expect_detail(&service, line, "other");
            line_of(e, "fraud", line, sizeof line);
            expect_detail(&service, line, "fraud");
            below++;
        }
        line_of(e, "fraud-none", line, sizeof line);
        struct answer answer = ask_as(&service, TENANT, line, "{}");
        bool writes_common = e->flags & API_WRITES && !strstr(e->path, "{group}");
        cr_expect_eq(strcmp(text_of(answer.json, "code"), "group_forbidden") == 0 ||
                         (writes_common && strncmp(e->path, "/v2", 3) == 0 && answer.status == 403),
                     writes_common, "%s: %d", line, answer.status);
        common += writes_common;
        answer_free(&answer);
    }
    cr_expect_gt(below, 20);
    cr_expect_gt(common, 3);
    json_t *all = read_list(&service, ADMIN, "/monitors?limit=500", "monitors");
    cr_expect_eq(json_array_size(all), 2 * COUNT(groups), "none was deleted");
    json_decref(all);
    end(&service);
}

Test(monitors_tenants, their_own_groups_are_theirs)
{
    static const struct {
        const char *token, *line, *body;
        int status;
        const char *code;
    } cases[] = {
        {TENANT, "PUT /monitors/fraud-new/a", CONFIG, 201, ""},
        {TENANT, "GET /monitors/gr%C3%B6%C3%9Fe%20x/m0", NULL, 200, ""},
        {TENANT, "GET /groups/fraud-loans", NULL, 200, ""},
        {TENANT, "POST /groups/fraud-loans/mute", "{\"seconds\":60}", 200, ""},
        {TENANT, "GET /monitors/fraud-cards/m0/compare?from=0&to=20000&with_from=0&with_to=20000",
         NULL, 422, "option_unknown"},
        {TENANT, "GET /monitors/fraud-none/m0", NULL, 404, "group_not_found"},
        {TENANT, "DELETE /monitors/fraud-cards/m1", NULL, 204, ""},
        {FEEDER, "POST /monitors/fraud-cards/m0/observations", "{\"counts\":[5,5]}", 200, ""},
        {FEEDER, "POST /monitors/fraud-loans/m0/observations", "{\"counts\":[5,5]}", 403,
         "group_forbidden"},
        {FEEDER, "PUT /monitors/fraud-cards/m0", CONFIG, 403, "scope_missing"},
        {FEEDER, "PATCH /monitors/fraud-cards/m0", "{}", 403, "scope_missing"},
        {FEEDER, "DELETE /monitors/fraud-cards", NULL, 403, "scope_missing"},
        {FEEDER, "GET /monitors/fraud-cards/m0", NULL, 403, "scope_missing"},
        {FEEDER, "GET /monitors", NULL, 403, "scope_missing"},
        {FEEDER, "GET /metrics", NULL, 403, "scope_missing"},
    };
    struct api_service service = make();
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_as(&service, cases[i].token, cases[i].line, cases[i].body, cases[i].status,
                  cases[i].code);
    end(&service);
}

/* ---- Receivers of notifications */

Test(monitors_tenants, receivers_are_theirs_if_they_are_told_of_nothing_else)
{
    static const char text[] =
        "[{\"name\":\"all\",\"url\":\"http://h\",\"format\":\"json\"},"
        "{\"name\":\"mine\",\"url\":\"http://h\",\"format\":\"json\",\"groups\":[\"fraud-*\"]},"
        "{\"name\":\"part\",\"url\":\"http://h\",\"format\":\"json\",\"groups\":[\"fraud-c?rds\"]},"
        "{\"name\":\"two\",\"url\":\"http://h\",\"format\":\"json\",\"groups\":[\"größe "
        "x\",\"fraud-x\"]},"
        "{\"name\":\"wide\",\"url\":\"http://h\",\"format\":\"json\",\"groups\":[\"fraud*\"]},"
        "{\"name\":\"class\",\"url\":\"http://h\",\"format\":\"json\",\"groups\":[\"fraud[-x]a\"]},"
        "{\"name\":\"mixed\",\"url\":\"http://"
        "h\",\"format\":\"json\",\"groups\":[\"fraud-*\",\"other\"]}]";
    static const char names[] = "[\"mine\",\"part\",\"two\"]";
    char copy[sizeof text + API_PADDING] = "";
    struct api_problem problem = {.code = NULL};
    struct api_notifier notifier;
    struct api_service service = make();
    memcpy(copy, text, sizeof text);
    struct api_receivers *receivers = api_receivers_read(copy, sizeof text - 1, &problem);
    cr_assert(receivers, "%s %s", problem.location, problem.detail);
    cr_assert(api_notifier_init(&notifier, NULL));
    api_notifier_set(&notifier, receivers);
    api_monitors_notify(service.monitors, &notifier);

    json_t *all = read_list(&service, ADMIN, "/notifications", "notifications"),
           *theirs = read_list(&service, TENANT, "/notifications", "notifications"),
           *found = json_array(), *item, *wanted = json_loads(names, 0, NULL);
    size_t i;
    json_array_foreach(theirs, i, item) json_array_append(found, json_object_get(item, "name"));
    cr_expect_eq(json_array_size(all), 7);
    cr_expect(json_equal(found, wanted), "%s", json_dumps(found, 0));
    struct answer metrics = ask_as(&service, TENANT, "GET /metrics", NULL);
    api_append(&metrics.response.body, "", 1);
    cr_expect(strstr(metrics.response.body.data, "kldiv_notifications_pending{name=\"mine\"}"));
    cr_expect_not(strstr(metrics.response.body.data, "name=\"all\""));
    cr_expect_not(strstr(metrics.response.body.data, "name=\"mixed\""));
    answer_free(&metrics);
    expect_as(&service, TENANT, "POST /notifications/mine/test", NULL, 403, "group_forbidden");
    expect_as(&service, TENANT, "POST /notifications/none/test", NULL, 403, "group_forbidden");
    json_decref(all);
    json_decref(theirs);
    json_decref(found);
    json_decref(wanted);
    end(&service);
    api_notifier_free(&notifier);
}

/* A segment is a group of its own: a token for the name of its group alone is not one for it. */
Test(monitors_tenants, segments_are_groups_of_their_own)
{
    static const char table[] = "{\"columns\":{\"c\":[\"a\",\"b\"],\"x\":[1,2]}}";
    struct api_service service = make();
    expect_as(&service, TENANT, "PUT /monitors/fraud-cards?by=c&bins=1", table, 201, "");
    expect_as(&service, TENANT, "POST /monitors/fraud-cards/observations?by=c", table, 200, "");
    expect_as(&service, FEEDER, "POST /monitors/fraud-cards/observations?by=c", table, 403,
              "group_forbidden");
    expect_as(&service, FEEDER, "POST /monitors/fraud-cards/observations", table, 200, "");
    expect_as(&service, STRANGER, "GET /groups/fraud-cards%5Bc=other%5D", NULL, 403,
              "group_forbidden");
    end(&service);
}
