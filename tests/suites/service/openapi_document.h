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

/* Fails the test if an answer's status, type or JSON is not what the operation says. */
void check_answer(const struct answer *answer, const char *path, const char *method);

/* True for endpoints that a service has only with monitors. */
bool is_of_monitors(const struct api_endpoint *e);
