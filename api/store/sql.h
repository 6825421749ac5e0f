/* The statements of the store, in SQL that SQLite and PostgreSQL share: upserts, RETURNING, and
 * parameters $1, $2, … in order of their first use; parameters and values of rows. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum api_statement {
    API_SQL_SCHEMA,     /* → version of the schema, and the oldest one whose servers may use it */
    API_SQL_SCHEMA_SET, /* both */
    API_SQL_META,       /* → name and value of each number about the whole */
    API_SQL_NEXT_MONITOR, /* → a number that no monitor ever had */
    API_SQL_CHANGE_SET,   /* number of the last change of monitors */
    API_SQL_DELETION_SET, /* number of the last change that deleted some */
    API_SQL_MUTE_SET,     /* number of the last change of mutes */
    API_SQL_COLUMNS_SET,  /* number of the last change of columns without a monitor */
    API_SQL_PROBE,        /* adds a number to the schema's: run it with 1 and with -1 */

    API_SQL_MONITORS,         /* → all monitors with their current definition */
    API_SQL_MONITORS_CHANGED, /* change → those that were changed after it */
    API_SQL_MONITOR_IDS,      /* → id of each */
    API_SQL_MONITOR_PUT,      /* id, group, name, revision, version, settings, change */
    API_SQL_MONITOR_LIVE, /* state, observations to add, last observation, last window, severity since,
                                 newest end of a window, since, pool from, sentence, its window, change, rose at, its window, missed; id
                               */
    API_SQL_MONITOR_DELETE,   /* id */
    API_SQL_MONITOR_REMOVE,   /* group, name: deletes one that could not be read; id */
    API_SQL_GROUP_REMOVE,     /* group: those of it that are left; id */
    API_SQL_REVISION_PUT,     /* monitor, revision, definition */
    API_SQL_REVISION,         /* monitor, revision → definition */
    API_SQL_REVISIONS_DELETE, /* monitor */
    API_SQL_REVISIONS_PRUNE, /* monitor, current revision: deletes those that no window needs → revision */

    API_SQL_WINDOW_PUT,     /* all columns: see api_window_row */
    API_SQL_WINDOW_N,       /* start, end, n, moments; monitor, id */
    API_SQL_WINDOW_STATE,   /* state; monitor, id */
    API_SQL_WINDOW_TOP,     /* top, its share; monitor, id */
    API_SQL_WINDOW,         /* monitor, id */
    API_SQL_WINDOW_AT,      /* monitor, revision, start → the one that starts then */
    API_SQL_WINDOW_OPEN,    /* monitor, revision → the open one that starts last */
    API_SQL_WINDOW_LATEST,  /* monitor, revision → the closed one that starts last */
    API_SQL_WINDOWS_OPEN,   /* monitor, revision → all open ones */
    API_SQL_WINDOWS_DUE,    /* monitor, revision, end → open ones that end by then */
    API_SQL_WINDOWS,        /* monitor, from, to, start and id to go on below, limit */
    API_SQL_WINDOWS_BEFORE, /* monitor, revision, start, id, limit → closed ones with a verdict */
    API_SQL_WINDOWS_FROM, /* monitor, revision, start, id, latest start → closed ones, in order */
    API_SQL_WINDOWS_LAST, /* monitor, revision, start, id, limit → closed ones before, newest first */
    API_SQL_WINDOWS_NEXT, /* monitor, revision, start, id, latest start, limit → closed ones after, in order */
    API_SQL_WINDOWS_RECENT, /* monitor, revision, latest start, limit → closed ones, newest first */
    API_SQL_WINDOWS_RECENT_WHOLE, /* the same → with settings and reference */
    API_SQL_WINDOWS_SPAN, /* monitor, revision, from, to, limit → number, first and last start, last end of
                             closed ones */
    API_SQL_WINDOWS_EXPIRED, /* monitor, end, 1 for closed ones alone, limit → id, start, revision,
                                closed */
    API_SQL_WINDOW_END, /* monitor, time → end of the one that starts last, and ends by then */
    API_SQL_KEYS_OF_WINDOWS_BEFORE, /* monitor, revision, start, id, limit → start, id of closed ones,
                                       newest first */
    API_SQL_KEY_OF_WINDOW_AFTER, /* monitor, revision, start, id → start, id of the next closed one */
    API_SQL_WINDOWS_COUNT_FROM, /* monitor, revision, start, id, limit → number of closed ones */
    API_SQL_ORPHANS,            /* → monitors that are deleted, and have rows left */
    API_SQL_WINDOW_DELETE,      /* monitor, id */

    API_SQL_COUNT_ADD,      /* monitor, window, then bin and count of each row */
    API_SQL_COUNT_ADD_4,    /* 4 rows */
    API_SQL_COUNT_ADD_16,   /* 16 rows: half the time of as many statements */
    API_SQL_COUNTS,         /* monitor, window → bin, count */
    API_SQL_COUNTS_BEFORE,  /* monitor, revision, start, id, limit → bin, sum over closed ones */
    API_SQL_COUNTS_FROM,    /* monitor, revision, start, id → bin, sum over closed ones */
    API_SQL_COUNTS_BETWEEN, /* monitor, revision, from, to → bin, sum over closed ones */
    API_SQL_MOMENTS,        /* monitor, window → moments */
    API_SQL_MOMENTS_BEFORE, /* as COUNTS_BEFORE → moments of each window */
    API_SQL_MOMENTS_FROM,   /* as COUNTS_FROM, limit → the same */
    API_SQL_MOMENTS_OF_SEASON, /* as COUNTS_OF_SEASON → the same */
    API_SQL_MOMENTS_BETWEEN,   /* monitor, revision, from, to → moments of each closed window */
    API_SQL_COUNTS_OF_SEASON, /* start, period, k, monitor, revision → bin, sum over closed ones that start
                                 a period before, two ... k periods */
    API_SQL_POOL, /* monitor, revision, start, id, limit → start, id, reference of closed ones, newest first */
    API_SQL_COUNTS_OF_POOL, /* the same → id, bin, count */
    API_SQL_COUNTS_DELETE,  /* monitor, window */

    API_SQL_SERVER_NEXT,       /* → a number that no server had since the store is what it is */
    API_SQL_SERVER_COUNTS_PUT, /* monitor, window, server, n, time of the last observation, counts */
    API_SQL_SERVER_COUNTS,     /* monitor, window → server, n, time, counts */
    API_SQL_SERVER_COUNTS_TAKE,   /* the same; deletes them */
    API_SQL_SERVER_COUNTS_DELETE, /* monitor */
    API_SQL_OBSERVATIONS,         /* monitor → number of its values */
    API_SQL_OBSERVATIONS_OF_OTHERS, /* server → group, name, id, number of values, time of the last, of
                                       monitors for which another server has counts */

    API_SQL_UNSEEN_ADD,   /* monitor, window, server, label, count */
    API_SQL_UNSEEN_PRUNE, /* monitor, window, server, number: keeps as many, the most frequent */
    API_SQL_UNSEEN,       /* monitor, window, limit → label, count, most frequent first */
    API_SQL_UNSEEN_BETWEEN, /* monitor, revision, from, to, limit → label, sum over closed windows */
    API_SQL_UNSEEN_OF_POOL, /* monitor, revision, start, id, limit → window, label, sum over the closed windows before */
    API_SQL_UNSEEN_DELETE, /* monitor, window */

    API_SQL_EVENT_PUT,     /* monitor, at, from, to, kl, window */
    API_SQL_EVENTS,        /* monitor, id to go on below, limit */
    API_SQL_EVENTS_OF_ALL, /* earliest time; time, monitor and id to go on below; group or ""; 8 times
                              the characters of groups' names that are compared, with what; limit */
    API_SQL_GROUP_HISTORY, /* group, from, to, windows of each monitor, limit → start, end, monitors that drifted, monitors */
    API_SQL_EVENTS_DELETE, /* monitor */
    API_SQL_EVENTS_EXPIRE, /* monitor, at: deletes older ones among the first hundred → id */

    API_SQL_SUM,        /* monitor → the columns of SUM_PUT without it */
    API_SQL_SUM_PUT,    /* monitor, revision, k, n, start and id of the oldest window, of the newest
                           one, counts: see api/monitors/state/previous.h */
    API_SQL_SUM_DELETE, /* monitor */

    API_SQL_MUTES,       /* → group, name, until, reason of each; that of a group has no name */
    API_SQL_MUTE_PUT,    /* group, name, until, reason */
    API_SQL_MUTE_DELETE, /* group, name */
    API_SQL_MUTES_PRUNE, /* at: deletes those that are over by then, or of what is deleted */

    API_SQL_COLUMNS, /* → group, name, 1 if it was left out, missed of each column without a monitor */
    API_SQL_COLUMN_PUT,    /* the same */
    API_SQL_COLUMN_DELETE, /* group, name: unless it was left out */
    API_SQL_COLUMNS_PRUNE, /* deletes those of groups that are gone, or that have a monitor */
    API_SQL_NOTE_NEXT,     /* → a number that no note ever had */
    API_SQL_NOTE_PUT, /* id, group, name, from, to, created, text; that of a group has no name */
    API_SQL_NOTES, /* group, name or "" for all of the group, to, from, start and id to go on below,
                            limit → id, name, from, to, created, text */
    API_SQL_NOTES_COUNT, /* group → number, those of its monitors too */
    API_SQL_NOTE_DELETE, /* group, name, id; id */
    API_SQL_NOTES_PRUNE, /* group: deletes those of what is deleted */

    API_SQL_OUTBOX_PUT, /* receiver, queued, monitor, group, name, from, to, at, since, kl, sentence,
                           trace */
    API_SQL_OUTBOX_FIRST,  /* receiver → queued, message and group of the change to send first */
    API_SQL_OUTBOX_ASSIGN, /* message, receiver, group, limit: its first changes are that message */
    API_SQL_OUTBOX, /* receiver, message → queued, monitor, group, name, from, to, at, since,
                              kl, sentence, trace */
    API_SQL_OUTBOX_DELETE, /* receiver, message */
    API_SQL_OUTBOX_PRUNE,  /* deletes those of monitors that are deleted */
    API_SQL_OUTBOX_EXPIRE, /* queued: deletes older ones → id */
    API_SQL_OUTBOX_COUNT,  /* receiver → number */
    API_SQL_LEASE,         /* → name and value of who sends, and until when */
    API_SQL_LEASE_SET,     /* server, until */
    API_SQL_RECEIVER,      /* name → last_success, last_failure, failing_since, failure */
    API_SQL_RECEIVER_PUT,  /* name, and those */

    API_SQL_KEY,        /* key → body, answer */
    API_SQL_KEY_PUT,    /* key, body, at, answer */
    API_SQL_KEY_CLAIM,  /* the same → at; no row if there is such a key */
    API_SQL_KEYS_PRUNE, /* at: deletes older ones */
    API_SQL_KEYS_TRIM,  /* number: deletes as many, oldest first */
    API_SQL_KEYS_COUNT, /* → number */
    API_STATEMENTS,
};

