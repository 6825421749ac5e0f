#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <postgresql/libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The store: in memory, or in a schema of its own of the PostgreSQL that KLDIV_TEST_STORE names */

static char schema[40];

static void run_sql(const char *format)
{
    char text[200];
    PGconn *connection = PQconnectdb(getenv("KLDIV_TEST_STORE"));
    PQclear(PQexec(connection, "SET client_min_messages = error"));
    snprintf(text, sizeof text, format, schema);
    PGresult *result = PQexec(connection, text);
    cr_assert_eq(PQresultStatus(result), PGRES_COMMAND_OK, "%s: %s", text,
                 PQerrorMessage(connection));
    PQclear(result);
    PQfinish(connection);
}

static void make_location(char *to, size_t size, const char *fallback)
{
    static int n;
    const char *cluster = getenv("KLDIV_TEST_STORE");
    snprintf(to, size, "%s", fallback);
    if (!cluster)
        return;
    snprintf(schema, sizeof schema, "test_%d_%d", (int)getpid(), n++);
    run_sql("CREATE SCHEMA %s");
    snprintf(to, size, "%s&options=-csearch_path%%3D%s", cluster, schema);
}

static char location[300];

static void open_monitors(struct api_service *service, size_t max)
{
    char reason[200] = "";
    service->monitors = api_monitors_open(location, max, service->budget, reason, sizeof reason);
    cr_assert(service->monitors, "%s", reason);
    cr_assert(api_monitors_start(service->monitors, NULL));
}

struct api_service monitors_new(size_t max) { return monitors_new_at(max, "memory"); }

struct api_service monitors_new_at(size_t max, const char *fallback)
{
    struct api_service service = service_of(1 << 26);
    make_location(location, sizeof location, fallback);
    open_monitors(&service, max);
    return service;
}

void monitors_restart(struct api_service *service, size_t max)
{
    api_monitors_stop(service->monitors);
    api_monitors_free(service->monitors);
    open_monitors(service, max);
}

void monitors_end(struct api_service *service)
{
    api_monitors_stop(service->monitors);
    api_monitors_free(service->monitors);
    service->monitors = NULL;
    if (*schema)
        run_sql("DROP SCHEMA %s CASCADE");
    api_budget_trim(service->budget, 0);
    cr_expect_eq(bytes_held(), 0, "%zu bytes are kept", bytes_held());
}

/* `unread`: as of struct question. */
static struct answer send_request(const struct api_service *service,
                                  const struct monitors_request *request, bool unread)
{
    char method[10] = "", line[2000];
    int n = 0;
    const char *body = request->body ? request->body : "";
    cr_assert_eq(sscanf(request->line, "%9s %n", method, &n), 1);
    cr_assert_lt(strlen(request->line), sizeof line);
    strcpy(line, request->line + n);
    char *query = strchr(line, '?');
    if (query)
        *query++ = '\0';
    struct question question = {.method = method,
                                .path = line,
                                .query = query,
                                .content_type = request->type,
                                .unread = unread};
    memcpy(question.others, request->headers, sizeof question.others);
    return ask_question(&question, service, body, request->size ? request->size : strlen(body));
}

struct answer monitors_send(const struct api_service *service,
                            const struct monitors_request *request)
{
    return send_request(service, request, false);
}

static const char *type_of(const char *body)
{
    return body && *body == '{' ? "application/json" : NULL;
}

struct answer monitors_ask(const struct api_service *service, const char *request, const char *body)
{
    return monitors_send(service,
                         &(struct monitors_request){request, type_of(body), body, .size = 0});
}

static void expect_status_of(const struct answer *answer, const char *request, const char *body,
                             int status)
{
    cr_assert_eq(answer->status, status, "%s %.300s: %d %.*s", request, body ? body : "",
                 answer->status, (int)answer->response.body.size, answer->response.body.data);
}

json_t *monitors_send_as(const struct api_service *service, const char *line, const char *type,
                         const struct api_buffer *body, int status)
{
    const struct monitors_request request = {
        .line = line, .type = type, .body = body->data, .size = body->size - 1};
    struct answer answer = monitors_send(service, &request);
    expect_status_of(&answer, line, body->data, status);
    json_t *json = json_incref(answer.json);
    answer_free(&answer);
    return json;
}

json_t *monitors_get(const struct api_service *service, const char *request, const char *body,
                     int status)
{
    struct answer answer = monitors_ask(service, request, body);
    expect_status_of(&answer, request, body, status);
    json_t *json = json_incref(answer.json);
    answer_free(&answer);
    return json;
}

void monitors_expect(const struct api_service *service, const char *request, const char *body,
                     int status)
{
    const struct monitors_request unread = {request, type_of(body), body, .size = 0};
    struct answer answer = send_request(service, &unread, true);
    expect_status_of(&answer, request, body, status);
    answer_free(&answer);
}

