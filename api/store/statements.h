/* STATEMENT: each statement of the store, by what it takes → gives: parameters $1, $2, … in order of their first use, and the
 * columns of its rows. sql.h makes an enumeration of the names, sql.c a table of the texts; each defines STATEMENT. */

STATEMENT(SCHEMA, /* → version of the schema, and the oldest one whose servers may use it */
          "SELECT s.value, coalesce(o.value, s.value) FROM kldiv_meta s LEFT JOIN kldiv_meta o ON "
          "o.name = 'oldest' WHERE s.name = 'schema'")
STATEMENT(SCHEMA_SET, /* both */
          "INSERT INTO kldiv_meta (name, value) VALUES ('schema', $1), ('oldest', $2) ON CONFLICT "
          "(name) DO UPDATE SET value = excluded.value")
STATEMENT(META_NEXT, /* name: 'monitor' or 'note' → a number that none ever had */
          "UPDATE kldiv_meta SET value = value + 1 WHERE name = $1 RETURNING value")
STATEMENT(PROBE, /* adds a number to the schema's: run it with 1 and with -1 */
          "UPDATE kldiv_meta SET value = value + $1 WHERE name = 'schema'")

/* The columns of a row are those of MONITOR; they end with its settings and its definition where there are texts. */
STATEMENT(MONITOR, /* id */
          MONITOR " WHERE id = $1")
/* id; another server waits until the transaction ends → id, number of the last write, observations, last observation */
STATEMENT(MONITOR_LOCKED, "SELECT id, changed, observations, last_observation FROM kldiv_monitors "
                          "WHERE id = $1")
STATEMENT(LOCK, /* number: of PostgreSQL alone */
          "SELECT pg_advisory_xact_lock($1)")
STATEMENT(MONITOR_NAMED, /* group, name */
          MONITOR " WHERE group_name = $1 AND name = $2")
STATEMENT(MONITORS_OF_GROUP, /* group */
          MONITOR " WHERE group_name = $1")
STATEMENT(MONITOR_CHANGED, /* id → number of its last write, observations */
          "SELECT changed, observations FROM kldiv_monitors WHERE id = $1")
STATEMENT(CHANGES, /* → id, number of the last write, observations of all */
          "SELECT id, changed, observations FROM kldiv_monitors")
STATEMENT(CHANGES_OF_GROUP, /* group → the same */
          "SELECT id, changed, observations FROM kldiv_monitors WHERE group_name = $1")
STATEMENT(SAMPLES, /* all, by the columns of SAMPLE */
          SAMPLE)
STATEMENT(SAMPLES_OF_GROUP, /* group */
          SAMPLE " WHERE group_name = $1")
STATEMENT(MONITORS_LASTING, /* those at warning or worse, or told to be stale */
          MONITOR " WHERE state >= 2 OR stale_told = 1 ORDER BY id")
/* time, a minute later → those whose silence began or ended, or of which receivers know less than they might, or that
 * were seen ahead of the clock */
STATEMENT(MONITORS_SILENT,
          MONITOR " WHERE CASE WHEN " STALE_AT("$1") " THEN 1 ELSE 0 END <> CASE "
                                                     "WHEN stale_told = 0 THEN 0 ELSE 1 END OR "
                                                     "told >= 0 OR last_observation > $2 ORDER BY "
                                                     "id")
STATEMENT(NEXT_SILENCE, /* → time at which the next one may be silent */
          "SELECT coalesce(min(last_observation + stale_after), 9223372036854775807) FROM "
          "kldiv_monitors WHERE stale_told = 0")
STATEMENT(NEXT_CLOSE, /* → time at which the next window is due */
          "SELECT coalesce(min(next_close), 9223372036854775807) FROM kldiv_monitors WHERE "
          "next_close IS NOT NULL")
STATEMENT(MONITORS_DUE, /* time, limit → id of those whose window is due */
          "SELECT id FROM kldiv_monitors WHERE next_close <= $1 ORDER BY next_close LIMIT $2")
