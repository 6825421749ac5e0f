/* Clients of the server that come in numbers, are slow, or leave. */
#pragma once

#include "tests/suites/support/process.h"

#define POST "POST /kl_div HTTP/1.1\r\nHost: a\r\n"

/* Time by a clock that never goes back. */
double now_seconds(void);
void wait_ms(long ms);

/* Connects `n` sockets and sends the same bytes on each; sends on those that are still open; closes. */
void dial_many(const struct server *server, int *sockets, size_t n, const char *bytes);
void send_many(const int *sockets, size_t n, const void *bytes, size_t size);
void close_many(const int *sockets, size_t n);

/* Status of the answer to a request of libcurl. */
long status_of(const struct server *server, const char *method, const char *target,
               const char *body);

/* Value of a line of /metrics; `name` begins with a newline and ends with a blank. */
double metric(const struct server *server, const char *name);

/* Reads a response, or what comes before the server closes, for at most `limit` seconds; gives the status. */
int read_status(int fd, double limit);

/* A call in safetensors of (n, 1) against (1, m) logits. That which is heavy takes a second or more of a
 * processor. */
struct api_buffer outer_call(size_t n, size_t m, const char *reduction);
struct api_buffer heavy_call(size_t n, size_t m);
/* Elements that keep a sanitized server busy as long as n the other. */
size_t as_long(size_t n);
int send_heavy(const struct server *server, const struct api_buffer *body);

/* upload: a POST of a JSON body on a thread of its own. */
struct upload {
    const struct server *server;
    const char *body;
    size_t size;
    long status;
};
void *upload(void *argument);
