/* The OpenAPI document as tests read it. */
#include "tests/suites/service/openapi_document.h"

#include "api/endpoints.h"

#include <criterion/criterion.h>
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

void check_answer(const struct answer *answer, const char *path, const char *method)
{
    char status[8], type[80];
    const char *given = answer->response.content_type ? answer->response.content_type : "";
    snprintf(status, sizeof status, "%d", answer->status);
    snprintf(type, sizeof type, "%.*s", (int)strcspn(given, ";"), given);
    const json_t *response =
        resolve(json_object_get(json_object_get(operation(path, method), "responses"), status));
    const json_t *contents = json_object_get(response, "content");
    const json_t *content = json_object_get(contents, type);
    cr_assert(content || (response && !contents && !*type),
              "%s %s: %s with %s is not in the document", method, path, status, type);
    if (answer->json)
        cr_expect(matches(answer->json, json_object_get(content, "schema")), "%s %s: %.*s", method,
                  path, (int)answer->response.body.size, answer->response.body.data);
}

bool is_of_monitors(const struct api_endpoint *e)
{
    return strncmp(e->path, "/monitors", 9) == 0 || strncmp(e->path, "/groups", 7) == 0 ||
           strcmp(e->path, "/events") == 0 || strcmp(e->path, "/notifications") == 0;
}
