#include "api/store/sql.h"

/* Times are microseconds since 1970, UTC. Numbers of windows and events ascend within a monitor.
 * States and verdicts are those of enum api_verdict. A definition is the JSON of bins and reference,
 * settings that of everything else; a window keeps the settings that it was scored by last. */
static const char first[] =
    "CREATE TABLE kldiv_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
    "INSERT INTO kldiv_meta VALUES ('schema', 0), ('monitor', 0);"
    "CREATE TABLE kldiv_monitors (id BIGINT PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT "
    "NULL,"
    " revision BIGINT NOT NULL, version BIGINT NOT NULL, settings TEXT NOT NULL,"
    " state BIGINT NOT NULL, observations BIGINT NOT NULL, last_observation BIGINT,"
    " last_window BIGINT NOT NULL, UNIQUE (group_name, name));"
    "CREATE TABLE kldiv_revisions (monitor BIGINT NOT NULL, revision BIGINT NOT NULL,"
    " definition TEXT NOT NULL, PRIMARY KEY (monitor, revision));"
    "CREATE TABLE kldiv_windows (monitor BIGINT NOT NULL, id BIGINT NOT NULL, revision BIGINT NOT "
    "NULL,"
    " start_at BIGINT NOT NULL, end_at BIGINT NOT NULL, closed BIGINT NOT NULL,"
    " restated BIGINT NOT NULL, n BIGINT NOT NULL, kl DOUBLE PRECISION,"
    " kl_reverse DOUBLE PRECISION, js DOUBLE PRECISION, psi DOUBLE PRECISION,"
    " p_value DOUBLE PRECISION, unseen_ratio DOUBLE PRECISION, missing_ratio DOUBLE PRECISION,"
    " verdict BIGINT NOT NULL, state BIGINT NOT NULL, settings TEXT, reference BYTEA,"
    " PRIMARY KEY (monitor, id)){clustered};"
    "CREATE INDEX kldiv_windows_by_start ON kldiv_windows (monitor, start_at, id);"
    "CREATE INDEX kldiv_windows_open ON kldiv_windows (monitor, end_at) WHERE closed = 0;"
    "CREATE TABLE kldiv_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, bin BIGINT NOT "
    "NULL,"
    " count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, bin)){clustered};"
    "CREATE TABLE kldiv_events (monitor BIGINT NOT NULL, id BIGINT NOT NULL, at BIGINT NOT NULL,"
    " from_state BIGINT NOT NULL, to_state BIGINT NOT NULL, kl DOUBLE PRECISION,"
    " window_id BIGINT NOT NULL, PRIMARY KEY (monitor, id)){clustered};"
    "CREATE TABLE kldiv_keys (key BYTEA PRIMARY KEY, body BYTEA NOT NULL, at BIGINT NOT NULL,"
    " answer BYTEA NOT NULL){clustered};"
    "CREATE INDEX kldiv_keys_by_time ON kldiv_keys (at);";

/* Adds since when a monitor has its state, and the top of windows, which is NULL in older rows: see
 * api/monitors/model/window.h. A revision begins in state 0, so any other state came by an event of this revision. A
 * state of 0 may be of an event of an earlier revision: the event's window, if it is still stored, tells the
 * revision. */
static const char second[] = "ALTER TABLE kldiv_monitors ADD COLUMN since BIGINT;"
                             "ALTER TABLE kldiv_windows ADD COLUMN top BIGINT;"
                             "ALTER TABLE kldiv_windows ADD COLUMN top_share DOUBLE PRECISION;"
                             "UPDATE kldiv_monitors SET since = (SELECT at FROM kldiv_events e "
                             "WHERE e.monitor = kldiv_monitors.id"
                             " AND (kldiv_monitors.state <> 0 OR EXISTS (SELECT 1 FROM "
                             "kldiv_windows w WHERE w.monitor = e.monitor"
                             " AND w.id = e.window_id AND w.revision = kldiv_monitors.revision)) "
                             "ORDER BY e.id DESC LIMIT 1);";

/* Adds numbers by which servers that share a store see each other's changes. Each transaction that changes monitors
 * takes the next number of `change` and stores it with them; `deletion` is the last number of a transaction that
 * deleted some. There is no index of these numbers: with one, each update of a row would write all indexes, and
 * PostgreSQL counts 12 to 26 % fewer observations, while reading 10,000 rows takes it some ms. */
static const char third[] =
    "ALTER TABLE kldiv_monitors ADD COLUMN newest_end BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN changed BIGINT NOT NULL DEFAULT 0;"
    "UPDATE kldiv_monitors SET newest_end ="
    " (SELECT max(end_at) FROM kldiv_windows w WHERE w.monitor = kldiv_monitors.id);"
    "INSERT INTO kldiv_meta VALUES ('change', 0), ('deletion', 0);";

/* Adds sums of the counts of each monitor's last closed windows: see api/monitors/state/previous.h. */
static const char fourth[] =
    "CREATE TABLE kldiv_sums (monitor BIGINT PRIMARY KEY, revision BIGINT NOT NULL,"
    " k BIGINT NOT NULL, n BIGINT NOT NULL, oldest_start BIGINT NOT NULL, oldest_id BIGINT NOT "
    "NULL,"
    " newest_start BIGINT NOT NULL, newest_id BIGINT NOT NULL, counts BYTEA NOT NULL){clustered};";

/* Adds what verdicts over pools of windows need: see api/monitors/model/pool.h. Monitors keep the rule and the
 * thresholds that they have, which is a pool of one window; their settings are an object with members. Adds
 * the order in which events of all monitors are listed, and texts that are no labels. */
