#include "server/telemetry/log.h"

#include "api/memory/buffer.h"
#include "api/store/store.h"
#include "api/text/clock.h"
#include "api/text/percent.h"
#include "server/telemetry/log_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* USUAL_LINE: bytes of room for the line of a request, which most take less than. */
enum { USUAL_LINE = 512 };

static struct {
    enum srv_log_format format;
    enum srv_log_level level;
    bool
        audits; /* lines of the kind audit are written whatever the level is: to the file, if there is one */
    struct srv_log_stream all, audit;
} logger = {
    .level = SRV_LOG_INFO, .all = SRV_LOG_STREAM(STDERR_FILENO), .audit = SRV_LOG_STREAM(-1)};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* ---- Start and end */

bool srv_log_open(const struct srv_options *options, FILE *errors)
{
    const char *path = options->audit_log;
    logger.audits = path;
    if (!path || strcmp(path, "stderr") == 0)
        return true;
    logger.audit.path = path;
    if (!srv_log_stream_open(&logger.audit)) {
        fprintf(errors, "kldivd: --audit-log: cannot open %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

bool srv_log_reopen(void)
{
    const char *path = logger.audit.path;
    bool good = !path || srv_log_stream_open(&logger.audit);
    if (!good)
        srv_log(SRV_LOG_WARNING, "--audit-log: the file before stays in use file=%s error=%s", path,
                strerror(errno));
    return good;
}

const char *srv_log_file(void) { return logger.audit.path; }

bool srv_log_start(const struct srv_options *options)
{
    logger.format = options->log_format;
    logger.level = options->log_level;
    return srv_log_stream_start(&logger.all) &&
           (!logger.audit.path || srv_log_stream_start(&logger.audit));
}

void srv_log_stop(void)
{
    srv_log_stream_stop(&logger.audit);
    srv_log_stream_stop(&logger.all);
    struct api_buffer line = {0};
    api_append_format(&line, "kldivd: %lu log lines were lost\n", srv_log_lost());
    if (srv_log_lost() > 0)
        srv_log_stream_put(&logger.all, &line);
    api_buffer_free(&line);
}

unsigned long srv_log_lost(void)
{
    return srv_log_stream_lost(&logger.all) + srv_log_stream_lost(&logger.audit);
}

static bool is_enabled(enum srv_log_level level) { return level <= logger.level; }

/* ---- Lines */

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

static void add_padded(struct api_buffer *line, unsigned long thousandths)
{
    api_append_text(line, thousandths < 10 ? ".00" : thousandths < 100 ? ".0" : ".");
    api_append_unsigned(line, thousandths);
}

/* Appends a JSON string of ASCII alone: no control of a terminal, nor of the direction of text, is in it. */
static void add_quoted(struct api_buffer *line, const char *value)
{
    struct api_buffer text = {0};
    api_append_json_string(&text, value);
    for (size_t i = 0; i < text.size; i++) {
        unsigned byte = (unsigned char)text.data[i];
        if (byte < 0x80) {
            api_append(line, &text.data[i], 1);
            continue;
        }
        unsigned more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1, code = byte & (0x3fu >> more);
        for (; more > 0; more--)
            code = code << 6 | ((unsigned char)text.data[++i] & 0x3f);
        if (code >= 0x10000)
            api_append_format(line, "\\u%04x", 0xd7c0 + (code >> 10));
        api_append_format(line, "\\u%04x", code < 0x10000 ? code : 0xdc00 | (code & 0x3ff));
    }
    line->failed |= text.failed;
    api_buffer_free(&text);
}

/* Appends a text that may be a stranger's: quoted, if it could confuse a terminal or a reader of key=value. */
static void add_value(struct api_buffer *line, const char *value)
{
    bool is_plain = *value;
    for (const char *c = value; *c; c++)
        is_plain &= *c > ' ' && *c <= '~' && *c != '"' && *c != '=' && *c != '\\';
    if (is_plain)
        api_append_text(line, value);
    else
        add_quoted(line, value);
}

/* Appends time and level; leaves a JSON object open. */
static void begin_line(struct api_buffer *line, enum srv_log_level level)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    api_append_text(line, as_json() ? "{\"time\":\"" : "");
    api_append_text(line, format_second(now.tv_sec));
    add_padded(line, (unsigned long)now.tv_nsec / 1000000);
    api_append_text(line, as_json() ? "Z\",\"level\":\"" : "Z ");
    api_append_text(line, level_names[level]);
    api_append_text(line, as_json() ? "\",\"message\":" : " ");
}

/* Appends a message of words without a parameter. */
static void add_message(struct api_buffer *line, const char *words)
{
    const char *quote = as_json() ? "\"" : "";
    api_append_text(line, quote);
    api_append_text(line, words);
    api_append_text(line, quote);
}

static void end_line(struct api_buffer *line) { api_append_text(line, as_json() ? "}\n" : "\n"); }

/* Ends a line and hands it to the thread. */
static void put_line(struct api_buffer *line, struct srv_log_stream *stream)
{
    end_line(line);
    srv_log_stream_put(stream, line);
}

void srv_log_at_once(enum srv_log_level level, const char *message)
{
    char usual[USUAL_LINE];
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct api_buffer line = {0};
    api_buffer_borrow(&line, usual, sizeof usual);
    begin_line(&line, level);
    add_message(&line, message);
    end_line(&line);
    if (poll(&reader, 1, 0) > 0 && write(STDERR_FILENO, line.data, line.size) < 0)
        return;
}

/* Warnings of one format in a period of time, in ms; formats that are told apart, more than the program has. */
enum { PERIOD_MS = 10000, MAX_IN_PERIOD = 10, FORMATS = 128 };

/* Counts a warning; true if its format has had its share. Otherwise *skipped becomes the number of
 * those that were not written before. */
static bool is_too_often(const char *format, unsigned long *skipped)
{
    static struct {
        const char *format;
        unsigned long long begin;
        unsigned long seen, skipped;
    } table[FORMATS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned long long now = api_now_ms();
    size_t i = 0;
    pthread_mutex_lock(&lock);
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
    pthread_mutex_unlock(&lock);
    return too_often;
}

/* Appends a message, as srv_log says; as JSON its texts are as they are. */
static void add_formatted(struct api_buffer *line, const char *format, va_list arguments)
{
    for (const char *p; (p = strchr(format, '%')); format = p + strcspn(p, "sud") + 1) {
        api_append(line, format, (size_t)(p - format));
        if (p[1] == 'd')
            api_append_format(line, "%d", va_arg(arguments, int));
        else if (p[1] == 'z')
            api_append_unsigned(line, va_arg(arguments, size_t));
        else if (as_json())
            api_append_text(line, va_arg(arguments, const char *));
        else
            add_value(line, va_arg(arguments, const char *));
    }
    api_append_text(line, format);
}

void srv_log(enum srv_log_level level, const char *format, ...)
{
    unsigned long skipped = 0;
    if (!is_enabled(level) || (level == SRV_LOG_WARNING && is_too_often(format, &skipped)))
        return;
    struct api_buffer line = {0}, message = {0};
    va_list arguments;
    va_start(arguments, format);
    add_formatted(&message, format, arguments);
    va_end(arguments);
    if (skipped > 0)
        api_append_format(&message, " skipped=%lu", skipped);
    api_append(&message, "", 1);
    begin_line(&line, level);
    if (message.failed)
        line.failed = true;
    else if (as_json())
        api_append_json_string(&line, message.data);
    else
        api_append_text(&line, message.data);
    api_buffer_free(&message);
    put_line(&line, &logger.all);
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
    if (!value)
        return;
    add_name(line, name);
    if (as_json())
        api_append_json_string(line, value);
    else
        add_value(line, value);
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

/* True for a parameter that some clients send a token or a password in; kldiv takes none there. */
static bool is_secret(const char *name, size_t size)
{
    static const char *const words[] = {"auth", "jwt", "key", "pass", "pwd", "secret", "token"};
    char plain[100];
    size_t n = 0;
    for (size_t i = 0; i < size && n < sizeof plain - 1; i++) {
        int byte = name[i] == '%' && size - i > 2 ? api_percent_decode(name + i) : -1;
        i += byte >= 0 ? 2 : 0;
        plain[n++] = (char)(byte >= 0 ? byte : name[i]);
    }
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(plain, words[i]))
            return true;
    return false;
}

/* Adds the target, with *** for what may be secrets in its query. */
static void add_target(struct api_buffer *line, const char *target)
{
    static const char ends[] = "?&;";
    char usual[USUAL_LINE];
    struct api_buffer shown = {0};
    const char *at = target ? strchr(target, '?') : NULL;
    if (!at) {
        add_text(line, FIELD("target"), target);
        return;
    }
    api_buffer_borrow(&shown, usual, sizeof usual);
    api_append(&shown, target, (size_t)(at - target));
    for (size_t size; *at; at += size) {
        size = 1 + strcspn(at + 1, ends);
        const char *value = memchr(at, '=', size);
        bool hides = value && is_secret(at + 1, (size_t)(value - at - 1));
        api_append(&shown, at, hides ? (size_t)(value + 1 - at) : size);
        api_append_text(&shown, hides ? "***" : "");
    }
    api_append(&shown, "", 1);
    add_text(line, FIELD("target"), shown.failed ? "" : shown.data);
    api_buffer_free(&shown);
}

static void add_request(struct api_buffer *line, const struct srv_access *access)
{
    add_text(line, FIELD("id"), access->request_id);
    add_text(line, FIELD("method"), access->method);
    add_target(line, access->target);
    add_text(line, FIELD("token"), access->token);
    add_number(line, FIELD("status"), (size_t)access->status);
    add_text(line, FIELD("code"), access->code);
}

void srv_log_access(const struct srv_access *access)
{
    bool audits = logger.audits && access->is_audit;
    if (!audits && !is_enabled(SRV_LOG_INFO))
        return;
    char usual[USUAL_LINE];
    struct api_buffer line = {0};
    api_buffer_borrow(&line, usual, sizeof usual);
    begin_line(&line, SRV_LOG_INFO);
    add_message(&line, "request");
    add_text(&line, FIELD("kind"), access->is_audit ? "audit" : NULL);
    add_request(&line, access);
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
    put_line(&line, audits && logger.audit.path ? &logger.audit : &logger.all);
}

void srv_log_slow(const struct srv_access *access)
{
    static const struct field names[SRV_SPANS] = {[SRV_READ] = FIELD("read_ms"),
                                                  [SRV_QUEUED] = FIELD("queue_ms"),
                                                  [SRV_STORED] = FIELD("store_ms"),
                                                  [SRV_COMPUTED] = FIELD("compute_ms"),
                                                  [SRV_SENT] = FIELD("send_ms")};
    static const char words[] = "slow request";
    unsigned long skipped = 0;
    if (!is_enabled(SRV_LOG_WARNING) || is_too_often(words, &skipped))
        return;
    struct api_buffer line = {0};
    begin_line(&line, SRV_LOG_WARNING);
    add_message(&line, words);
    add_request(&line, access);
    add_ms(&line, FIELD("ms"), access->ms);
    for (size_t i = 0; i < SRV_SPANS; i++)
        add_ms(&line, names[i], access->spans[i]);
    if (skipped > 0)
        add_number(&line, FIELD("skipped"), skipped);
    put_line(&line, &logger.all);
}

void srv_log_migration(const struct api_migrated *migrated)
{
    if (!is_enabled(SRV_LOG_INFO))
        return;
    struct api_buffer line = {0};
    begin_line(&line, SRV_LOG_INFO);
    add_message(&line, "store");
    add_text(&line, FIELD("kind"), "migration");
    add_number(&line, FIELD("from"), (size_t)migrated->from);
    add_number(&line, FIELD("to"), (size_t)migrated->to);
    add_text(&line, FIELD("what"), migrated->what);
    add_ms(&line, FIELD("ms"), migrated->seconds * 1e3);
    put_line(&line, &logger.all);
}
