#include "server/connection/framing.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(struct srv_framing *f, const char *code, const char *detail)
{
    f->error = (struct srv_error){code, detail};
    return false;
}

static bool bad(struct srv_framing *f, const char *detail)
{
    return refuse(f, "bad_request", detail);
}

/* ---- Characters */

enum { TOKEN = 1, HOST = 2, VALUE = 4, TARGET = 8, HEX = 16 };

/* Classes of characters: of RFC 9110, 5.6.2 (token) and 5.5 (field value), of RFC 3986 (host). */
static unsigned char classes[256];

__attribute__((constructor)) static void make_classes(void)
{
    for (int c = 1; c < 256; c++) {
        bool is_token = isalnum(c) || strchr("!#$%&'*+-.^_`|~", c);
        bool is_host = isalnum(c) || strchr("-._~!$&'()*+;=:[]%", c);
        bool is_value = (c >= 0x20 || c == '\t') && c != 0x7f;
        bool is_target = c > 0x20 && c < 0x7f && c != '\\';
        classes[c] = (unsigned char)(is_token * TOKEN | is_host * HOST | is_value * VALUE |
                                     is_target * TARGET | !!isxdigit(c) * HEX);
    }
}

/* Length of the characters at `s` that are of a class. */
static size_t span(const char *s, size_t size, unsigned char class)
{
    size_t i = 0;
    while (i < size && classes[(unsigned char)s[i]] & class)
        i++;
    return i;
}

static bool same(const char *s, size_t size, const char *known, size_t known_size)
{
    return size == known_size && strncasecmp(s, known, size) == 0;
}
#define SAME(s, size, literal) same(s, size, literal, sizeof(literal) - 1)

/* ---- Sizes */

/* True for lines whose bytes count toward the header; a trailer counts with it. */
static bool is_of_header(const struct srv_framing *f)
{
    return f->state == SRV_REQUEST_LINE || f->state == SRV_FIELD || f->state == SRV_TRAILER;
}

static bool check_fields(struct srv_framing *f)
{
    return f->fields <= SRV_HEADER_FIELDS ||
           refuse(f, "header_too_large", "the header has more than 100 fields");
}

/* Checks the bytes of the lines so far, or of a single line that is not of a header. */
static bool check_size(struct srv_framing *f, size_t size)
{
    enum { CHUNK_LINE = 1 << 10 };
    if (!is_of_header(f))
        return size <= CHUNK_LINE || bad(f, "the size of a chunk has a line of more than 1 KiB");
    if (size <= SRV_HEADER_SIZE)
        return true;
    if (f->state == SRV_REQUEST_LINE)
        return refuse(f, "target_too_long", "the request line has more than 16 KiB");
    return refuse(f, "header_too_large", "the header has more than 16 KiB");
}

/* ---- Request line */

/* True if a segment of a path is "..". */
static bool has_dot_dot(const char *path, size_t size)
{
    for (size_t i = 0; i + 1 < size && path[i] != '?'; i++)
        if (path[i] == '.' && path[i + 1] == '.' && (i == 0 || path[i - 1] == '/') &&
            (i + 2 == size || path[i + 2] == '/' || path[i + 2] == '?'))
            return true;
    return false;
}

static bool is_target(const char *target, size_t size, bool may_be_star)
{
    bool is_absolute = (size > 7 && strncasecmp(target, "http://", 7) == 0) ||
                       (size > 8 && strncasecmp(target, "https://", 8) == 0);
    bool is_star = size == 1 && *target == '*' && may_be_star;
    if (size == 0 || (*target != '/' && !is_absolute && !is_star))
        return false;
    return span(target, size, TARGET) == size && !has_dot_dot(target, size) &&
           !memmem(target, size, "%00", 3);
}

static bool read_version(struct srv_framing *f, const char *s, size_t size)
{
    f->is_http_1_0 = size == 8 && memcmp(s, "HTTP/1.0", 8) == 0;
    if (f->is_http_1_0 || (size == 8 && memcmp(s, "HTTP/1.1", 8) == 0))
        return true;
    if (size == 8 && memcmp(s, "HTTP/", 5) == 0 && s[6] == '.')
        return refuse(f, "version_unsupported", "this server supports HTTP/1.1 and HTTP/1.0");
    return bad(f, "the request line is not METHOD TARGET HTTP/1.1");
}

/* Reads a request line. Empty lines before it are passed over (RFC 9112, 2.2). */
static bool read_request_line(struct srv_framing *f, const char *line, size_t size)
{
    const char *end = line + size;
    if (size == 0)
        return true;
    *f = (struct srv_framing){.state = SRV_FIELD, .header_size = f->header_size};
    size_t method = span(line, size, TOKEN);
    if (method == 0 || method == size || line[method] != ' ')
        return bad(f, "the method is not a token that a single space follows");
    memcpy(f->method, line, method < sizeof f->method ? method : sizeof f->method - 1);
    const char *target = line + method + 1;
    const char *space = memchr(target, ' ', (size_t)(end - target));
    if (!space)
        return bad(f, "the request line is not METHOD TARGET HTTP/1.1");
    return read_version(f, space + 1, (size_t)(end - space) - 1) &&
           (is_target(target, (size_t)(space - target), SAME(line, method, "OPTIONS")) ||
            bad(f, "the request target holds an invalid character, or .."));
}

