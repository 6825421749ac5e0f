/* Request ids. */
#ifndef KLDIV_SERVER_IDENTITY_H
#define KLDIV_SERVER_IDENTITY_H

#include <stddef.h>

/* Copies the client's id if it matches [A-Za-z0-9._-]{1,128}; else makes one of 16 hexadecimal
 * digits, unique in this process. `size` is at least 129 bytes. */
void srv_request_identify(const char *given, char *id, size_t size);

#endif