static const char fifth[] =
    "ALTER TABLE kldiv_monitors RENAME COLUMN since TO severity_since;"
    "ALTER TABLE kldiv_monitors ADD COLUMN since BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN pool_from BIGINT;"
    "UPDATE kldiv_monitors SET settings = '{\"pool\":1,' || substr(settings, 2),"
    " since = CASE WHEN state <= 1 THEN severity_since ELSE coalesce((SELECT at FROM kldiv_events e"
    " WHERE e.monitor = kldiv_monitors.id AND from_state <= 1 AND to_state > 1"
    " ORDER BY e.id DESC LIMIT 1), severity_since) END;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_windows BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_n BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_kl DOUBLE PRECISION;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_p_value DOUBLE PRECISION;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_noise_floor DOUBLE PRECISION;"
    "CREATE INDEX kldiv_events_by_time ON kldiv_events (at, monitor, id);"
    "CREATE TABLE kldiv_unseen (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL,"
    " label BYTEA NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, label))"
    "{clustered};";

/* Adds mutes of monitors, and of groups, whose name of a monitor is empty; the sentence of the last window of a
 * monitor, with the number of that window; whether receivers were told that a monitor is stale; and changes that wait
 * for receivers, see api/monitors/state/outbox.h: their message is 0 until they are put into one. Notes are of
 * monitors and groups as mutes are. */
static const char sixth[] =
    "ALTER TABLE kldiv_monitors ADD COLUMN stale_told BIGINT NOT NULL DEFAULT 0;"
    "CREATE TABLE kldiv_outbox (receiver TEXT NOT NULL, id BIGINT NOT NULL, message BIGINT NOT "
    "NULL, queued BIGINT NOT NULL, monitor BIGINT NOT NULL, group_name TEXT NOT NULL, name TEXT "
    "NOT NULL, from_state BIGINT NOT NULL, to_state BIGINT NOT NULL, at BIGINT NOT NULL,"
    " since BIGINT, kl DOUBLE PRECISION, sentence TEXT NOT NULL, trace TEXT, PRIMARY KEY "
    "(receiver, id))"
    "{clustered};"
    "CREATE INDEX kldiv_outbox_by_message ON kldiv_outbox (receiver, message, id);"
    "INSERT INTO kldiv_meta VALUES ('notify_owner', 0), ('notify_until', 0);"
    "ALTER TABLE kldiv_monitors ADD COLUMN sentence TEXT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN sentence_of BIGINT;"
    "CREATE TABLE kldiv_mutes (group_name TEXT NOT NULL, name TEXT NOT NULL, until_at BIGINT NOT "
    "NULL, reason TEXT NOT NULL, PRIMARY KEY (group_name, name)){clustered};"
    "INSERT INTO kldiv_meta VALUES ('mute', 0), ('note', 0);"
    "CREATE TABLE kldiv_notes (id BIGINT PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT NULL,"
    " from_at BIGINT NOT NULL, to_at BIGINT NOT NULL, created_at BIGINT NOT NULL, text TEXT NOT "
    "NULL);"
    "CREATE INDEX kldiv_notes_by_start ON kldiv_notes (group_name, from_at, id);";

/* Adds what each server has counted of open windows: see api/monitors/state/server_counts.h. Texts that are no labels
 * are kept by the server that counted them, or 0. */
static const char seventh[] =
    "CREATE TABLE kldiv_server_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL,"
    " server BIGINT NOT NULL, n BIGINT NOT NULL, at BIGINT NOT NULL, counts BYTEA NOT NULL,"
    " PRIMARY KEY (monitor, window_id, server)){clustered};"
    "INSERT INTO kldiv_meta VALUES ('server', 0);"
    "ALTER TABLE kldiv_unseen RENAME TO kldiv_unseen_former;"
    "CREATE TABLE kldiv_unseen (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, server BIGINT "
    "NOT NULL, label BYTEA NOT NULL, count BIGINT NOT NULL,"
    " PRIMARY KEY (monitor, window_id, server, label)){clustered};"
    "INSERT INTO kldiv_unseen SELECT monitor, window_id, 0, label, count FROM kldiv_unseen_former;"
    "DROP TABLE kldiv_unseen_former;";

/* Adds what verdicts by joined bins, and falls of a state, need: bins of the pool that decided; where the state last rose,
 * for those above ok by their events. Adds the cell of a pool whose ratio decided, and sums of values: see
 * api_pooled_ratio and api_moments in api/monitors/model/window.h. */
static const char eighth[] =
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_bins BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_ratio BYTEA;"
    "ALTER TABLE kldiv_windows ADD COLUMN moments BYTEA;"
    "ALTER TABLE kldiv_server_counts ADD COLUMN moments BYTEA;"
    "ALTER TABLE kldiv_monitors ADD COLUMN rose_at BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN rose_window BIGINT;"
    "UPDATE kldiv_monitors SET rose_window = (SELECT window_id FROM kldiv_events e WHERE"
    " e.monitor = kldiv_monitors.id AND to_state > from_state ORDER BY e.id DESC LIMIT 1)"
    " WHERE state > 1;"
    "UPDATE kldiv_monitors SET rose_at = (SELECT start_at FROM kldiv_windows w WHERE"
    " w.monitor = kldiv_monitors.id AND w.id = rose_window) WHERE state > 1;";

/* Adds how many requests of its group in a row lacked a monitor's column, and columns of tables that have no monitor: see
 * api/monitors/state/columns.h; what receivers know of a monitor that is muted; and what is known of the values of the windows
 * that a window is compared with. */
