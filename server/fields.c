#include "server/fields.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME(letter, text) [SRV_SLOT(sizeof(text) - 1, letter)] = {text, sizeof(text) - 1}
static const struct {
    const char *text;
    size_t size;
} names[SRV_SLOTS] = {
    NAME('a', "Accept"),
    NAME('a', "Accept-Encoding"),
    NAME('a', "Authorization"),
    NAME('c', "Content-Encoding"),
    NAME('c', "Content-Length"),
    NAME('c', "Content-Type"),
    NAME('e', "Expect"),
    NAME('h', "Host"),
    NAME('o', "Origin"),
    NAME('s', "Sec-Fetch-Site"),
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
    return MHD_YES;
}

void srv_fields_read(struct srv_fields *fields, struct MHD_Connection *connection)
{
    fields->connection = connection;
    memset(fields->values, 0, sizeof fields->values);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, file, fields);
}

const char *srv_fields_find(const struct srv_fields *fields, const char *name)
{
    size_t i = slot_of(name, strlen(name));
    return i < SRV_SLOTS ? fields->values[i]
                         : MHD_lookup_connection_value(fields->connection, MHD_HEADER_KIND, name);
}
