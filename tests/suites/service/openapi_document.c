/* The OpenAPI document as tests read it. */
#include "tests/suites/service/openapi_document.h"

#include "api/endpoints.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

json_t *document;

void load_document(void)
{
    document = json_loads(api_openapi, 0, NULL);
    cr_assert(document);
}

const json_t *resolve(const json_t *part)
{
    char kind[40];
    const char *reference = text_of(part, "$ref");
    if (!*reference)
        return part;
    cr_assert_eq(sscanf(reference, "#/components/%39[^/]/", kind), 1, "%s", reference);
    const json_t *components = json_object_get(document, "components");
    const json_t *found =
        json_object_get(json_object_get(components, kind), strrchr(reference, '/') + 1);
    cr_assert(found, "%s", reference);
    return found;
}

static bool has_type(const json_t *value, const char *type)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "null") == 0 && json_is_null(value));
}

/* A schema's type is a name, or a list of them. */
static bool type_matches(const json_t *value, const json_t *type)
{
    size_t i;
    json_t *name;
    if (!json_is_array(type))
        return !type || has_type(value, json_string_value(type));
    json_array_foreach(type, i, name) if (has_type(value, json_string_value(name))) return true;
    return false;
}

/* True if a keyword is absent, or a number of its kind allows this one. */
static bool is_within(double number, const json_t *schema, const char *min, const char *max,
                      const char *above)
{
    const json_t *from = json_object_get(schema, min), *to = json_object_get(schema, max),
                 *over = above ? json_object_get(schema, above) : NULL;
    return (!from || number >= json_number_value(from)) &&
           (!to || number <= json_number_value(to)) && (!over || number > json_number_value(over));
}

static bool size_matches(const json_t *value, const json_t *schema)
{
    if (json_is_array(value))
        return is_within((double)json_array_size(value), schema, "minItems", "maxItems", NULL);
    if (json_is_string(value))
        return is_within((double)json_string_length(value), schema, "minLength", "maxLength", NULL);
    return !json_is_number(value) ||
           is_within(json_number_value(value), schema, "minimum", "maximum", "exclusiveMinimum");
}

static bool members_match(const json_t *value, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *name;
    json_t *member, *required;
    size_t i;
    json_array_foreach(
        json_object_get(schema, "required"), i,
        required) if (!json_object_get(value, json_string_value(required))) return false;
    json_object_foreach((json_t *)value, name, member)
    {
        const json_t *property = json_object_get(properties, name);
        if (!property && json_is_object(others))
            property = others;
        if (property ? !matches(member, property) : json_is_false(others))
            return false;
    }
    return true;
}

static bool is_one_of(const json_t *value, const json_t *list, bool schemas)
{
    size_t i, n = 0;
    json_t *item;
    json_array_foreach(list, i, item) n += schemas ? matches(value, item) : json_equal(value, item);
    return n == 1;
}

bool matches(const json_t *value, const json_t *reference)
{
    const json_t *schema = resolve(reference);
    const json_t *alternatives = json_object_get(schema, "oneOf");
    const json_t *words = json_object_get(schema, "enum"),
                 *items = json_object_get(schema, "items");
    size_t i;
    json_t *item;
    if (!type_matches(value, json_object_get(schema, "type")) || !size_matches(value, schema))
        return false;
    if (alternatives && !is_one_of(value, alternatives, true))
        return false;
    if (words && !is_one_of(value, words, false))
        return false;
    json_array_foreach(value, i, item) if (items && !matches(item, items)) return false;
    return !json_is_object(value) || members_match(value, schema);
}

const json_t *operation(const char *path, const char *method)
{
    char lower[16] = "";
    for (size_t i = 0; method[i] && i < sizeof lower - 1; i++)
        lower[i] = (char)(method[i] | 0x20);
    return json_object_get(json_object_get(json_object_get(document, "paths"), path), lower);
}

bool is_described(const struct answer *answer, const char *path, const char *method)
{
    char status[8], type[80];
    const char *given = answer->response.content_type ? answer->response.content_type : "";
    snprintf(status, sizeof status, "%d", answer->status);
    snprintf(type, sizeof type, "%.*s", (int)strcspn(given, ";"), given);
    const json_t *response =
        resolve(json_object_get(json_object_get(operation(path, method), "responses"), status));
    const json_t *contents = json_object_get(response, "content");
    const json_t *content = json_object_get(contents, type);
    return content ? !answer->json || matches(answer->json, json_object_get(content, "schema"))
                   : response && !contents && !*type;
}

