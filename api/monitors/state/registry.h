/* api_registry: the monitors in memory, in order of group and name. The store's thread alone changes
 * it, under the write lock; others read under the read lock. */
#pragma once

#include "api/json/format.h"
#include "api/monitors/model/config.h"
#include "api/monitors/model/sentence.h"
#include "api/monitors/model/window.h"
#include "api/monitors/state/mutes.h"

#include <pthread.h>

/* API_RECENT: closed windows whose divergence is kept. */
enum { API_RECENT = 30 };

/* API_NONE_WITHHELD: receivers know how a monitor is. */
enum { API_NONE_WITHHELD = -1 };

/* api_silence: what was told of the silence of a monitor. */
enum api_silence {
    API_HEARD,  /* nothing, or that it has ended */
    API_SILENT, /* that it is stale, by an event */
    API_OF_PAST, /* nothing yet; it is stale because its observations were of the past when they came */
    API_PAST_TOLD, /* of when the newest observations of its group are, by the change of another monitor and no event */
    API_PAST_FIRST /* the same, by a change of this monitor */
};

/* api_monitor_status: what observations change. */
struct api_monitor_status {
    enum api_verdict state;
    int64_t
        since; /* time of the event by which the state left ok or returned to it; API_NO_TIME without one */
    int64_t severity_since; /* time of the event that made the state */
    struct api_turns turns; /* of the state */
    int64_t observations;   /* values counted since the monitor was made */
    int64_t missed;         /* requests of the group in a row that lacked the column */
    int64_t
        last_observation; /* newest timestamp, or when it arrived, if that was before; or API_NO_TIME */
    int64_t last_window; /* highest number of a window */
    int64_t newest_end;  /* of all windows, or API_NO_TIME */
    int64_t next_close;  /* time at which an open window is due, or INT64_MAX */
    struct api_window
        last; /* the closed one of this revision that starts last, without settings and
                             * reference, whose top fits the bins; or api_no_window */
    enum api_silence silence;
    struct {
        int64_t first, last;
    } past;   /* of API_OF_PAST: when observations of the past came; not stored, 0 after a start */
    int told; /* what they know, while a mute keeps changes from them: a state, API_STALE or
                          * API_NONE_WITHHELD */
    int64_t sentence_of;         /* number of the window that the sentence is about, or 0 */
    char sentence[API_SENTENCE]; /* why `last` drifts */
    double recent[API_RECENT];   /* kl of the last closed windows, oldest first */
    size_t n_recent;
};

/* api_monitor: one monitor. `pending` and `open` belong to the store's thread. */
struct api_pending_monitor;
struct api_snapshot;
struct api_monitor {
    int64_t id; /* no other monitor ever has it, also no deleted one */
    char *group, *name;
    int64_t revision, version; /* version changes with every change of the config */
    struct api_config *config;
    struct api_monitor_status status;
    struct api_pending_monitor *pending;
    struct api_snapshot
        *open;             /* the open window that was last added to, as it is stored; or NULL */
    struct api_pool *pool; /* the last closed windows as they are stored, or NULL if not read yet */
    int64_t epoch; /* in which the numbers and `open` are as they are stored: see others.h */
    bool may_have_expired; /* windows, or a revision without windows */
};

struct api_registry {
    pthread_rwlock_t lock;
    struct api_monitor **monitors;
    size_t n, capacity;
    struct api_named_rows mutes;
    struct api_named_rows columns;
};

bool api_registry_init(struct api_registry *registry);
void api_registry_free(struct api_registry *registry);

/* Frees the monitors, but not the lock; the registry is of no use then. */
void api_registry_empty(struct api_registry *registry);

/* Finds a monitor; NULL if there is none. Lower bound: the index of the first monitor that is not before. */
struct api_monitor *api_registry_find(const struct api_registry *registry, const char *group,
                                      const char *name);
size_t api_registry_lower_bound(const struct api_registry *registry, const char *group,
                                const char *name);

/* Finds the monitors of a group: *n of them from the index that it returns. */
size_t api_registry_group(const struct api_registry *registry, const char *group, size_t *n);

/* Makes room for `n` more monitors, without which adding never fails. */
bool api_registry_reserve(struct api_registry *registry, size_t n);
void api_registry_add(struct api_registry *registry, struct api_monitor *monitor);

/* Brings monitors into order that were put at the end. */
void api_registry_sort(struct api_registry *registry);

void api_registry_remove(struct api_registry *registry, struct api_monitor *monitor);

/* Makes a monitor with a copy of its names; takes the config. NULL if memory is exhausted. */
struct api_monitor *api_monitor_new(int64_t id, const char *group, const char *name,
                                    struct api_config *config);
void api_monitor_free(struct api_monitor *monitor);

/* api_monitor_state: how a monitor is now. It is stale without an observation for as long as its settings say; or if they leave
 * that open, and its windows are not of time, after API_MISSED requests of its group that lack its column. */
enum { API_MISSED = 3 };
struct api_monitor_state {
    enum api_verdict state;
    int64_t since, severity_since;
    bool stale;
    struct api_mute mute;
};
struct api_monitor_state api_monitor_state_of(const struct api_registry *registry,
                                              const struct api_monitor *monitor);
bool api_monitor_is_stale(const struct api_monitor *monitor);

/* True if it has been stale for a day. */
bool api_monitor_is_long_stale(const struct api_monitor *monitor);

bool api_monitor_is_muted(const struct api_registry *registry, const struct api_monitor *monitor,
                          int64_t now);

/* Appends it as members, of at most API_MONITOR_STATE_SIZE bytes. */
enum { API_MONITOR_STATE_SIZE = 160 + API_MUTE_SIZE };
void api_monitor_state_write(const struct api_monitor_state *state, struct api_buffer *out);

/* Notes that an observation of a time has arrived now. A time ahead of the clock counts as now, and one that was noted when
 * the clock was ahead does not count: else nobody would be told of silence until then. `status` is the monitor's, or that of
 * its pending monitor. */
void api_monitor_see(const struct api_monitor *monitor, struct api_monitor_status *status,
                     int64_t time, int64_t now);

/* Notes that observations of the past have come, of which nobody was told yet. */
void api_status_note_past(struct api_monitor_status *status, int64_t now);

/* Forgets what belongs to the windows of a revision. */
void api_status_restart(struct api_monitor_status *status);

/* Formats the ETag of a monitor: its number and its version, quoted. */
enum { API_ETAG = 48 };
void api_monitor_etag(int64_t id, int64_t version, char to[API_ETAG]);

/* True if a text is UTF-8 without control characters. */
bool api_text_is_plain(const char *text);

/* Checks the name of a monitor or a group; fails with name_invalid. */
bool api_name_check(const char *what, const char *name, struct api_problem *problem);
