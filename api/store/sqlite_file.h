/* Files of SQLite: which ones are a store, and how a store is opened without harm to others. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* api_sqlite_files: which files are open. Zeroed for memory. */
struct api_sqlite_files {
    char *path, *log_path;
    struct api_sqlite_file {
        bool is_there;
        dev_t device;
        ino_t number;
    } file, log;
};

/* Notes the files of a path that was opened. False if memory is exhausted, or they are gone. */
bool api_sqlite_note_files(const char *path, struct api_sqlite_files *files);
bool api_sqlite_files_are_in_place(const struct api_sqlite_files *files);
void api_sqlite_free_files(struct api_sqlite_files *files);

/* Reads the number that a query gives. */
bool api_sqlite_number(sqlite3 *sqlite, const char *query, long long *number);

/* Gives some pages that are free back to the disk, if many are; true if there are more. */
bool api_sqlite_shrink(sqlite3 *sqlite);

/* Moves the log into the file, and cuts it to nothing. */
bool api_sqlite_empty_log(sqlite3 *sqlite);
