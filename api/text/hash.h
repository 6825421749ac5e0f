/* Hashes: of requests, and of texts in tables. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* api_hash: SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), under a fixed key. */
enum { API_HASH = 16 };
void api_hash(const void *bytes, size_t size, unsigned char to[API_HASH]);

/* api_hash_text: FNV-1a, for hash tables. */
static inline uint32_t api_hash_text(const char *text, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}