/* ---- Fields */

static bool read_length(struct srv_framing *f, const char *s, size_t size)
{
    if (f->lengths++ > 0 || size < 1 || size > 15 || strspn(s, "0123456789") != size)
        return bad(f, "at most one Content-Length is allowed, of 1 to 15 digits");
    f->left = strtoull(s, NULL, 10);
    return true;
}

static bool read_host(struct srv_framing *f, const char *s, size_t size)
{
    return (f->hosts++ == 0 && size > 0 && size < 256 && span(s, size, HOST) == size) ||
           bad(f, "exactly one Host is required, and it must be a host name or address");
}

static bool read_coding(struct srv_framing *f, const char *s, size_t size)
{
    return (f->codings++ == 0 && SAME(s, size, "chunked")) ||
           bad(f, "at most one Transfer-Encoding is allowed, and it must be chunked");
}

static bool read_type(struct srv_framing *f, const char *s, size_t size)
{
    (void)s, (void)size;
    return f->types++ == 0 || bad(f, "at most one Content-Type is allowed");
}

static bool read_expectation(struct srv_framing *f, const char *s, size_t size)
{
    return (f->expectations++ == 0 && SAME(s, size, "100-continue")) ||
           refuse(f, "expectation_failed", "Expect may only be 100-continue");
}

/* Fields that frame a request. Names that merely begin like the first two are refused: a proxy may take
 * "content-length " for the known one. A CR follows the values. */
static const struct {
    const char *name;
    size_t size;
    bool (*read)(struct srv_framing *f, const char *value, size_t size);
} known_fields[] = {
    {"content-length", 14, read_length},
    {"transfer-encoding", 17, read_coding},
    {"host", 4, read_host},
    {"content-type", 12, read_type},
    {"expect", 6, read_expectation},
};
enum { N_KNOWN = sizeof known_fields / sizeof *known_fields, N_UNLIKE = 2 };

/* Reads a field that frames the request. Some keep blanks at the end of its value, and read another value. */
static bool read_known_field(struct srv_framing *f, size_t i, const char *value, size_t size)
{
    for (; size > 0 && isblank((unsigned char)*value); value++)
        size--;
    if (f->state == SRV_TRAILER)
        return bad(f, "the trailer holds a field that frames the request");
    if (size > 0 && isblank((unsigned char)value[size - 1]))
        return bad(f, "a blank follows the value of a field that frames the request");
    return known_fields[i].read(f, value, size);
}

/* Reads a field of a header or a trailer; in a trailer, fields that frame a request are refused. */
static bool read_field(struct srv_framing *f, const char *line, size_t size)
{
    size_t name = span(line, size, TOKEN);
    if (isblank((unsigned char)*line))
        return bad(f, "a header field is folded over several lines");
    for (size_t i = 0; i < N_UNLIKE; i++)
        if (size > known_fields[i].size && line[known_fields[i].size] != ':' &&
            strncasecmp(line, known_fields[i].name, known_fields[i].size) == 0)
            return bad(f, "the name of a header field resembles one that frames the body");
    if (name == 0 || name == size || line[name] != ':')
        return bad(f, "the name of a header field is not a token");
    const char *value = line + name + 1;
    size_t value_size = size - name - 1;
    if (span(value, value_size, VALUE) != value_size)
        return bad(f, "the value of a header field holds a control character");
    f->fields++;
    if (!check_fields(f))
        return false;
    for (size_t i = 0; i < N_KNOWN; i++)
        if (same(line, name, known_fields[i].name, known_fields[i].size))
            return read_known_field(f, i, value, value_size);
    return true;
}

static void end_request(struct srv_framing *f)
{
    f->state = SRV_REQUEST_LINE;
    f->header_size = 0;
    *f->method = '\0';
}

/* Checks the fields together, and goes on to the body. */
static bool end_header(struct srv_framing *f)
{
    if (f->hosts == 0 && !f->is_http_1_0)
        return bad(f, "exactly one Host is required, and it must be a host name or address");
    if (f->codings && (f->lengths || f->is_http_1_0))
        return bad(f, "Transfer-Encoding requires HTTP/1.1 and excludes Content-Length");
    if ((f->codings || f->left > 0) &&
        (strcmp(f->method, "GET") == 0 || strcmp(f->method, "HEAD") == 0 ||
         strcmp(f->method, "DELETE") == 0))
        return bad(f, "this method must not have a body");
    if (f->codings)
        f->state = SRV_CHUNK_SIZE;
    else if (f->left > 0)
        f->state = SRV_BODY_BYTES;
    else
        end_request(f);
    return true;
}

/* ---- Chunks */

