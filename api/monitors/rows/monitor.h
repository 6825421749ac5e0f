/* api_monitor: a monitor as its row has it, and as a transaction changes it; how it is at a moment. */
#pragma once

#include "api/json/format.h"
#include "api/monitors/model/config.h"
#include "api/monitors/model/sentence.h"
#include "api/monitors/model/window.h"
#include "api/monitors/rows/mutes.h"
#include "api/store/sql.h"
#include "api/text/trace.h"

/* API_RECENT: closed windows whose divergence is kept. */
enum { API_RECENT = 30 };

/* API_NONE_WITHHELD: receivers know how a monitor is. */
enum { API_NONE_WITHHELD = -1 };

/* api_silence: what was told of the silence of a monitor. The store has their numbers; of older versions also 3 for API_PAST,
 * and 4 for API_SILENT. */
enum api_silence {
    API_HEARD,  /* nothing, or that it has ended */
    API_SILENT, /* that it is stale, by an event */
    API_PAST,   /* nothing, though it is stale: its observations were of the past when they came */
};

/* api_monitor_status: what observations change. */
struct api_monitor_status {
    enum api_verdict state;
    int64_t
        since; /* time of the event by which the state left ok or returned to it; API_NO_TIME without one */
    int64_t severity_since; /* time of the event that made the state */
    int64_t
        began; /* of a state above ok: when the drift began, see api_pool_began; else API_NO_TIME */
    struct api_turns turns; /* of the state */
    int64_t observations;   /* values counted since the monitor was made */
    int64_t missed;         /* requests of the group in a row that lacked the column */
    int64_t
        last_observation; /* newest timestamp, or when it arrived, if that was before; or API_NO_TIME */
    int64_t last_window; /* highest number of a window */
    int64_t newest_end;  /* of all windows, or API_NO_TIME */
    int64_t next_close;  /* time at which an open window is due, or INT64_MAX */
    struct api_window
        last; /* the closed one of this revision that starts last, without settings and reference,
               * whose top fits the bins; or api_no_window. A row has those of its scores that lists show */
    enum api_silence silence;
    int told; /* what they know, while a mute keeps changes from them: a state, API_STALE or
                          * API_NONE_WITHHELD */
    int64_t sentence_of;         /* number of the window that the sentence is about, or 0 */
    char sentence[API_SENTENCE]; /* why `last` drifts */
    double recent[API_RECENT];   /* kl of the last closed windows, oldest first; zeros after them */
    size_t n_recent;
};

/* api_dirty_window: a window that jobs of this transaction changed. Its snapshot holds what it is then. */
struct api_snapshot;
struct api_dirty_window {
    struct api_dirty_window *next;
    struct api_snapshot *snapshot;
    bool is_new, closes, rescored;
};

/* api_write: what a transaction has changed of a row. */
enum api_write { API_WRITE_NOTHING, API_WRITE_COUNTS, API_WRITE_ALL };

struct api_monitor {
    /* The row: */
    int64_t id; /* no other monitor ever has it, also no deleted one */
    char group[API_MAX_NAME + 1], name[API_MAX_NAME + 1];
    int64_t revision, version; /* version changes with every change of the config */
    int64_t changed;           /* number of the last write of the monitor or of a window of it */
    double warning, critical, significance; /* of the settings */
    int64_t stale_after;                    /* microseconds, of the settings; INT64_MAX: never */
    struct api_monitor_status status;

    /* In the store's thread, of one that was touched: see touch.h. */
    struct api_config *config;
    struct api_snapshot
        *open; /* the open window that was last added to, as it is stored; or NULL */
    struct api_pool
        *pool; /* the last closed windows, after those that are written; NULL if not read */
    struct api_dirty_window *windows, **last_window;
    enum api_write writes;
    bool has_expired;       /* windows that were too old are deleted */
    struct api_trace trace; /* of the last request that has one, and changes it */
    bool is_touched;        /* by this transaction */
    size_t bytes;           /* that `config`, `open` and `pool` take, at most */
    struct api_monitor *next_of_hash, *newer, *older;
};

/* API_MONITOR_BYTES: of a monitor in memory, and its place in a set of known ones; its config has counted them. */
enum { API_MONITOR_BYTES = sizeof(struct api_monitor) + 512 };

/* Reads a row of the statements that give a monitor's; what follows the row in the structure stays as it is.
 * api_monitor_read_part: of one that gives the first columns alone; others stay as they are. */
void api_monitor_read(struct api_monitor *monitor, const struct api_datum *values);
enum { API_SAMPLE_VALUES = 17 };
void api_monitor_read_part(struct api_monitor *monitor, const struct api_datum *values, size_t n);

/* API_TOP_NAMES, API_SETTINGS, API_DEFINITION: values of a row behind those that api_monitor_read reads. */
enum { API_TOP_NAMES = 43, API_SETTINGS = 44, API_DEFINITION = 45 };

/* Sets the parameters of API_SQL_MONITOR_PUT but the last two, names of top bins and id. */
enum { API_MONITOR_VALUES = 40 };
void api_monitor_values(const struct api_monitor *monitor, struct api_datum *values);

/* Takes from a config what the row has of its settings. */
void api_monitor_set_config(struct api_monitor *monitor, struct api_config *config);

/* api_monitor_state: how a monitor is now. It is stale without an observation for as long as its settings say; or if they leave
 * that open, and its windows are not of time, after API_MISSED requests of its group that lack its column. */
enum { API_MISSED = 3 };
struct api_monitor_state {
    enum api_verdict state;
    int64_t since, severity_since, began;
    bool stale;
    struct api_mute mute;
};
struct api_monitor_state api_monitor_state_of(const struct api_monitor *monitor,
                                              const struct api_mutes *mutes);
bool api_monitor_is_stale(const struct api_monitor *monitor);

/* True if it has been stale for a day. */
bool api_monitor_is_long_stale(const struct api_monitor *monitor);

/* Appends it as members. */
void api_monitor_state_write(const struct api_monitor_state *state, struct api_buffer *out);

/* Notes that an observation of a time has arrived now. A time ahead of the clock counts as now, and one that was noted when
 * the clock was ahead does not count: else nobody would be told of silence until then. */
void api_monitor_see(struct api_monitor *monitor, int64_t time, int64_t now);

/* Forgets what belongs to the windows of a revision. */
void api_status_restart(struct api_monitor_status *status);

/* Formats the ETag of a monitor: its number and its version, quoted. */
enum { API_ETAG = 48 };
void api_monitor_etag(int64_t id, int64_t version, char to[API_ETAG]);

/* True if a text is UTF-8 without control characters. */
bool api_text_is_plain(const char *text);

/* Checks the name of a monitor or a group; fails with name_invalid. */
bool api_name_check(const char *what, const char *name, struct api_problem *problem);
