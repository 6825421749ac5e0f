#include "api/store/store.h"

#include "api/memory/buffer.h"
#include "api/store/engine.h"
#include "api/store/former_counts.h"
#include "api/text/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct api_engine *const engines[] = {&api_sqlite, &api_postgresql};
#define N_ENGINES (sizeof engines / sizeof *engines)

struct api_store {
    struct api_database *database;
    bool is_open; /* its schema is up to date */
    atomic_llong
        asked; /* when the database was asked, in microseconds of api_seconds; 0 once it has answered */
    int n_asked;     /* steps that ask it, one in another */
    int64_t version; /* of the schema that was found last, 0 if none was */
    void (*report)(const struct api_migrated *migrated); /* NULL: nobody listens yet */
    struct api_buffer migrated;                          /* those that were not told */
};

/* Notes that the database is asked, and that it has answered: what is left of an outer step asks from then on. */
static void note_asked(struct api_store *store)
{
    store->n_asked++;
    atomic_store(&store->asked, (long long)(api_seconds() * 1e6));
}

static bool note_answered(struct api_store *store, bool good)
{
    bool asks = --store->n_asked > 0;
    atomic_store(&store->asked, asks ? (long long)(api_seconds() * 1e6) : 0);
    return good;
}

/* A call by which the database is asked. */
#define ASK(store, call) (note_asked(store), note_answered(store, call))

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

static int64_t newest_version(void)
{
    int64_t newest = 0;
    while (api_migrations[newest].text)
        newest++;
    return newest;
}

/* Runs a migration with the engine's words in it. */
static bool run_migration(struct api_database *database, const char *migration)
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

/* schema: what a store says of its own. */
struct schema {
    int64_t version, oldest;
};

static void read_schema(void *context, const struct api_datum *values)
{
    *(struct schema *)context = (struct schema){values[0].integer, values[1].integer};
}

/* Begins a transaction and reads the schema, whose version is 0 where there is none. */
static bool find_schema(struct api_store *store, struct schema *schema)
{
    struct api_database *database = store->database;
    enum api_schema found = API_SCHEMA_NONE;
    *schema = (struct schema){0};
    return database->engine->script(database, database->engine->migration) &&
           database->engine->find_schema(database, &found) &&
           (found != API_SCHEMA_FORMER ||
            database->engine->script(database, database->engine->adopt)) &&
           (found == API_SCHEMA_NONE ||
            api_store_read(store, API_SQL_SCHEMA, NULL, read_schema, schema));
}

/* Fails if the schema is newer than those known, and not made for them as well. */
static bool may_use(struct api_store *store, const struct schema *schema)
{
    int64_t newest = newest_version();
    store->version = schema->version;
    return schema->version <= newest || (schema->oldest > 0 && schema->oldest <= newest) ||
           api_database_fail(
               store->database,
               "it was written by a newer version of kldiv: its schema %lld takes one that knows "
               "%lld, and this one knows %lld; start a newer version, or restore a backup",
               (long long)schema->version,
               (long long)(schema->oldest > 0 ? schema->oldest : schema->version),
               (long long)newest);
}

bool api_store_knows(struct api_store *store, int64_t version, int64_t oldest)
{
    struct api_database *database = store->database;
    bool good = may_use(store, &(struct schema){version, oldest}) &&
                (version >= newest_version() ||
                 api_database_fail(database, "its schema is %lld again, and will be migrated",
                                   (long long)version));
    store->is_open &= good;
    database->last.is_lost |= !good;
    return good;
}

static bool may_migrate(struct api_database *database, int64_t version)
{
    bool may = true;
    if (database->engine->may_migrate && !database->engine->may_migrate(database, &may))
        return false;
    return may || api_database_fail(
                      database,
                      "%s %lld, this version of kldiv needs %lld, and this user may not change it: "
                      "the owner of the tables has to run kldivd --migrate --store LOCATION",
                      version ? "its schema is" : "it has no tables: its schema is",
                      (long long)version, (long long)newest_version());
}

