/* api_engine: what a database does for a store. */
#pragma once

#include "api/store/sql.h"

#include <stdbool.h>
#include <stdio.h>

/* api_database: a connection; the engine's own structure begins with it. */
struct api_database {
    const struct api_engine *engine; /* set by the store */
    char reason[256];                /* of the last failure, as a part of a sentence */
    struct api_store_outcome last;
    bool is_unreachable; /* it could not be reached, which may pass */
    bool is_accepted;    /* its schema is known; until then, no row may change */
    bool had_log;        /* before it was opened: the process that had it open was killed */
    bool is_migrating;   /* a statement may take as long as it needs */
    bool is_in_file;     /* that this process writes */
};

/* API_MAX_COLUMNS: the most columns that a statement of sql.h gives. */
enum { API_MAX_COLUMNS = 46 };

/* api_schema: what a database holds. API_SCHEMA_FORMER: tables without the prefix of ours. */
enum api_schema { API_SCHEMA_NONE, API_SCHEMA_FORMER, API_SCHEMA_OURS };

struct api_engine {
    const char *prefix;    /* of locations; a location equal to `alias` has this engine, too */
    const char *alias;     /* or NULL */
    const char *clustered; /* words at the end of a table that is stored by its primary key */

    /* Statements that begin a transaction, of which one at a time goes on; one that others `beside` it may go on with; one
     * that takes however long it needs. */
    const char *transaction, *beside, *migration;
    bool is_shared; /* other servers may use the database */

    /* Opens what follows the prefix, "" for the alias. NULL with the reason if it cannot be. Those that
     * are reached by `reach` check the form of the path alone. */
    struct api_database *(*open)(const char *path, char *reason, size_t size);
    void (*close)(struct api_database *database);

    /* Makes sure that there is a connection; called before each transaction. NULL: there always is. */
    bool (*reach)(struct api_database *database);

    /* Finds out, in a transaction, whether a store was made, and if its tables are to be adopted. */
    bool (*find_schema)(struct api_database *database, enum api_schema *found);
    const char *adopt; /* statements that do so */

    /* Finds out, in a transaction, if this user may change the schema, or make it. NULL: any may. */
    bool (*may_migrate)(struct api_database *database, bool *may);

    /* See api_store_has_place; NULL for true. */
    bool (*has_place)(const char *path);

    /* Runs a text of statements without parameters or rows. A failure may be told by what runs next. */
    bool (*script)(struct api_database *database, const char *text);

    /* Runs statement number `statement`, which is prepared at its first use. */
    bool (*run)(struct api_database *database, enum api_statement statement,
                const struct api_datum *parameters, const struct api_rows *rows);

    /* Runs statements one after another, for one wait. NULL: there is no wait. */
    bool (*run_all)(struct api_database *database, const struct api_call *calls, size_t n);

    /* Waits until no other transaction has a lock of one of these numbers, and has them until the end. NULL: there is no other. */
    bool (*lock)(struct api_database *database, const int64_t *numbers, size_t n);

    bool (*commit)(struct api_database *database);

    /* True if the database is where it was opened; NULL for true. */
    bool (*is_in_place)(struct api_database *database);

    /* Bytes that it takes, free ones that it keeps left out; as they were some seconds ago at most. */
    bool (*size)(struct api_database *database, int64_t *bytes);

    /* Gives back some of what is free, outside a transaction; true if there is more. NULL: the database does so by itself. */
    bool (*shrink)(struct api_database *database);

    /* Overwrites the copies of deleted rows that a log has, outside a transaction. NULL: there is no log. */
    bool (*empty_log)(struct api_database *database);

    /* Rolls back, if a transaction is open. */
    void (*rollback)(struct api_database *database);
};

extern const struct api_engine api_sqlite, api_postgresql;

/* Sets the reason from a format of printf; false. */
#define api_database_fail(database, ...)                                                           \
    (snprintf((database)->reason, sizeof(database)->reason, __VA_ARGS__), false)
