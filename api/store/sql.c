#include "api/store/sql.h"

#include "api/store/columns.h"

/* Times are microseconds since 1970, UTC. Numbers of windows and events ascend within a monitor.
 * States and verdicts are those of enum api_verdict. A definition is the JSON of bins and reference,
 * settings that of everything else; a window keeps the settings that it was scored by last. */
static const char first[] =
    "CREATE TABLE kldiv_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
    "INSERT INTO kldiv_meta VALUES ('schema', 0), ('monitor', 0);"
    "CREATE TABLE kldiv_monitors (id BIGINT PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT "
    "NULL, revision BIGINT NOT NULL, version BIGINT NOT NULL, settings TEXT NOT NULL, state BIGINT "
    "NOT NULL, observations BIGINT NOT NULL, last_observation BIGINT, last_window BIGINT NOT NULL, "
    "UNIQUE (group_name, name));"
    "CREATE TABLE kldiv_revisions (monitor BIGINT NOT NULL, revision BIGINT NOT NULL, definition "
    "TEXT NOT NULL, PRIMARY KEY (monitor, revision));"
    "CREATE TABLE kldiv_windows (monitor BIGINT NOT NULL, id BIGINT NOT NULL, revision BIGINT NOT "
    "NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL, closed BIGINT NOT NULL, restated "
    "BIGINT NOT NULL, n BIGINT NOT NULL, kl DOUBLE PRECISION, kl_reverse DOUBLE PRECISION, js "
    "DOUBLE PRECISION, psi DOUBLE PRECISION, p_value DOUBLE PRECISION, unseen_ratio DOUBLE "
    "PRECISION, missing_ratio DOUBLE PRECISION, verdict BIGINT NOT NULL, state BIGINT NOT NULL, "
    "settings TEXT, reference BYTEA, PRIMARY KEY (monitor, id)){clustered};"
    "CREATE INDEX kldiv_windows_by_start ON kldiv_windows (monitor, start_at, id);"
    "CREATE INDEX kldiv_windows_open ON kldiv_windows (monitor, end_at) WHERE closed = 0;"
    "CREATE TABLE kldiv_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, bin BIGINT NOT "
    "NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, bin)){clustered};"
    "CREATE TABLE kldiv_events (monitor BIGINT NOT NULL, id BIGINT NOT NULL, at BIGINT NOT NULL, "
    "from_state BIGINT NOT NULL, to_state BIGINT NOT NULL, kl DOUBLE PRECISION, window_id BIGINT "
    "NOT NULL, PRIMARY KEY (monitor, id)){clustered};"
    "CREATE TABLE kldiv_keys (key BYTEA PRIMARY KEY, body BYTEA NOT NULL, at BIGINT NOT NULL, "
    "answer BYTEA NOT NULL){clustered};"
    "CREATE INDEX kldiv_keys_by_time ON kldiv_keys (at);";

/* Adds since when a monitor has its state, and the top of windows, which is NULL in older rows: see
 * api/monitors/model/window.h. A revision begins in state 0, so any other state came by an event of this revision. A
 * state of 0 may be of an event of an earlier revision: the event's window, if it is still stored, tells the
 * revision. */
static const char second[] =
    "ALTER TABLE kldiv_monitors ADD COLUMN since BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN top BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN top_share DOUBLE PRECISION;"
    "UPDATE kldiv_monitors SET since = (SELECT at FROM kldiv_events e WHERE e.monitor = "
    "kldiv_monitors.id AND (kldiv_monitors.state <> 0 OR EXISTS (SELECT 1 FROM kldiv_windows w "
    "WHERE w.monitor = e.monitor AND w.id = e.window_id AND w.revision = kldiv_monitors.revision)) "
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

/* Adds sums of the counts of each monitor's last closed windows, which no version after 11 has. */
static const char fourth[] =
    "CREATE TABLE kldiv_sums (monitor BIGINT PRIMARY KEY, revision BIGINT NOT NULL, k BIGINT NOT "
    "NULL, n BIGINT NOT NULL, oldest_start BIGINT NOT NULL, oldest_id BIGINT NOT NULL, "
    "newest_start BIGINT NOT NULL, newest_id BIGINT NOT NULL, counts BYTEA NOT NULL){clustered};";

