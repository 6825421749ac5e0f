/* The address of a client: that of its connection, or, if that is a trusted proxy's, the one that the proxies name in
 * X-Forwarded-For. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* SRV_ADDRESS_TEXT: bytes of an address as text, with its NUL. SRV_MAX_PROXIES: entries of --trusted-proxies. */
enum { SRV_ADDRESS_TEXT = 46, SRV_MAX_PROXIES = 64 };

/* srv_ip: IPv6, or IPv4 as ::ffff:a.b.c.d. */
struct srv_ip {
    uint8_t bytes[16];
};

/* True if a text is a list for --trusted-proxies: addresses, networks such as 10.0.0.0/8 or fd00::/8, and the word
 * unix, which is any client of a unix socket, with commas between. */
bool srv_proxies_are_valid(const char *list);

/* Sets the trusted proxies, NULL for none; once, before connections are accepted. */
void srv_proxies_set(const char *list);

/* Formats a peer's address without its port, `unix` for one of a unix socket; true if it is a trusted proxy. */
bool srv_peer_read(const struct sockaddr *address, char text[SRV_ADDRESS_TEXT]);

/* srv_forwarded: the client that lines of X-Forwarded-For name; zeroed before the first. */
struct srv_forwarded {
    struct srv_ip client;
    bool is_found;
};

/* Reads a line of X-Forwarded-For, in the order of the header. Each proxy has appended the address that it was asked
 * from, so that all before the last one that is no trusted proxy may be invented, and does not count; nor does what is
 * before an entry that is no address. A port behind an address is left out. Time is linear in the line's size. */
void srv_forwarded_add(struct srv_forwarded *forwarded, const char *line);

/* Formats the client; false if there is none. */
bool srv_forwarded_text(const struct srv_forwarded *forwarded, char text[SRV_ADDRESS_TEXT]);
