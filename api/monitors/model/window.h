/* api_window: a window of a monitor, with its scores and its verdict. */
#pragma once

#include "api/json/format.h"
#include "api/monitors/model/moments.h"
#include "api/monitors/model/settings.h"
#include "lib/drift.h"

/* api_verdict: of a window, or the state of a monitor; the greater, the worse. The store holds their
 * numbers. */
enum api_verdict { API_INSUFFICIENT, API_OK, API_WARNING, API_CRITICAL };
#define API_VERDICTS 4

extern const char *const api_verdict_names[API_VERDICTS];

/* Appends how many there are of each verdict, as an object. */
void api_verdicts_write(const size_t counts[API_VERDICTS], struct api_buffer *out);

/* The verdict that the store holds as a number; insufficient for one that a damaged file holds. */
enum api_verdict api_verdict_of(int64_t number);

/* api_pooled_ratio: the cell of a pool whose ratio decided: the index of its bin, plus 1, or 1 more than the bins for what
 * was joined of intervals; 0 if none did. Its shares, that of the pool over that of the reference, smoothed, and its
 * p-value. All are doubles: the store has their bytes. */
struct api_pooled_ratio {
    double bin, reference, current, ratio, p_value;
    double is_alone; /* 1 if the divergence reached a lower level */
};

/* api_pooled: the pool that decided a verdict, see api/monitors/model/pool.h; of no window if none
 * counts. Of one window it is that itself. */
struct api_pooled {
    size_t windows;
    double n, kl, p_value, noise_floor;
    size_t bins; /* that hold something, after joining; 0 of versions that did not keep it */
    struct api_pooled_ratio ratio;
};

/* The pool of so many windows, by its scores. */
static inline struct api_pooled api_pooled_of(size_t windows, const struct kl_drift *drift)
{
    return (struct api_pooled){.windows = windows,
                               .n = drift->n,
                               .kl = drift->kl,
                               .p_value = drift->p_value,
                               .noise_floor = drift->noise_floor,
                               .bins = drift->df + 1};
}

/* api_volume: a number of rows beside that of `windows` windows before, whose median is `usual`: see api/monitors/model/volume.h. Of no window if it
 * was not judged. All are doubles: the store has their bytes. */
struct api_volume {
    double rows, usual, windows, ratio, p_value;
    double level, counts_level; /* enum api_verdict: by the rows, and by the counts of the bins */
};

/* True if the number of rows raised the verdict, which would be lower by the counts. */
static inline bool api_volume_decides(const struct api_volume *volume)
{
    return volume->windows > 0 && volume->level > API_OK && volume->level > volume->counts_level;
}

/* api_scores: scores of counts; those of `drift` are NaN if there is no reference, or no
 * count. Of a window that is read from the store, what the store does not keep is 0: n, n_reference, statistic, df.
 *
 * The top, bins that contribute most to the divergence, is a number: the indices of up to three bins,
 * each plus 1, in 16 bits each, the largest contribution in the lowest; 0 if nothing contributes.
 * API_TOP_UNKNOWN is that of a window without a scoring, or scored by a version that kept none. */
#define API_TOP_UNKNOWN (-1)
struct api_scores {
    struct kl_drift drift;
    double missing_ratio;
    struct api_spread spread, reference_spread;
    enum api_verdict verdict, alone; /* alone: the level that the window reached without others */
    struct api_pooled pooled;
    struct api_volume volume;
    int64_t top;
    double top_share; /* see api_top_share */
};

/* API_TOP: bins of a top, at most. api_top_at: the index of the bin at a rank, plus 1; 0 if fewer contribute. */
enum { API_TOP = 3 };
size_t api_top_at(int64_t top, size_t rank);
int64_t api_top_of(const struct kl_drift_bin *of_bins, size_t n_bins);

/* Sum of the shares of these bins, in (0, 1]; NaN where there is none, or no share: the divergence is
 * infinite, or not above 0. */
double api_top_share(int64_t top, const struct kl_drift_bin *of_bins);

/* True if it is known, and names no bins but these. */
bool api_top_fits(int64_t top, const struct api_bins *bins);

/* Appends the names as an array; the top must fit the bins, or be unknown. */
void api_top_write(int64_t top, const struct api_bins *bins, struct api_buffer *out);

/* Times are microseconds since 1970. Scores are those of the last scoring; the store keeps some of
 * `drift`. */
struct api_window {
    int64_t monitor; /* of a row that was read */
    int64_t id, revision, start, end;
    bool closed, restated;
    double n;
    struct api_moments moments;
    struct api_scores scores;
    enum api_verdict state; /* of the monitor after the window, once closed */
    char *settings;         /* by which it was scored, as JSON; NULL if it was not */
    /* As api/store/counts.h has them: those that it was compared with, unless the config's; those of a row that was
     * read. Or NULL. */
    char *reference, *counts;
    size_t reference_size, counts_size;
};

/* The window of time that a time is in; from the time to itself for other windows. All in microseconds. Windows of a day
 * or a week, from Monday, run from midnight to midnight in their zone; others are aligned to 1970 in UTC, those of whole
 * weeks to a Monday. */
struct api_window_span {
    int64_t start, end;
};
struct api_window_span api_window_span(const struct api_monitor_settings *settings, int64_t time);

/* Start of the window that one is compared with which starts k periods later: if a period is whole days, by the date and
 * the time in the zone; if it is a month, by the day of the month, its last day beside last days alone. API_NO_TIME if the clocks skip
 * that time, or the month has no such day. */
int64_t api_window_before(const struct api_monitor_settings *settings, int64_t start, int64_t k);

/* api_position: of a window among those of its revision. */
struct api_position {
    int64_t start, id;
};
static inline struct api_position api_position_of(const struct api_window *window)
{
    return (struct api_position){window->start, window->id};
}
static inline int api_position_compare(struct api_position a, struct api_position b)
{
    return a.start != b.start ? (a.start < b.start ? -1 : 1) : (a.id > b.id) - (a.id < b.id);
}

/* api_turns: where a state has turned: the start of the first window that may be in a pool, as those before were other than
 * those at its last fall, or API_NO_TIME; and the window at which it last rose, whose start is API_NO_TIME if it never did. */
struct api_turns {
    int64_t pool_from;
    struct api_position rose;
};
#define API_NO_TURNS ((struct api_turns){API_NO_TIME, {API_NO_TIME, 0}})

/* No window: id 0, n and scores NaN, no end. */
extern const struct api_window api_no_window;

/* Frees what a window holds, not the window itself. */
void api_window_free(struct api_window *window);

/* Appends a window as an object; null for a window of id 0. */
void api_window_write(const struct api_window *window, struct api_buffer *out);