/* Adds what verdicts over pools of windows need: see api/monitors/model/pool.h. Monitors keep the rule and the
 * thresholds that they have, which is a pool of one window; their settings are an object with members. Adds
 * the order in which events of all monitors are listed, and texts that are no labels. */
static const char fifth[] =
    "ALTER TABLE kldiv_monitors RENAME COLUMN since TO severity_since;"
    "ALTER TABLE kldiv_monitors ADD COLUMN since BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN pool_from BIGINT;"
    "UPDATE kldiv_monitors SET settings = '{\"pool\":1,' || substr(settings, 2), since = CASE WHEN "
    "state <= 1 THEN severity_since ELSE coalesce((SELECT at FROM kldiv_events e WHERE e.monitor = "
    "kldiv_monitors.id AND from_state <= 1 AND to_state > 1 ORDER BY e.id DESC LIMIT 1), "
    "severity_since) END;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_windows BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_n BIGINT;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_kl DOUBLE PRECISION;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_p_value DOUBLE PRECISION;"
    "ALTER TABLE kldiv_windows ADD COLUMN pooled_noise_floor DOUBLE PRECISION;"
    "CREATE INDEX kldiv_events_by_time ON kldiv_events (at, monitor, id);"
    "CREATE TABLE kldiv_unseen (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, label BYTEA "
    "NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, label)){clustered};";

/* Adds mutes of monitors, and of groups, whose name of a monitor is empty; the sentence of the last window of a
 * monitor, with the number of that window; whether receivers were told that a monitor is stale; and changes that wait
 * for receivers, see api/monitors/state/outbox.h: their message is 0 until they are put into one. Notes are of
 * monitors and groups as mutes are. */
static const char sixth[] =
    "ALTER TABLE kldiv_monitors ADD COLUMN stale_told BIGINT NOT NULL DEFAULT 0;"
    "CREATE TABLE kldiv_outbox (receiver TEXT NOT NULL, id BIGINT NOT NULL, message BIGINT NOT "
    "NULL, queued BIGINT NOT NULL, monitor BIGINT NOT NULL, group_name TEXT NOT NULL, name TEXT "
    "NOT NULL, from_state BIGINT NOT NULL, to_state BIGINT NOT NULL, at BIGINT NOT NULL, since "
    "BIGINT, kl DOUBLE PRECISION, sentence TEXT NOT NULL, trace TEXT, PRIMARY KEY (receiver, "
    "id)){clustered};"
    "CREATE INDEX kldiv_outbox_by_message ON kldiv_outbox (receiver, message, id);"
    "INSERT INTO kldiv_meta VALUES ('notify_owner', 0), ('notify_until', 0);"
    "ALTER TABLE kldiv_monitors ADD COLUMN sentence TEXT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN sentence_of BIGINT;"
    "CREATE TABLE kldiv_mutes (group_name TEXT NOT NULL, name TEXT NOT NULL, until_at BIGINT NOT "
    "NULL, reason TEXT NOT NULL, PRIMARY KEY (group_name, name)){clustered};"
    "INSERT INTO kldiv_meta VALUES ('mute', 0), ('note', 0);"
    "CREATE TABLE kldiv_notes (id BIGINT PRIMARY KEY, group_name TEXT NOT NULL, name TEXT NOT "
    "NULL, from_at BIGINT NOT NULL, to_at BIGINT NOT NULL, created_at BIGINT NOT NULL, text TEXT "
    "NOT NULL);"
    "CREATE INDEX kldiv_notes_by_start ON kldiv_notes (group_name, from_at, id);";

/* Adds the counts of each server in open windows, which schema 12 drops. Texts that are no labels
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
    "UPDATE kldiv_monitors SET rose_window = (SELECT window_id FROM kldiv_events e WHERE e.monitor "
    "= kldiv_monitors.id AND to_state > from_state ORDER BY e.id DESC LIMIT 1) WHERE state > 1;"
    "UPDATE kldiv_monitors SET rose_at = (SELECT start_at FROM kldiv_windows w WHERE w.monitor = "
    "kldiv_monitors.id AND w.id = rose_window) WHERE state > 1;";

/* Adds how many requests of its group in a row lacked a monitor's column, and columns of tables that have no monitor: see
 * api/monitors/rows/mutes.h; what receivers know of a monitor that is muted; and what is known of the values of the windows
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

/* Adds the counts of a window to its row, in place of a row for each bin; sums of windows, and what each server has counted of
 * open ones, are not stored any more. */