/* Moves data to a version where SQL does not do. */
static bool move_data(struct api_database *database, int64_t version)
{
    enum { COUNTS_IN_ROWS = 12 };
    return version != COUNTS_IN_ROWS || api_move_former_counts(database);
}

/* Makes a version from the one before. Reads its number back, so that a failure, and the time, are of this step. */
static bool make_version(struct api_store *store, int64_t version)
{
    const struct api_migration *migration = &api_migrations[version - 1];
    struct api_migrated migrated = {version - 1, version, migration->what, api_seconds()};
    struct schema made;
    if (!run_migration(store->database, migration->text) || !move_data(store->database, version) ||
        (migration->end && !run_migration(store->database, migration->end)) ||
        !api_store_run(store, API_SQL_SCHEMA_SET, API_ROW(version, migration->oldest)) ||
        !api_store_read(store, API_SQL_SCHEMA, NULL, read_schema, &made))
        return false;
    migrated.seconds = api_seconds() - migrated.seconds;
    api_append(&store->migrated, &migrated, sizeof migrated);
    return true;
}

/* Reports the migrations that were made, once there is a listener. */
static void report_migrations(struct api_store *store)
{
    const struct api_migrated *migrated = (const void *)store->migrated.data;
    if (!store->report)
        return;
    for (size_t i = 0; i < store->migrated.size / sizeof *migrated; i++)
        store->report(&migrated[i]);
    api_buffer_free(&store->migrated);
}

/* Brings the schema up to date, in one transaction. */
static bool migrate(struct api_store *store, int64_t version)
{
    struct api_database *database = store->database;
    int64_t newest = newest_version();
    double start = api_seconds();
    bool good = may_migrate(database, version);
    store->migrated.size = 0;
    database->is_migrating = true;
    for (int64_t next = version + 1; good && next <= newest; next++)
        good = make_version(store, next);
    good = good && api_store_commit(store);
    database->is_migrating = false;
    store->migrated.size = good ? store->migrated.size : 0;
    if (!good || store->migrated.failed)
        return good;
    if (version == 0) {
        struct api_migrated made = {0, newest, "a new store", api_seconds() - start};
        store->migrated.size = 0;
        if (!api_store_is_in_memory(store))
            api_append(&store->migrated, &made, sizeof made);
    }
    store->version = newest;
    report_migrations(store);
    return true;
}

static bool update_schema(struct api_store *store)
{
    struct schema schema;
    bool is_new = store->database->last.is_new;
    if (!find_schema(store, &schema) || !may_use(store, &schema))
        return false;
    store->database->is_accepted = true;
    bool good = schema.version < newest_version() ? migrate(store, schema.version)
                                                  : api_store_commit(store);
    store->database->last.is_new = is_new; /* for who reads it, which a commit ends */
    return good;
}

/* Makes sure of a connection and of a schema that is up to date. A shared store that is lost by then, or that another
 * server changes meanwhile, may be found later. */
static bool prepare(struct api_store *store)
{
    struct api_database *database = store->database;
    database->is_unreachable = false;
    if (database->engine->reach && !database->engine->reach(database))
        return false;
    if (!store->is_open)
        store->is_open = update_schema(store);
    if (!store->is_open) {
        database->is_unreachable = api_store_is_shared(store) && database->last.is_lost;
        database->last.is_lost = true;
        api_store_rollback(store);
    }
    return store->is_open;
}

/* ---- The store */

double api_store_silence(const struct api_store *store)
{
    long long asked = atomic_load(&store->asked);
    return asked ? api_seconds() - (double)asked / 1e6 : 0;
}

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
    if (store->database && (prepare(store) || store->database->is_unreachable))
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
    if (store)
        api_buffer_free(&store->migrated);
    free(store);
}

bool api_store_is_in_file(const struct api_store *store) { return store->database->is_in_file; }