void check_answer(const struct answer *answer, const char *path, const char *method)
{
    const struct api_response *response = &answer->response;
    cr_expect(is_described(answer, path, method), "%s %s: %d with %s is not in the document: %.*s",
              method, path, answer->status, response->content_type ? response->content_type : "",
              (int)response->body.size, response->body.data);
}

bool is_of_monitors(const struct api_endpoint *e)
{
    return strncmp(e->path, "/monitors", 9) == 0 || strncmp(e->path, "/groups", 7) == 0 ||
           strcmp(e->path, "/events") == 0 || strcmp(e->path, "/notifications") == 0;
}

/* The example of a path parameter. */
static const char *example_of(const json_t *of, const char *name, size_t length)
{
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(of, "parameters"), i, item)
    {
        const json_t *parameter = resolve(item);
        const char *given = text_of(parameter, "name");
        if (strcmp(text_of(parameter, "in"), "path") == 0 && strlen(given) == length &&
            strncmp(given, name, length) == 0)
            return text_of(parameter, "example");
    }
    cr_assert(false, "no parameter for %s", name);
    return "";
}

void fill_path(const json_t *of, const char *template, char *path, size_t size)
{
    size_t used = 0;
    for (const char *p = template; *p;) {
        size_t length = strcspn(p, "{");
        used += (size_t)snprintf(path + used, size - used, "%.*s", (int)length, p);
        p += length;
        if (*p != '{')
            continue;
        length = strcspn(p, "}");
        used += (size_t)snprintf(path + used, size - used, "%s", example_of(of, p + 1, length - 1));
        p += length + 1;
    }
    cr_assert_lt(used, size);
}

void fill_query(const json_t *of, char *query, size_t size)
{
    size_t i, used = 0;
    json_t *item;
    *query = '\0';
    json_array_foreach(json_object_get(of, "parameters"), i, item)
    {
        const json_t *parameter = resolve(item);
        if (strcmp(text_of(parameter, "in"), "query") == 0 &&
            json_is_true(json_object_get(parameter, "required")))
            used += (size_t)snprintf(query + used, size - used, "%s%s=%s", used ? "&" : "",
                                     text_of(parameter, "name"), text_of(parameter, "example"));
    }
    cr_assert_lt(used, size);
}

struct answer ask_operation(const struct api_service *service, const char *method,
                            const char *template, const char *type, const json_t *body)
{
    char path[200], query[200], *text = NULL;
    fill_path(operation(template, method), template, path, sizeof path);
    fill_query(operation(template, method), query, sizeof query);
    if (body)
        text = json_is_string(body) ? strdup(json_string_value(body)) : json_dumps(body, 0);
    const struct question question = {
        .method = method, .path = path, .query = query, .content_type = type};
    struct answer answer = ask_question(&question, service, text, text ? strlen(text) : 0);
    check_answer(&answer, template, method);
    free(text);
    return answer;
}

const json_t *body_media(const char *method, const char *template, const char *type)
{
    const json_t *body = json_object_get(operation(template, method), "requestBody");
    return json_object_get(json_object_get(body, "content"), type);
}

const json_t *first_example(const json_t *media)
{
    const json_t *examples = json_object_get(media, "examples");
    void *first = json_object_iter((json_t *)examples);
    return first ? json_object_get(json_object_iter_value(first), "value")
                 : json_object_get(media, "example");
}

#define GROUP "/monitors/{group}"
#define MONITOR GROUP "/{name}"

void prepare_monitors(const struct api_service *service)
{
    static const struct {
        const char *method, *template, *type;
    } steps[] = {{"PUT", GROUP, "text/csv"},
                 {"PUT", MONITOR, "application/json"},
                 {"POST", MONITOR "/observations", "application/json"},
                 {"POST", MONITOR "/notes", "application/json"},
                 {"POST", "/groups/{group}/notes", "application/json"}};
    for (size_t i = 0; i < COUNT(steps); i++) {
        const json_t *media = body_media(steps[i].method, steps[i].template, steps[i].type);
        struct answer answer = ask_operation(service, steps[i].method, steps[i].template,
                                             steps[i].type, first_example(media));
        cr_assert_eq(answer.status / 100, 2, "%s %s", steps[i].method, steps[i].template);
        answer_free(&answer);
    }
}
