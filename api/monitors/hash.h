/* Hashes that tell a request from another one. */
#ifndef KLDIV_API_MONITORS_HASH_H
#define KLDIV_API_MONITORS_HASH_H

#include <stddef.h>

/* api_hash: SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), under a fixed key. */
enum { API_HASH = 16 };
void api_hash(const void *bytes, size_t size, unsigned char to[API_HASH]);

#endif