static const char ninth[] =
    "ALTER TABLE kldiv_monitors ADD COLUMN missed BIGINT NOT NULL DEFAULT 0;"
    "ALTER TABLE kldiv_monitors ADD COLUMN told BIGINT NOT NULL DEFAULT -1;"
    "CREATE TABLE kldiv_columns (group_name TEXT NOT NULL, name TEXT NOT NULL, left_out BIGINT NOT "
    "NULL, missed BIGINT NOT NULL, PRIMARY KEY (group_name, name)){clustered};"
    "INSERT INTO kldiv_meta VALUES ('columns', 0);"
    "ALTER TABLE kldiv_sums ADD COLUMN moments BYTEA;"
    "ALTER TABLE kldiv_windows ADD COLUMN reference_spread BYTEA;";

/* Adds when receivers last got a message, and since when they fail. */
static const char tenth[] =
    "CREATE TABLE kldiv_receivers (name TEXT PRIMARY KEY, last_success BIGINT, last_failure BIGINT,"
    " failing_since BIGINT, failure TEXT NOT NULL);";

/* Adds who has muted: the name of a token, which may be empty. */
static const char eleventh[] = "ALTER TABLE kldiv_mutes ADD COLUMN muted_by TEXT;";

/* Versions up to the sixth refuse whatever is newer. */
const struct api_migration api_migrations[] = {
    {first, "monitors, windows, counts, events", 1},
    {second, "since when monitors have their state, and the bin that contributes most", 2},
    {third, "changes that servers tell each other", 3},
    {fourth, "sums of the windows before", 4},
    {fifth, "pools of windows, texts that are no labels, events of all monitors", 5},
    {sixth, "notifications, mutes, notes, and because of what monitors drift", 6},
    {seventh, "counts that servers keep apart", 7},
    {eighth, "joined bins, ratios, means, and where states rose", 8},
    {ninth, "columns that come and go, means of windows before", 8},
    {tenth, "how receivers of notifications do", 8},
    {eleventh, "who has muted", 8},
    {NULL, NULL, 0},
};

#define WINDOW_OF(n, settings, reference)                                                          \
    "id, revision, start_at, end_at, closed, restated, " n ", kl, kl_reverse, js, psi, p_value,"   \
    " unseen_ratio, missing_ratio, verdict, state, top, top_share, pooled_windows, pooled_n,"      \
    " pooled_kl, pooled_p_value, pooled_noise_floor, pooled_bins, pooled_ratio, "                  \
    "moments, reference_spread, " settings ", " reference

/* ALL_N: values of a window, with those of server_counts, which only an open one has. */
#define ALL_N                                                                                      \
    "CASE closed WHEN 0 THEN n + coalesce((SELECT CAST(sum(s.n) AS BIGINT) FROM"                   \
    " kldiv_server_counts s WHERE s.monitor = kldiv_windows.monitor"                               \
    " AND s.window_id = kldiv_windows.id), 0) ELSE n END"

/* WINDOW_NUMBERS: a row without its long values. */
#define WINDOW_STORED WINDOW_OF("n", "settings", "reference")
#define WINDOW_COLUMNS WINDOW_OF(ALL_N, "settings", "reference")
#define WINDOW_NUMBERS WINDOW_OF(ALL_N, "NULL", "NULL")

#define MONITORS                                                                                   \
    "SELECT id, group_name, name, m.revision, version, settings, state,"                           \
    " observations + coalesce((SELECT CAST(sum(s.n) AS BIGINT) FROM kldiv_server_counts s"         \
    " WHERE s.monitor = m.id), 0), last_observation, last_window, severity_since, newest_end, "    \
    "since, pool_from, rose_at, rose_window, definition,"                                          \
    " sentence, sentence_of, stale_told, missed, told,"                                            \
    " (SELECT max(s.at) FROM kldiv_server_counts s WHERE s.monitor = m.id)"                        \
    " FROM kldiv_monitors m"                                                                       \
    " JOIN kldiv_revisions r ON r.monitor = m.id AND r.revision = m.revision"

#define ADD_COUNTS(rows)                                                                           \
    "INSERT INTO kldiv_counts (monitor, window_id, bin, count) VALUES " rows                       \
    " ON CONFLICT (monitor, window_id, bin)"                                                       \
    " DO UPDATE SET count = kldiv_counts.count + excluded.count"

/* OPEN: of few windows, which an index has. The bound of their end leads SQLite to it. */
#define OPEN "closed = 0 AND end_at > -9223372036854775807"

/* CLOSED: of closed windows of a revision. */
#define CLOSED " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND closed = 1 AND "

/* OF_TOKEN: of a group of which the first n characters are a text, by one of the pairs of n and text. */
#define OR(n, text) " OR substr(group_name, 1, CAST(CAST(" n " AS BIGINT) AS INTEGER)) = " text
#define OF_4(a, b, c, d, e, f, g, h) OR(a, b) OR(c, d) OR(e, f) OR(g, h)
#define OF_TOKEN                                                                                   \
    " (1 = 0" OF_4("$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13")                             \
        OF_4("$14", "$15", "$16", "$17", "$18", "$19", "$20", "$21") ")"

/* SEASON: starts of the windows that a window of a season is compared with. */
#define SEASON                                                                                     \
    "WITH RECURSIVE season(at, k) AS (SELECT CAST($1 AS BIGINT) - CAST($2 AS BIGINT),"             \
    " CAST($3 AS BIGINT) UNION ALL SELECT at - CAST($2 AS BIGINT), k - 1 FROM season WHERE k > 1)"

#define RECENT CLOSED "start_at <= $3 ORDER BY start_at DESC, id DESC LIMIT $4"

/* A row constructor compares pairs in order, which both engines do by the index. So is one start given
 * as bounds, because for equality SQLite goes through all windows of the monitor. */
