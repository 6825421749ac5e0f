/* Functions that several tests share. */
#pragma once

#include "api/api.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/support/question.h"

#include <jansson.h>
#include <stdio.h>

/* answer: the result of a request that was handled in this process. */
struct answer {
    int status;
    json_t *json;     /* NULL if the body is not JSON */
    bool handed_over; /* too long for a network thread */
    struct api_response response;
};

struct answer ask(const char *method, const char *path, const char *query, const char *content_type,
                  const char *body, size_t body_size);

/* Asks a question of a service; NULL is one that accepts 1 GiB. */
struct answer ask_question(const struct question *question, const struct api_service *service,
                           const char *body, size_t body_size);

/* Makes a service on the budget that bytes_held reads. */
struct api_service service_of(size_t max_body);

/* Sends a POST /kl_div with a JSON body. */
struct answer ask_loss(const char *query, const char *body);
void answer_free(struct answer *answer);

/* Bytes that requests hold; 0 between requests, unless memory leaks. */
size_t bytes_held(void);

/* Text of a member, or "" if it is absent. */
const char *text_of(const json_t *object, const char *name);

/* Number of a JSON number, or of the strings for NaN and infinities; other values fail the test. */
double number_of(const json_t *value);

/* Makes allocation number `n`, from 0, fail in the next question; with `sticky` all later ones,
 * too. Only allocations of the code under test and of jansson for it count. */
void fail_allocation(long n, bool sticky);
bool allocation_failed(void);

/* Calls that are no questions: lets the allocation that was named fail from now on, or none. */
void fail_now(bool on);

/* Fails the test if memory was lost so far, in a build that can tell. Criterion does not look at what
 * LeakSanitizer says at the end of a test's process. */
void expect_no_leak(void);

/* Compresses a buffer in place. */
void gzip(struct api_buffer *body);

/* Total bytes that the code under test has allocated, freed ones included. */
size_t bytes_allocated(void);

/* Decodes base64 with padding; the caller frees the bytes. */
char *decode_base64(const char *text, size_t *size);

/* Reads a file of this repository, NUL-terminated; the caller frees it. */
char *read_file(const char *path, size_t *size);