STATEMENT(MONITORS_AFTER, /* id, limit → ids of those that follow */
          "SELECT id FROM kldiv_monitors WHERE id > $1 ORDER BY id LIMIT $2")
STATEMENT(MONITORS_UNFILLED, /* limit → id of those that were written by an older schema */
          "SELECT id FROM kldiv_monitors WHERE warning IS NULL LIMIT $1")
STATEMENT(MONITOR_SET_ASIDE, /* id: of one that cannot be read */
          "UPDATE kldiv_monitors SET warning = coalesce(warning, 0), next_close = NULL WHERE id = "
          "$1")
STATEMENT(MONITORS_COUNT, /* → number */
          "SELECT count(*) FROM kldiv_monitors")
STATEMENT(GROUP_COUNT, /* group, limit → number of its monitors, up to the limit */
          "SELECT count(*) FROM (SELECT 1 FROM kldiv_monitors WHERE group_name = $1 LIMIT $2) m")
STATEMENT(KNOWN, /* group, name → id, name, revision, version */
          "SELECT id, name, revision, version FROM kldiv_monitors WHERE group_name = $1 AND name = "
          "$2")
STATEMENT(KNOWN_OF_GROUP, /* group → the same of each */
          "SELECT id, name, revision, version FROM kldiv_monitors WHERE group_name = $1")
STATEMENT(TEXTS, /* id → settings, definition, version */
          "SELECT settings, " DEFINITION ", version FROM kldiv_monitors m WHERE id = $1")
STATEMENT(TEXTS_NAMED, /* group, name → row with texts */
          WITH_TEXTS " WHERE group_name = $1 AND name = $2")
STATEMENT(TEXTS_OF_GROUP, /* group → rows with texts */
          WITH_TEXTS " WHERE group_name = $1")
STATEMENT(TEXTS_OF_ALL, /* → rows with texts */
          WITH_TEXTS)
STATEMENT(MONITOR_NEW, /* id, group, name, settings */
          "INSERT INTO kldiv_monitors (id, group_name, name, settings, revision, version, state, "
          "observations, last_window) VALUES ($1, $2, $3, $4, 1, 1, 0, 0, 0)")
STATEMENT(MONITOR_SETTINGS, /* settings, id */
          "UPDATE kldiv_monitors SET settings = $1 WHERE id = $2")
STATEMENT(MONITOR_PUT, /* columns of a monitor, id */
          "UPDATE kldiv_monitors SET " MONITOR_SET " WHERE id = $42")
STATEMENT(MONITOR_COUNTED, /* observations, last observation, id */
          "UPDATE kldiv_monitors SET observations = $1, last_observation = $2 WHERE id = $3")
STATEMENT(MONITOR_DELETE, /* group, name → id */
          "DELETE FROM kldiv_monitors WHERE group_name = $1 AND name = $2 RETURNING id")
STATEMENT(GROUP_DELETE, /* group → id of each */
          "DELETE FROM kldiv_monitors WHERE group_name = $1 RETURNING id")
STATEMENT(REVISION_PUT, /* monitor, revision, definition */
          "INSERT INTO kldiv_revisions (monitor, revision, definition) VALUES ($1, $2, $3)")
STATEMENT(REVISION_SET, /* definition; monitor, revision */
          "UPDATE kldiv_revisions SET definition = $1 WHERE monitor = $2 AND revision = $3")
STATEMENT(REVISION, /* monitor, revision → definition */
          "SELECT definition FROM kldiv_revisions WHERE monitor = $1 AND revision = $2")
STATEMENT(REVISIONS_DELETE, /* monitor */
          "DELETE FROM kldiv_revisions WHERE monitor = $1")
/* monitor, current revision: deletes those that no window needs → revision */
STATEMENT(REVISIONS_PRUNE, "DELETE FROM kldiv_revisions WHERE monitor = $1 AND revision < $2 AND "
                           "NOT EXISTS (SELECT 1 FROM kldiv_windows w WHERE w.monitor = $1 AND "
                           "w.revision = kldiv_revisions.revision) RETURNING revision")