const char *const api_sql[API_STATEMENTS] = {
    [API_SQL_SCHEMA] = "SELECT s.value, coalesce(o.value, s.value) FROM kldiv_meta s"
                       " LEFT JOIN kldiv_meta o ON o.name = 'oldest' WHERE s.name = 'schema'",
    [API_SQL_META] = "SELECT name, value FROM kldiv_meta",
    [API_SQL_SCHEMA_SET] =
        "INSERT INTO kldiv_meta (name, value) VALUES ('schema', $1), ('oldest', $2)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [API_SQL_NEXT_MONITOR] =
        "UPDATE kldiv_meta SET value = value + 1 WHERE name = 'monitor' RETURNING value",
    [API_SQL_CHANGE_SET] = "UPDATE kldiv_meta SET value = $1 WHERE name = 'change'",
    [API_SQL_DELETION_SET] = "UPDATE kldiv_meta SET value = $1 WHERE name = 'deletion'",
    [API_SQL_MUTE_SET] = "UPDATE kldiv_meta SET value = $1 WHERE name = 'mute'",
    [API_SQL_COLUMNS_SET] = "UPDATE kldiv_meta SET value = $1 WHERE name = 'columns'",
    [API_SQL_PROBE] = "UPDATE kldiv_meta SET value = value + $1 WHERE name = 'schema'",

    [API_SQL_MONITORS] = MONITORS " ORDER BY id",
    [API_SQL_MONITORS_CHANGED] = MONITORS " WHERE changed > $1 ORDER BY id",
    [API_SQL_MONITOR_IDS] = "SELECT id FROM kldiv_monitors",
    [API_SQL_MONITOR_PUT] =
        "INSERT INTO kldiv_monitors (id, group_name, name, revision, version, settings, changed, "
        "state,"
        " observations, last_window) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0)"
        " ON CONFLICT (id) DO UPDATE SET revision = excluded.revision,"
        " version = excluded.version, settings = excluded.settings, changed = excluded.changed",
    [API_SQL_MONITOR_LIVE] =
        "UPDATE kldiv_monitors SET state = $1, observations = observations + $2, last_observation "
        "= $3,"
        " last_window = $4, severity_since = $5, newest_end = $6, since = $7, pool_from = $8,"
        " sentence = $9, sentence_of = $10, stale_told = $11,"
        " changed = $12, rose_at = $13, rose_window = $14, missed = $15, told = $16 WHERE id = $17",
    [API_SQL_MONITOR_DELETE] = "DELETE FROM kldiv_monitors WHERE id = $1",
    [API_SQL_MONITOR_REMOVE] =
        "DELETE FROM kldiv_monitors WHERE group_name = $1 AND name = $2 RETURNING id",
    [API_SQL_GROUP_REMOVE] = "DELETE FROM kldiv_monitors WHERE group_name = $1 RETURNING id",
    [API_SQL_REVISION_PUT] =
        "INSERT INTO kldiv_revisions (monitor, revision, definition) VALUES ($1, $2, $3)",
    [API_SQL_REVISION] =
        "SELECT definition FROM kldiv_revisions WHERE monitor = $1 AND revision = $2",
    [API_SQL_REVISIONS_DELETE] = "DELETE FROM kldiv_revisions WHERE monitor = $1",
    [API_SQL_REVISIONS_PRUNE] =
        "DELETE FROM kldiv_revisions WHERE monitor = $1 AND revision < $2 AND NOT EXISTS"
        " (SELECT 1 FROM kldiv_windows w WHERE w.monitor = $1 AND w.revision = "
        "kldiv_revisions.revision) RETURNING revision",

    [API_SQL_WINDOW_PUT] =
        "INSERT INTO kldiv_windows (monitor, " WINDOW_STORED
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8,"
        " $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, "
        "$24,"
        " $25, $26, $27, $28, $29, $30)"
        " ON CONFLICT (monitor, id) DO UPDATE SET"
        " start_at = excluded.start_at, end_at = excluded.end_at, closed = "
        "excluded.closed,"
        " restated = excluded.restated, n = excluded.n, kl = excluded.kl,"
        " kl_reverse = excluded.kl_reverse, js = excluded.js, psi = excluded.psi,"
        " p_value = excluded.p_value, unseen_ratio = excluded.unseen_ratio,"
        " missing_ratio = excluded.missing_ratio, verdict = excluded.verdict,"
        " state = excluded.state, top = excluded.top, top_share = excluded.top_share,"
        " pooled_windows = excluded.pooled_windows, pooled_n = excluded.pooled_n,"
        " pooled_kl = excluded.pooled_kl, pooled_p_value = excluded.pooled_p_value,"
        " pooled_noise_floor = excluded.pooled_noise_floor, pooled_bins = excluded.pooled_bins,"
        " pooled_ratio = excluded.pooled_ratio, moments = excluded.moments,"
        " reference_spread = excluded.reference_spread, settings = excluded.settings, reference = "
        "excluded.reference",
    [API_SQL_WINDOW_N] = "UPDATE kldiv_windows SET start_at = $1, end_at = $2, n = $3,"
                         " moments = $4 WHERE monitor = $5 AND id = $6",
    [API_SQL_WINDOW_STATE] = "UPDATE kldiv_windows SET state = $1 WHERE monitor = $2 AND id = $3",
    [API_SQL_WINDOW_TOP] =
        "UPDATE kldiv_windows SET top = $1, top_share = $2 WHERE monitor = $3 AND id = $4",
    [API_SQL_WINDOW] =
        "SELECT " WINDOW_COLUMNS " FROM kldiv_windows WHERE monitor = $1 AND id = $2",
    [API_SQL_WINDOW_AT] =
        "SELECT " WINDOW_COLUMNS " FROM kldiv_windows WHERE monitor = $1 AND revision = $2"
        " AND start_at >= $3 AND start_at <= $3 AND end_at = $4 ORDER BY start_at, id LIMIT 1",
    [API_SQL_WINDOW_OPEN] = "SELECT " WINDOW_COLUMNS
                            " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND " OPEN
                            " ORDER BY start_at DESC, id DESC LIMIT 1",
    [API_SQL_WINDOW_LATEST] =
        "SELECT " WINDOW_COLUMNS
        " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND closed = 1"
        " ORDER BY start_at DESC, id DESC LIMIT 1",
    [API_SQL_WINDOWS_OPEN] = "SELECT " WINDOW_COLUMNS
                             " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND " OPEN
                             " ORDER BY start_at, id",
    [API_SQL_WINDOWS_DUE] =
        "SELECT " WINDOW_COLUMNS
        " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND closed = 0"
        " AND end_at <= $3 ORDER BY start_at, id",
    [API_SQL_WINDOWS] =
        "SELECT " WINDOW_COLUMNS
        " FROM kldiv_windows WHERE monitor = $1 AND start_at >= $2 AND start_at < $3"
        " AND (start_at, id) < ($4, $5) ORDER BY start_at DESC, id DESC LIMIT $6",
    [API_SQL_WINDOWS_BEFORE] =
        "SELECT " WINDOW_NUMBERS
        " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND closed = 1"
        " AND (start_at, id) < ($3, $4) AND verdict <> 0"
        " ORDER BY start_at DESC, id DESC LIMIT $5",
    [API_SQL_WINDOWS_FROM] =
        "SELECT " WINDOW_NUMBERS
        " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND closed = 1"
        " AND (start_at, id) >= ($3, $4) AND start_at <= $5 ORDER BY start_at, id",
    [API_SQL_WINDOWS_LAST] = "SELECT " WINDOW_COLUMNS CLOSED "(start_at, id) < ($3, $4)"
                             " ORDER BY start_at DESC, id DESC LIMIT $5",
    [API_SQL_WINDOWS_NEXT] =
        "SELECT " WINDOW_COLUMNS CLOSED "(start_at, id) > ($3, $4) AND start_at <= $5"
        " ORDER BY start_at, id LIMIT $6",
    [API_SQL_WINDOWS_RECENT] = "SELECT " WINDOW_NUMBERS RECENT,
    [API_SQL_WINDOWS_RECENT_WHOLE] = "SELECT " WINDOW_COLUMNS RECENT,
    [API_SQL_WINDOWS_SPAN] =
        "SELECT count(*), min(start_at), max(start_at), max(end_at) FROM (SELECT start_at, "
        "end_at" CLOSED "start_at >= $3 AND start_at < $4 LIMIT $5) w",
    [API_SQL_WINDOWS_EXPIRED] =
        "SELECT id, start_at, revision, closed FROM kldiv_windows WHERE monitor = $1"
        " AND start_at < $2 AND end_at < $2 AND closed >= $3 ORDER BY start_at LIMIT $4",
    [API_SQL_WINDOW_END] = "SELECT end_at FROM kldiv_windows WHERE monitor = $1 AND start_at <= $2"
                           " AND end_at <= $2 ORDER BY start_at DESC, id DESC LIMIT 1",
    [API_SQL_KEYS_OF_WINDOWS_BEFORE] = "SELECT start_at, id" CLOSED "(start_at, id) < ($3, $4)"
                                       " ORDER BY start_at DESC, id DESC LIMIT $5",
    [API_SQL_KEY_OF_WINDOW_AFTER] =
        "SELECT start_at, id" CLOSED "(start_at, id) > ($3, $4) ORDER BY start_at, id LIMIT 1",
    [API_SQL_WINDOWS_COUNT_FROM] =
        "SELECT count(*) FROM (SELECT id" CLOSED "(start_at, id) >= ($3, $4) LIMIT $5) w",
    [API_SQL_ORPHANS] = "SELECT DISTINCT monitor FROM kldiv_revisions WHERE monitor NOT IN (SELECT "
                        "id FROM kldiv_monitors)",
    [API_SQL_WINDOW_DELETE] = "DELETE FROM kldiv_windows WHERE monitor = $1 AND id = $2",

    [API_SQL_COUNT_ADD] = ADD_COUNTS("($1, $2, $3, $4)"),
    [API_SQL_COUNT_ADD_4] =
        ADD_COUNTS("($1, $2, $3, $4), ($1, $2, $5, $6), ($1, $2, $7, $8), ($1, $2, $9, $10)"),
    [API_SQL_COUNT_ADD_16] = ADD_COUNTS(
        "($1, $2, $3, $4), ($1, $2, $5, $6), ($1, $2, $7, $8), ($1, $2, $9, $10),"
        " ($1, $2, $11, $12), ($1, $2, $13, $14), ($1, $2, $15, $16), ($1, $2, $17, $18),"
        " ($1, $2, $19, $20), ($1, $2, $21, $22), ($1, $2, $23, $24), ($1, $2, $25, $26),"
        " ($1, $2, $27, $28), ($1, $2, $29, $30), ($1, $2, $31, $32), ($1, $2, $33, $34)"),
    [API_SQL_COUNTS] = "SELECT bin, count FROM kldiv_counts WHERE monitor = $1 AND window_id = $2",
    [API_SQL_COUNTS_BEFORE] =
        "SELECT bin, CAST(sum(count) AS BIGINT) FROM kldiv_counts WHERE monitor = $1 AND window_id "
        "IN"
        " (SELECT id FROM kldiv_windows w WHERE w.monitor = $1 AND revision = $2 AND closed = 1"
        " AND (start_at, id) < ($3, $4) ORDER BY start_at DESC, id DESC LIMIT $5) GROUP BY bin",
    [API_SQL_COUNTS_FROM] = "SELECT bin, CAST(sum(count) AS BIGINT) FROM kldiv_counts WHERE "
                            "monitor = $1 AND window_id IN"
                            " (SELECT id" CLOSED "(start_at, id) >= ($3, $4)) GROUP BY bin",
    [API_SQL_COUNTS_BETWEEN] =
        "SELECT bin, CAST(sum(count) AS BIGINT) FROM kldiv_counts WHERE monitor = $1 AND window_id "
        "IN"
        " (SELECT id FROM kldiv_windows w WHERE w.monitor = $1 AND revision = $2 AND closed = 1"
        " AND start_at >= $3 AND start_at < $4) GROUP BY bin",
    [API_SQL_MOMENTS_BETWEEN] = "SELECT moments" CLOSED "start_at >= $3 AND start_at < $4",
    [API_SQL_MOMENTS] = "SELECT moments FROM kldiv_windows WHERE monitor = $1 AND id = $2",
    [API_SQL_MOMENTS_BEFORE] = "SELECT moments" CLOSED "(start_at, id) < ($3, $4)"
                               " ORDER BY start_at DESC, id DESC LIMIT $5",
    [API_SQL_MOMENTS_FROM] = "SELECT moments" CLOSED "(start_at, id) >= ($3, $4) LIMIT $5",
    [API_SQL_MOMENTS_OF_SEASON] =
        SEASON " SELECT moments FROM season CROSS JOIN kldiv_windows w"
               " WHERE w.monitor = $4 AND w.revision = $5 AND w.closed = 1"
               " AND w.start_at >= season.at AND w.start_at <= season.at",
    [API_SQL_COUNTS_OF_SEASON] = SEASON
    " SELECT bin, CAST(sum(count) AS BIGINT) FROM season CROSS JOIN kldiv_windows w"
    " CROSS JOIN kldiv_counts c WHERE w.monitor = $4 AND w.revision = $5 AND w.closed = 1"
    " AND w.start_at >= season.at AND w.start_at <= season.at"
    " AND c.monitor = $4 AND c.window_id = w.id GROUP BY bin",
    [API_SQL_POOL] = "SELECT start_at, id, reference" CLOSED "(start_at, id) < ($3, $4)"
                     " ORDER BY start_at DESC, id DESC LIMIT $5",
    [API_SQL_COUNTS_OF_POOL] =
        "SELECT window_id, bin, count FROM kldiv_counts WHERE monitor = $1 AND window_id IN"
        " (SELECT id FROM kldiv_windows w WHERE w.monitor = $1 AND revision = $2 AND closed = 1"
        " AND (start_at, id) < ($3, $4) ORDER BY start_at DESC, id DESC LIMIT $5)",
    [API_SQL_COUNTS_DELETE] = "DELETE FROM kldiv_counts WHERE monitor = $1 AND window_id = $2",

    [API_SQL_SERVER_NEXT] =
        "UPDATE kldiv_meta SET value = value + 1 WHERE name = 'server' RETURNING value",
    [API_SQL_SERVER_COUNTS_PUT] =
        "INSERT INTO kldiv_server_counts (monitor, window_id, server, n, at, counts, moments)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)"
        " ON CONFLICT (monitor, window_id, server)"
        " DO UPDATE SET n = excluded.n, at = excluded.at, counts = excluded.counts,"
        " moments = excluded.moments",
    [API_SQL_SERVER_COUNTS] = "SELECT server, n, at, counts, moments FROM kldiv_server_counts"
                              " WHERE monitor = $1 AND window_id = $2",
    [API_SQL_SERVER_COUNTS_TAKE] =
        "DELETE FROM kldiv_server_counts WHERE monitor = $1 AND window_id = $2"
        " RETURNING server, n, at, counts, moments",
    [API_SQL_SERVER_COUNTS_DELETE] = "DELETE FROM kldiv_server_counts WHERE monitor = $1",
    [API_SQL_OBSERVATIONS] = "SELECT observations + coalesce((SELECT CAST(sum(s.n) AS BIGINT) FROM"
                             " kldiv_server_counts s WHERE s.monitor = m.id), 0)"
                             " FROM kldiv_monitors m WHERE id = $1",
    [API_SQL_OBSERVATIONS_OF_OTHERS] =
        "SELECT group_name, name, id, m.observations + s.n, s.at FROM kldiv_monitors m JOIN"
        " (SELECT monitor, CAST(sum(n) AS BIGINT) AS n, max(at) AS at FROM kldiv_server_counts"
        " GROUP BY monitor HAVING max(CASE server WHEN $1 THEN 0 ELSE 1 END) = 1) s"
        " ON s.monitor = m.id",

    [API_SQL_UNSEEN_ADD] =
        "INSERT INTO kldiv_unseen (monitor, window_id, server, label, count)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (monitor, window_id, server, label)"
        " DO UPDATE SET count = kldiv_unseen.count + excluded.count",
    [API_SQL_UNSEEN_PRUNE] =
        "DELETE FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2 AND server = $3 AND label"
        " NOT IN (SELECT label FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2 AND server ="
        " $3 ORDER BY count DESC, label LIMIT $4)",
    [API_SQL_UNSEEN] =
        "SELECT label, CAST(sum(count) AS BIGINT) AS total FROM kldiv_unseen WHERE monitor = $1"
        " AND window_id = $2 GROUP BY label ORDER BY total DESC, label LIMIT $3",
    [API_SQL_UNSEEN_BETWEEN] =
        "SELECT label, CAST(sum(count) AS BIGINT) AS total FROM kldiv_unseen WHERE monitor = $1 AND"
        " window_id IN (SELECT id FROM kldiv_windows w WHERE w.monitor = $1 AND revision = $2 AND"
        " closed = 1 AND start_at >= $3 AND start_at < $4) GROUP BY label"
        " ORDER BY total DESC, label LIMIT $5",
    [API_SQL_UNSEEN_OF_POOL] =
        "SELECT window_id, label, CAST(sum(count) AS BIGINT) AS total FROM kldiv_unseen WHERE"
        " monitor = $1 AND window_id IN"
        " (SELECT id FROM kldiv_windows w WHERE w.monitor = $1 AND revision = $2 AND closed = 1"
        " AND (start_at, id) < ($3, $4) ORDER BY start_at DESC, id DESC LIMIT $5)"
        " GROUP BY window_id, label ORDER BY total DESC, label",
    [API_SQL_UNSEEN_DELETE] = "DELETE FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2",

    [API_SQL_EVENT_PUT] = "INSERT INTO kldiv_events (monitor, id, at, from_state, to_state, kl, "
                          "window_id) SELECT $1, coalesce(max(id), 0) + 1, $2, $3, $4, $5,"
                          " $6 FROM kldiv_events WHERE monitor = $1",
    [API_SQL_EVENTS] = "SELECT id, at, from_state, to_state, kl, window_id FROM kldiv_events"
                       " WHERE monitor = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
    [API_SQL_EVENTS_OF_ALL] =
        "SELECT e.id, at, from_state, to_state, kl, window_id, monitor, group_name, name"
        " FROM kldiv_events e JOIN kldiv_monitors m ON m.id = e.monitor WHERE at >= $1"
        " AND (at, monitor, e.id) < ($2, $3, $4) AND (group_name = $5 OR $5 = '') AND" OF_TOKEN
        " ORDER BY at DESC, monitor DESC, e.id DESC LIMIT $22",
    [API_SQL_GROUP_HISTORY] =
        "SELECT w.start_at, w.end_at, CAST(sum(CASE WHEN w.state >= 2 THEN 1 ELSE 0 END) AS "
        "BIGINT),"
        " count(*) FROM kldiv_monitors m JOIN kldiv_windows w ON w.monitor = m.id"
        " WHERE m.group_name = $1 AND w.closed = 1 AND w.start_at >= $2 AND w.start_at < $3"
        " AND w.start_at >= coalesce((SELECT p.start_at FROM kldiv_windows p WHERE p.monitor = m.id"
        " AND p.start_at < $3 ORDER BY p.start_at DESC, p.id DESC LIMIT 1 OFFSET $4),"
        " -9223372036854775807)"
        " GROUP BY w.start_at, w.end_at ORDER BY w.start_at DESC, w.end_at DESC LIMIT $5",
    [API_SQL_EVENTS_DELETE] = "DELETE FROM kldiv_events WHERE monitor = $1",

    [API_SQL_EVENTS_EXPIRE] =
        "DELETE FROM kldiv_events WHERE monitor = $1 AND at < $2"
        " AND id < (SELECT min(id) + 100 FROM kldiv_events WHERE monitor = $1)"
        " AND id < (SELECT max(id) FROM kldiv_events WHERE monitor = $1) RETURNING id",

    [API_SQL_SUM] =
        "SELECT revision, k, n, oldest_start, oldest_id, newest_start, newest_id, counts, moments"
        " FROM kldiv_sums WHERE monitor = $1",
    [API_SQL_SUM_PUT] =
        "INSERT INTO kldiv_sums (monitor, revision, k, n, oldest_start, oldest_id, newest_start, "
        "newest_id, counts, moments) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        " ON CONFLICT (monitor) DO UPDATE SET revision = excluded.revision, k = excluded.k,"
        " n = excluded.n, oldest_start = excluded.oldest_start, oldest_id = excluded.oldest_id,"
        " newest_start = excluded.newest_start, newest_id = excluded.newest_id,"
        " counts = excluded.counts, moments = excluded.moments",
    [API_SQL_SUM_DELETE] = "DELETE FROM kldiv_sums WHERE monitor = $1",

    [API_SQL_MUTES] = "SELECT group_name, name, until_at, reason, muted_by FROM kldiv_mutes",
    [API_SQL_MUTE_PUT] =
        "INSERT INTO kldiv_mutes (group_name, name, until_at, reason, muted_by) VALUES ($1, $2, $3,"
        " $4, $5) ON CONFLICT (group_name, name) DO UPDATE SET until_at = excluded.until_at,"
        " reason = excluded.reason, muted_by = excluded.muted_by",
    [API_SQL_MUTE_DELETE] = "DELETE FROM kldiv_mutes WHERE group_name = $1 AND name = $2",
    [API_SQL_MUTES_PRUNE] =
        "DELETE FROM kldiv_mutes WHERE until_at <= $1 OR NOT EXISTS (SELECT 1 FROM kldiv_monitors m"
        " WHERE m.group_name = kldiv_mutes.group_name AND (m.name = kldiv_mutes.name"
        " OR kldiv_mutes.name = ''))",

    [API_SQL_COLUMNS] = "SELECT group_name, name, left_out, missed FROM kldiv_columns",
    [API_SQL_COLUMN_PUT] =
        "INSERT INTO kldiv_columns (group_name, name, left_out, missed) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (group_name, name) DO UPDATE SET missed = excluded.missed, left_out ="
        " CASE excluded.left_out WHEN 0 THEN kldiv_columns.left_out ELSE 1 END",
    [API_SQL_COLUMN_DELETE] =
        "DELETE FROM kldiv_columns WHERE group_name = $1 AND name = $2 AND left_out = 0",
    [API_SQL_COLUMNS_PRUNE] =
        "DELETE FROM kldiv_columns WHERE NOT EXISTS (SELECT 1 FROM kldiv_monitors m WHERE"
        " m.group_name = kldiv_columns.group_name) OR EXISTS (SELECT 1 FROM kldiv_monitors m WHERE"
        " m.group_name = kldiv_columns.group_name AND m.name = kldiv_columns.name)",

    [API_SQL_NOTE_NEXT] =
        "UPDATE kldiv_meta SET value = value + 1 WHERE name = 'note' RETURNING value",
    [API_SQL_NOTE_PUT] = "INSERT INTO kldiv_notes (id, group_name, name, from_at, to_at, "
                         "created_at, text) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    [API_SQL_NOTES] =
        "SELECT id, name, from_at, to_at, created_at, text FROM kldiv_notes WHERE group_name = $1"
        " AND (name = $2 OR name = '' OR $2 = '') AND from_at < $3 AND to_at >= $4"
        " AND (from_at, id) < ($5, $6) ORDER BY from_at DESC, id DESC LIMIT $7",
    [API_SQL_NOTES_COUNT] = "SELECT count(*) FROM kldiv_notes WHERE group_name = $1",
    [API_SQL_NOTE_DELETE] =
        "DELETE FROM kldiv_notes WHERE group_name = $1 AND name = $2 AND id = $3 RETURNING id",
    [API_SQL_NOTES_PRUNE] =
        "DELETE FROM kldiv_notes WHERE group_name = $1 AND NOT EXISTS (SELECT 1 FROM kldiv_monitors"
        " m WHERE m.group_name = kldiv_notes.group_name AND (m.name = kldiv_notes.name"
        " OR kldiv_notes.name = ''))",

    [API_SQL_OUTBOX_PUT] =
        "INSERT INTO kldiv_outbox (receiver, id, message, queued, monitor, group_name, name, "
        "from_state, to_state, at, since, kl, sentence, trace) VALUES ($1, coalesce((SELECT id "
        "FROM kldiv_outbox WHERE receiver "
        "="
        " $1 ORDER BY id DESC LIMIT 1), 0) + 1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    [API_SQL_OUTBOX_FIRST] = "SELECT queued, message, group_name, id FROM kldiv_outbox"
                             " WHERE receiver = $1 ORDER BY message = 0, id LIMIT 1",
    [API_SQL_OUTBOX_ASSIGN] =
        "UPDATE kldiv_outbox SET message = $1 WHERE receiver = $2 AND id IN (SELECT id FROM"
        " kldiv_outbox WHERE receiver = $2 AND group_name = $3 AND (id = $4 OR id < coalesce(("
        "SELECT min(id) FROM kldiv_outbox WHERE receiver = $2 AND group_name = $3 AND"
        " from_state = to_state), 9223372036854775807)) ORDER BY id LIMIT $5)",
    [API_SQL_OUTBOX] =
        "SELECT queued, monitor, group_name, name, from_state, to_state, at, since, kl, sentence,"
        " trace FROM kldiv_outbox WHERE receiver = $1 AND message = $2 ORDER BY id",
    [API_SQL_OUTBOX_DELETE] = "DELETE FROM kldiv_outbox WHERE receiver = $1 AND message = $2",
    [API_SQL_OUTBOX_PRUNE] = "DELETE FROM kldiv_outbox WHERE NOT EXISTS (SELECT 1 FROM "
                             "kldiv_monitors m WHERE m.id = kldiv_outbox.monitor)",
    [API_SQL_OUTBOX_EXPIRE] = "DELETE FROM kldiv_outbox WHERE queued < $1 RETURNING id",
    [API_SQL_OUTBOX_COUNT] = "SELECT count(*) FROM kldiv_outbox WHERE receiver = $1",
    [API_SQL_LEASE] =
        "SELECT name, value FROM kldiv_meta WHERE name IN ('notify_owner', 'notify_until')",
    [API_SQL_LEASE_SET] =
        "UPDATE kldiv_meta SET value = CASE name WHEN 'notify_owner' THEN CAST($1 AS BIGINT)"
        " ELSE CAST($2 AS BIGINT) END WHERE name IN ('notify_owner', 'notify_until')",
    [API_SQL_RECEIVER] = "SELECT last_success, last_failure, failing_since, failure FROM"
                         " kldiv_receivers WHERE name = $1",
    [API_SQL_RECEIVER_PUT] =
        "INSERT INTO kldiv_receivers (name, last_success, last_failure, failing_since, failure)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO UPDATE SET"
        " last_success = excluded.last_success, last_failure = excluded.last_failure,"
        " failing_since = excluded.failing_since, failure = excluded.failure",

    [API_SQL_KEY] = "SELECT body, answer FROM kldiv_keys WHERE key = $1",
    [API_SQL_KEY_PUT] = "INSERT INTO kldiv_keys (key, body, at, answer) VALUES ($1, $2, $3, $4) ON "
                        "CONFLICT (key) DO UPDATE SET"
                        " body = excluded.body, at = excluded.at, answer = excluded.answer",
    [API_SQL_KEY_CLAIM] =
        "INSERT INTO kldiv_keys (key, body, at, answer) VALUES ($1, $2, $3, $4) ON CONFLICT (key)"
        " DO NOTHING RETURNING at",
    [API_SQL_KEYS_PRUNE] = "DELETE FROM kldiv_keys WHERE at < $1",
    [API_SQL_KEYS_TRIM] = "DELETE FROM kldiv_keys WHERE key IN (SELECT key FROM kldiv_keys ORDER "
                          "BY at, key LIMIT $1)",
    [API_SQL_KEYS_COUNT] = "SELECT count(*) FROM kldiv_keys",
};