static const char twelfth[] =
    "INSERT INTO kldiv_meta VALUES ('written', 0);"
    "ALTER TABLE kldiv_windows ADD COLUMN counts BYTEA;"
    "UPDATE kldiv_windows SET n = n + coalesce((SELECT CAST(sum(s.n) AS BIGINT) FROM"
    " kldiv_server_counts s WHERE s.monitor = kldiv_windows.monitor AND s.window_id ="
    " kldiv_windows.id), 0) WHERE closed = 0;"
    "UPDATE kldiv_monitors SET observations = observations + (SELECT CAST(sum(s.n) AS BIGINT) FROM"
    " kldiv_server_counts s WHERE s.monitor = kldiv_monitors.id), last_observation = (SELECT"
    " max(CASE WHEN s.at > coalesce(kldiv_monitors.last_observation, s.at) THEN s.at ELSE"
    " coalesce(kldiv_monitors.last_observation, s.at) END) FROM kldiv_server_counts s WHERE"
    " s.monitor = kldiv_monitors.id) WHERE EXISTS (SELECT 1 FROM kldiv_server_counts s WHERE"
    " s.monitor = kldiv_monitors.id);"
    "ALTER TABLE kldiv_unseen RENAME TO kldiv_unseen_former;"
    "CREATE TABLE kldiv_unseen (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, label BYTEA "
    "NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, label)){clustered};"
    "INSERT INTO kldiv_unseen SELECT monitor, window_id, label, CAST(sum(count) AS BIGINT) FROM"
    " kldiv_unseen_former GROUP BY monitor, window_id, label;"
    "DROP TABLE kldiv_unseen_former;";
static const char end_of_twelfth[] = "DROP TABLE kldiv_counts;"
                                     "DROP TABLE kldiv_sums;"
                                     "DROP TABLE kldiv_server_counts;";

/* Adds what lists and metrics show of a monitor, and when its next window closes, to its row: NULL until the monitor is
 * written. Settings, which may be long, come last, so that SQLite reads them only where they are asked for. Servers have no
 * numbers of changes to tell each other any more. */
static const char thirteenth[] =
    "ALTER TABLE kldiv_monitors RENAME COLUMN settings TO former_settings;"
    "ALTER TABLE kldiv_monitors ADD COLUMN next_close BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN warning DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN critical DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN significance DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN stale_after BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_id BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_start BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_end BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_restated BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_n BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_kl DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_js DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_psi DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_unseen_ratio DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_missing_ratio DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_noise_floor DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_top BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_top_share DOUBLE PRECISION;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_top_names TEXT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN n_recent BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN recent BYTEA;"
    "ALTER TABLE kldiv_monitors ADD COLUMN began BIGINT;"
    "ALTER TABLE kldiv_events ADD COLUMN began BIGINT;"
    "ALTER TABLE kldiv_outbox ADD COLUMN began BIGINT;"
    "ALTER TABLE kldiv_monitors ADD COLUMN settings TEXT NOT NULL DEFAULT '';"
    "UPDATE kldiv_monitors SET settings = former_settings;"
    "ALTER TABLE kldiv_monitors DROP COLUMN former_settings;"
    "CREATE INDEX kldiv_monitors_by_close ON kldiv_monitors (next_close) WHERE next_close IS NOT "
    "NULL;"
    "DELETE FROM kldiv_meta WHERE name IN ('change', 'deletion', 'mute', 'columns', 'written', "
    "'server');";

/* Adds a window's number of rows beside what is usual: see api_volume in api/monitors/model/window.h. */
static const char fourteenth[] =
    "ALTER TABLE kldiv_windows ADD COLUMN volume BYTEA;"
    "ALTER TABLE kldiv_monitors ADD COLUMN last_volume_ratio DOUBLE PRECISION;";