/* n, text, limit → groups whose first n characters are the text */
STATEMENT(SEGMENTS, "SELECT DISTINCT group_name FROM kldiv_monitors WHERE substr(group_name, 1, "
                    "CAST(CAST($1 AS BIGINT) AS INTEGER)) = $2 ORDER BY group_name LIMIT $3")
STATEMENT(WINDOW_PUT, /* monitor, and its columns */
          "INSERT INTO kldiv_windows (" WINDOW_COLUMNS ") VALUES ($1" API_WINDOW_COLUMNS(
              API_COLUMN_PARAMETER) ") ON CONFLICT (monitor, id) DO "
                                    "UPDATE SET monitor = excluded.monitor" API_WINDOW_COLUMNS(
                                        API_COLUMN_EXCLUDED))
STATEMENT(WINDOW_N, /* start, end, n, moments, counts; monitor, id */
          "UPDATE kldiv_windows SET start_at = $1, end_at = $2, n = $3, moments = $4, counts = $5 "
          "WHERE monitor = $6 AND id = $7")
STATEMENT(
    WINDOW_COUNTED, /* monitor, id → monitor, start, end, n, moments, counts */
    "SELECT monitor, start_at, end_at, n, moments, counts FROM kldiv_windows WHERE monitor = $1 "
    "AND id = $2")
STATEMENT(WINDOW_STATE, /* state; monitor, id */
          "UPDATE kldiv_windows SET state = $1 WHERE monitor = $2 AND id = $3")
STATEMENT(WINDOW_TOP, /* top, its share; monitor, id */
          "UPDATE kldiv_windows SET top = $1, top_share = $2 WHERE monitor = $3 AND id = $4")
STATEMENT(WINDOW, /* monitor, id */
          "SELECT " WINDOW_COLUMNS " FROM kldiv_windows WHERE monitor = $1 AND id = $2")
STATEMENT(WINDOW_AT, /* monitor, revision, start → the one that starts then */
          "SELECT " WINDOW_COLUMNS OF_REVISION
          "start_at >= $3 AND start_at <= $3 AND end_at = $4 ORDER BY start_at, id LIMIT 1")
STATEMENT(WINDOW_OPEN, /* monitor, revision → the open one that starts last */
          "SELECT " WINDOW_COLUMNS OF_REVISION OPEN NEWEST_FIRST " LIMIT 1")
STATEMENT(WINDOW_LATEST, /* monitor, revision → the closed one that starts last */
          "SELECT " WINDOW_COLUMNS OF_REVISION "closed = 1" NEWEST_FIRST " LIMIT 1")
STATEMENT(WINDOWS_OPEN, /* monitor, revision → all open ones */
          "SELECT " WINDOW_COLUMNS OF_REVISION OPEN " ORDER BY start_at, id")
STATEMENT(WINDOWS_OPEN_END, /* monitor, revision → end of the open one that ends first */
          "SELECT end_at" OF_REVISION OPEN " ORDER BY end_at LIMIT 1")
STATEMENT(WINDOWS_DUE, /* monitor, revision, end → open ones that end by then */
          "SELECT " WINDOW_COLUMNS OF_REVISION "closed = 0 AND end_at <= $3 ORDER BY start_at, id")
STATEMENT(WINDOWS, /* monitor, from, to, start and id to go on below, limit */
          "SELECT " WINDOW_COLUMNS " FROM kldiv_windows WHERE monitor = $1 AND start_at >= $2 AND "
          "start_at < $3 AND (start_at, id) < ($4, $5)" NEWEST_FIRST " LIMIT $6")
STATEMENT(WINDOWS_BEFORE, /* monitor, revision, start, id, limit → closed ones with a verdict */
          "SELECT " WINDOW_NUMBERS CLOSED "(start_at, id) < ($3, $4) AND verdict <> 0" NEWEST_FIRST
          " LIMIT $5")
