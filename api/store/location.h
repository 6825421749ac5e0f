/* Locations of stores, as --store names them. */
#pragma once

#include <stddef.h>

/* Writes the location without its password; cut to `size` bytes. */
void api_store_name(const char *location, char *to, size_t size);
