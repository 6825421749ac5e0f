#include "server/connection/header.h"

#include <assert.h>
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
    NAME('x', "X-Forwarded-For"),
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
static void join(struct srv_header *header, const char *value)
{
    char *joined = header->accept;
    const char *first = header->values[SRV_ACCEPT];
    size_t used = strlen(first);
    if (used >= SRV_MAX_ACCEPT)
        return;
    memmove(joined, first, used);
    snprintf(joined + used, SRV_MAX_ACCEPT - used, ", %s", value);
    header->values[SRV_ACCEPT] = joined;
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

static void file(struct srv_header *header, size_t i, const char *value)
{
    if (!header->values[i])
        header->values[i] = value;
    else if (i == SRV_ACCEPT)
        join(header, value);
    else if (names[i].is_single)
        header->repeated = names[i].text;
    else if (i == SRV_TRACEPARENT)
        header->values[i] = ""; /* a request has one parent, or none */
    if (i == SRV_X_FORWARDED_FOR)
        srv_forwarded_add(&header->forwarded, value);
    if (i == SRV_CONNECTION) {
        header->closes |= has_token(value, "close");
        header->stays |= has_token(value, "keep-alive");
    }
}

/* Files a line of a field whose CRLF stands at `end`. */
static void read_field(struct srv_header *header, char *line, char *end)
{
    char *colon = memchr(line, ':', (size_t)(end - line));
    size_t i = slot_of(line, (size_t)(colon - line));
    if (i == SRV_SLOTS)
        return;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    file(header, i, value);
}

static void clear(struct srv_header *header)
{
    memset(header->values, 0, sizeof header->values);
    header->repeated = NULL;
    header->forwarded = (struct srv_forwarded){.is_found = false};
    header->closes = header->stays = false;
    header->method = header->target = "";
}

void srv_header_read(struct srv_header *header, char *text)
{
    enum { MAX_METHOD = 23 };
    clear(header);
    char *method = text + strspn(text, "\r\n"), *target = strchr(method, ' ') + 1;
    char *end = strchr(target, ' '), *line = strchr(end, '\n') + 1;
    method[target - method <= MAX_METHOD ? target - method - 1 : MAX_METHOD] = '\0';
    *end = '\0';
    header->method = method;
    header->target = target;
    for (; *line != '\r'; line = end + 1) {
        end = strchr(line, '\n');
        read_field(header, line, end - 1);
    }
}

void srv_header_guess(struct srv_header *header, char *text)
{
    enum { MAX_TARGET = 255 };
    clear(header);
    char *line = text + strspn(text, "\r\n"), *space = line + strcspn(line, " \r\n");
    if (*space != ' ')
        return;
    char *end = space + 1;
    while (*end > ' ' && *end < 0x7f && end - space <= MAX_TARGET)
        end++;
    *end = '\0';
    header->target = space + 1;
}

const char *srv_header_find(const struct srv_header *header, const char *name)
{
    size_t i = slot_of(name, strlen(name));
    assert(i < SRV_SLOTS);
    return header->values[i];
}
