/* The OpenAPI document against real answers. */
#include "api/endpoints.h"
#include "api/json/problem.h"
#include "api/loss/codecs.h"
#include "api/loss/options.h"
#include "api/loss/warnings.h"
#include "api/web/web.h"
#include "tests/suites/service/openapi_document.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

TestSuite(openapi, .init = load_document);

/* Formats path `variant` of an endpoint: 0 without the part in brackets, 1 with it. */
static bool variant_of(const struct api_endpoint *e, int variant, char *path, size_t size)
{
    const char *open = strchr(e->path, '[');
    if (!open) {
        snprintf(path, size, "%s", e->path);
        return variant == 0;
    }
    const char *close = strchr(open, ']');
    snprintf(path, size, "%.*s%.*s%s", (int)(open - e->path), e->path,
             variant ? (int)(close - open - 1) : 0, open + 1, close + 1);
    return variant <= 1;
}

/* Generators make files and types of the names of components, whatever their kind, and many do not tell
 * base from Base. */
Test(openapi, names_of_components_differ_in_more_than_case)
{
    const char *kind, *name;
    json_t *of_kind, *component, *names = json_object();
    json_object_foreach(json_object_get(document, "components"), kind, of_kind)
        json_object_foreach(of_kind, name, component)
    {
        char lower[100];
        size_t size = strlen(name);
        cr_assert_lt(size, sizeof lower);
        for (size_t i = 0; i <= size; i++)
            lower[i] = (char)tolower((unsigned char)name[i]);
        cr_expect_not(json_object_get(names, lower), "%s %s", kind, name);
        json_object_set_new(names, lower, json_true());
    }
    cr_expect_gt(json_object_size(names), 100);
    json_decref(names);
}

/* Clients in typed languages have one type for the answers of an operation. */
Test(openapi, answers_of_an_operation_have_one_schema)
{
    const char *path, *method, *status, *type;
    json_t *methods, *call, *response, *media;
    json_object_foreach(json_object_get(document, "paths"), path, methods)
        json_object_foreach(methods, method, call)
            json_object_foreach(json_object_get(call, "responses"), status, response)
    {
        const json_t *first = NULL;
        json_object_foreach(json_object_get(response, "content"), type, media)
        {
            const json_t *schema = resolve(json_object_get(media, "schema"));
            cr_expect(!first || json_equal(first, schema), "%s %s: %s", method, path, type);
            cr_expect_not(json_object_get(schema, "anyOf"), "%s %s", method, path);
            first = schema;
        }
    }
}

static size_t count_operations(void)
{
    const char *path;
    json_t *methods;
    size_t n = 0;
    json_object_foreach(json_object_get(document, "paths"), path, methods) n +=
        json_object_size(methods);
    return n;
}

Test(openapi, lists_the_endpoints_and_no_others)
{
    size_t n = 0;
    char path[100];
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        for (int i = 0; variant_of(e, i, path, sizeof path); i++, n++)
            cr_expect(operation(path, e->method), "%s %s", e->method, path);
    cr_expect_eq(count_operations(), n);
    cr_expect_str_eq(text_of(json_object_get(document, "info"), "version"), KLDIV_VERSION);
}

static void check_options_in_query(const char *path)
{
    const json_t *parameters = json_object_get(operation(path, "POST"), "parameters");
    json_t *item;
    size_t i, in_query = 0;
    json_array_foreach(parameters, i, item)
    {
        const json_t *parameter = resolve(item);
        if (strcmp(text_of(parameter, "in"), "query") != 0)
            continue;
        in_query++;
        cr_expect_geq(api_option_find(text_of(parameter, "name")), 0);
    }
    cr_expect_eq(in_query, API_OPTIONS, "%s", path);
}

/* Checks that a schema has a property for each option, and `also` others. */
static void check_options_in_schema(const char *name, size_t also)
{
    const json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    const json_t *properties = json_object_get(json_object_get(schemas, name), "properties");
    const char *property;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)properties, property, value) n += api_option_find(property) >= 0;
    cr_expect_eq(n, API_OPTIONS, "%s", name);
    cr_expect_eq(json_object_size(properties), API_OPTIONS + also, "%s", name);
}

Test(openapi, lists_the_options_and_no_others)
{
    check_options_in_query("/kl_div");
    check_options_in_query("/v2/models/kl_div/infer");
    check_options_in_query("/v2/models/kl_div/versions/1/infer");
    check_options_in_schema("LossForm", API_TENSORS);
    check_options_in_schema("LossRequest", API_TENSORS + 1); /* and shape */
}