/* Checks the line of a chunk's size, or the beginning of one. */
static bool check_chunk_size(struct srv_framing *f, const char *line, size_t size)
{
    size_t digits = span(line, size, HEX);
    return (digits > 0 && digits <= 15 && (digits == size || line[digits] == ';') &&
            span(line + digits, size - digits, VALUE) == size - digits) ||
           bad(f, "the size of a chunk is not hexadecimal digits before CRLF or ;");
}

static bool read_chunk_size(struct srv_framing *f, const char *line, size_t size)
{
    if (!check_chunk_size(f, line, size))
        return false;
    f->left = strtoull(line, NULL, 16);
    f->state = f->left > 0 ? SRV_CHUNK_BYTES : SRV_TRAILER;
    if (f->left > 0 && ++f->chunks > SRV_CHUNKS)
        return bad(f, "the body has more than 65536 chunks");
    return true;
}

/* ---- Lines */

static bool read_line(struct srv_framing *f, const char *line, size_t size)
{
    switch (f->state) {
    case SRV_REQUEST_LINE:
        return read_request_line(f, line, size);
    case SRV_FIELD:
        return size == 0 ? end_header(f) : read_field(f, line, size);
    case SRV_CHUNK_SIZE:
        return read_chunk_size(f, line, size);
    case SRV_CHUNK_END:
        f->state = SRV_CHUNK_SIZE;
        return size == 0 || bad(f, "a chunk is longer than its size says");
    default:
        if (size == 0)
            end_request(f);
        return size == 0 || read_field(f, line, size);
    }
}

/* Reads a line that ends with CRLF. */
static bool read_whole_line(struct srv_framing *f, const char *line, size_t size)
{
    if (is_of_header(f))
        f->header_size += size;
    if (!check_size(f, is_of_header(f) ? f->header_size : size))
        return false;
    if (size < 2 || line[size - 2] != '\r')
        return bad(f, "a line ends with LF alone, not with CRLF");
    return read_line(f, line, size - 2);
}

/* Keeps the beginning of a line. */
static bool keep(struct srv_framing *f, const char *bytes, size_t size)
{
    if (!check_size(f, f->line_size + size + (is_of_header(f) ? f->header_size : 0)))
        return false;
    char *line = realloc(f->line, f->line_size + size);
    if (!line)
        return refuse(f, "out_of_memory", "no memory is left for the request; try again");
    memcpy(line + f->line_size, bytes, size);
    f->line = line;
    f->line_size += size;
    return true;
}

/* Checks the beginning of a line of chunks, whose end may never come. */
static bool check_partial(struct srv_framing *f)
{
    size_t size = f->line_size - (f->line[f->line_size - 1] == '\r');
    if (f->state == SRV_CHUNK_END)
        return size == 0 || bad(f, "a chunk is longer than its size says");
    return f->state != SRV_CHUNK_SIZE || check_chunk_size(f, f->line, size);
}

/* Reads a line, or the beginning of one; gives the number of its bytes. */
static size_t read_some_line(struct srv_framing *f, const char *bytes, size_t size)
{
    enum { TLS_HANDSHAKE = 0x16 };
    const char *end = memchr(bytes, '\n', size);
    size_t used = end ? (size_t)(end - bytes) + 1 : size;
    if (f->state == SRV_REQUEST_LINE && f->line_size == 0 && *bytes == TLS_HANDSHAKE) {
        bad(f, "these bytes look like TLS, but this port serves plain HTTP");
    } else if (end && f->line_size == 0) {
        read_whole_line(f, bytes, used);
    } else if (keep(f, bytes, used) && !end) {
        check_partial(f);
    } else if (end && !f->error.code) {
        char *line = f->line;
        size_t line_size = f->line_size;
        f->line = NULL;
        f->line_size = 0;
        read_whole_line(f, line, line_size);
        free(line);
    }
    return used;
}

/* Passes over bytes of a body or of a chunk; gives their number. */
static size_t read_body(struct srv_framing *f, size_t size)
{
    size_t used = f->left < size ? (size_t)f->left : size;
    f->left -= used;
    if (f->left == 0 && f->state == SRV_BODY_BYTES)
        end_request(f);
    else if (f->left == 0)
        f->state = SRV_CHUNK_END;
    return used;
}

size_t srv_framing_step(struct srv_framing *f, const char *bytes, size_t size, enum srv_part *part)
{
    *part = SRV_PART_BODY;
    if (f->state == SRV_BODY_BYTES || f->state == SRV_CHUNK_BYTES)
        return read_body(f, size);
    bool is_field = f->state == SRV_FIELD;
    size_t used = read_some_line(f, bytes, size);
    *part = is_field && f->state != SRV_FIELD ? SRV_PART_HEADER_END : SRV_PART_LINE;
    return used;
}

bool srv_framing_is_between_requests(const struct srv_framing *f)
{
    return f->state == SRV_REQUEST_LINE && f->line_size == 0;
}

void srv_framing_free(struct srv_framing *f)
{
    free(f->line);
    f->line = NULL;
}