STATEMENT(WINDOWS_FROM, /* monitor, revision, start, id, latest start → closed ones, in order */
          "SELECT " WINDOW_NUMBERS CLOSED
          "(start_at, id) >= ($3, $4) AND start_at <= $5 ORDER BY start_at, id")
STATEMENT(WINDOWS_LAST, /* monitor, revision, start, id, limit → closed ones before, newest first */
          "SELECT " WINDOW_COLUMNS CLOSED BEFORE)
/* monitor, revision, start, id, latest start, limit → closed ones after, in order */
STATEMENT(WINDOWS_NEXT,
          "SELECT " WINDOW_COLUMNS CLOSED
          "(start_at, id) > ($3, $4) AND start_at <= $5 ORDER BY start_at, id LIMIT $6")
STATEMENT(WINDOWS_RECENT, /* monitor, revision, latest start, limit → closed ones, newest first */
          "SELECT " WINDOW_NUMBERS RECENT)
/* monitor, revision, from, to, limit → number, first and last start, last end of closed ones */
STATEMENT(WINDOWS_SPAN, "SELECT count(*), min(start_at), max(start_at), max(end_at) FROM (SELECT "
                        "start_at, end_at" CLOSED BETWEEN " LIMIT $5) w")
/* monitor, end, 1 for closed ones alone, limit → id, start, revision, closed */
STATEMENT(WINDOWS_EXPIRED,
          "SELECT id, start_at, revision, closed FROM kldiv_windows WHERE monitor = $1 AND "
          "start_at < $2 AND end_at < $2 AND closed >= $3 ORDER BY start_at LIMIT $4")
STATEMENT(WINDOW_END, /* monitor, time → end of the one that starts last, and ends by then */
          "SELECT end_at FROM kldiv_windows WHERE monitor = $1 AND start_at <= $2 AND end_at <= "
          "$2" NEWEST_FIRST " LIMIT 1")
STATEMENT(ORPHANS, /* limit → monitors that are deleted, and have rows left */
          "SELECT DISTINCT monitor FROM kldiv_revisions r WHERE NOT EXISTS (SELECT 1 FROM "
          "kldiv_monitors m WHERE m.id = r.monitor) LIMIT $1")
STATEMENT(WINDOW_DELETE, /* monitor, id */
          "DELETE FROM kldiv_windows WHERE monitor = $1 AND id = $2")
STATEMENT(WINDOWS_DELETE_BETWEEN, /* monitor, from, to → id of each */
          "DELETE FROM kldiv_windows WHERE monitor = $1 AND start_at >= $2 AND start_at < $3 "
          "RETURNING id")

/* monitor, revision, start, id, limit → counts and moments of each closed one */
STATEMENT(COUNTS_BEFORE, "SELECT counts, moments" CLOSED BEFORE)
STATEMENT(COUNTS_BETWEEN, /* monitor, revision, from, to → the same */
          "SELECT counts, moments" CLOSED BETWEEN)
/* start, period, k, monitor, revision → the same of those that start a period before, two ... k periods */
STATEMENT(
    COUNTS_OF_SEASON, SEASON
    " SELECT counts, moments FROM season CROSS JOIN kldiv_windows w WHERE w.monitor = $4 AND "
    "w.revision = $5 AND w.closed = 1 AND w.start_at >= season.at AND w.start_at <= season.at")
/* of all revisions up to one: monitor, revision, start, id, limit → n, volume, length of closed ones, newest first; and those of a season, as
 * COUNTS_OF_SEASON */
STATEMENT(ROWS_BEFORE,
          "SELECT n, volume, end_at - start_at FROM kldiv_windows WHERE monitor = $1 AND "
          "revision <= $2 AND closed = 1 AND " BEFORE)
STATEMENT(
    ROWS_OF_SEASON, SEASON
    " SELECT n, volume, end_at - start_at FROM season CROSS JOIN kldiv_windows w WHERE w.monitor = "
    "$4 AND "
    "w.revision <= $5 AND w.closed = 1 AND w.start_at >= season.at AND w.start_at <= season.at")
