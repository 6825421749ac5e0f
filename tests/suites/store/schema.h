/* Schemas of SQLite as the migrations make them. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* Number of migrations, which is the newest version. */
int64_t schema_newest(void);

/* Runs the first migrations on an empty database, and leaves it a store of that version, by a program that knew no
 * other numbers than that. */
void schema_make(sqlite3 *sqlite, int64_t version);

/* SCHEMA_11: statements for change_file that make a store's schema the eleventh. */
#define SCHEMA_11                                                                                  \
    "UPDATE kldiv_meta SET value = 11 WHERE name = 'schema';"                                      \
    "UPDATE kldiv_meta SET value = 8 WHERE name = 'oldest';"                                       \
    "INSERT INTO kldiv_meta VALUES ('change', 0), ('deletion', 0), ('mute', 0), ('columns', 0), "  \
    "('server', 0);"                                                                               \
    "DROP INDEX kldiv_monitors_by_close;"                                                          \
    "ALTER TABLE kldiv_monitors DROP COLUMN next_close;"                                           \
    "ALTER TABLE kldiv_monitors DROP COLUMN warning;"                                              \
    "ALTER TABLE kldiv_monitors DROP COLUMN critical;"                                             \
    "ALTER TABLE kldiv_monitors DROP COLUMN significance;"                                         \
    "ALTER TABLE kldiv_monitors DROP COLUMN stale_after;"                                          \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_id;"                                              \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_start;"                                           \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_end;"                                             \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_restated;"                                        \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_n;"                                               \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_kl;"                                              \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_js;"                                              \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_psi;"                                             \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_unseen_ratio;"                                    \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_missing_ratio;"                                   \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_noise_floor;"                                     \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_top;"                                             \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_top_share;"                                       \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_top_names;"                                       \
    "ALTER TABLE kldiv_monitors DROP COLUMN n_recent;"                                             \
    "ALTER TABLE kldiv_monitors DROP COLUMN recent;"                                               \
    "ALTER TABLE kldiv_monitors DROP COLUMN began;"                                                \
    "ALTER TABLE kldiv_monitors DROP COLUMN last_volume_ratio;"                                    \
    "ALTER TABLE kldiv_windows DROP COLUMN volume;"                                                \
    "ALTER TABLE kldiv_events DROP COLUMN began;"                                                  \
    "ALTER TABLE kldiv_outbox DROP COLUMN began;"                                                  \
    "CREATE TABLE kldiv_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, bin BIGINT "   \
    "NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, window_id, bin)) WITHOUT ROWID;"       \
    "WITH RECURSIVE bins (bin) AS (SELECT 0 UNION ALL SELECT bin + 1 FROM bins WHERE bin < 200) "  \
    "INSERT INTO kldiv_counts SELECT monitor, id, bin, CAST(count_of(counts, bin) AS INTEGER) "    \
    "FROM kldiv_windows, bins WHERE count_of(counts, bin) > 0;"                                    \
    "ALTER TABLE kldiv_windows DROP COLUMN counts;"                                                \
    "UPDATE kldiv_windows SET reference = doubles_of(reference);"                                  \
    "CREATE TABLE kldiv_sums (monitor BIGINT PRIMARY KEY, counts BYTEA);"                          \
    "CREATE TABLE kldiv_server_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, "       \
    "server BIGINT NOT NULL, n BIGINT NOT NULL, at BIGINT NOT NULL, counts BYTEA NOT NULL, "       \
    "moments BYTEA, PRIMARY KEY (monitor, window_id, server));"                                    \
    "ALTER TABLE kldiv_unseen RENAME TO unseen;"                                                   \
    "CREATE TABLE kldiv_unseen (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, server "       \
    "BIGINT NOT NULL, label BYTEA NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (monitor, "         \
    "window_id, server, label)) WITHOUT ROWID;"                                                    \
    "INSERT INTO kldiv_unseen SELECT monitor, window_id, 8, label, 1 FROM unseen;"                 \
    "INSERT INTO kldiv_unseen SELECT monitor, window_id, 9, label, count - 1 FROM unseen;"         \
    "DROP TABLE unseen;"

/* BY_TWO_SERVERS: that two servers have each added a value of the first two, which are of one bin, to the open windows. */
#define BY_TWO_SERVERS                                                                             \
    "INSERT INTO kldiv_server_counts SELECT w.monitor, w.id, server, 1, last_observation, "        \
    "CAST(CASE bin WHEN 0 THEN x'' WHEN 1 THEN zeroblob(8) ELSE zeroblob(16) END || "              \
    "x'000000000000f03f' AS BLOB), CASE server WHEN 8 THEN moments END FROM kldiv_windows w JOIN " \
    "kldiv_monitors m ON m.id = w.monitor JOIN kldiv_counts c ON c.monitor = m.id AND "            \
    "c.window_id = w.id, (SELECT 8 AS server UNION SELECT 9) WHERE count > 1 AND closed = 0 AND "  \
    "bin = (SELECT min(bin) FROM kldiv_counts d WHERE d.monitor = m.id AND d.window_id = w.id);"   \
    "UPDATE kldiv_counts SET count = count - 2 WHERE EXISTS (SELECT 1 FROM kldiv_server_counts s " \
    "WHERE s.monitor = kldiv_counts.monitor AND s.window_id = kldiv_counts.window_id) AND bin = "  \
    "(SELECT min(bin) FROM kldiv_counts d WHERE d.monitor = kldiv_counts.monitor AND d.window_id " \
    "= kldiv_counts.window_id);"                                                                   \
    "UPDATE kldiv_windows SET n = n - 2, moments = NULL WHERE EXISTS (SELECT 1 FROM "              \
    "kldiv_server_counts s WHERE s.monitor = kldiv_windows.monitor AND s.window_id = id);"         \
    "UPDATE kldiv_monitors SET last_observation = NULL, observations = observations - 2 WHERE "    \
    "EXISTS (SELECT 1 FROM kldiv_server_counts s WHERE s.monitor = id);"
