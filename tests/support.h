/* What several tests share. */
#ifndef KLDIV_TESTS_SUPPORT_H
#define KLDIV_TESTS_SUPPORT_H

#include "api/api.h"
#include "tests/arrays.h"
#include "tests/question.h"

#include <jansson.h>
#include <stdio.h>

/* A request handled in this process, and what came of it. */
struct answer {
    int status;
    json_t *json;     /* NULL if the body is not JSON */
    bool handed_over; /* it was too much work for the thread that asked */
    struct api_reply reply;
};

struct answer ask(const char *method, const char *path, const char *query, const char *content_type,
                  const char *body, size_t body_size);

/* The same with whatever else the question holds, of a service; NULL is one that takes 1 GiB. */
struct answer ask_question(const struct question *question, const struct api_service *service,
                           const char *body, size_t body_size);

/* A service on the budget that bytes_held looks at. */
struct api_service service_of(size_t max_body);

/* POST /kl_div with a JSON body. */
struct answer ask_loss(const char *query, const char *body);
void answer_free(struct answer *answer);

/* Bytes that requests hold now; 0 between them, or something leaked. */
size_t bytes_held(void);

/* The text of a member, or "" if there is none. */
const char *text_of(const json_t *object, const char *name);

/* A JSON number, or one of the three strings; anything else fails the test. */
double number_of(const json_t *value);

/* In the next question allocation number `n`, counted from 0, fails, and with `sticky` all after it;
 * only allocations by the code under test and by jansson for it count. */
void fail_allocation(long n, bool sticky);
bool allocation_failed(void);

/* Compresses a buffer in place. */
void gzip(struct api_buffer *body);

/* The bytes that the code under test asked for so far, freed or not. */
size_t bytes_allocated(void);

/* A file of this repository, whole and NUL-terminated; the caller frees it. */
char *read_file(const char *path, size_t *size);

#endif