/* monitor, revision, start, id, limit → start, id, reference, counts of closed ones, newest first */
STATEMENT(POOL, "SELECT start_at, id, reference, counts" CLOSED BEFORE)

STATEMENT(UNSEEN_ADD, /* monitor, window, label, count */
          "INSERT INTO kldiv_unseen (monitor, window_id, label, count) VALUES ($1, $2, $3, $4) ON "
          "CONFLICT (monitor, window_id, label) DO UPDATE SET count = kldiv_unseen.count + "
          "excluded.count")
STATEMENT(
    UNSEEN_PRUNE, /* monitor, window, number: keeps as many, the most frequent */
    "DELETE FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2 AND label NOT IN (SELECT "
    "label FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2 ORDER BY count DESC, label "
    "LIMIT $3)")
STATEMENT(UNSEEN, /* monitor, window, limit → label, count, most frequent first */
          "SELECT label, count FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2 ORDER BY "
          "count DESC, label LIMIT $3")
STATEMENT(UNSEEN_BETWEEN, /* monitor, revision, from, to, limit → label, sum over closed windows */
          "SELECT label, CAST(sum(count) AS BIGINT) AS total FROM kldiv_unseen WHERE monitor = $1 "
          "AND window_id IN " IDS_BETWEEN " GROUP BY label ORDER BY total DESC, label LIMIT $5")
/* monitor, revision, start, id, limit → window, label, sum over the closed windows before */
STATEMENT(UNSEEN_OF_POOL, "SELECT window_id, label, CAST(sum(count) AS BIGINT) AS total FROM "
                          "kldiv_unseen WHERE monitor = $1 AND window_id IN " IDS_BEFORE
                          " GROUP BY window_id, label ORDER BY total DESC, label")
STATEMENT(UNSEEN_DELETE, /* monitor, window */
          "DELETE FROM kldiv_unseen WHERE monitor = $1 AND window_id = $2")
STATEMENT(UNSEEN_DELETE_BETWEEN, /* monitor, from, to */
          "DELETE FROM kldiv_unseen WHERE monitor = $1 AND window_id IN (SELECT id FROM "
          "kldiv_windows WHERE monitor = $1 AND start_at >= $2 AND start_at < $3)")

STATEMENT(EVENT_PUT, /* monitor, at, from, to, kl, window, began */
          "INSERT INTO kldiv_events (monitor, id, at, from_state, to_state, kl, window_id, began) "
          "SELECT $1, coalesce(max(id), 0) + 1, $2, $3, $4, $5, $6, CAST($7 AS BIGINT) FROM "
          "kldiv_events WHERE monitor = $1")
STATEMENT(EVENTS, /* monitor, id to go on below, limit */
          "SELECT id, at, from_state, to_state, kl, window_id, began FROM kldiv_events WHERE "
          "monitor = $1 "
          "AND id < $2 ORDER BY id DESC LIMIT $3")
/* earliest time; time, monitor and id to go on below; group or ""; 8 times the characters of groups' names that
 * are compared, with what; limit */
STATEMENT(
    EVENTS_OF_ALL,
    "SELECT e.id, at, from_state, to_state, kl, window_id, e.began, monitor, group_name, name FROM "
    "kldiv_events e JOIN kldiv_monitors m ON m.id = e.monitor WHERE at >= $1 AND (at, "
    "monitor, e.id) < ($2, $3, $4) AND (group_name = $5 OR $5 = '') AND" OF_TOKEN
    " ORDER BY at DESC, monitor DESC, e.id DESC LIMIT $22")
