/* The halves of the rows of a reference: labels that are chosen by their counts in a sample look too frequent in it
 * (regression to the mean), so that one half of the rows chooses, and the other is counted. */
#pragma once

#include "api/memory/buffer.h"

#include <stdint.h>

/* True for a row, from 0, of the half that chooses: the top bit of splitmix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", 2014), so that no order of the rows puts a label into one half alone. */
static inline bool api_row_chooses(size_t row)
{
    uint64_t z = ((uint64_t)row + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) >> 63;
}

/* api_halves: the halves of collected values, a bit each. */
struct api_halves {
    struct api_buffer bits;
    size_t n;
};

static inline bool api_halves_add(struct api_halves *halves, bool chooses)
{
    size_t i = halves->n++;
    if (i % 8 == 0)
        api_append(&halves->bits, "", 1);
    if (!halves->bits.failed)
        halves->bits.data[i / 8] = (char)(halves->bits.data[i / 8] | chooses << i % 8);
    return !halves->bits.failed;
}

static inline bool api_halves_at(const struct api_halves *halves, size_t i)
{
    return halves->bits.data[i / 8] >> i % 8 & 1;
}
