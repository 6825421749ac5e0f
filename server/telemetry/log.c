#include "server/telemetry/log.h"

#include "api/memory/buffer.h"
#include "api/store/store.h"
#include "server/net/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* MAX_WAITING: bytes of lines that wait while standard error is not read; further lines are
 * dropped and counted. */
enum { MAX_WAITING = 1 << 20 };

/* USUAL_LINE: bytes of room for the line of a request, which most take less than. */
enum { USUAL_LINE = 512 };

/* Interval, in ns, at which lines are written. Waking the thread for each line cost a tenth of
 * the requests per second. */
enum { WRITE_INTERVAL_NS = 20000000 };

/* Time, in ms, for a reader of standard error at the end; and between looks at it. */
enum { LAST_WRITE_MS = 1000, POLL_MS = 100 };

static struct {
    enum srv_log_format format;
    enum srv_log_level level;
    pthread_mutex_t lock;
    pthread_cond_t lines;
    pthread_t thread;
    bool running;
    atomic_bool stopping;
    struct api_buffer waiting;
    unsigned long lost;
} logger = {
    .level = SRV_LOG_INFO, .lock = PTHREAD_MUTEX_INITIALIZER, .lines = PTHREAD_COND_INITIALIZER};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* True once standard error takes PIPE_BUF bytes. A reader that does not read holds up the log, but not
 * the end of the process: then it has LAST_WRITE_MS. */
static bool wait_for_reader(void)
{
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    for (int waited = 0; !atomic_load(&logger.stopping) || waited < LAST_WRITE_MS;
         waited += POLL_MS) {
        int ready = poll(&reader, 1, POLL_MS);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        waited = atomic_load(&logger.stopping) ? waited : 0;
    }
    return false;
}

/* Writes at most PIPE_BUF bytes at a time, for which a ready pipe does not block. Gives the bytes that
 * were not written. */
static size_t write_all(const char *bytes, size_t size)
{
    while (size > 0 && wait_for_reader()) {
        ssize_t n = write(STDERR_FILENO, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += n;
        size -= (size_t)n;
    }
    return size;
}

static size_t count_lines(const char *bytes, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += bytes[i] == '\n';
    return n;
}

static void *write_lines(void *unused)
{
    (void)unused;
    struct api_buffer out = {0};
    pthread_mutex_lock(&logger.lock);
    for (;;) {
        while (logger.waiting.size == 0 && !logger.stopping)
            pthread_cond_wait(&logger.lines, &logger.lock);
        if (logger.waiting.size == 0)
            break;
        if (!logger.stopping) {
            pthread_mutex_unlock(&logger.lock);
            nanosleep(&(struct timespec){.tv_nsec = WRITE_INTERVAL_NS}, NULL);
            pthread_mutex_lock(&logger.lock);
        }
        struct api_buffer full = logger.waiting;
        logger.waiting = out;
        pthread_mutex_unlock(&logger.lock);
        size_t left = write_all(full.data, full.size);
        size_t lost = count_lines(full.data + full.size - left, left);
        out = full;
        out.size = 0;
        out.failed = false;
        pthread_mutex_lock(&logger.lock);
        logger.lost += lost;
        if (lost && atomic_load(&logger.stopping))
            break;
    }
    pthread_mutex_unlock(&logger.lock);
    api_buffer_free(&out);
    return NULL;
}

bool srv_log_start(enum srv_log_format format, enum srv_log_level level)
{
    atomic_store(&logger.stopping, false);
    logger.format = format;
    logger.level = level;
    logger.running = pthread_create(&logger.thread, NULL, write_lines, NULL) == 0;
    return logger.running;
}

void srv_log_stop(void)
{
    char line[80];
    if (!logger.running)
        return;
    pthread_mutex_lock(&logger.lock);
    atomic_store(&logger.stopping, true);
    pthread_cond_signal(&logger.lines);
    pthread_mutex_unlock(&logger.lock);
    pthread_join(logger.thread, NULL);
    pthread_mutex_lock(&logger.lock);
    int size = snprintf(line, sizeof line, "kldivd: %lu log lines were lost\n", logger.lost);
    if (logger.lost)
        write_all(line, (size_t)size);
    logger.running = false;
    api_buffer_free(&logger.waiting);
    pthread_mutex_unlock(&logger.lock);
}

unsigned long srv_log_lost(void)
{
    pthread_mutex_lock(&logger.lock);
    unsigned long lost = logger.lost;
    pthread_mutex_unlock(&logger.lock);
    return lost;
}

bool srv_log_enabled(enum srv_log_level level) { return level <= logger.level; }

/* Formats a time as "2026-11-21T01:02:03"; keeps the text, which changes once per second. */
static const char *format_second(time_t second)
{
    static _Thread_local char text[24];
    static _Thread_local time_t printed;
    struct tm tm;
    if (second != printed || !*text) {
        gmtime_r(&second, &tm);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
        printed = second;
    }
    return text;
}

static bool as_json(void) { return logger.format == SRV_LOG_JSON; }

static const char *line_end(void) { return as_json() ? "}\n" : "\n"; }

static void add_padded(struct api_buffer *line, unsigned long thousandths)
{
    api_append_text(line, thousandths < 10 ? ".00" : thousandths < 100 ? ".0" : ".");
    api_append_unsigned(line, thousandths);
}

/* Appends a message; a byte that could end the line or confuse a terminal becomes \xNN. */
static void add_escaped(struct api_buffer *line, const char *message)
{
    for (const char *p = message; *p; p++)
        if (*p >= ' ' && *p < 0x7f)
            api_append(line, p, 1);
        else
            api_append_format(line, "\\x%02x", (unsigned char)*p);
}

/* Appends time, level and message; leaves a JSON object open. */
static void begin_line(struct api_buffer *line, enum srv_log_level level, const char *message)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    api_append_text(line, as_json() ? "{\"time\":\"" : "");
    api_append_text(line, format_second(now.tv_sec));
    add_padded(line, (unsigned long)now.tv_nsec / 1000000);
    api_append_text(line, as_json() ? "Z\",\"level\":\"" : "Z ");
    api_append_text(line, level_names[level]);
    if (as_json()) {
        api_append_text(line, "\",\"message\":");
        api_append_json_string(line, message);
    } else {
        api_append_text(line, " ");
        add_escaped(line, message);
    }
}

