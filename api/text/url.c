#include "api/text/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

/* True for "HOST", "HOST:PORT" and either with an address of IPv6 in brackets. */
static bool is_authority(const char *text, size_t size)
{
    enum { MAX_PORT = 65535 };
    const char *end = text + size, *p = text;
    long port = 0;
    if (*p == '[') {
        struct in6_addr ignored;
        char address[INET6_ADDRSTRLEN] = "";
        size_t length = strcspn(p + 1, "]%"); /* a zone may follow: fe80::1%25eth0 */
        p = memchr(p, ']', size);
        if (!p || length >= sizeof address)
            return false;
        p++;
        memcpy(address, text + 1, length);
        if (inet_pton(AF_INET6, address, &ignored) != 1)
            return false;
    } else {
        for (; p < end && *p != ':'; p++)
            if (strchr("[]\\\"<>^`{|}", *p))
                return false;
    }
    if (p == end || p == text)
        return p > text;
    const char *digits = p + 1;
    if (*p != ':' || digits == end)
        return false;
    for (p = digits; p < end && isdigit((unsigned char)*p) && port <= MAX_PORT; p++)
        port = 10 * port + (*p - '0');
    return p == end && port > 0 && port <= MAX_PORT;
}

/* A password in a URL would be shown by proxies: it belongs into a header. */
const char *api_url_reason(const char *url)
{
    const char *host = strstr(url, "://");
    bool is_http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~' || *p == '#')
            return "must be ASCII without blanks and without a fragment";
    if (!is_http || strcspn(host + 3, "/?") == 0)
        return "must begin with http:// or https:// and a host";
    if (memchr(host + 3, '@', strcspn(host + 3, "/?")))
        return "must not have a user or a password: use header";
    if (!is_authority(host + 3, strcspn(host + 3, "/?")))
        return "must have a host and, if any, a port from 1 to 65535; an address of IPv6 stands in "
               "brackets: http://[::1]:9093";
    return strlen(url) <= 1900 ? NULL : "must have at most 1900 bytes";
}
