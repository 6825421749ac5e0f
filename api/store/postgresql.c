/* PostgreSQL, by libpq: one connection, that a transaction takes anew if it is lost. Statements go in a
 * pipeline: those without rows are sent without a wait for the one before, and their results are read
 * with those of the next that has rows, or of the commit. After any failure the connection is dropped,
 * which rolls back; the next transaction makes another. */
#include "api/store/postgresql_connection.h"

#include "api/text/clock.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_UNREAD: statements in a pipeline whose results wait to be read, so that neither side has to wait
 * for the other to read. */
enum { MAX_PARAMETERS = 42, MAX_UNREAD = 64 };

/* LONGEST_STATEMENT: characters of a statement that locks. */
enum { LONGEST_STATEMENT = 2000 };

/* Numbers of types in the catalog, which never change. */
enum { BYTEA = 17, INT8 = 20, FLOAT8 = 701 };

static struct api_postgresql_connection *connection_of(struct api_database *database)
{
    return (struct api_postgresql_connection *)database;
}

/* ---- Results */

static struct api_datum column(const PGresult *result, int row, int i)
{
    const char *value = PQgetvalue(result, row, i);
    struct api_datum datum = {.kind = API_SQL_NULL, .text = "", .size = 0};
    uint64_t bits;
    if (PQgetisnull(result, row, i))
        return datum;
    switch (PQftype(result, i)) {
    case INT8:
    case FLOAT8:
        memcpy(&bits, value, sizeof bits);
        bits = be64toh(bits);
        datum.kind = PQftype(result, i) == INT8 ? API_SQL_INTEGER : API_SQL_REAL;
        datum.integer = (int64_t)bits;
        memcpy(&datum.real, &bits, sizeof datum.real);
        break;
    default:
        datum.kind = PQftype(result, i) == BYTEA ? API_SQL_BYTES : API_SQL_TEXT;
        datum.text = value;
        datum.size = (size_t)PQgetlength(result, row, i);
    }
    return datum;
}

static void give_rows(const PGresult *result, const struct api_rows *rows)
{
    struct api_datum values[API_MAX_COLUMNS] = {{.kind = API_SQL_NULL}};
    int n = PQnfields(result);
    for (int row = 0; row < PQntuples(result); row++) {
        for (int i = 0; i < n && i < API_MAX_COLUMNS; i++)
            values[i] = column(result, row, i);
        rows->row(rows->context, values);
    }
}

/* True for errors of a wait that was too long: lock_not_available, query_canceled. */
static bool is_of_wait(const char *state)
{
    return state && (strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0);
}

/* Keeps a failure as the reason. After an error, unlike after the end of the session, the commit is known not to be
 * done. */
static void fail(struct api_postgresql_connection *c, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    api_postgresql_fail(c, result ? PQresultErrorMessage(result) : PQerrorMessage(c->pg));
    if (severity && strcmp(severity, "ERROR") == 0) {
        c->base.last.is_lost = is_of_wait(PQresultErrorField(result, PG_DIAG_SQLSTATE));
        c->base.last.is_uncertain = false;
    }
}

/* Reads the NULL that ends the results of a statement. */
static bool read_end(struct api_postgresql_connection *c)
{
    if (!api_postgresql_wait(c))
        return false;
    PGresult *more = PQgetResult(c->pg);
    if (more)
        fail(c, more);
    PQclear(more);
    return !more;
}

/* Reads the result of one statement, or of a synchronization. */
static bool read_result(struct api_postgresql_connection *c, const struct api_rows *rows)
{
    if (!api_postgresql_wait(c))
        return false;
    PGresult *result = PQgetResult(c->pg);
    ExecStatusType status = PQresultStatus(result);
    bool good =
        status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_PIPELINE_SYNC;
    if (!good)
        fail(c, result);
    if (good && rows)
        give_rows(result, rows);
    PQclear(result);
    return good && (status == PGRES_PIPELINE_SYNC || read_end(c));
}

