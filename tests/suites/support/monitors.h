/* Monitors in this process, on a store in memory, and questions to them. */
#pragma once

#include "api/monitors/monitors.h"
#include "tests/suites/support/support.h"

/* Makes a service with monitors, at most `most`, and ends it, when all memory must be back. */
struct api_service monitors_new(size_t max);
struct api_service monitors_new_at(size_t max, const char *location);
void monitors_end(struct api_service *service);

/* Closes the store of monitors that were made last, and opens it again. */
void monitors_restart(struct api_service *service, size_t max);

/* Makes g/a, g/b and h/a, each with two bins and a reference of 500 and 500; in the second form in a service of their own. */
void monitors_make_three(const struct api_service *service);
struct api_service monitors_three(void);

/* Writes random settings as a JSON merge patch with `more` members. A comparison with a season needs windows of `time`. */
void monitors_random_settings(unsigned long long *seed, bool time, const char *more, char *to,
                              size_t size);

/* Asks "METHOD /path?query" with a body, which is JSON if it begins with {; NULL is none. */
struct answer monitors_ask(const struct api_service *service, const char *request,
                           const char *body);

/* monitors_request: a question with more to it. Members are as of struct question; `size` 0 is a text
 * that ends with a NUL. */
struct monitors_request {
    const char *line, *type, *body;
    size_t size;
    struct api_header headers[4];
};
struct answer monitors_send(const struct api_service *service,
                            const struct monitors_request *request);

/* Expects a status, and gives the body, which the caller lets go; NULL if it is no JSON. */
json_t *monitors_get(const struct api_service *service, const char *request, const char *body,
                     int status);

/* Sends a body with its media type. The body ends with a NUL, which is not sent. The response as of monitors_get. */
json_t *monitors_send_as(const struct api_service *service, const char *line, const char *type,
                         const struct api_buffer *body, int status);

/* Expects a status alone. */
void monitors_expect(const struct api_service *service, const char *request, const char *body,
                     int status);

/* Expects a problem: "CODE POINTER", or "CODE ?PARAMETER", or "CODE"; what follows a " ~" must be in the
 * detail. */
void monitors_refused(const struct api_service *service, const char *request, const char *body,
                      const char *problem);

/* Number of monitors, up to 1,000. */
size_t monitors_count(const struct api_service *service);

/* Value at a path such as "monitors.0.kl"; NULL if there is none. Its number, NaN for null; its text,
 * "" for what is none. */
json_t *at(const json_t *json, const char *path);
double number_at(const json_t *json, const char *path);
const char *text_at(const json_t *json, const char *path);

/* Expects that the member at a path, dumped with sorted keys and without blanks, is this text. */
void expect_at(const json_t *json, const char *path, const char *expected);

/* Likewise of a reference without its mean and standard deviation. */
void expect_counts_at(const json_t *json, const char *path, const char *expected);

/* Warnings of a response, but for those of labels that were chosen, or not. */
size_t monitors_warnings(const json_t *json);

/* Header field of an answer, "" if it is absent. */
const char *header_of_answer(const struct answer *answer, const char *name);

/* Body of an answer as a text, which the caller frees. */
char *body_of(const struct answer *answer);
