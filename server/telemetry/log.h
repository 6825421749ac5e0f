/* The log: lines on standard error, as text or as JSON objects; those of the kind audit in a file of their own, if
 * --audit-log names one. Any thread may log; callers never wait for a reader or a disk.
 *
 * A line of text is a time, a level, words, and key=value. What others than this program have written is quoted as a
 * JSON string of ASCII, unless it is visible ASCII without ", = and \: it cannot be taken for a field. */
#pragma once

#include "api/text/trace.h"
#include "server/config/options.h"

#include <sys/socket.h>

/* Opens the file of --audit-log; false, with one line on `errors`, if it cannot be opened. */
bool srv_log_open(const struct srv_options *options, FILE *errors);

/* Opens that file again: another may be at its path. False, with a warning, if it cannot be; the one before stays. */
bool srv_log_reopen(void);

/* Its path, or NULL if there is none. */
const char *srv_log_file(void);

/* Starts the log's threads; call it before other threads log. Without them, lines are written at once. */
bool srv_log_start(const struct srv_options *options);

/* Writes the remaining lines and ends the threads. */
void srv_log_stop(void);

/* Lines that were dropped: standard error was not read, or the file of --audit-log could not be written. */
unsigned long srv_log_lost(void);

/* Writes one line. `format` has %s, %zu and %d alone; texts of %s are quoted as above. At most 10 warnings of one format
 * are written in 10 s; the next one after that tells how many were not. */
void srv_log(enum srv_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a line of words past those that wait, without a lock; drops it if standard error is not read. */
void srv_log_at_once(enum srv_log_level level, const char *message);

/* srv_span: where the time of a request went: until its body was here; waiting for a thread; in the store's queue and
 * transaction; computing, on whatever thread; until its response was sent. */
enum srv_span { SRV_READ, SRV_QUEUED, SRV_STORED, SRV_COMPUTED, SRV_SENT, SRV_SPANS };

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
    double ms, spans[SRV_SPANS]; /* spans: in ms, too */
};

void srv_log_access(const struct srv_access *access);

/* Logs where the time of a request went, as a warning; no more of these than of others. */
void srv_log_slow(const struct srv_access *access);

/* Logs a migration of the store, as a line of the kind migration. */
struct api_migrated;
void srv_log_migration(const struct api_migrated *migrated);