/* Reads unread results; the rows of the last statement go to `rows`, unless it is NULL. They are followed by a
 * synchronization: after a mere flush PostgreSQL would not see that a session is idle in its transaction. */
static bool read_results(struct api_postgresql_connection *c, const struct api_rows *rows)
{
    if (PQpipelineSync(c->pg) != 1)
        return api_postgresql_fail(c, PQerrorMessage(c->pg));
    for (; c->unread > 0; c->unread--)
        if (!read_result(c, c->unread == 1 ? rows : NULL))
            return false;
    return read_result(c, NULL);
}

/* Counts a statement that was sent. */
static bool sent(struct api_postgresql_connection *c, int good)
{
    c->unread++;
    if (good != 1)
        return api_postgresql_fail(c, PQerrorMessage(c->pg));
    return c->unread < MAX_UNREAD || read_results(c, NULL);
}

/* ---- Statements */

/* Sends a statement of a script, up to its semicolon. */
static bool send_part(struct api_postgresql_connection *c, const char *text, size_t size)
{
    char *part = strndup(text, size);
    bool good = part && sent(c, PQsendQueryParams(c->pg, part, 0, NULL, NULL, NULL, NULL, 1));
    c->base.last.out_of_memory |= !part;
    free(part);
    return good;
}

/* Statements of scripts have no semicolon in their texts. */
static bool script(struct api_database *database, const char *text)
{
    struct api_postgresql_connection *c = connection_of(database);
    c->is_busy = true;
    while (*text) {
        size_t size = strcspn(text, ";");
        if (!send_part(c, text, size))
            return false;
        text += size + (text[size] == ';');
    }
    return true;
}

/* parameters: values as libpq takes them. Numbers are decimal text, which is read as the type that the
 * statement gives the parameter; texts and bytes are as they are. */
struct parameters {
    const char *values[MAX_PARAMETERS];
    int lengths[MAX_PARAMETERS], formats[MAX_PARAMETERS], n;
    char numbers[MAX_PARAMETERS][32];
};

static void set_parameter(struct parameters *to, int i, const struct api_datum *datum)
{
    to->values[i] = to->numbers[i];
    to->formats[i] = 0;
    switch (datum->kind) {
    case API_SQL_INTEGER:
        snprintf(to->numbers[i], sizeof to->numbers[i], "%lld", (long long)datum->integer);
        break;
    case API_SQL_REAL:
        snprintf(to->numbers[i], sizeof to->numbers[i], "%.17g", datum->real);
        break;
    case API_SQL_TEXT:
    case API_SQL_BYTES:
        to->values[i] = datum->text ? datum->text : "";
        to->lengths[i] = (int)datum->size;
        to->formats[i] = 1;
        break;
    default:
        to->values[i] = NULL;
    }
}

/* Maximal number of a $parameter in a statement. */
static int count_parameters(const char *text)
{
    int max = 0;
    for (const char *p = text; (p = strchr(p, '$')); p++)
        max = atoi(p + 1) > max ? atoi(p + 1) : max;
    return max;
}

static bool send_prepared(struct api_postgresql_connection *c, enum api_statement number,
                          const char *name, const struct api_datum *data)
{
    struct parameters parameters = {.n = count_parameters(api_sql[number])};
    for (int i = 0; i < parameters.n; i++)
        set_parameter(&parameters, i, &data[i]);
    return sent(c, PQsendQueryPrepared(c->pg, name, parameters.n, parameters.values,
                                       parameters.lengths, parameters.formats, 1));
}

/* Prepares a statement at its first use, by the name that it sets. */
static bool prepare(struct api_postgresql_connection *c, enum api_statement number, char name[16])
{
    char locking[LONGEST_STATEMENT];
    const char *text = api_sql[number];
    if (!c->pg)
        return api_database_fail(&c->base, "the connection is lost");
    snprintf(name, 16, "s%d", (int)number);
    if (c->prepared[number])
        return true;
    if (number == API_SQL_MONITOR_LOCKED) {
        snprintf(locking, sizeof locking, "%s FOR UPDATE", text);
        text = locking;
    }
    c->prepared[number] = true;
    return sent(c, PQsendPrepare(c->pg, name, text, 0, NULL));
}