/* group, from, to, windows of each monitor, limit → start, end, monitors that drifted, monitors */
STATEMENT(
    GROUP_HISTORY,
    "SELECT w.start_at, w.end_at, CAST(sum(CASE WHEN w.state >= 2 THEN 1 ELSE 0 END) AS BIGINT), "
    "count(*) FROM kldiv_monitors m JOIN kldiv_windows w ON w.monitor = m.id WHERE m.group_name = "
    "$1 AND w.closed = 1 AND w.start_at >= $2 AND w.start_at < $3 AND w.start_at >= "
    "coalesce((SELECT p.start_at FROM kldiv_windows p WHERE p.monitor = m.id AND p.start_at < $3 "
    "ORDER BY p.start_at DESC, p.id DESC LIMIT 1 OFFSET $4), -9223372036854775807) GROUP BY "
    "w.start_at, w.end_at ORDER BY w.start_at DESC, w.end_at DESC LIMIT $5")
STATEMENT(EVENTS_DELETE, /* monitor */
          "DELETE FROM kldiv_events WHERE monitor = $1")
STATEMENT(EVENTS_EXPIRE, /* monitor, at: deletes older ones among the first hundred → id */
          "DELETE FROM kldiv_events WHERE monitor = $1 AND at < $2 AND id < (SELECT min(id) + 100 "
          "FROM kldiv_events WHERE monitor = $1) AND id < (SELECT max(id) FROM kldiv_events WHERE "
          "monitor = $1) RETURNING id")

STATEMENT(MUTES, /* → group, name, until, reason, by of each; that of a group has no name */
          "SELECT group_name, name, until_at, reason, muted_by FROM kldiv_mutes")
STATEMENT(MUTE_PUT, /* group, name, until, reason, by */
          "INSERT INTO kldiv_mutes (group_name, name, until_at, reason, muted_by) VALUES ($1, $2, "
          "$3, $4, $5) ON CONFLICT (group_name, name) DO UPDATE SET until_at = excluded.until_at, "
          "reason = excluded.reason, muted_by = excluded.muted_by")
STATEMENT(MUTE_DELETE, /* group, name */
          "DELETE FROM kldiv_mutes WHERE group_name = $1 AND name = $2")
/* at: deletes those that are over by then, of what is deleted, and those of former versions that end when a monitor is ok */
STATEMENT(MUTES_END, "DELETE FROM kldiv_mutes WHERE until_at <= $1 OR until_at = "
                     "9223372036854775807 OR " IS_LEFT("kldiv_mutes"))

STATEMENT(COLUMNS, /* group → name, 1 if it was left out, missed of each column without a monitor */
          "SELECT name, left_out, missed FROM kldiv_columns c WHERE group_name = $1 AND NOT EXISTS "
          "(SELECT 1 FROM kldiv_monitors m WHERE m.group_name = c.group_name AND m.name = c.name) "
          "ORDER BY name")
STATEMENT(COLUMNS_COUNT, /* → number of all */
          "SELECT count(*) FROM kldiv_columns")
STATEMENT(COLUMN_PUT, /* the same */
          "INSERT INTO kldiv_columns (group_name, name, left_out, missed) VALUES ($1, $2, $3, $4) "
          "ON CONFLICT (group_name, name) DO UPDATE SET missed = excluded.missed, left_out = CASE "
          "excluded.left_out WHEN 0 THEN kldiv_columns.left_out ELSE 1 END")
STATEMENT(COLUMN_DELETE, /* group, name: unless it was left out */
          "DELETE FROM kldiv_columns WHERE group_name = $1 AND name = $2 AND left_out = 0")
STATEMENT(COLUMNS_PRUNE, /* deletes those of groups that are gone, or that have a monitor */
          "DELETE FROM kldiv_columns WHERE NOT EXISTS (SELECT 1 FROM kldiv_monitors m WHERE "
          "m.group_name = kldiv_columns.group_name) OR EXISTS (SELECT 1 FROM kldiv_monitors m "
          "WHERE m.group_name = kldiv_columns.group_name AND m.name = kldiv_columns.name)")
STATEMENT(NOTE_PUT, /* id, group, name, from, to, created, text; that of a group has no name */
          "INSERT INTO kldiv_notes (id, group_name, name, from_at, to_at, created_at, text) VALUES "
          "($1, $2, $3, $4, $5, $6, $7)")
