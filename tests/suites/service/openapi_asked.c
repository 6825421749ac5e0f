/* Requests that are made of operations of the OpenAPI document. */
#include "tests/suites/service/openapi_asked.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void visit_operations(void (*see)(const struct visit *visit))
{
    const char *path, *lower;
    json_t *methods, *of;
    json_object_foreach(json_object_get(document, "paths"), path, methods)
        json_object_foreach(methods, lower, of)
    {
        char method[16] = "";
        for (size_t i = 0; lower[i] && i < sizeof method - 1; i++)
            method[i] = (char)(lower[i] & ~0x20);
        see(&(struct visit){path, method, of});
    }
}

/* ---- Values of parameters, as importers make them up */

static const json_t *type_of(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    return json_is_array(type) ? json_array_get(type, 0) : type;
}

void write_value(const json_t *value, char *to, size_t size)
{
    size_t i, used = 0;
    json_t *item;
    *to = '\0';
    if (json_is_array(value))
        json_array_foreach(value, i, item)
        {
            used += (size_t)snprintf(to + used, size - used, i ? "," : "%s", "");
            write_value(item, to + used, size - used);
            used = strlen(to);
        }
    else if (json_is_string(value))
        snprintf(to, size, "%s", json_string_value(value));
    else if (!json_is_null(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        snprintf(to, size, "%s", text);
        free(text);
    }
}

void fill_in(const json_t *parameter, char *to, size_t size)
{
    const json_t *schema = resolve(json_object_get(parameter, "schema"));
    const json_t *values[] = {json_object_get(parameter, "example"),
                              json_array_get(json_object_get(schema, "examples"), 0),
                              json_object_get(schema, "default"),
                              json_array_get(json_object_get(schema, "enum"), 0)};
    const char *type = json_string_value(type_of(schema));
    for (size_t i = 0; i < COUNT(values); i++)
        if (values[i]) {
            write_value(values[i], to, size);
            return;
        }
    snprintf(to, size, "%s",
             strcmp(type, "integer") == 0 || strcmp(type, "array") == 0 ? "1"
             : strcmp(type, "boolean") == 0                             ? "true"
                                                                        : "string");
}

void append_encoded(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    for (; *text && used + 4 < size; text++)
        used +=
            (size_t)snprintf(to + used, size - used,
                             isalnum((unsigned char)*text) ? "%c" : "%%%02X", (unsigned char)*text);
}

void add_query(struct asked *asked, const char *name, const char *value)
{
    size_t used = strlen(asked->query);
    snprintf(asked->query + used, sizeof asked->query - used, "%s%s=", used ? "&" : "", name);
    append_encoded(asked->query, sizeof asked->query, value);
    asked->question.query = asked->query;
}

static void add_header(struct asked *asked, const char *name, const char *value)
{
    const struct {
        const char *name, **to;
    } known[] = {{"Accept-Encoding", &asked->question.accept_encoding},
                 {"Content-Encoding", &asked->question.content_encoding},
                 {"Inference-Header-Content-Length", &asked->question.inference_header_length}};
    char *kept = asked->values[asked->n_values++];
    snprintf(kept, sizeof *asked->values, "%s", value);
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0) {
            *known[i].to = kept;
            return;
        }
    cr_assert_lt(asked->n_others, COUNT(asked->question.others));
    asked->question.others[asked->n_others++] = (struct api_header){name, kept};
}

void add_parameter(struct asked *asked, const json_t *parameter, const char *value)
{
    const char *where = text_of(parameter, "in"), *name = text_of(parameter, "name");
    if (strcmp(where, "query") == 0)
        add_query(asked, name, value);
    else if (strcmp(where, "header") == 0)
        add_header(asked, name, value);
}

void begin_asked(struct asked *asked, const struct visit *visit)
{
    *asked = (struct asked){.question = {.method = visit->method, .path = asked->path}};
    fill_path(visit->operation, visit->path, asked->path, sizeof asked->path);
}

struct answer send_asked(const struct api_service *service, const struct asked *asked,
                         const json_t *body)
{
    char *text = !body                  ? strdup("")
                 : json_is_string(body) ? strdup(json_string_value(body))
                                        : json_dumps(body, 0);
    struct answer answer = ask_question(&asked->question, service, text, strlen(text));
    free(text);
    return answer;
}

void fail_asked(const struct asked *asked, const struct answer *answer, const char *what)
{
    const struct question *q = &asked->question;
    cr_expect(false, "%s: %s %s?%s, Content-Type %s, Accept %s: %d %.*s", what, q->method, q->path,
              asked->query, q->content_type ? q->content_type : "-", q->accept ? q->accept : "-",
              answer->status, (int)answer->response.body.size, answer->response.body.data);
}
