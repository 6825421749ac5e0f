/* Percent-encoding (RFC 3986, 2.1). */
#pragma once

#include <stddef.h>

/* Value of a hexadecimal digit, or -1. */
static inline int api_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Byte that %XX at `p` encodes, or -1 if two digits do not follow the sign. */
static inline int api_percent_decode(const char *p)
{
    int high = api_hex_digit(p[1]), low = high < 0 ? -1 : api_hex_digit(p[2]);
    return low < 0 ? -1 : high << 4 | low;
}
