/* SQLite: a file, or memory. */
#include "api/store/engine.h"
#include "api/store/sqlite_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct connection {
    struct api_database base;
    sqlite3 *sqlite;
    sqlite3_stmt *statements[API_STATEMENTS];
    sqlite3_stmt *rollback; /* prepared before it is needed: it may be for want of memory */
    sqlite3_stmt *used;     /* pages that are not free, and the size of one */
    struct api_sqlite_file file;
    bool is_empty; /* it has no table */
    sqlite3_int64 changes;
    unsigned idle_calls; /* of shrink since `changes` last differed, or the cache was freed */
};

static struct connection *connection_of(struct api_database *database)
{
    return (struct connection *)database;
}

static bool fail(struct connection *c)
{
    c->base.last.out_of_memory |= sqlite3_errcode(c->sqlite) == SQLITE_NOMEM ||
                                  sqlite3_errcode(c->sqlite) == SQLITE_IOERR_NOMEM;
    return api_database_fail(&c->base, "%s", sqlite3_errmsg(c->sqlite));
}

/* Closing moves the log into the file, unless that is not to change. A log that was not there before
 * is empty then, and goes. */
static void close_connection(struct api_database *database)
{
    struct connection *c = connection_of(database);
    for (size_t i = 0; i < API_STATEMENTS; i++)
        sqlite3_finalize(c->statements[i]);
    sqlite3_finalize(c->rollback);
    sqlite3_finalize(c->used);
    if (c->sqlite && !database->is_accepted && database->had_log)
        sqlite3_db_config(c->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(c->sqlite);
    api_sqlite_close_file(&c->file);
    free(c);
}

static bool script(struct api_database *database, const char *text)
{
    struct connection *c = connection_of(database);
    return sqlite3_exec(c->sqlite, text, NULL, NULL, NULL) == SQLITE_OK || fail(c);
}

/* ---- Opening */

/* Prepares a statement, unless it is prepared. */
static bool prepare(struct connection *c, const char *text, sqlite3_stmt **statement)
{
    return *statement || sqlite3_prepare_v3(c->sqlite, text, -1, SQLITE_PREPARE_PERSISTENT,
                                            statement, NULL) == SQLITE_OK;
}

static struct api_database *open_connection(const char *path, char *reason, size_t size)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* a lock and a sum for each allocation */
    struct connection *c = calloc(1, sizeof *c);
    snprintf(reason, size, "no memory is left");
    if (!c)
        return NULL;
    bool good =
        api_sqlite_open(path, &c->file, &c->sqlite, &c->base.had_log, &c->is_empty, reason, size);
    if (good && !prepare(c, "ROLLBACK", &c->rollback)) {
        snprintf(reason, size, "%s", sqlite3_errmsg(c->sqlite));
        good = false;
    }
    c->base.is_in_file = c->file.path != NULL;
    if (good)
        return &c->base;
    close_connection(&c->base);
    return NULL;
}

/* ---- Statements */

static bool bind(sqlite3_stmt *statement, int i, const struct api_datum *datum)
{
    switch (datum->kind) {
    case API_SQL_INTEGER:
        return sqlite3_bind_int64(statement, i, datum->integer) == SQLITE_OK;
    case API_SQL_REAL:
        return sqlite3_bind_double(statement, i, datum->real) == SQLITE_OK;
    case API_SQL_TEXT:
        return sqlite3_bind_text64(statement, i, datum->text, datum->size, SQLITE_STATIC,
                                   SQLITE_UTF8) == SQLITE_OK;
    case API_SQL_BYTES:
        return sqlite3_bind_blob64(statement, i, datum->text, datum->size, SQLITE_STATIC) ==
               SQLITE_OK;
    default:
        return sqlite3_bind_null(statement, i) == SQLITE_OK;
    }
}

/* The functions of values cost half of those of columns, which look for failures each time. A connection without a mutex
 * may use them. */
static struct api_datum column(sqlite3_stmt *statement, int i)
{
    sqlite3_value *value = sqlite3_column_value(statement, i);
    struct api_datum datum = {.kind = API_SQL_NULL, .text = "", .size = 0};
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        datum.kind = API_SQL_INTEGER;
        datum.integer = sqlite3_value_int64(value);
        break;
    case SQLITE_FLOAT:
        datum.kind = API_SQL_REAL;
        datum.real = sqlite3_value_double(value);
        break;
    case SQLITE_TEXT:
        datum.kind = API_SQL_TEXT;
        datum.text = (const char *)sqlite3_value_text(value);
        datum.size = (size_t)sqlite3_value_bytes(value);
        break;
    case SQLITE_BLOB:
        datum.kind = API_SQL_BYTES;
        datum.text = sqlite3_value_blob(value);
        datum.size = (size_t)sqlite3_value_bytes(value);
        break;
    default:
        break;
    }
    return datum;
}