bool api_store_read(struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters, api_row_reader *row, void *context)
{
    const char *text = api_sql[statement];
    const struct api_rows rows = {row, context};
    bool reads = strncmp(text, "SELECT ", 7) == 0 || strncmp(text, "WITH ", 5) == 0;
    store->database->last.has_written |= !reads;
    return ASK(store, store->database->engine->run(store->database, statement, parameters,
                                                   row ? &rows : NULL)) &&
           !store->database->last.out_of_memory;
}

bool api_store_read_all(struct api_store *store, const struct api_call *calls, size_t n)
{
    const struct api_engine *engine = store->database->engine;
    bool good = true;
    if (engine->run_all)
        return ASK(store, engine->run_all(store->database, calls, n)) &&
               !store->database->last.out_of_memory;
    for (size_t i = 0; good && i < n; i++)
        good = api_store_read(store, calls[i].statement, calls[i].parameters, calls[i].rows.row,
                              calls[i].rows.context);
    return good;
}

bool api_store_lock(struct api_store *store, const int64_t *numbers, size_t n)
{
    const struct api_engine *engine = store->database->engine;
    return !engine->lock || n == 0 || ASK(store, engine->lock(store->database, numbers, n));
}

void api_store_count_row(void *context, const struct api_datum *values)
{
    (void)values;
    ++*(size_t *)context;
}

bool api_store_run(struct api_store *store, enum api_statement statement,
                   const struct api_datum *parameters)
{
    return api_store_read(store, statement, parameters, NULL, NULL);
}

bool api_store_number(struct api_store *store, enum api_statement statement,
                      const struct api_datum *parameters, int64_t *number)
{
    return api_store_read(store, statement, parameters, api_datum_read_integer, number);
}

bool api_store_is_in_place(struct api_store *store)
{
    const struct api_engine *engine = store->database->engine;
    return !engine->is_in_place || engine->is_in_place(store->database);
}

bool api_store_size(struct api_store *store, int64_t *bytes)
{
    return ASK(store, store->database->engine->size(store->database, bytes));
}

bool api_store_shrink(struct api_store *store)
{
    const struct api_engine *engine = store->database->engine;
    return store->is_open && engine->shrink && ASK(store, engine->shrink(store->database));
}

bool api_store_empty_log(struct api_store *store)
{
    const struct api_engine *engine = store->database->engine;
    return store->is_open && (!engine->empty_log || ASK(store, engine->empty_log(store->database)));
}

bool api_store_begin(struct api_store *store, bool is_beside)
{
    struct api_database *database = store->database;
    database->last = (struct api_store_outcome){.is_new = database->last.is_new};
    const struct api_engine *engine = database->engine;
    bool good =
        ASK(store, prepare(store) &&
                       engine->script(database, is_beside ? engine->beside : engine->transaction));
    database->last.has_written = false;
    return good;
}

bool api_store_commit(struct api_store *store)
{
    struct api_database *database = store->database;
    bool good = ASK(store, database->engine->commit(database));
    database->last.is_new &= !good;
    return good;
}

void api_store_rollback(struct api_store *store)
{
    note_asked(store);
    store->database->engine->rollback(store->database);
    note_answered(store, true);
}

const char *api_store_reason(const struct api_store *store) { return store->database->reason; }

bool api_store_had_log(const struct api_store *store) { return store->database->had_log; }

bool api_store_is_in_memory(const struct api_store *store)
{
    return !api_store_is_in_file(store) && !api_store_is_shared(store);
}

bool api_store_is_shared(const struct api_store *store)
{
    return store->database->engine->is_shared;
}

bool api_store_is_open(const struct api_store *store) { return store->is_open; }

void api_store_report_migrations(struct api_store *store,
                                 void (*report)(const struct api_migrated *migrated))
{
    store->report = report;
    report_migrations(store);
}

int64_t api_store_schema(const struct api_store *store, int64_t *known)
{
    *known = newest_version();
    return store->version;
}

const struct api_store_outcome *api_store_last(const struct api_store *store)
{
    return &store->database->last;
}

void api_store_run_out_of_memory(struct api_store *store)
{
    store->database->last.out_of_memory = true;
    (void)api_database_fail(store->database, "no memory is left");
}