/* Codes that a schema allows for its member `code`. */
static const json_t *codes_of(const char *schema)
{
    const json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    const json_t *properties = json_object_get(json_object_get(schemas, schema), "properties");
    return json_object_get(json_object_get(properties, "code"), "enum");
}

static bool holds(const json_t *codes, const char *code)
{
    size_t i;
    json_t *item;
    json_array_foreach(codes, i, item) if (strcmp(json_string_value(item), code) == 0) return true;
    return false;
}

Test(openapi, lists_the_codes_of_problems_and_warnings_and_no_others)
{
    size_t n = 0;
    for (; api_problem_code(n); n++)
        cr_expect(holds(codes_of("Problem"), api_problem_code(n)), "%s", api_problem_code(n));
    cr_expect_eq(json_array_size(codes_of("Problem")), n);
    for (unsigned bit = 0; bit < API_WARNINGS; bit++)
        cr_expect(holds(codes_of("Warning"), api_warning_code(bit)), "%s", api_warning_code(bit));
    cr_expect_eq(json_array_size(codes_of("Warning")), API_WARNINGS);
}

Test(openapi, lists_the_formats_of_bodies_and_no_others)
{
    const json_t *body = json_object_get(operation("/kl_div", "POST"), "requestBody");
    const json_t *content = json_object_get(body, "content");
    char readable[400];
    size_t n = 0;
    api_codec_list_readable(readable, sizeof readable);
    for (char *rest = readable, *type; (type = strtok_r(rest, ", ", &rest)); n++)
        cr_expect(json_object_get(content, type), "%s", type);
    cr_expect_eq(json_object_size(content), n);
}

Test(openapi, get_answers_are_as_it_says)
{
    char path[100];
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        for (int i = 0; strcmp(e->method, "GET") == 0 && !is_of_monitors(e) &&
                        !strchr(e->path, '{') && variant_of(e, i, path, sizeof path);
             i++) {
            struct answer answer = ask(e->method, path, NULL, NULL, NULL, 0);
            int status = strcmp(path, "/dashboard") == 0 ? 308 : 200;
            if (e->flags & API_PUBLIC && strcmp(path, "/") != 0 &&
                !api_file_find("docs/index.html"))
                status = 404;
            cr_expect_eq(answer.status, status, "%s", path);
            check_answer(&answer, path, e->method);
            answer_free(&answer);
        }
}

/* Refusals of clients without a token, with one that lacks the scope, and at another host name. */
Test(openapi, refusals_of_access_are_as_it_says)
{
    static const char text[] = "writer write 0123456789abcdef\nreader read 1123456789abcdef";
    static const struct api_header headers[][2] = {
        {{"Host", "here"}}, {{"Host", "here"}, {"Authorization", ""}}, {{"Host", "there"}}};
    static const int statuses[] = {401, 403, 421};
    struct api_service service = service_of(1000);
    struct api_parse_error mistake;
    char path[100];
    service.tokens = api_tokens_new();
    service.allowed_hosts = "here";
    cr_assert(api_tokens_read(service.tokens, text, sizeof text - 1, &mistake));
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        for (int i = 0; variant_of(e, i, path, sizeof path); i++) {
            const json_t *security = json_object_get(operation(path, e->method), "security");
            bool is_page = e->flags & API_PUBLIC && strcmp(path, "/") != 0;
            cr_expect_eq(security != NULL, is_page || e->flags & API_OPEN, "%s", path);
            for (size_t j = is_page ? 2 : 0; j < COUNT(statuses) && !(e->flags & API_OPEN); j++) {
                struct question question = {
                    .method = e->method, .path = path, .others = {headers[j][0], headers[j][1]}};
                if (question.others[1].name)
                    question.others[1].value = e->flags & API_WRITES ? "Bearer 1123456789abcdef"
                                                                     : "Bearer 0123456789abcdef";
                struct answer answer = ask_question(&question, &service, "", 0);
                cr_expect_eq(answer.status, statuses[j], "%s: %d", path, answer.status);
                check_answer(&answer, path, e->method);
                answer_free(&answer);
            }
        }
    api_tokens_free(service.tokens);
}

