#include "api/store/store.h"

#include "api/memory/buffer.h"
#include "api/store/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct api_engine *const engines[] = {&api_sqlite, &api_postgresql};
#define N_ENGINES (sizeof engines / sizeof *engines)

struct api_store {
    struct api_database *database;
    bool is_open; /* its schema is up to date */
    bool has_written;
};

/* Engine of a location; *path becomes what the engine opens. */
static const struct api_engine *find_engine(const char *location, const char **path)
{
    for (size_t i = 0; i < N_ENGINES; i++) {
        size_t size = strlen(engines[i]->prefix);
        bool is_alias = engines[i]->alias && strcmp(location, engines[i]->alias) == 0;
        *path = is_alias ? "" : location + size;
        if (is_alias || (strncmp(location, engines[i]->prefix, size) == 0 && location[size]))
            return engines[i];
    }
    return NULL;
}

bool api_store_is_location(const char *location)
{
    const char *path;
    return find_engine(location, &path) != NULL;
}

/* ---- Schema */

/* Runs a migration with the engine's words in it. */
static bool migrate(struct api_database *database, const char *migration)
{
    static const char mark[] = "{clustered}";
    struct api_buffer text = {0};
    for (const char *next; (next = strstr(migration, mark)); migration = next + sizeof mark - 1) {
        api_append(&text, migration, (size_t)(next - migration));
        api_append_text(&text, database->engine->clustered);
    }
    api_append(&text, migration, strlen(migration) + 1);
    bool good = text.failed ? api_database_fail(database, "no memory is left")
                            : database->engine->script(database, text.data);
    api_buffer_free(&text);
    return good;
}

static int64_t newest_version(void)
{
    int64_t newest = 0;
    while (api_migrations[newest])
        newest++;
    return newest;
}

bool api_store_knows(struct api_store *store, int64_t version)
{
    return version <= newest_version() ||
           api_database_fail(store->database,
                             "it was written by a newer version of kldiv (schema %lld, this one "
                             "knows %lld)",
                             (long long)version, (long long)newest_version());
}

/* Brings the schema up to date, in one transaction. A database without one has version 0. */
static bool update_schema(struct api_store *store)
{
    struct api_database *database = store->database;
    int64_t version = 0, newest = newest_version();
    enum api_schema found = API_SCHEMA_NONE;
    if (!database->engine->script(database, database->engine->transaction) ||
        !database->engine->find_schema(database, &found) ||
        (found == API_SCHEMA_FORMER &&
         !database->engine->script(database, database->engine->adopt)) ||
        (found != API_SCHEMA_NONE &&
         !api_store_run(store, API_SQL_SCHEMA, NULL,
                        &(struct api_rows){api_datum_read_integer, &version})))
        return false;
    if (!api_store_knows(store, version))
        return false;
    database->is_accepted = true;
    for (int64_t next = version; next < newest; next++)
        if (!migrate(database, api_migrations[next]))
            return false;
    return (version == newest || api_store_run(store, API_SQL_SCHEMA_SET,
                                               (struct api_datum[]){API_INTEGER(newest)}, NULL)) &&
           api_store_commit(store);
}

/* Makes sure of a connection and of a schema that is up to date. */
static bool prepare(struct api_store *store)
{
    struct api_database *database = store->database;
    database->is_away = false;
    if (database->engine->reach && !database->engine->reach(database))
        return false;
    if (!store->is_open)
        store->is_open = update_schema(store);
    if (!store->is_open)
        api_store_rollback(store);
    return store->is_open;
}

/* ---- The store */

struct api_store *api_store_open(const char *location, char *reason, size_t size)
{
    const char *path = "";
    const struct api_engine *engine = find_engine(location, &path);
    struct api_store *store = calloc(1, sizeof *store);
    if (!engine || !store) {
        snprintf(reason, size, "%s",
                 engine ? "no memory is left"
                        : "it must be memory, sqlite:PATH or postgresql://HOST/DATABASE");
        free(store);
        return NULL;
    }
    store->database = engine->open(path, reason, size);
    if (store->database)
        store->database->engine = engine;
    if (store->database && (prepare(store) || store->database->is_away))
        return store;
    if (store->database)
        snprintf(reason, size, "%s", store->database->reason);
    api_store_close(store);
    return NULL;
}

bool api_store_has_place(const char *location)
{
    const char *path = "";
    const struct api_engine *engine = find_engine(location, &path);
    return !engine || !engine->has_place || !*path || engine->has_place(path);
}

void api_store_close(struct api_store *store)
{
    if (store && store->database)
        store->database->engine->close(store->database);
    free(store);
}

const char *api_store_folder(const struct api_store *store) { return store->database->folder; }

const char *const *api_store_files(const struct api_store *store)
{
    return (const char *const *)store->database->files;
}

bool api_store_run(struct api_store *store, enum api_statement statement,
                   const struct api_datum *parameters, const struct api_rows *rows)
{
    static const char reads[] = "SELECT";
    store->has_written |= strncmp(api_sql[statement], reads, sizeof reads - 1) != 0;
    return store->database->engine->run(store->database, statement, parameters, rows) &&
           !store->database->out_of_memory;
}

bool api_store_is_in_place(struct api_store *store)
{
    const struct api_engine *engine = store->database->engine;
    return !engine->is_in_place || engine->is_in_place(store->database);
}

bool api_store_size(struct api_store *store, int64_t *bytes)
{
    return store->database->engine->size(store->database, bytes);
}

bool api_store_shrink(struct api_store *store)
{
    const struct api_engine *engine = store->database->engine;
    return store->is_open && engine->shrink && engine->shrink(store->database);
}

bool api_store_begin(struct api_store *store, bool is_concurrent)
{
    struct api_database *database = store->database;
    database->out_of_memory = database->is_lost = database->is_uncertain = false;
    const struct api_engine *engine = database->engine;
    bool good = prepare(store) &&
                engine->script(database, is_concurrent ? engine->concurrent : engine->transaction);
    store->has_written = false;
    return good;
}

bool api_store_commit(struct api_store *store)
{
    struct api_database *database = store->database;
    bool good = database->engine->commit(database);
    database->is_new &= !good;
    return good;
}

void api_store_rollback(struct api_store *store)
{
    store->database->engine->rollback(store->database);
}

const char *api_store_reason(const struct api_store *store) { return store->database->reason; }

bool api_store_is_in_memory(const struct api_store *store)
{
    return !api_store_folder(store) && !api_store_files(store);
}

bool api_store_is_shared(const struct api_store *store)
{
    return store->database->engine->concurrent;
}

bool api_store_is_open(const struct api_store *store) { return store->is_open; }

bool api_store_is_lost(const struct api_store *store) { return store->database->is_lost; }

bool api_store_is_uncertain(const struct api_store *store) { return store->database->is_uncertain; }

bool api_store_is_new(const struct api_store *store) { return store->database->is_new; }

bool api_store_has_written(const struct api_store *store) { return store->has_written; }

bool api_store_is_out_of_memory(const struct api_store *store)
{
    return store->database->out_of_memory;
}

void api_store_run_out_of_memory(struct api_store *store)
{
    store->database->out_of_memory = true;
    (void)api_database_fail(store->database, "no memory is left");
}