static bool run(struct api_database *database, enum api_statement number,
                const struct api_datum *data, const struct api_rows *rows)
{
    struct api_postgresql_connection *c = connection_of(database);
    char name[16];
    if (!prepare(c, number, name))
        return false;
    if (rows && c->unread == MAX_UNREAD - 1 && !read_results(c, NULL))
        return false;
    return send_prepared(c, number, name, data) && (!rows || read_results(c, rows));
}

/* Reads unread results, the last of which are those of calls. */
static bool read_calls(struct api_postgresql_connection *c, const struct api_call *calls, size_t n)
{
    if (PQpipelineSync(c->pg) != 1)
        return api_postgresql_fail(c, PQerrorMessage(c->pg));
    for (; c->unread > 0; c->unread--)
        if (!read_result(c, c->unread <= n ? &calls[n - c->unread].rows : NULL))
            return false;
    return read_result(c, NULL);
}

/* As many as fit into a pipeline at a time. */
static bool run_all(struct api_database *database, const struct api_call *calls, size_t n)
{
    struct api_postgresql_connection *c = connection_of(database);
    char name[16];
    for (size_t i = 0, first; i < n;) {
        if (c->unread > MAX_UNREAD / 2 && !read_results(c, NULL))
            return false;
        for (first = i; i < n && c->unread < MAX_UNREAD - 2; i++) {
            bool was_prepared = c->prepared[calls[i].statement];
            if (!was_prepared && i > first) /* its preparation would be among the calls */
                break;
            if (!prepare(c, calls[i].statement, name) ||
                !send_prepared(c, calls[i].statement, name, calls[i].parameters))
                return false;
        }
        if (!read_calls(c, calls + first, i - first))
            return false;
    }
    return true;
}

static bool lock(struct api_database *database, const int64_t *numbers, size_t n)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = run(database, API_SQL_LOCK, &API_INTEGER(numbers[i]), NULL);
    return good;
}

static bool commit(struct api_database *database)
{
    struct api_postgresql_connection *c = connection_of(database);
    database->last.is_uncertain = true;
    if (!script(database, "COMMIT") || !read_results(c, NULL))
        return false;
    c->is_busy = database->last.is_uncertain = false;
    return true;
}

/* Tables alone, with their indices: others of the database are not the store's. The files of each are
 * looked at, so it is asked for seldom. */
static bool size_of(struct api_database *database, int64_t *bytes)
{
    static const double pause_s = 10;
    struct api_postgresql_connection *c = connection_of(database);
    double now = api_seconds();
    bool good = (c->sized > 0 && now < c->sized + pause_s) ||
                (script(database, "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint"
                                  " FROM pg_class WHERE relkind = 'r' AND relname LIKE 'kldiv#_%'"
                                  " ESCAPE '#' AND pg_table_is_visible(oid)") &&
                 read_results(c, &(struct api_rows){api_datum_read_integer, &c->size}));
    c->sized = good && now >= c->sized + pause_s ? now : c->sized;
    *bytes = c->size;
    return good;
}

static void rollback(struct api_database *database)
{
    struct api_postgresql_connection *c = connection_of(database);
    if (c->is_busy)
        api_postgresql_disconnect(c);
}

/* ---- The engine */

/* KEYS: of the lock that each transaction takes, alone or with others beside it. */
#define KEYS "hashtext('kldiv'), hashtext(current_schema())"

/* Limits bound how long a server that hangs keeps others from the store. PostgreSQL does not count the time of a
 * server that hangs between statements of a pipeline: another server that could not get the lock connects again and
 * ends its session. The commit must wait for the disk, or acknowledged observations could be lost. */