/* group, name or "" for all of the group, to, from, start and id to go on below, limit → id, name, from, to,
 * created, text */
STATEMENT(NOTES, "SELECT id, name, from_at, to_at, created_at, text FROM kldiv_notes WHERE "
                 "group_name = $1 AND (name = $2 OR name = '' OR $2 = '') AND from_at < $3 AND "
                 "to_at >= $4 AND (from_at, id) < ($5, $6) ORDER BY from_at DESC, id DESC LIMIT $7")
STATEMENT(NOTES_COUNT, /* group → number, those of its monitors too */
          "SELECT count(*) FROM kldiv_notes WHERE group_name = $1")
STATEMENT(NOTE_DELETE, /* group, name, id; id */
          "DELETE FROM kldiv_notes WHERE group_name = $1 AND name = $2 AND id = $3 RETURNING id")
STATEMENT(NOTES_PRUNE, /* group: deletes those of what is deleted */
          "DELETE FROM kldiv_notes WHERE group_name = $1 AND " IS_LEFT("kldiv_notes"))

/* receiver, queued, monitor, group, name, from, to, at, since, kl, sentence, trace, began */
STATEMENT(
    OUTBOX_PUT,
    "INSERT INTO kldiv_outbox (receiver, id, message, queued, monitor, group_name, name, "
    "from_state, to_state, at, since, kl, sentence, trace, began) VALUES ($1, coalesce((SELECT id "
    "FROM kldiv_outbox WHERE receiver = $1 ORDER BY id DESC LIMIT 1), 0) + 1, 0, $2, $3, $4, "
    "$5, $6, $7, $8, $9, $10, $11, $12, $13)")
STATEMENT(OUTBOX_FIRST, /* receiver → queued, message and group of the change to send first */
          "SELECT queued, message, group_name FROM kldiv_outbox WHERE receiver = $1 ORDER BY "
          "message = 0, id LIMIT 1")
/* message, receiver, group, n, text, limit: the first changes of the group, and of groups whose first n characters are the text, are that
 * message */
STATEMENT(OUTBOX_ASSIGN,
          "UPDATE kldiv_outbox SET message = $1 WHERE receiver = $2 AND id IN (SELECT id FROM "
          "kldiv_outbox WHERE receiver = $2 AND (group_name = $3 OR substr(group_name, 1, "
          "CAST(CAST($4 AS BIGINT) AS INTEGER)) = $5) ORDER BY id LIMIT $6)")
/* receiver, message → queued, monitor, group, name, from, to, at, since, kl, sentence, trace, began */
STATEMENT(
    OUTBOX,
    "SELECT queued, monitor, group_name, name, from_state, to_state, at, since, kl, "
    "sentence, trace, began FROM kldiv_outbox WHERE receiver = $1 AND message = $2 ORDER BY id")
STATEMENT(OUTBOX_DELETE, /* receiver, message */
          "DELETE FROM kldiv_outbox WHERE receiver = $1 AND message = $2")
STATEMENT(OUTBOX_PRUNE, /* deletes those of monitors that are deleted */
          "DELETE FROM kldiv_outbox WHERE NOT EXISTS (SELECT 1 FROM kldiv_monitors m WHERE m.id = "
          "kldiv_outbox.monitor)")
STATEMENT(OUTBOX_EXPIRE, /* queued: deletes older ones → id */
          "DELETE FROM kldiv_outbox WHERE queued < $1 RETURNING id")
STATEMENT(OUTBOX_COUNT, /* receiver → number */
          "SELECT count(*) FROM kldiv_outbox WHERE receiver = $1")
STATEMENT(LEASE, /* → name and value of who sends, and until when */
          "SELECT name, value FROM kldiv_meta WHERE name IN ('notify_owner', 'notify_until')")
