#include "api/monitors/rows/monitor.h"

#include "api/store/columns.h"
#include "api/store/row_fields.h"
#include "api/text/clock.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Rows */

/* Columns in their order. */
enum {
#define COLUMN(number, name) COLUMN_##name,
    API_MONITOR_COLUMNS(COLUMN) COLUMNS
#undef COLUMN
};

#define FIELD(kind, member, ...)                                                                   \
    {                                                                                              \
        API_MEMBER_##kind, offsetof(struct api_monitor, member), __VA_ARGS__                       \
    }
#define WHOLE(member, none) FIELD(WHOLE, member, 0, none)
#define TIME(member) WHOLE(member, API_NO_TIME)
#define MEMBER(kind, member) FIELD(kind, member, 0, 0)
#define SIZED(kind, member) FIELD(kind, member, sizeof(((struct api_monitor *)0)->member), 0)

/* All but the names of the top bins, which the config gives. */
static const struct api_row_field fields[API_MONITOR_VALUES] = {
    [COLUMN_revision] = WHOLE(revision, 0),
    [COLUMN_version] = WHOLE(version, 0),
    [COLUMN_changed] = WHOLE(changed, INT64_MIN),
    [COLUMN_state] = MEMBER(ENUM, status.state),
    [COLUMN_observations] = WHOLE(status.observations, INT64_MIN),
    [COLUMN_last_observation] = TIME(status.last_observation),
    [COLUMN_last_window] = WHOLE(status.last_window, INT64_MIN),
    [COLUMN_severity_since] = TIME(status.severity_since),
    [COLUMN_newest_end] = TIME(status.newest_end),
    [COLUMN_since] = TIME(status.since),
    [COLUMN_pool_from] = TIME(status.turns.pool_from),
    [COLUMN_rose_at] = TIME(status.turns.rose.start),
    [COLUMN_rose_window] = WHOLE(status.turns.rose.id, 0),
    [COLUMN_sentence] = SIZED(CHARS, status.sentence),
    [COLUMN_sentence_of] = WHOLE(status.sentence_of, 0),
    [COLUMN_stale_told] = MEMBER(ENUM, status.silence),
    [COLUMN_missed] = WHOLE(status.missed, INT64_MIN),
    [COLUMN_told] = MEMBER(ENUM, status.told),
    [COLUMN_next_close] = WHOLE(status.next_close, INT64_MAX),
    [COLUMN_warning] = MEMBER(REAL, warning),
    [COLUMN_critical] = MEMBER(REAL, critical),
    [COLUMN_significance] = MEMBER(REAL, significance),
    [COLUMN_stale_after] = WHOLE(stale_after, INT64_MAX),
    [COLUMN_last_id] = WHOLE(status.last.id, 0),
    [COLUMN_last_start] = WHOLE(status.last.start, 0),
    [COLUMN_last_end] = TIME(status.last.end),
    [COLUMN_last_restated] = MEMBER(FLAG, status.last.restated),
    [COLUMN_last_n] = MEMBER(COUNT, status.last.n),
    [COLUMN_last_kl] = MEMBER(REAL, status.last.scores.drift.kl),
    [COLUMN_last_js] = MEMBER(REAL, status.last.scores.drift.js),
    [COLUMN_last_psi] = MEMBER(REAL, status.last.scores.drift.psi),
    [COLUMN_last_unseen_ratio] = MEMBER(REAL, status.last.scores.drift.unseen_ratio),
    [COLUMN_last_missing_ratio] = MEMBER(REAL, status.last.scores.missing_ratio),
    [COLUMN_last_volume_ratio] = MEMBER(REAL, status.last.scores.volume.ratio),
    [COLUMN_last_noise_floor] = MEMBER(REAL, status.last.scores.pooled.noise_floor),
    [COLUMN_last_top] = WHOLE(status.last.scores.top, API_TOP_UNKNOWN),
    [COLUMN_last_top_share] = MEMBER(REAL, status.last.scores.top_share),
    [COLUMN_n_recent] = MEMBER(SIZE, status.n_recent),
    [COLUMN_recent] = SIZED(STRUCT, status.recent),
    [COLUMN_began] = TIME(status.began),
};
_Static_assert((int)COLUMN_last_top_names == API_MONITOR_VALUES &&
                   (int)COLUMNS == API_TOP_NAMES - 2,
               "the names come last");
_Static_assert((int)COLUMN_revision == API_SAMPLE_VALUES, "where samples end");

static void copy_name(char to[API_MAX_NAME + 1], const struct api_datum *from)
{
    size_t size = from->size < API_MAX_NAME ? from->size : API_MAX_NAME;
    memcpy(to, from->text, size);
    to[size] = '\0';
}

void api_monitor_read_part(struct api_monitor *monitor, const struct api_datum *values, size_t n)
{
    monitor->id = values[0].integer;
    copy_name(monitor->group, &values[1]);
    copy_name(monitor->name, &values[2]);
    api_row_read(fields, n, values + 3, monitor);
    monitor->status.state = api_verdict_of(monitor->status.state);
}

