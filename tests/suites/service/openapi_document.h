/* The OpenAPI document as tests read it: its parts, and values against its schemas. */
#pragma once

#include "tests/suites/support/support.h"

/* The document, once load_document was called. */
extern json_t *document;
void load_document(void);

/* Resolves the $ref of a part, "#/components/KIND/NAME"; returns other parts as they are. */
const json_t *resolve(const json_t *part);

/* True if a value satisfies a schema, by the keywords that the document uses. */
bool matches(const json_t *value, const json_t *schema);

/* The operation of a method at a path as the document writes it; NULL if it has none. */
const json_t *operation(const char *path, const char *method);

/* True if an answer's status, type and JSON are what the operation says; the other fails the test if not. */
bool is_described(const struct answer *answer, const char *path, const char *method);
void check_answer(const struct answer *answer, const char *path, const char *method);

/* The part of a path's body that is of a media type, and the first example of such a part. */
const json_t *body_media(const char *method, const char *template, const char *type);
const json_t *first_example(const json_t *media);

/* Fills a path with the examples of its parameters. */
void fill_path(const json_t *of, const char *template, char *path, size_t size);

/* Fills a query with the examples of the parameters that are required. */
void fill_query(const json_t *of, char *query, size_t size);

/* Asks an operation with a body, NULL for none, and checks the answer. */
struct answer ask_operation(const struct api_service *service, const char *method,
                            const char *template, const char *type, const json_t *body);

/* Makes the group of the examples, then the monitor, then a window and notes. */
void prepare_monitors(const struct api_service *service);

/* True for endpoints that a service has only with monitors. */
bool is_of_monitors(const struct api_endpoint *e);
