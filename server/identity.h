/* Names for requests. */
#ifndef KLDIV_SERVER_IDENTITY_H
#define KLDIV_SERVER_IDENTITY_H

#include <stddef.h>

/* The client's own id if it has one of the form [A-Za-z0-9._-]{1,128}, else a new one of 16
 * hexadecimal digits, which no other request of this process has. `id` has room for 129. */
void srv_request_identify(const char *given, char *id, size_t size);

#endif