void api_monitor_read(struct api_monitor *monitor, const struct api_datum *values)
{
    struct api_monitor_status *status = &monitor->status;
    memset(status, 0, sizeof *status);
    status->last = api_no_window;
    api_monitor_read_part(monitor, values, API_MONITOR_VALUES);
    status->last.closed = status->last.id != 0;
    if (status->n_recent > API_RECENT)
        status->n_recent = API_RECENT;
    if (status->silence > API_PAST)
        status->silence = (int)status->silence == 3 ? API_PAST : API_SILENT;
}

void api_monitor_values(const struct api_monitor *monitor, struct api_datum *values)
{
    api_row_write(fields, API_MONITOR_VALUES, monitor, values);
}

void api_monitor_set_config(struct api_monitor *monitor, struct api_config *config)
{
    double stale_after = api_settings_stale_after(&config->settings) * API_SECOND_US;
    api_config_release(monitor->config);
    monitor->config = config;
    monitor->warning = config->settings.warning;
    monitor->critical = config->settings.critical;
    monitor->significance = config->settings.significance;
    monitor->stale_after = stale_after < 0x1p62 ? (int64_t)stale_after : INT64_MAX;
}

/* ---- How it is */

/* True if silence since an observation is too long at a time. */
static bool is_silent(const struct api_monitor *monitor, int64_t last, int64_t time)
{
    return monitor->stale_after < INT64_MAX && last != API_NO_TIME &&
           time - last > monitor->stale_after;
}

bool api_monitor_is_stale(const struct api_monitor *monitor)
{
    return monitor->stale_after == INT64_MAX
               ? monitor->status.missed >= API_MISSED
               : is_silent(monitor, monitor->status.last_observation, api_now());
}

bool api_monitor_is_long_stale(const struct api_monitor *monitor)
{
    return is_silent(monitor, monitor->status.last_observation, api_now() - API_DAY_US);
}

struct api_monitor_state api_monitor_state_of(const struct api_monitor *monitor,
                                              const struct api_mutes *mutes)
{
    const struct api_monitor_status *status = &monitor->status;
    return (struct api_monitor_state){
        status->state,
        status->since,
        status->severity_since,
        status->began,
        api_monitor_is_stale(monitor),
        api_mutes_find(mutes, monitor->group, monitor->name, api_now())};
}

void api_monitor_state_write(const struct api_monitor_state *state, struct api_buffer *out)
{
    api_write_json(out,
                   ",'state':%s,'since':%jd,'severity_since':%jd,'began':%jd,'stale':%d,'muted':",
                   api_verdict_names[state->state], state->since, state->severity_since,
                   state->began, state->stale);
    api_mute_write(&state->mute, out);
}

void api_monitor_see(struct api_monitor *monitor, int64_t time, int64_t now)
{
    struct api_monitor_status *status = &monitor->status;
    int64_t seen = time < now ? time : now;
    if (seen <= status->last_observation && status->last_observation <= now)
        return;
    status->last_observation = seen;
    bool is_past = is_silent(monitor, seen, now);
    if (is_past && status->silence == API_HEARD)
        status->silence = API_PAST;
    if (!is_past && status->silence == API_PAST)
        status->silence = API_HEARD; /* nobody was told of this monitor */
}

void api_status_restart(struct api_monitor_status *status)
{
    status->state = API_INSUFFICIENT;
    status->since = status->severity_since = status->began = API_NO_TIME;
    status->turns = API_NO_TURNS;
    status->next_close = INT64_MAX;
    status->last = api_no_window;
    status->sentence_of = 0;
    memset(status->sentence, 0, sizeof status->sentence);
    status->told = API_NONE_WITHHELD;
    status->n_recent = 0;
    memset(status->recent, 0, sizeof status->recent);
}
void api_monitor_etag(int64_t id, int64_t version, char to[API_ETAG])
{
    snprintf(to, API_ETAG, "\"%lld-%lld\"", (long long)id, (long long)version);
}

/* ---- Names */

/* True for the control characters C0, DEL and C1, which UTF-8 writes as C2 80 to C2 9F. */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

bool api_text_is_plain(const char *text)
{
    size_t length;
    for (const unsigned char *s = (const unsigned char *)text; *s; s += length) {
        length = api_utf8_length(s);
        if (length == 0 || is_control(s))
            return false;
    }
    return true;
}

bool api_name_check(const char *what, const char *name, struct api_problem *problem)
{
    static const char *const reserved[] = {".", "..", "observations"};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return api_fail(problem, "name_invalid", "a %s cannot be called '%s'", what, name);
    if (size < 1 || size > API_MAX_NAME)
        return api_fail(problem, "name_invalid",
                        "the name of a %s has 1 to 128 bytes, and '%.60s' has %zu", what, name,
                        size);
    return api_text_is_plain(name) ||
           api_fail(problem, "name_invalid", "the name of a %s is UTF-8 without control characters",
                    what);
}