/* Ends a line and hands it to the thread. */
static void put_line(struct api_buffer *line)
{
    api_append_text(line, line_end());
    pthread_mutex_lock(&logger.lock);
    if (line->failed || logger.waiting.size + line->size > MAX_WAITING) {
        logger.lost++;
    } else if (!logger.running) {
        write_all(line->data, line->size);
    } else {
        bool first = logger.waiting.size == 0;
        api_append(&logger.waiting, line->data, line->size);
        logger.lost += logger.waiting.failed;
        logger.waiting.failed = false;
        if (first)
            pthread_cond_signal(&logger.lines);
    }
    pthread_mutex_unlock(&logger.lock);
    api_buffer_free(line);
}

void srv_log_at_once(enum srv_log_level level, const char *message)
{
    char usual[USUAL_LINE];
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct api_buffer line = {0};
    api_buffer_borrow(&line, usual, sizeof usual);
    begin_line(&line, level, message);
    api_append_text(&line, line_end());
    if (poll(&reader, 1, 0) > 0 && write(STDERR_FILENO, line.data, line.size) < 0)
        return;
}

/* Warnings of one format in a period of time, in ms; formats that are told apart. */
enum { PERIOD_MS = 10000, MAX_IN_PERIOD = 10, FORMATS = 16 };

/* Counts a warning; true if its format has had its share. Otherwise *skipped becomes the number of
 * those that were not written before. */
static bool is_too_often(const char *format, unsigned long *skipped)
{
    static struct {
        const char *format;
        unsigned long long begin;
        unsigned long seen, skipped;
    } table[FORMATS];
    unsigned long long now = srv_now_ms();
    size_t i = 0;
    pthread_mutex_lock(&logger.lock);
    while (i < FORMATS - 1 && table[i].format && table[i].format != format)
        i++;
    if (table[i].format != format || now > table[i].begin + PERIOD_MS) {
        table[i].skipped = table[i].format == format ? table[i].skipped : 0;
        table[i].format = format;
        table[i].begin = now;
        table[i].seen = 0;
    }
    bool too_often = table[i].seen++ >= MAX_IN_PERIOD;
    *skipped = too_often ? 0 : table[i].skipped;
    table[i].skipped = too_often ? table[i].skipped + 1 : 0;
    pthread_mutex_unlock(&logger.lock);
    return too_often;
}