Test(openapi, inferences_are_as_it_says)
{
    static const char infer[] = "/v2/models/kl_div/infer", index[] = "/v2/repository/index";
    static const char *const bodies[] = {
        "{\"inputs\": [{\"name\": \"input\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": "
        "[-1, -2]},"
        " {\"name\": \"target\", \"datatype\": \"FP32\", \"shape\": [2], \"data\": [0.5, 0.5]}],"
        " \"id\": \"7\"}",
        "{\"inputs\": []}",
        "{",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct answer answer = ask("POST", infer, NULL, NULL, bodies[i], strlen(bodies[i]));
        check_answer(&answer, infer, "POST");
        answer_free(&answer);
    }
    struct answer answer = ask("POST", index, NULL, NULL, NULL, 0);
    cr_expect_eq(answer.status, 200);
    check_answer(&answer, index, "POST");
    answer_free(&answer);
}

Test(openapi, losses_and_problems_are_as_it_says)
{
    static const char *const bodies[] = {
        "{\"input\": [[-1, -2]], \"target\": [[0.5, NaN]], \"reduction\": \"none\"}",
        "{\"input\": -1, \"target\": 0.5, \"size_average\": true}",
        "{\"input\": -1, \"target\": 0.5, \"reduction\": \"elementwise_mean\"}",
        "{\"input\": [], \"target\": [], \"dtype\": \"float16\"}",
        "{\"input\": [1], \"target\": [[1]], \"reduce\": true}",
        "{\"input\": [1], \"target\": [1], \"what\": 1}",
        "{\"input\": [1], \"target\": [1,]}",
        "{\"input\": [1], \"target\": [null]}",
        "[]",
    };
    static const char *const queries[] = {NULL, "reduction=sum&reduction=mean", "nonsense=1"};
    for (size_t i = 0; i < COUNT(bodies); i++)
        for (size_t j = 0; j < COUNT(queries); j++) {
            struct answer answer = ask_loss(queries[j], bodies[i]);
            cr_expect(answer.json);
            check_answer(&answer, "/kl_div", "POST");
            answer_free(&answer);
        }
}

/* The part of a path's body or answer that is of a media type. */
static const json_t *media_of(const json_t *part, const char *type)
{
    return json_object_get(json_object_get(part, "content"), type);
}

/* Sends the example of a path's body in JSON, which must succeed. */
static struct answer ask_example(const char *path)
{
    const json_t *body = json_object_get(operation(path, "POST"), "requestBody");
    const json_t *media = media_of(body, "application/json");
    const json_t *request = json_object_get(media, "example");
    cr_expect(matches(request, json_object_get(media, "schema")), "%s", path);
    char *text = json_dumps(request, 0);
    struct answer answer = ask("POST", path, NULL, NULL, text, strlen(text));
    cr_expect_eq(answer.status, 200, "%s: %d", path, answer.status);
    check_answer(&answer, path, "POST");
    free(text);
    return answer;
}

static void expect_answer_of_example(const struct answer *answer)
{
    const json_t *responses = json_object_get(operation("/kl_div", "POST"), "responses");
    const json_t *media = media_of(json_object_get(responses, "200"), "application/json");
    cr_expect(json_equal(answer->json, json_object_get(media, "example")), "%.*s",
              (int)answer->response.body.size, answer->response.body.data);
}

Test(openapi, its_examples_are_true)
{
    static const char *const inferences[] = {"/v2/models/kl_div/infer",
                                             "/v2/models/kl_div/versions/1/infer"};
    struct answer answer = ask_example("/kl_div");
    expect_answer_of_example(&answer);
    answer_free(&answer);
    for (size_t i = 0; i < COUNT(inferences); i++) {
        answer = ask_example(inferences[i]);
        answer_free(&answer);
    }
}

Test(openapi, examples_of_the_form_make_a_form_with_the_answer_of_the_example)
{
    static const char type[] = "multipart/form-data; boundary=x";
    const json_t *components = json_object_get(document, "components");
    const json_t *form = json_object_get(json_object_get(components, "schemas"), "LossForm");
    char body[1000];
    int used = 0;
    const char *name;
    json_t *field;
    json_object_foreach(json_object_get(form, "properties"), name, field)
    {
        const char *example = text_of(field, "example");
        if (*example)
            used += snprintf(body + used, sizeof body - (size_t)used,
                             "--x\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n",
                             name, example);
    }
    used += snprintf(body + used, sizeof body - (size_t)used, "--x--\r\n");
    struct answer answer = ask("POST", "/kl_div", NULL, type, body, (size_t)used);
    expect_answer_of_example(&answer);
    answer_free(&answer);
}