STATEMENT(LEASE_SET, /* server, until */
          "UPDATE kldiv_meta SET value = CASE name WHEN 'notify_owner' THEN CAST($1 AS BIGINT) "
          "ELSE CAST($2 AS BIGINT) END WHERE name IN ('notify_owner', 'notify_until')")
STATEMENT(RECEIVER, /* name → last_success, last_failure, failing_since, failure */
          "SELECT last_success, last_failure, failing_since, failure FROM kldiv_receivers WHERE "
          "name = $1")
STATEMENT(RECEIVER_PUT, /* name, and those */
          "INSERT INTO kldiv_receivers (name, last_success, last_failure, failing_since, failure) "
          "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO UPDATE SET last_success = "
          "excluded.last_success, last_failure = excluded.last_failure, failing_since = "
          "excluded.failing_since, failure = excluded.failure")

STATEMENT(KEY, /* key → body, answer */
          "SELECT body, answer FROM kldiv_keys WHERE key = $1")
STATEMENT(KEY_PUT, /* key, body, at, answer */
          "INSERT INTO kldiv_keys (key, body, at, answer) VALUES ($1, $2, $3, $4) ON CONFLICT "
          "(key) DO UPDATE SET body = excluded.body, at = excluded.at, answer = excluded.answer")
STATEMENT(KEYS_PRUNE, /* at: deletes older ones */
          "DELETE FROM kldiv_keys WHERE at < $1")
STATEMENT(
    KEYS_TRIM, /* number: deletes as many, oldest first */
    "DELETE FROM kldiv_keys WHERE key IN (SELECT key FROM kldiv_keys ORDER BY at, key LIMIT $1)")
STATEMENT(KEYS_COUNT, /* → number */
          "SELECT count(*) FROM kldiv_keys")

/* ---- Migration from the schema of 11 */

STATEMENT(FORMER_WINDOWS, /* → monitor, id of all */
          "SELECT monitor, id FROM kldiv_windows ORDER BY monitor, id")
STATEMENT(FORMER_COUNTS, /* monitor, window to begin with, to end with → window, bin, count */
          "SELECT window_id, bin, count FROM kldiv_counts WHERE monitor = $1 AND window_id >= $2 "
          "AND window_id <= $3")
STATEMENT(
    FORMER_SERVER_COUNTS, /* the same → window, counts */
    "SELECT window_id, s.counts FROM kldiv_server_counts s JOIN kldiv_windows w ON w.monitor = "
    "s.monitor AND w.id = window_id AND closed = 0 WHERE s.monitor = $1 AND window_id >= $2 "
    "AND window_id <= $3")
STATEMENT(FORMER_REFERENCES, /* the same → window, doubles */
          "SELECT id, reference FROM kldiv_windows WHERE monitor = $1 AND id >= $2 AND id <= $3 "
          "AND reference IS NOT NULL")
/* → monitor, window, moments of windows to which servers have added, and those that these have added, window by window */
STATEMENT(
    FORMER_SUMS,
    "SELECT monitor, id, moments FROM kldiv_windows w WHERE closed = 0 AND EXISTS (SELECT 1 "
    "FROM kldiv_server_counts s WHERE s.monitor = w.monitor AND s.window_id = w.id) UNION "
    "ALL SELECT s.monitor, window_id, s.moments FROM kldiv_server_counts s JOIN kldiv_windows "
    "w ON w.monitor = s.monitor AND w.id = window_id AND closed = 0 ORDER BY 1, 2")
STATEMENT(WINDOW_COUNTS, /* counts; monitor, id */
          "UPDATE kldiv_windows SET counts = $1 WHERE monitor = $2 AND id = $3")
STATEMENT(WINDOW_REFERENCE, /* reference; monitor, id */
          "UPDATE kldiv_windows SET reference = $1 WHERE monitor = $2 AND id = $3")
STATEMENT(WINDOW_MOMENTS, /* moments; monitor, id */
          "UPDATE kldiv_windows SET moments = $1 WHERE monitor = $2 AND id = $3")
