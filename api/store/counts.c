#include "api/store/counts.h"

#include <stdint.h>

size_t api_counts_write(const double *counts, size_t n, char *bytes)
{
    size_t size = 0;
    while (n > 0 && counts[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n; i++) {
        double count = counts[i] > 0 ? counts[i] : 0; /* also of NaN */
        uint64_t rest = (uint64_t)(count < 0x1p53 ? count : 0x1p53);
        for (; rest >= 0x80; rest >>= 7)
            bytes[size++] = (char)(rest | 0x80);
        bytes[size++] = (char)rest;
    }
    return size;
}

/* True if the bytes are at most n counts, none longer than one that is written. */
static bool are_counts(const char *bytes, size_t size, size_t n)
{
    size_t found = 0, length = 0;
    for (size_t i = 0; i < size; i++) {
        bool ends = !(bytes[i] & 0x80);
        length = ends ? 0 : length + 1;
        found += ends;
        if (found > n || length == API_COUNT_BYTES)
            return false;
    }
    return length == 0;
}

bool api_counts_add(const char *bytes, size_t size, double *counts, size_t n)
{
    uint64_t count = 0;
    unsigned shift = 0;
    if (!are_counts(bytes, size, n))
        return false;
    for (size_t i = 0; i < size; i++) {
        count |= (uint64_t)(bytes[i] & 0x7f) << shift;
        shift += 7;
        if (bytes[i] & 0x80)
            continue;
        *counts++ += (double)count;
        count = shift = 0;
    }
    return true;
}
