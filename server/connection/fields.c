#include "server/connection/fields.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A field of which the first line must not be taken for all: a proxy may check another than is used, and
 * a list that is cut short may allow what all of it forbids. */
#define ONCE(letter, text) [SRV_SLOT(sizeof(text) - 1, letter)] = {text, sizeof(text) - 1, true}
#define NAME(letter, text) [SRV_SLOT(sizeof(text) - 1, letter)] = {text, sizeof(text) - 1, false}
static const struct {
    const char *text;
    size_t size;
    bool is_single;
} names[SRV_SLOTS] = {
    NAME('a', "Accept"),
    NAME('a', "Accept-Encoding"),
    ONCE('a', "Authorization"),
    NAME('c', "Connection"),
    ONCE('c', "Content-Encoding"),
    NAME('c', "Content-Length"),
    NAME('c', "Content-Type"),
    NAME('e', "Expect"),
    NAME('h', "Host"),
    ONCE('i', "Idempotency-Key"),
    ONCE('i', "If-Match"),
    ONCE('i', "If-None-Match"),
    ONCE('i', "Inference-Header-Content-Length"),
    ONCE('o', "Origin"),
    ONCE('s', "Sec-Fetch-Site"),
    NAME('t', "Traceparent"),
    NAME('t', "Transfer-Encoding"),
    NAME('x', "X-Request-Id"),
};

/* Place of a name; SRV_SLOTS if it is not in the table. */
static size_t slot_of(const char *name, size_t size)
{
    size_t i = SRV_SLOT(size, (unsigned char)(*name | 0x20));
    return size > 0 && size == names[i].size && strncasecmp(name, names[i].text, size) == 0
               ? i
               : SRV_SLOTS;
}

/* Joins lines of Accept with commas (RFC 9110, 5.3), as far as there is room. */
static void join(struct srv_fields *fields, const char *value)
{
    char *joined = fields->accept;
    const char *first = fields->values[SRV_ACCEPT];
    size_t used = strlen(first);
    if (used >= SRV_MAX_ACCEPT)
        return;
    memmove(joined, first, used);
    snprintf(joined + used, SRV_MAX_ACCEPT - used, ", %s", value);
    fields->values[SRV_ACCEPT] = joined;
}

/* True if a list of tokens (RFC 9110, 5.6.1) has one. */
static bool has_token(const char *list, const char *token)
{
    static const char between[] = " \t,";
    size_t size;
    for (const char *p = list + strspn(list, between); *p; p += size + strspn(p + size, between)) {
        size = strcspn(p, between);
        if (size == strlen(token) && strncasecmp(p, token, size) == 0)
            return true;
    }
    return false;
}

static enum MHD_Result file(void *argument, enum MHD_ValueKind kind, const char *name,
                            size_t name_size, const char *value, size_t value_size)
{
    struct srv_fields *fields = argument;
    size_t i = slot_of(name, name_size);
    (void)kind, (void)value_size;
    if (i < SRV_SLOTS && value && !fields->values[i])
        fields->values[i] = value;
    else if (i == SRV_ACCEPT && value)
        join(fields, value);
    else if (i < SRV_SLOTS && names[i].is_single)
        fields->repeated = names[i].text;
    else if (i == SRV_TRACEPARENT)
        fields->values[i] = ""; /* a request has one parent, or none */
    if (i == SRV_CONNECTION && value)
        fields->closes |= has_token(value, "close");
    return MHD_YES;
}

void srv_fields_read(struct srv_fields *fields, struct MHD_Connection *connection)
{
    fields->connection = connection;
    memset(fields->values, 0, sizeof fields->values);
    fields->repeated = NULL;
    fields->closes = false;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, file, fields);
}

static enum MHD_Result add_forwarded(void *forwarded, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    (void)kind;
    if (value && strcasecmp(name, "X-Forwarded-For") == 0)
        srv_forwarded_add(forwarded, value);
    return MHD_YES;
}

void srv_fields_forwarded(const struct srv_fields *fields, struct srv_forwarded *forwarded)
{
    MHD_get_connection_values(fields->connection, MHD_HEADER_KIND, add_forwarded, forwarded);
}

const char *srv_fields_find(const struct srv_fields *fields, const char *name)
{
    size_t i = slot_of(name, strlen(name));
    return i < SRV_SLOTS ? fields->values[i]
                         : MHD_lookup_connection_value(fields->connection, MHD_HEADER_KIND, name);
}