static bool set_session(struct api_database *database)
{
    return script(database,
                  "SET lock_timeout = '15s';"
                  "SET statement_timeout = '15s';"
                  "SET idle_in_transaction_session_timeout = '10s';"
                  "SELECT set_config('synchronous_commit', 'on', false)"
                  " WHERE current_setting('synchronous_commit') = 'off';"
                  "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
                  " WHERE (classid::int, objid::int) = (" KEYS ") AND locktype = 'advisory'"
                  " AND objsubid = 2 AND granted AND datname = current_database()"
                  " AND usename = current_user AND wait_event = 'ClientRead'"
                  " AND state_change < clock_timestamp() - interval '10s'");
}

static bool reach(struct api_database *database)
{
    struct api_postgresql_connection *c = connection_of(database);
    if (api_postgresql_is_connected(c))
        return true;
    database->last.is_new = api_postgresql_connect(c);
    return database->last.is_new && set_session(database);
}

static void read_schema(void *context, const struct api_datum *values)
{
    *(enum api_schema *)context = (enum api_schema)values[0].integer;
}

/* Generic names may be those of tables of somebody else: they are ours if each has a column of ours. */
static bool find_schema(struct api_database *database, enum api_schema *found)
{
    struct api_postgresql_connection *c = connection_of(database);
    return script(database,
                  "SELECT CASE WHEN to_regclass('kldiv_meta') IS NOT NULL THEN 2 WHEN 7 = (SELECT "
                  "count(*) FROM pg_attribute WHERE (attrelid::regclass, attname::text) IN "
                  "((to_regclass('meta'), 'value'), (to_regclass('monitors'), 'group_name'), "
                  "(to_regclass('revisions'), 'definition'), (to_regclass('windows'), "
                  "'unseen_ratio'), (to_regclass('counts'), 'window_id'), (to_regclass('events'), "
                  "'to_state'), (to_regclass('keys'), 'answer'))) THEN 1 ELSE 0 END::bigint") &&
           read_results(c, &(struct api_rows){read_schema, found});
}

static void read_flag(void *context, const struct api_datum *values)
{
    *(bool *)context = values[0].integer != 0;
}

/* Sets *may: if there are tables, whether this user has the role of their owner, which is the same for all; else whether
 * it may make tables in the schema. PostgreSQL gave that right to everyone before version 15; it does not suffice to add
 * tables to those of another owner. */
static bool may_migrate(struct api_database *database, bool *may)
{
    return script(database, "SELECT coalesce(CASE WHEN to_regclass('kldiv_meta') IS NULL THEN "
                            "has_schema_privilege(current_schema(), 'CREATE') ELSE (SELECT "
                            "pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = "
                            "to_regclass('kldiv_meta')) END, false)::integer::bigint") &&
           read_results(connection_of(database), &(struct api_rows){read_flag, may});
}

/* Names of indices are shared with tables. */
#define ADOPT_INDICES                                                                              \
    "ALTER INDEX windows_by_start RENAME TO kldiv_windows_by_start;"                               \
    "ALTER INDEX windows_open RENAME TO kldiv_windows_open;"                                       \
    "ALTER INDEX keys_by_time RENAME TO kldiv_keys_by_time"

#define BEGIN "BEGIN ISOLATION LEVEL READ COMMITTED;"
#define LOCK_EXCLUSIVE "SELECT pg_advisory_xact_lock(" KEYS ");"
#define LOCK_SHARED "SELECT pg_advisory_xact_lock_shared(" KEYS ");"

const struct api_engine api_postgresql = {.prefix = "postgresql://",
                                          .clustered = "",
                                          .transaction = BEGIN LOCK_EXCLUSIVE,
                                          .beside = BEGIN LOCK_SHARED,
                                          .is_shared = true,
                                          .migration = BEGIN LOCK_EXCLUSIVE
                                          "SET LOCAL statement_timeout = 0",
                                          .open = api_postgresql_open,
                                          .close = api_postgresql_close,
                                          .reach = reach,
                                          .find_schema = find_schema,
                                          .adopt = API_SQL_ADOPT ADOPT_INDICES,
                                          .may_migrate = may_migrate,
                                          .script = script,
                                          .run = run,
                                          .run_all = run_all,
                                          .lock = lock,
                                          .commit = commit,
                                          .size = size_of,
                                          .rollback = rollback};
