#include "api/text/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* MAX_NAME: bytes of a DNS name as text (RFC 1035), with its NUL. */
enum { MAX_NAME = 256 };

/* host: a host and its port. The name of an IPv6 address is its 16 bytes. */
struct host {
    char name[MAX_NAME];
    size_t size;
    bool is_ipv6;
    long port; /* -1 if absent */
};

/* Reads ":PORT" or nothing; RFC 9110 lets the digits be absent. */
static bool read_port(const char *p, const char *end, long *port)
{
    *port = -1;
    if (p == end)
        return true;
    if (*p++ != ':')
        return false;
    for (; p < end; p++) {
        if (!isdigit((unsigned char)*p))
            return false;
        *port = (*port < 0 ? 0 : *port * 10) + (*p - '0');
        if (*port > 65535)
            return false;
    }
    return true;
}

static bool read_ipv6(const char *p, size_t size, struct host *host)
{
    char text[INET6_ADDRSTRLEN];
    if (size >= sizeof text)
        return false;
    memcpy(text, p, size);
    text[size] = '\0';
    host->is_ipv6 = true;
    host->size = sizeof(struct in6_addr);
    return inet_pton(AF_INET6, text, host->name) == 1;
}

static bool read_name(const char *p, size_t size, struct host *host)
{
    size -= size > 1 && p[size - 1] == '.';
    if (size == 0 || size >= MAX_NAME)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = p[i];
        if (!isalnum((unsigned char)c) && c != '-' && c != '_' && c != '*' && c != '.')
            return false;
        host->name[i] = (char)tolower((unsigned char)c);
    }
    host->size = size;
    return true;
}

/* Reads "name", "name:port", "[address]" or "[address]:port". */
static bool read_host(const char *p, const char *end, struct host *host)
{
    *host = (struct host){.port = -1};
    if (p < end && *p == '[') {
        const char *close = memchr(p, ']', (size_t)(end - p));
        return close && read_ipv6(p + 1, (size_t)(close - p - 1), host) &&
               read_port(close + 1, end, &host->port);
    }
    const char *colon = memchr(p, ':', (size_t)(end - p));
    const char *after = colon ? colon : end;
    return read_name(p, (size_t)(after - p), host) && read_port(after, end, &host->port);
}

/* Reads an entry of a list, in which an IPv6 address without a port may do without brackets. */
static bool read_entry(const char *p, const char *end, struct host *host)
{
    const char *colon = memchr(p, ':', (size_t)(end - p));
    *host = (struct host){.port = -1};
    if (p < end && *p != '[' && colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return read_ipv6(p, (size_t)(end - p), host);
    return read_host(p, end, host);
}

/* True if the entry has no star, or one that stands for the labels before a domain. */
static bool star_is_first(const struct host *entry)
{
    if (entry->is_ipv6 || !memchr(entry->name, '*', entry->size))
        return true;
    return entry->size > 2 && entry->name[0] == '*' && entry->name[1] == '.' &&
           !memchr(entry->name + 1, '*', entry->size - 1);
}

static bool fits(const struct host *entry, const struct host *host)
{
    if (entry->is_ipv6 != host->is_ipv6 || (entry->port >= 0 && entry->port != host->port))
        return false;
    if (!entry->is_ipv6 && entry->name[0] == '*') {
        size_t domain = entry->size - 1; /* with the dot before it */
        return host->size > domain &&
               memcmp(host->name + host->size - domain, entry->name + 1, domain) == 0;
    }
    return entry->size == host->size && memcmp(entry->name, host->name, entry->size) == 0;
}

/* Finds the entry at *list and advances past it; false at the end. Blanks around it are skipped. */
static bool next_entry(const char **list, const char **start, const char **end)
{
    if (!*list)
        return false;
    size_t size = strcspn(*list, ",");
    *start = *list;
    *end = *list + size;
    *list = (*list)[size] == ',' ? *list + size + 1 : NULL;
    while (*start < *end && **start == ' ')
        ++*start;
    while (*end > *start && (*end)[-1] == ' ')
        --*end;
    return true;
}

bool api_hosts_valid(const char *list)
{
    const char *start, *end;
    struct host entry;
    while (next_entry(&list, &start, &end))
        if (!read_entry(start, end, &entry) || !star_is_first(&entry))
            return false;
    return true;
}

bool api_hosts_have(const char *list, const char *text, unsigned usual_port)
{
    const char *start, *end;
    struct host entry, host;
    if (!read_host(text, text + strlen(text), &host))
        return false;
    if (!host.is_ipv6 && memchr(host.name, '*', host.size))
        return false;
    if (host.port < 0)
        host.port = (long)usual_port;
    while (next_entry(&list, &start, &end))
        if (read_entry(start, end, &entry) && fits(&entry, &host))
            return true;
    return false;
}

bool api_host_is_fixed(const char *text)
{
    static const char local[] = ".localhost";
    struct host host;
    struct in_addr address;
    if (!read_host(text, text + strlen(text), &host))
        return false;
    if (host.is_ipv6 || inet_pton(AF_INET, host.name, &address) == 1)
        return true;
    const struct host below = {.name = "*.localhost", .size = sizeof local, .port = -1};
    return strcmp(host.name, local + 1) == 0 || fits(&below, &host);
}
