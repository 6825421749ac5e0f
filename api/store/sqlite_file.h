/* Files of SQLite: which ones are a store, and how a store is opened without harm to others. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* api_sqlite_file: a file that is open. Zeroed for memory. */
struct api_sqlite_file {
    int lock; /* keeps other servers out; closed after SQLite, whose locks end when a descriptor is closed */
    char *path, *log_path;
    struct stat status, log; /* zeros if there is none */
};

/* Opens a file, or memory if the path is empty: makes one that is absent or empty a store, locks it, looks for damage, and
 * sets how it is written. Leaves a store as it was, and what is none as it is, with no file beside it. *had_log becomes true
 * if a log with changes was beside it before, *is_empty if it has no table. False with a sentence in `reason`; close *sqlite, then the file, also then. */
bool api_sqlite_open(const char *path, struct api_sqlite_file *file, sqlite3 **sqlite,
                     bool *had_log, bool *is_empty, char *reason, size_t size);
void api_sqlite_close_file(struct api_sqlite_file *file);

/* Keeps servers from a file that is open for writing, until this descriptor is closed; false with errno if one has it open. */
bool api_sqlite_lock(int fd);

/* True if the files are where they were opened. */
bool api_sqlite_is_in_place(const struct api_sqlite_file *file);

/* See api_store_has_place. */
bool api_sqlite_has_place(const char *path);

/* Reads the number that a query gives. */
bool api_sqlite_number(sqlite3 *sqlite, const char *query, long long *number);

/* Gives some pages that are free back to the disk, if many are; true if there are more. */
bool api_sqlite_shrink(sqlite3 *sqlite);

/* Moves the log into the file, and cuts it to nothing. False also while a backup reads the log. */
bool api_sqlite_empty_log(sqlite3 *sqlite);
