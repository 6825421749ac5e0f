/* api_store: the database of the monitors, by SQL that its engines share. One thread at a time uses a
 * store. A new engine is a file with one struct api_engine, and a row in store.c. */
#pragma once

#include "api/store/sql.h"

#include <stdbool.h>

struct api_store;

/* Opens the store that --store names: memory, sqlite:PATH, or a URI of libpq, postgresql://HOST/DATABASE. NULL with a
 * sentence in `reason` if it cannot be opened, is in use, or is not a store of kldiv: nothing has changed then.
 *
 * Brings the schema of an older version up to date, if its user may; uses a newer schema that says that this version
 * may. A PostgreSQL that cannot be reached is opened by the first transaction that reaches it. */
struct api_store *api_store_open(const char *location, char *reason, size_t size);

/* False if the file does not exist and cannot be made: its folder is absent, is read-only, or refuses this user. True
 * if anything is there, whatever it is. */
bool api_store_has_place(const char *location);

/* Ends what is under way and closes; NULL is fine. */
void api_store_close(struct api_store *store);

/* True if this process writes the store in a file. */
bool api_store_is_in_file(const struct api_store *store);

/* True if other servers may use the store at the same time. Exclusive transactions of all servers go on one at a
 * time, and each sees what those before it have stored. */
bool api_store_is_shared(const struct api_store *store);

/* True if it is in the memory of this process. */
bool api_store_is_in_memory(const struct api_store *store);

/* True if it was left with a log, as by a process that was killed. */
bool api_store_had_log(const struct api_store *store);

/* True once the store was found and its schema is up to date. */
bool api_store_is_open(const struct api_store *store);

/* If a transaction finds a schema that this version may not use, it fails, with the reason: another server may have
 * changed the schema since the store was opened. `oldest` is the oldest version whose servers may use the schema, 0
 * if none is stored. The next transaction opens the store again. */
bool api_store_knows(struct api_store *store, int64_t version, int64_t oldest);

/* api_migrated: a migration that was made. `what` lives as long as the process. */
struct api_migrated {
    int64_t from, to;
    const char *what;
    double seconds;
};

/* Calls `report` for migrations: for those made so far at once, for later ones from the thread that uses the store. A
 * new store is reported as one migration; memory is not. */
void api_store_report_migrations(struct api_store *store,
                                 void (*report)(const struct api_migrated *migrated));

/* Version of the schema that was found last, 0 if none was; *known is the newest that this program knows. */
int64_t api_store_schema(const struct api_store *store, int64_t *known);

/* True if the name is of a store, whether or not it can be opened. */
bool api_store_is_location(const char *location);

/* Run a statement, with as many parameters as it has. False if it failed: api_store_reason says why, and the
 * transaction must end. api_store_read: gives its rows to `row`, as to api_store_count_row. api_store_read_all: runs statements
 * one after another, for one wait. api_store_number: *number becomes the only value of its
 * last row, and stays as it is without one. */
bool api_store_run(struct api_store *store, enum api_statement statement,
                   const struct api_datum *parameters);
bool api_store_read(struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters, api_row_reader *row, void *context);
bool api_store_read_all(struct api_store *store, const struct api_call *calls, size_t n);
void api_store_count_row(void *context, const struct api_datum *values); /* counts in a size_t */
bool api_store_number(struct api_store *store, enum api_statement statement,
                      const struct api_datum *parameters, int64_t *number);

/* Of the last transaction, also while it goes on. */
const struct api_store_outcome *api_store_last(const struct api_store *store);

/* A function of rows that runs out of memory says so. */
void api_store_run_out_of_memory(struct api_store *store);

/* False once the files that were opened are removed or replaced: nothing written to them would be found again. */
bool api_store_is_in_place(struct api_store *store);

/* Bytes that the store takes, without those that are free; as they were some seconds ago at most. In a
 * transaction. */
bool api_store_size(struct api_store *store, int64_t *bytes);

/* Gives some of what is free back to the disk, between transactions; true if there is more. */
bool api_store_shrink(struct api_store *store);

/* Overwrites what a log beside the database has of deleted rows, between transactions. False also while a backup reads it. */
bool api_store_empty_log(struct api_store *store);

/* Begins a transaction. With `is_beside`, others of the same kind on other servers go on at the same time: it may change what it has
 * locked, by API_SQL_MONITOR_LOCKED or api_store_lock, each kind in order of the numbers, and add rows that belong to that. */
bool api_store_begin(struct api_store *store, bool is_beside);
bool api_store_lock(struct api_store *store, const int64_t *numbers, size_t n);
bool api_store_commit(struct api_store *store);
void api_store_rollback(struct api_store *store);
const char *api_store_reason(const struct api_store *store);

/* Seconds for which the database has not answered what it was asked last; 0 if it has. Any thread may ask. */
double api_store_silence(const struct api_store *store);
