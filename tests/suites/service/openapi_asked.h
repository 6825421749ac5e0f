/* Requests that are made of operations of the OpenAPI document. */
#pragma once

#include "tests/suites/service/openapi_document.h"

/* visit: an operation of the document; `path` is as the document writes it. */
struct visit {
    const char *path, *method;
    json_t *operation;
};

/* Calls a function with each operation of the document. */
void visit_operations(void (*see)(const struct visit *visit));

/* asked: a request that is being made; the question points into it. */
struct asked {
    struct question question;
    char path[2000], query[8000], values[16][700];
    size_t n_values, n_others;
};

/* Starts a request of an operation, at the path of the examples. */
void begin_asked(struct asked *asked, const struct visit *visit);

/* Writes the value that importers make up for a parameter: its example, its default, its first word, or one by its
 * type. write_value writes a JSON value as a parameter. */
void fill_in(const json_t *parameter, char *to, size_t size);
void write_value(const json_t *value, char *to, size_t size);

/* Adds a parameter of the query or of the header to a request; those of the path are left out. */
void add_parameter(struct asked *asked, const json_t *parameter, const char *value);
void add_query(struct asked *asked, const char *name, const char *value);
void append_encoded(char *to, size_t size, const char *text);

/* Sends a request with a body, text or JSON; NULL is none. */
struct answer send_asked(const struct api_service *service, const struct asked *asked,
                         const json_t *body);

/* Fails the test with the request and its answer. */
void fail_asked(const struct asked *asked, const struct answer *answer, const char *what);
