/* The halves of the rows of a reference: labels that are chosen by their counts in a sample look too frequent in it
 * (regression to the mean), so that one half of the rows chooses, and the other is counted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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