void monitors_refused(const struct api_service *service, const char *request, const char *body,
                      const char *problem)
{
    char got[300];
    const char *words = strstr(problem, " ~");
    size_t size = words ? (size_t)(words - problem) : strlen(problem);
    struct answer answer = monitors_ask(service, request, body);
    const json_t *error = at(answer.json, "errors.0");
    const char *pointer = text_of(error, "pointer"), *parameter = text_of(error, "parameter");
    const char *mark = *pointer ? " " : *parameter ? " ?" : "";
    snprintf(got, sizeof got, "%s%s%s", text_of(answer.json, "code"), mark,
             *pointer ? pointer : parameter);
    cr_expect(strlen(got) == size && strncmp(got, problem, size) == 0,
              "%s %.300s:\n%s (%s)\nand not %s", request, body ? body : "", got,
              text_of(answer.json, "detail"), problem);
    cr_expect(!words || strstr(text_of(answer.json, "detail"), words + 2), "%s: '%s' is not in: %s",
              request, words ? words + 2 : "", text_of(answer.json, "detail"));
    answer_free(&answer);
}

size_t monitors_count(const struct api_service *service)
{
    json_t *list = monitors_get(service, "GET /monitors?limit=1000", NULL, 200);
    size_t n = json_array_size(at(list, "monitors"));
    json_decref(list);
    return n;
}

json_t *at(const json_t *json, const char *path)
{
    for (size_t size; json && *path; path += size + (path[size] == '.')) {
        char name[100];
        size = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)size, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(name, NULL, 10))
                                   : json_object_get(json, name);
    }
    return (json_t *)json;
}

double number_at(const json_t *json, const char *path)
{
    const json_t *value = at(json, path);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *text_at(const json_t *json, const char *path)
{
    const char *text = json_string_value(at(json, path));
    return text ? text : "";
}

void expect_at(const json_t *json, const char *path, const char *expected)
{
    const json_t *value = at(json, path);
    size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    char *got = value ? json_dumps(value, flags) : NULL;
    cr_expect_str_eq(got ? got : "nothing", expected, "%s: %s and not %s", path,
                     got ? got : "nothing", expected);
    free(got);
}

void expect_counts_at(const json_t *json, const char *path, const char *expected)
{
    json_t *counts = json_deep_copy(at(json, path)),
           *outer = json_pack("{so}", "reference", counts);
    json_object_del(counts, "mean");
    json_object_del(counts, "sd");
    expect_at(outer, "reference", expected);
    json_decref(outer);
}

const char *header_of_answer(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->response.n_headers; i++)
        if (strcmp(answer->response.headers[i].name, name) == 0)
            return answer->response.headers[i].value;
    return "";
}

char *body_of(const struct answer *answer)
{
    const struct api_response *response = &answer->response;
    size_t shared = response->shared ? response->shared->bytes.size : 0, size = response->body.size;
    char *text = calloc(1, shared + size + 1);
    cr_assert(text);
    if (shared > 0)
        memcpy(text, response->shared->bytes.data, shared);
    if (size > 0)
        memcpy(text + shared, response->body.data, size);
    return text;
}

size_t monitors_warnings(const json_t *json)
{
    size_t n = 0, i;
    const json_t *warning;
    json_array_foreach(at(json, "warnings"), i, warning)
    {
        n += strncmp(text_of(warning, "code"), "labels_", 7) != 0;
    }
    return n;
}

void monitors_make_three(const struct api_service *service)
{
    static const char config[] =
        "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}";
    monitors_expect(service, "PUT /monitors/g/a", config, 201);
    monitors_expect(service, "PUT /monitors/g/b", config, 201);
    monitors_expect(service, "PUT /monitors/h/a", config, 201);
}

struct api_service monitors_three(void)
{
    struct api_service service = monitors_new(100);
    monitors_make_three(&service);
    return service;
}

void monitors_random_settings(unsigned long long *seed, bool time, const char *more, char *to,
                              size_t size)
{
    static const int pools[] = {1, 1, 2, 4, 16, 16, 64};
    static const double warnings[] = {0.005, 0.02, 0.05}, significances[] = {1e-4, 0.01, 1};
    char compare[80] = "\"reference\"";
    double warning = warnings[uniform_below(seed, COUNT(warnings))];
    size_t kind = uniform_below(seed, 4);
    if (kind > 1 && time)
        snprintf(compare, sizeof compare, "{\"previous\":%zu,\"period\":%zu}",
                 1 + uniform_below(seed, 5), 60 * (1 + uniform_below(seed, 4)));
    else if (kind == 1)
        snprintf(compare, sizeof compare, "{\"previous\":%zu,\"period\":null}",
                 1 + uniform_below(seed, 9));
    snprintf(to, size,
             "{\"pool\":%d,\"fire_after\":%zu,\"clear_after\":%zu,\"compare\":%s,"
             "\"min_observations\":%zu,%s,"
             "\"thresholds\":{\"warning\":%g,\"critical\":%g,\"significance\":%g}}",
             pools[uniform_below(seed, COUNT(pools))], 1 + uniform_below(seed, 3) / 2,
             1 + uniform_below(seed, 6), compare, 1 + 40 * uniform_below(seed, 3), more, warning,
             warning * (double)(1 + 3 * uniform_below(seed, 2)),
             significances[uniform_below(seed, 3)]);
}
