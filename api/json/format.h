/* Numbers, names and times, as several endpoints of monitors write and read them. */
#pragma once

#include "api/json/problem.h"
#include "api/memory/buffer.h"
#include "lib/kldiv.h"

#include <jansson.h>
#include <stdint.h>

/* Times are microseconds since 1970; API_NO_TIME is none. */
#define API_NO_TIME INT64_MIN
#define API_SECOND_US INT64_C(1000000)
#define API_MINUTE_US INT64_C(60000000)
#define API_DAY_US INT64_C(86400000000)

/* Appends the shortest decimal, whole numbers without a point; null for NaN and infinities. */
void api_write_number(struct api_buffer *out, double number);

/* Formats a number as a label: the shortest decimal, whole numbers without a point. At most
 * API_DECIMAL_MAX bytes; returns the length. */
size_t api_label_of_number(char *to, double number);
size_t api_label_of_value(char *to, enum kl_dtype dtype, double number); /* of a value of a dtype */

/* Appends `,"name":` and the number. */
void api_write_member(struct api_buffer *out, const char *name, double number);

/* Appends what a template says, in which ' stands for ". Its conversions take what those of printf do: %s a string, of
 * which NULL is null; %g a number, as of api_write_number; %jd a time, as of api_write_bare_time, of which API_NO_TIME is
 * null; %ld and %zu a whole number; %d true or false. */
void api_write_json(struct api_buffer *out, const char *template, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends an array. */
void api_write_numbers(struct api_buffer *out, const double *numbers, size_t n);

/* Appends `{"group":...,"name":...`, without a name if that is NULL. */
void api_write_names(struct api_buffer *out, const char *group, const char *name);

/* Appends a time of RFC 3339 in UTC, with microseconds if it has them. */
void api_write_bare_time(struct api_buffer *out, int64_t time);

/* A time as text, for messages; `to` has the memory. */
enum { API_TIME_TEXT = 40 };
const char *api_time_text(int64_t time, char to[API_TIME_TEXT]);

/* API_TIME_FORMS: what is read as a time, for messages. */
#define API_TIME_FORMS                                                                             \
    "a time of RFC 3339 with its zone, such as 2026-01-31T12:00:00Z, a date, or seconds, "         \
    "milliseconds, microseconds or nanoseconds since 1970; between the years 1 and 9999"

/* A number of seconds since 1970 as a time; false if it is not between the years 1 and 9999. */
bool api_time_from_seconds(double seconds, int64_t *time);

/* Reads a time, of the parameter or member `name`: a text of RFC 3339 with a zone, also +0100; a date, which is its
 * midnight in UTC; or seconds since 1970, as a number or as decimal text. A number of seconds after the year 9999 is
 * taken as milliseconds, then microseconds, then nanoseconds: the first that is not after 9999. Fails with
 * timestamp_invalid; of a time without a zone the problem shows it in UTC. */
bool api_read_time(const json_t *value, enum api_location where, const char *name, int64_t *time,
                   struct api_problem *problem);
