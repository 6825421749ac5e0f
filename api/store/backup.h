/* Copies of a store in a file of SQLite, also of one that a server has open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the store at the location, as it is at one moment, to a file that must not exist, and is complete and on the disk
 * once it does. False with a sentence in `reason`; then there is no such file. */
bool api_store_backup(const char *location, const char *file, int64_t *bytes, char *reason,
                      size_t size);