extern const char *const api_sql[API_STATEMENTS];

/* api_migration: number n, from 1, leads to version n of the schema. */
struct api_migration {
    const char *text; /* {clustered} is replaced by the engine's words; NULL ends the table */
    const char *what; /* what it is for, told to people */

    /* The oldest version of the schema whose servers may go on beside: that of the migration before, if this one only
     * adds tables, indices, numbers, and columns that are NULL or have a default, and what those servers write keeps
     * its meaning; otherwise n. Such servers list their columns, and see none that they do not name. */
    int64_t oldest;
};
extern const struct api_migration api_migrations[];

/* API_SQL_ADOPT: gives the tables of versions that named them generically, all of the third schema or
 * older, the names that these statements use. The view has an older version that starts see that the store
 * is newer, where it would make another. */
#define API_SQL_ADOPT                                                                              \
    "ALTER TABLE meta RENAME TO kldiv_meta;"                                                       \
    "ALTER TABLE monitors RENAME TO kldiv_monitors;"                                               \
    "ALTER TABLE revisions RENAME TO kldiv_revisions;"                                             \
    "ALTER TABLE windows RENAME TO kldiv_windows;"                                                 \
    "ALTER TABLE counts RENAME TO kldiv_counts;"                                                   \
    "ALTER TABLE events RENAME TO kldiv_events;"                                                   \
    "ALTER TABLE keys RENAME TO kldiv_keys;"                                                       \
    "CREATE VIEW meta AS SELECT name, value FROM kldiv_meta;"

