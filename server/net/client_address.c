#include "server/net/client_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* network: addresses whose first `bits` are those of `ip`. */
struct network {
    struct srv_ip ip;
    unsigned bits;
};

static struct proxies {
    struct network networks[SRV_MAX_PROXIES];
    size_t n;
    bool unix_sockets;
} trusted;

/* ---- Addresses */

static struct srv_ip of_ipv4(const void *bytes)
{
    struct srv_ip ip;
    memcpy(ip.bytes, mapped, sizeof mapped);
    memcpy(ip.bytes + sizeof mapped, bytes, 4);
    return ip;
}

static bool is_ipv4(const struct srv_ip *ip)
{
    return memcmp(ip->bytes, mapped, sizeof mapped) == 0;
}

/* Reads an address that is all of `size` characters. */
static bool read_ip(const char *text, size_t size, struct srv_ip *ip)
{
    char copy[SRV_ADDRESS_TEXT] = "";
    struct in_addr ipv4;
    if (size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    if (inet_pton(AF_INET, copy, &ipv4) == 1) {
        *ip = of_ipv4(&ipv4);
        return true;
    }
    return inet_pton(AF_INET6, copy, ip->bytes) == 1;
}

static void write_ip(const struct srv_ip *ip, char text[SRV_ADDRESS_TEXT])
{
    if (is_ipv4(ip))
        inet_ntop(AF_INET, ip->bytes + sizeof mapped, text, SRV_ADDRESS_TEXT);
    else
        inet_ntop(AF_INET6, ip->bytes, text, SRV_ADDRESS_TEXT);
}

/* ---- Trusted proxies */

static bool has_ip(const struct network *network, const struct srv_ip *ip)
{
    unsigned bytes = network->bits / 8, rest = network->bits % 8;
    if (memcmp(network->ip.bytes, ip->bytes, bytes) != 0)
        return false;
    return rest == 0 || ((network->ip.bytes[bytes] ^ ip->bytes[bytes]) >> (8 - rest)) == 0;
}

static bool is_trusted(const struct srv_ip *ip)
{
    for (size_t i = 0; i < trusted.n; i++)
        if (has_ip(&trusted.networks[i], ip))
            return true;
    return false;
}

/* Reads an address, with or without "/BITS". */
static bool read_network(const char *text, size_t size, struct network *network)
{
    const char *slash = memchr(text, '/', size);
    size_t before = slash ? (size_t)(slash - text) : size, digits = slash ? size - before - 1 : 0;
    if (!read_ip(text, before, &network->ip))
        return false;
    unsigned first = memchr(text, ':', before) ? 0 : 96, bits = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!isdigit((unsigned char)slash[1 + i]))
            return false;
        bits = bits * 10 + (unsigned)(slash[1 + i] - '0');
    }
    network->bits = slash ? first + bits : 128;
    return !slash || (digits >= 1 && digits <= 3 && network->bits <= 128);
}

static bool read_proxies(const char *list, struct proxies *proxies)
{
    for (*proxies = (struct proxies){.n = 0};; list++) {
        size_t size = strcspn(list, ",");
        if (size == 4 && memcmp(list, "unix", 4) == 0)
            proxies->unix_sockets = true;
        else if (proxies->n == SRV_MAX_PROXIES ||
                 !read_network(list, size, &proxies->networks[proxies->n++]))
            return false;
        list += size;
        if (!*list)
            return true;
    }
}

bool srv_proxies_are_valid(const char *list)
{
    struct proxies proxies;
    return read_proxies(list, &proxies);
}

void srv_proxies_set(const char *list)
{
    if (list)
        read_proxies(list, &trusted);
}

/* ---- Clients */

bool srv_peer_read(const struct sockaddr *address, char text[SRV_ADDRESS_TEXT])
{
    struct srv_ip ip;
    if (!address || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
        snprintf(text, SRV_ADDRESS_TEXT, "unix");
        return trusted.unix_sockets;
    }
    if (address->sa_family == AF_INET)
        ip = of_ipv4(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    else
        memcpy(ip.bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    write_ip(&ip, text);
    return is_trusted(&ip);
}

/* Reads an entry: an address, perhaps with a port, as "1.2.3.4:80" or "[::1]:80". */
static bool read_entry(const char *text, size_t size, struct srv_ip *ip)
{
    bool has_brackets = size > 1 && *text == '[';
    const char *last = memchr(text, has_brackets ? ']' : ':', size), *port = last;
    if (has_brackets) {
        if (!last)
            return false;
        port = last + 1;
        text++;
        size--;
    } else if (last && memchr(last + 1, ':', size - (size_t)(last + 1 - text))) {
        last = port = NULL; /* IPv6 */
    }
    size_t of_ip = last ? (size_t)(last - text) : size,
           rest = last ? size - (size_t)(port - text) : 0;
    for (size_t i = 1; i < rest; i++)
        if (!isdigit((unsigned char)port[i]))
            return false;
    return (rest == 0 || *port == ':') && read_ip(text, of_ip, ip);
}

void srv_forwarded_add(struct srv_forwarded *forwarded, const char *line)
{
    size_t size;
    for (const char *p = line + strspn(line, " \t,"); *p; p += size + strspn(p + size, " \t,")) {
        struct srv_ip ip;
        size = strcspn(p, " \t,");
        if (!read_entry(p, size, &ip)) {
            forwarded->is_found = false;
            continue;
        }
        if (!forwarded->is_found || !is_trusted(&ip))
            *forwarded = (struct srv_forwarded){.client = ip, .is_found = true};
    }
}

bool srv_forwarded_text(const struct srv_forwarded *forwarded, char text[SRV_ADDRESS_TEXT])
{
    if (forwarded->is_found)
        write_ip(&forwarded->client, text);
    return forwarded->is_found;
}
