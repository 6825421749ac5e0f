#include "server/guard.h"

#include <string.h>
#include <strings.h>

static bool refuse(struct srv_refusal *refusal, const char *code, const char *detail)
{
    refusal->code = code;
    refusal->detail = detail;
    return false;
}

static bool bad(struct srv_refusal *refusal, const char *detail)
{
    return refuse(refusal, "bad_request", detail);
}

/* True for a token of RFC 9110, 5.6.2. */
static bool is_token(const char *s, size_t size)
{
    static const char extra[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        bool alphanumeric = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'A' && s[i] <= 'Z') ||
                            (s[i] >= 'a' && s[i] <= 'z');
        if (!alphanumeric && !(s[i] && strchr(extra, s[i])))
            return false;
    }
    return size > 0;
}

static bool has_control(const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return true;
    return false;
}

static bool is_host(const char *s, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~!$&'()*+;=:[]%";
    return size > 0 && size < 256 && strspn(s, allowed) == size;
}

static bool read_length(const char *s, size_t size, uint64_t *length)
{
    if (size < 1 || size > 15)
        return false;
    *length = 0;
    for (size_t i = 0; i < size; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        *length = *length * 10 + (uint64_t)(s[i] - '0');
    }
    return true;
}

static bool same(const char *name, size_t size, const char *known)
{
    return size == strlen(known) && strncasecmp(name, known, size) == 0;
}

/* True for names such as "content-length " and "content-lengthx", which a proxy may take for the
 * known one. */
static bool resembles(const char *name, size_t size, const char *known)
{
    return size > strlen(known) && strncasecmp(name, known, strlen(known)) == 0;
}

bool srv_guard_field(struct srv_guard_state *state, const char *name, size_t name_size,
                     const char *value, size_t value_size)
{
    struct srv_framing *framing = state->framing;
    struct srv_refusal *refusal = state->refusal;
    if (resembles(name, name_size, "content-length") ||
        resembles(name, name_size, "transfer-encoding"))
        return bad(refusal, "the name of a header field resembles one that frames the body");
    if (!is_token(name, name_size))
        return bad(refusal, "the name of a header field is not a token");
    if (has_control(value, value_size))
        return bad(refusal, "the value of a header field holds a control character");

    if (same(name, name_size, "host")) {
        if (state->hosts++ || !is_host(value, value_size))
            return bad(refusal,
                       "exactly one Host is required, and it must be a host name or address");
    } else if (same(name, name_size, "content-length")) {
        framing->has_length = true;
        if (state->lengths++ || !read_length(value, value_size, &framing->content_length))
            return bad(refusal, "at most one Content-Length is allowed, of 1 to 15 digits");
    } else if (same(name, name_size, "transfer-encoding")) {
        framing->chunked = true;
        if (state->codings++ || !same(value, value_size, "chunked"))
            return bad(refusal, "at most one Transfer-Encoding is allowed, and it must be chunked");
    } else if (same(name, name_size, "content-type")) {
        if (state->types++)
            return bad(refusal, "at most one Content-Type is allowed");
    } else if (same(name, name_size, "expect")) {
        framing->expects_continue = true;
        if (state->expectations++ || !same(value, value_size, "100-continue"))
            return refuse(refusal, "expectation_failed", "Expect may only be 100-continue");
    }
    return true;
}

/* True if a segment of a path is "..". */
static bool climbs(const char *path, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (path[i] == '.' && path[i + 1] == '.' && (i == 0 || path[i - 1] == '/') &&
            (i + 2 == size || path[i + 2] == '/'))
            return true;
    return false;
}

bool srv_guard_target(const char *target)
{
    bool is_absolute =
        strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0;
    if (*target != '/' && !is_absolute && strcmp(target, "*") != 0)
        return false;
    for (const char *p = target; *p; p++)
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || *p == '\\' ||
            strncmp(p, "%00", 3) == 0)
            return false;
    return !climbs(target, strcspn(target, "?"));
}

static enum MHD_Result check_field(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_size, const char *value, size_t value_size)
{
    (void)kind;
    return srv_guard_field(context, name, name_size, value ? value : "", value ? value_size : 0)
               ? MHD_YES
               : MHD_NO;
}

bool srv_guard(struct MHD_Connection *connection, const char *target, const char *method,
               const char *version, struct srv_framing *framing, struct srv_refusal *refusal)
{
    struct srv_guard_state state = {.framing = framing, .refusal = refusal};
    if (!srv_guard_target(target) ||
        (strcmp(target, "*") == 0 && strcmp(method, MHD_HTTP_METHOD_OPTIONS) != 0))
        return bad(refusal, "the request target holds an invalid character, or ..");
    if (!is_token(method, strlen(method)))
        return bad(refusal, "the method is not a token");
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_field, &state);
    if (refusal->code)
        return false;
    bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    if (state.hosts == 0 && !old)
        return bad(refusal, "exactly one Host is required, and it must be a host name or address");
    if (framing->chunked && (framing->has_length || old))
        return bad(refusal, "Transfer-Encoding requires HTTP/1.1 and excludes Content-Length");
    bool bodiless =
        strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "DELETE") == 0;
    if (bodiless && (framing->chunked || framing->content_length > 0))
        return bad(refusal, "this method takes no body");
    return true;
}