/* ---- Data */

/* api_datum: a parameter of a statement, or a value of a row. Texts and bytes are borrowed: from rows
 * until the row's function returns. */
enum api_datum_kind { API_SQL_NULL, API_SQL_INTEGER, API_SQL_REAL, API_SQL_TEXT, API_SQL_BYTES };
struct api_datum {
    enum api_datum_kind kind;
    int64_t integer;
    double real;
    const char *text;
    size_t size;
};

#define API_INTEGER(value)                                                                         \
    ((struct api_datum){.kind = API_SQL_INTEGER, .integer = (int64_t)(value)})
#define API_BYTES(data, length)                                                                    \
    ((struct api_datum){.kind = API_SQL_BYTES, .text = (data), .size = (length)})

static inline struct api_datum api_datum_integer(int64_t value) { return API_INTEGER(value); }
static inline struct api_datum api_datum_size(size_t value) { return API_INTEGER(value); }
static inline struct api_datum api_datum_same(struct api_datum datum) { return datum; }
static inline struct api_datum api_datum_text(const char *text)
{
    return (struct api_datum){.kind = API_SQL_TEXT, .text = text, .size = strlen(text)};
}

/* A number; NaN becomes NULL, which is how a row gives it back. */
static inline struct api_datum api_datum_real(double value)
{
    if (isnan(value))
        return (struct api_datum){.kind = API_SQL_NULL};
    return (struct api_datum){.kind = API_SQL_REAL, .real = value};
}