/* Versions up to the sixth refuse whatever is newer. */
const struct api_migration api_migrations[] = {
    {first, "monitors, windows, counts, events", 1, NULL},
    {second, "since when monitors have their state, and the bin that contributes most", 2, NULL},
    {third, "changes that servers tell each other", 3, NULL},
    {fourth, "sums of the windows before", 4, NULL},
    {fifth, "pools of windows, texts that are no labels, events of all monitors", 5, NULL},
    {sixth, "notifications, mutes, notes, and because of what monitors drift", 6, NULL},
    {seventh, "counts that servers keep apart", 7, NULL},
    {eighth, "joined bins, ratios, means, and where states rose", 8, NULL},
    {ninth, "columns that come and go, means of windows before", 8, NULL},
    {tenth, "how receivers of notifications do", 8, NULL},
    {eleventh, "who has muted", 8, NULL},
    {twelfth, "windows as one row each", 12, end_of_twelfth},
    {thirteenth, "what lists show, in a monitor's row", 13, NULL},
    {fourteenth, "numbers of rows", 14, NULL},
    {NULL, NULL, 0, NULL},
};

/* WINDOW_NUMBERS: a row without its long values. */
#define WINDOW_COLUMNS "monitor" API_WINDOW_COLUMNS(API_COLUMN_NAME)
#define WINDOW_NUMBERS                                                                             \
    "monitor" API_WINDOW_NUMBERS(API_COLUMN_NAME) API_WINDOW_LONG(API_COLUMN_NULL)

/* MONITOR: a row. SAMPLE: its first columns. WITH_TEXTS: with its settings and its definition. */
#define MONITOR_COLUMNS "id, group_name, name" API_MONITOR_COLUMNS(API_COLUMN_NAME)
#define MONITOR "SELECT " MONITOR_COLUMNS " FROM kldiv_monitors"
#define SAMPLE                                                                                     \
    "SELECT id, group_name, name" API_MONITOR_SAMPLE(API_COLUMN_NAME) " FROM kldiv_monitors"
#define MONITOR_SET                                                                                \
    "version = $1" API_MONITOR_SAMPLE_REST(API_COLUMN_SET) API_MONITOR_OTHERS(API_COLUMN_SET)
#define DEFINITION                                                                                 \
    "(SELECT definition FROM kldiv_revisions r WHERE r.monitor = m.id AND r.revision = "           \
    "m.revision)"
#define WITH_TEXTS "SELECT " MONITOR_COLUMNS ", settings, " DEFINITION " FROM kldiv_monitors m"

/* STALE_AT: a monitor is stale at a time. */
#define STALE_AT(time)                                                                             \
    "CASE WHEN stale_after IS NULL THEN missed >= 3 ELSE last_observation IS NOT NULL AND " time   \
    " - last_observation > stale_after END"

/* OPEN: of few windows, which an index has. The bound of their end leads SQLite to it. */
#define OPEN "closed = 0 AND end_at > -9223372036854775807"

/* OF_REVISION: of windows of a revision. CLOSED: of closed ones, BEFORE a position or BETWEEN two times; the ids of those. */
#define OF_REVISION " FROM kldiv_windows WHERE monitor = $1 AND revision = $2 AND "
#define CLOSED OF_REVISION "closed = 1 AND "
#define NEWEST_FIRST " ORDER BY start_at DESC, id DESC"
#define BEFORE "(start_at, id) < ($3, $4)" NEWEST_FIRST " LIMIT $5"
#define BETWEEN "start_at >= $3 AND start_at < $4"
#define IDS_BEFORE "(SELECT id" CLOSED BEFORE ")"
#define IDS_BETWEEN "(SELECT id" CLOSED BETWEEN ")"

/* IS_LEFT: of what is of a monitor, or of a group, that is gone. */
#define IS_LEFT(table)                                                                             \
    "NOT EXISTS (SELECT 1 FROM kldiv_monitors m WHERE m.group_name = " table ".group_name AND"     \
    " (m.name = " table ".name OR " table ".name = ''))"

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

#define RECENT CLOSED "start_at <= $3" NEWEST_FIRST " LIMIT $4"

/* A row constructor compares pairs in order, which both engines do by the index. So is one start given
 * as bounds, because for equality SQLite goes through all windows of the monitor. */
const char *const api_sql[API_STATEMENTS] = {
#define STATEMENT(name, text) [API_SQL_##name] = (text),
#include "api/store/statements.h"
};
