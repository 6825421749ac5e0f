/* The log: lines on standard error, as text or as JSON objects. Any thread may log; only the
 * log's thread writes, so callers never wait for the reader of standard error. */
#pragma once

#include "api/text/trace.h"
#include "server/config/options.h"

#include <sys/socket.h>

/* Starts the log's thread; call it before other threads log. Without the thread, lines are
 * written at once. */
bool srv_log_start(enum srv_log_format format, enum srv_log_level level);

/* Writes the remaining lines and ends the thread. */
void srv_log_stop(void);

/* Lines that were dropped, since standard error was not read. */
unsigned long srv_log_lost(void);

bool srv_log_enabled(enum srv_log_level level);

/* Writes one line; bytes that are not printable are escaped. At most 10 warnings of one format are
 * written in 10 s; the next one after that tells how many were not. */
void srv_log(enum srv_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a line past those that wait, without a lock; drops it if standard error is not read. */
void srv_log_at_once(enum srv_log_level level, const char *message);

/* srv_access: the log entry of one finished request; of kind audit if it writes. `code` is the problem's, `token` the
 * name of the request's token, `client` the client's address, `proxy` the address of a trusted proxy that it came
 * through, `trace` the caller's, `peer` the process that connected a unix socket; each may be NULL. */
struct srv_access {
    const char *request_id, *method, *target, *code, *token, *client, *proxy;
    const struct api_trace *trace;
    bool is_audit;
    const struct ucred *peer;
    int status;
    size_t body_bytes, response_bytes, elements;
    double ms;
};

void srv_log_access(const struct srv_access *access);

/* Logs a migration of the store, as a line of the kind migration. */
struct api_migrated;
void srv_log_migration(const struct api_migrated *migrated);
