#include "api/text/hash.h"

#include <stdint.h>

static uint64_t rotate(uint64_t v, unsigned by) { return v << by | v >> (64 - by); }

static void rounds(uint64_t v[4], unsigned n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

static uint64_t load(const unsigned char *bytes, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static void store(uint64_t word, unsigned char *to)
{
    for (size_t i = 0; i < 8; i++)
        to[i] = (unsigned char)(word >> (8 * i));
}

void api_hash(const void *bytes, size_t size, unsigned char to[API_HASH])
{
    static const uint64_t k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
    const unsigned char *p = bytes;
    size_t left = size;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
                     k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
    for (; left >= 8; p += 8, left -= 8)
        add_word(v, load(p, 8));
    add_word(v, load(p, left) | (uint64_t)(size & 0xff) << 56);
    v[2] ^= 0xee;
    rounds(v, 4);
    store(v[0] ^ v[1] ^ v[2] ^ v[3], to);
    v[1] ^= 0xdd;
    rounds(v, 4);
    store(v[0] ^ v[1] ^ v[2] ^ v[3], to + 8);
}
