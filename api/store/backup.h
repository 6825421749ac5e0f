/* Copies of a store in a file of SQLite, also of one that a server has open.
 *
 * A server keeps other processes out of its file, so it makes the copy itself, by SQLite's backup through the connection
 * that writes: what is written meanwhile is copied, too. Who wants one makes the file PATH-backup-wanted, one at a time, and
 * keeps it locked by flock until it ends. The server copies to PATH-backup-unfinished, some milliseconds at a time between
 * transactions, and removes PATH-backup-wanted at the end; what it cannot copy has a sentence in PATH-backup-unfinished. Once
 * the lock is gone, it removes what is left of both. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the store at the location to a file that must not exist, and is complete and on the disk once it does. False with
 * a sentence in `reason`; then there is no such file. */
bool api_store_backup(const char *location, const char *file, int64_t *bytes, char *reason,
                      size_t size);

/* api_sqlite_copy: one that a server makes. Zeroed at first. */
struct api_sqlite_copy {
    int wanted; /* descriptor of PATH-backup-wanted, also once it is removed; 0: none */
    sqlite3 *to;
    sqlite3_backup *backup;
};

/* Goes on with the copy of the store at `path` that is wanted, if one is, between transactions; true if there is more to
 * do. */
bool api_sqlite_copy_step(struct api_sqlite_copy *copy, sqlite3 *from, const char *path);

/* Gives a copy up, before `from` is closed. */
void api_sqlite_copy_end(struct api_sqlite_copy *copy, const char *path);

/* Removes a copy that nobody wants any more, at the start. */
void api_sqlite_copy_clear(const char *path);
