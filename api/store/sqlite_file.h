/* Files of SQLite: which ones are a store, and how a store is opened without harm to others. */
#ifndef KLDIV_API_STORE_SQLITE_FILE_H
#define KLDIV_API_STORE_SQLITE_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

/* True if the file is a store and can be written, or was absent or empty and is a store now. Otherwise
 * `reason` is a sentence; nothing is changed, and no file is made beside it. *has_log tells whether
 * SQLite's log with changes is beside it. */
bool api_sqlite_prepare(const char *path, bool *has_log, char *reason, size_t size);

/* See api_store_has_place. */
bool api_sqlite_has_place(const char *path);

/* Opens a file, or memory if the path is empty: locks it, looks for damage, and sets how it is written.
 * Leaves a store as it was. *is_empty becomes true if it has no table. False with a sentence in
 * `reason`; close *sqlite also then. */
bool api_sqlite_open(const char *path, sqlite3 **sqlite, bool *is_empty, char *reason, size_t size);

#endif
