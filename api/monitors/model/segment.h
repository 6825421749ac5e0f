/* Names of segments: orders[country=DE] is the group of those rows of orders whose country is DE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the name of the group whose segment a group is; 0 if its name is not that of one. */
size_t api_segment_parent(const char *group);

/* Writes how the names of segments of a group begin, by any column if `by` is NULL; gives the number of its characters. */
size_t api_segment_prefix(const char *group, const char *by, char *prefix, size_t size);

/* Writes the name; false if it has `size` bytes or more, its NUL among them. */
bool api_segment_name(const char *group, const char *by, const char *value, char *name,
                      size_t size);
