/* The list of hosts that requests may name, against DNS rebinding: a page whose own name leads to
 * this server's address sends that name. */
#pragma once

#include <stdbool.h>

/* True if a list can be read: entries with commas between, each a host name, *.DOMAIN for all names
 * below a domain, an IPv4 address, or an IPv6 address with or without brackets; with :PORT after
 * it, if the port matters (an IPv6 address then has brackets). */
bool api_hosts_valid(const char *list);

/* True if a valid list has the host of a Host header, "name[:port]". Names are compared in any case
 * and without a dot at their end, IPv6 addresses by value. A host without a port has
 * `usual_port`. */
bool api_hosts_have(const char *list, const char *host, unsigned usual_port);

/* True if the host is an address, or localhost or below it, which no name server can lead elsewhere. */
bool api_host_is_fixed(const char *host);