/* API_DATUM: a value, by its type: whole numbers, a double, a text, or an api_datum. */
#define API_DATUM(value)                                                                           \
    _Generic((value), double                                                                       \
             : api_datum_real, char *                                                              \
             : api_datum_text, const char *                                                        \
             : api_datum_text, size_t                                                              \
             : api_datum_size, struct api_datum                                                    \
             : api_datum_same, default                                                             \
             : api_datum_integer)(value)

/* API_ROW: the parameters of a statement, 1 to 12 values; they last until the block ends. */
#ifdef __cppcheck__ /* it cannot read arrays in the middle of expressions */
const struct api_datum *api_row_checked(const void *first, ...);
#define API_ROW(...) api_row_checked("", __VA_ARGS__)
#else
#define API_ROW(...)                                                                               \
    ((const struct api_datum[]){                                                                   \
        API_ROW_OF(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)})
#endif
#define API_ROW_OF(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) API_ROW_##n
#define API_ROW_1(a) API_DATUM(a)
#define API_ROW_2(a, ...) API_DATUM(a), API_ROW_1(__VA_ARGS__)
#define API_ROW_3(a, ...) API_DATUM(a), API_ROW_2(__VA_ARGS__)
#define API_ROW_4(a, ...) API_DATUM(a), API_ROW_3(__VA_ARGS__)
#define API_ROW_5(a, ...) API_DATUM(a), API_ROW_4(__VA_ARGS__)
#define API_ROW_6(a, ...) API_DATUM(a), API_ROW_5(__VA_ARGS__)
#define API_ROW_7(a, ...) API_DATUM(a), API_ROW_6(__VA_ARGS__)
#define API_ROW_8(a, ...) API_DATUM(a), API_ROW_7(__VA_ARGS__)
#define API_ROW_9(a, ...) API_DATUM(a), API_ROW_8(__VA_ARGS__)
#define API_ROW_10(a, ...) API_DATUM(a), API_ROW_9(__VA_ARGS__)
#define API_ROW_11(a, ...) API_DATUM(a), API_ROW_10(__VA_ARGS__)
#define API_ROW_12(a, ...) API_DATUM(a), API_ROW_11(__VA_ARGS__)

static inline double api_datum_number(const struct api_datum *datum)
{
    return datum->kind == API_SQL_REAL      ? datum->real
           : datum->kind == API_SQL_INTEGER ? (double)datum->integer
                                            : (double)NAN;
}

/* api_rows: the receiver of a statement's rows. */
typedef void api_row_reader(void *context, const struct api_datum *values);
struct api_rows {
    api_row_reader *row;
    void *context;
};

/* Receives one row of one integer into an int64_t. */
static inline void api_datum_read_integer(void *context, const struct api_datum *values)
{
    *(int64_t *)context = values[0].integer;
}