static void give_row(sqlite3_stmt *statement, const struct api_rows *rows)
{
    struct api_datum values[API_MAX_COLUMNS];
    int n = sqlite3_column_count(statement);
    for (int i = 0; i < n && i < API_MAX_COLUMNS; i++)
        values[i] = column(statement, i);
    rows->row(rows->context, values);
}

static bool run(struct api_database *database, enum api_statement number,
                const struct api_datum *parameters, const struct api_rows *rows)
{
    struct connection *c = connection_of(database);
    if (!prepare(c, api_sql[number], &c->statements[number]))
        return fail(c);
    sqlite3_stmt *statement = c->statements[number];
    int n = sqlite3_bind_parameter_count(statement), result = SQLITE_OK;
    bool good = true;
    for (int i = 0; good && i < n; i++)
        good = bind(statement, i + 1, &parameters[i]);
    while (good && (result = sqlite3_step(statement)) == SQLITE_ROW)
        if (rows)
            give_row(statement, rows);
    good = good && result == SQLITE_DONE;
    if (!good)
        fail(c);
    sqlite3_reset(statement);
    return good;
}

static bool find_schema(struct api_database *database, enum api_schema *found)
{
    struct connection *c = connection_of(database);
    long long n = 0;
    bool good = api_sqlite_number(
        c->sqlite, "SELECT count(*) FROM sqlite_schema WHERE name = 'kldiv_meta'", &n);
    *found = n > 0 ? API_SCHEMA_OURS : c->is_empty ? API_SCHEMA_NONE : API_SCHEMA_FORMER;
    return good || fail(c);
}

/* ---- The file */

static bool is_in_place(struct api_database *database)
{
    return api_sqlite_is_in_place(&connection_of(database)->file);
}

/* A commit while the files were away counts if they come back, so the store is read again. */
static bool fail_replaced(struct connection *c)
{
    c->base.last.is_new = c->base.last.is_lost = true;
    return api_database_fail(&c->base, "%.200s was removed or replaced", c->file.path);
}

static void rollback(struct api_database *database)
{
    struct connection *c = connection_of(database);
    if (sqlite3_get_autocommit(c->sqlite))
        return;
    sqlite3_step(c->rollback);
    sqlite3_reset(c->rollback);
}

/* Also ends a transaction whose rollback failed for want of memory. */
static bool reach(struct api_database *database)
{
    rollback(database);
    return is_in_place(database) || fail_replaced(connection_of(database));
}

/* A commit to files that are removed or replaced stores nothing. */
static bool commit(struct api_database *database)
{
    if (!script(database, "COMMIT"))
        return false;
    database->last.is_uncertain = !is_in_place(database);
    return !database->last.is_uncertain || fail_replaced(connection_of(database));
}

static bool size_of(struct api_database *database, int64_t *bytes)
{
    static const char used[] = "SELECT (page_count - freelist_count) * page_size FROM"
                               " pragma_page_count, pragma_freelist_count, pragma_page_size";
    struct connection *c = connection_of(database);
    if (!prepare(c, used, &c->used))
        return fail(c);
    bool good = sqlite3_step(c->used) == SQLITE_ROW;
    *bytes = good ? sqlite3_column_int64(c->used, 0) : 0;
    if (!good)
        fail(c);
    sqlite3_reset(c->used);
    return good;
}

/* Frees the cache of pages each time that nothing has changed in so many calls of shrink, which are some half a second
 * apart: reads fill it again from the system's own cache. */
static void free_idle_cache(struct connection *c)
{
    enum { IDLE_CALLS = 20 };
    sqlite3_int64 changes = sqlite3_total_changes64(c->sqlite);
    c->idle_calls = changes == c->changes ? c->idle_calls + 1 : 0;
    c->changes = changes;
    if (c->idle_calls < IDLE_CALLS)
        return;
    c->idle_calls = 0;
    sqlite3_db_release_memory(c->sqlite);
}

static bool shrink(struct api_database *database)
{
    struct connection *c = connection_of(database);
    free_idle_cache(c);
    return is_in_place(database) && api_sqlite_shrink(c->sqlite);
}

static bool empty_log(struct api_database *database)
{
    return is_in_place(database) && api_sqlite_empty_log(connection_of(database)->sqlite);
}

const struct api_engine api_sqlite = {.prefix = "sqlite:",
                                      .alias = "memory",
                                      .clustered = " WITHOUT ROWID",
                                      .transaction = "BEGIN IMMEDIATE",
                                      .beside = "BEGIN IMMEDIATE",
                                      .migration = "BEGIN IMMEDIATE",
                                      .open = open_connection,
                                      .close = close_connection,
                                      .find_schema = find_schema,
                                      .adopt = API_SQL_ADOPT,
                                      .has_place = api_sqlite_has_place,
                                      .script = script,
                                      .run = run,
                                      .commit = commit,
                                      .reach = reach,
                                      .is_in_place = is_in_place,
                                      .size = size_of,
                                      .shrink = shrink,
                                      .empty_log = empty_log,
                                      .rollback = rollback};