void srv_log(enum srv_log_level level, const char *format, ...)
{
    unsigned long skipped = 0;
    if (!srv_log_enabled(level) || (level == SRV_LOG_WARNING && is_too_often(format, &skipped)))
        return;
    char message[800];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (skipped > 0 && size > 0 && (size_t)size < sizeof message)
        snprintf(message + size, sizeof message - (size_t)size, " (%lu more were not written)",
                 skipped);
    struct api_buffer line = {0};
    begin_line(&line, level, message);
    put_line(&line);
}

/* field: a name with what stands around it, as text and as JSON. */
struct field {
    const char *text, *json;
};
#define FIELD(name) ((struct field){" " name "=", ",\"" name "\":"})

static inline void add_name(struct api_buffer *line, struct field name)
{
    api_append_text(line, as_json() ? name.json : name.text);
}

static void add_text(struct api_buffer *line, struct field name, const char *value)
{
    bool is_plain = true; /* cannot confuse a terminal or a reader of key=value */
    if (!value)
        return;
    add_name(line, name);
    for (const char *c = value; *c; c++)
        is_plain &= *c > ' ' && *c <= '~' && *c != '"' && *c != '=' && *c != '\\';
    if (as_json() || !is_plain)
        api_append_json_string(line, value);
    else
        api_append_text(line, value);
}

static void add_number(struct api_buffer *line, struct field name, size_t value)
{
    add_name(line, name);
    api_append_unsigned(line, value);
}

static void add_ms(struct api_buffer *line, struct field name, double ms)
{
    unsigned long us = (unsigned long)(ms * 1e3);
    add_number(line, name, us / 1000);
    add_padded(line, us % 1000);
}

static void add_peer(struct api_buffer *line, const struct ucred *peer)
{
    add_number(line, (struct field){" pid=", ",\"peer_pid\":"}, (size_t)peer->pid);
    add_number(line, (struct field){" uid=", ",\"peer_uid\":"}, peer->uid);
    add_number(line, (struct field){" gid=", ",\"peer_gid\":"}, peer->gid);
}

/* The names are OpenTelemetry's for logs that are not its own; the span is the caller's. */
static void add_trace(struct api_buffer *line, const struct api_trace *trace)
{
    char id[API_TRACE_ID], span[API_SPAN_ID];
    api_trace_ids(trace, id, span);
    add_text(line, FIELD("trace_id"), id);
    add_text(line, FIELD("span_id"), span);
}

void srv_log_access(const struct srv_access *access)
{
    if (!srv_log_enabled(SRV_LOG_INFO))
        return;
    char usual[USUAL_LINE];
    struct api_buffer line = {0};
    api_buffer_borrow(&line, usual, sizeof usual);
    begin_line(&line, SRV_LOG_INFO, "request");
    add_text(&line, FIELD("kind"), access->is_audit ? "audit" : NULL);
    add_text(&line, FIELD("id"), access->request_id);
    add_text(&line, FIELD("method"), access->method);
    add_text(&line, FIELD("target"), access->target);
    add_text(&line, FIELD("token"), access->token);
    add_number(&line, FIELD("status"), (size_t)access->status);
    add_text(&line, FIELD("code"), access->code);
    add_number(&line, FIELD("body_bytes"), access->body_bytes);
    add_number(&line, FIELD("reply_bytes"), access->response_bytes);
    add_number(&line, FIELD("elements"), access->elements);
    add_ms(&line, FIELD("ms"), access->ms);
    add_text(&line, FIELD("client"), access->client);
    add_text(&line, FIELD("proxy"), access->proxy);
    if (access->trace)
        add_trace(&line, access->trace);
    if (access->peer)
        add_peer(&line, access->peer);
    put_line(&line);
}

void srv_log_migration(const struct api_migrated *migrated)
{
    if (!srv_log_enabled(SRV_LOG_INFO))
        return;
    struct api_buffer line = {0};
    begin_line(&line, SRV_LOG_INFO, "store");
    add_text(&line, FIELD("kind"), "migration");
    add_number(&line, FIELD("from"), (size_t)migrated->from);
    add_number(&line, FIELD("to"), (size_t)migrated->to);
    add_text(&line, FIELD("what"), migrated->what);
    add_ms(&line, FIELD("ms"), migrated->seconds * 1e3);
    put_line(&line);
}
