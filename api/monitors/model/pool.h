/* api_pool: the counts of a monitor's last closed windows; verdicts over pools of windows, and the fall of a state.
 *
 * A window is judged with the windows right before it: alone, and in the sums of the last 2, 4 ... `pool`
 * windows. A small shift that no window proves is proved by their sum: the divergence of the noise falls with 1 / n,
 * that of the shift stays. Each size is a test of its own, so that each has an equal part of the
 * significance (Bonferroni): windows without drift reach a level by no more than that. */
#pragma once

#include "api/monitors/model/judge.h"

#include <stdatomic.h>

/* api_pool: windows in order, newest first. It is not changed once a snapshot has it, so that any thread
 * may read one that it holds a reference to. */
struct api_pool {
    atomic_uint refcount;
    bool compared; /* each window has counts that it was compared with, after its own */
    size_t max, n, n_bins;
    int64_t *starts, *ids;
    double *counts;
    struct api_unseen_counts *unseen; /* of monitors of labels, else NULL */
};

/* Makes one without windows, with room for as many as a monitor's verdicts need beside the window that is judged;
 * NULL if memory is exhausted. */
struct api_pool *api_pool_new(const struct api_monitor_settings *settings,
                              const struct api_bins *bins);
struct api_pool *api_pool_hold(struct api_pool *pool);
void api_pool_release(struct api_pool *pool); /* NULL is fine */

/* Bytes of one. */
size_t api_pool_size(const struct api_monitor_settings *settings, const struct api_bins *bins);

/* Counts of a window, and what it was compared with. */
static inline double *api_pool_counts(const struct api_pool *pool, size_t i)
{
    return pool->counts + i * pool->n_bins * (pool->compared ? 2 : 1);
}
static inline double *api_pool_reference(const struct api_pool *pool, size_t i)
{
    return api_pool_counts(pool, i) + pool->n_bins;
}

/* Makes a pool of a window and those before it, of which the oldest goes if there are more than needed. NULL
 * if memory is exhausted. */
struct api_pool *api_pool_with(const struct api_evidence *evidence);

/* True if a window starts after all of a pool. */
bool api_pool_is_before(const struct api_pool *pool, struct api_position at);

/* Sets the verdict, beside scores of the window alone, and the pool that decides. A pool with at least
 * min_observations counts; it reaches a level if its divergence is infinite, or at least the threshold with
 * a p-value below significance / (log2 pool + 1), after what api/monitors/model/judge.h says of labels. The highest
 * level decides, then the fewest windows. */
void api_pool_judge(const struct api_evidence *evidence, struct api_scores *scores);

/* Adds up a window with those before it, as many as that in all; false if they are not there. */
bool api_pool_add_up(const struct api_evidence *evidence, size_t windows, struct api_sum *sum);

/* The state that a state falls to after a window: it is judged by the smallest number of last windows, at least
 * clear_after, whose expected noise is at most half of the warning threshold, and falls if the divergence
 * without that noise is below half of a threshold. The distance between rise and fall keeps a shift at a
 * threshold from raising alarms again and again. Windows up to the one at which the state rose are not among them, for
 * they may hold what was before the drift. It falls no lower than the level that the newest window alone reached: two
 * that are far off, one this way and one that way, have an innocent sum. *from becomes the start of these windows if it
 * falls. A state that rose at a window after this one, which lay ahead of the clock, may fall by any windows. */
enum api_verdict api_pool_fall(const struct api_evidence *evidence, enum api_verdict state,
                               enum api_verdict alone, int64_t *from);

/* API_BEGAN_WITHIN: windows in which the begin of a drift is looked for. */
enum { API_BEGAN_WITHIN = 32 };

/* When the drift began that has raised a state at a window: the start of the run of the last 1, 2, 3 ... API_BEGAN_WITHIN windows, of one drift
 * and with something to be compared with, whose sum has the greatest G (the maximum likelihood estimate of a change point, Hinkley,
 * "Inference about the change-point in a sequence of random variables", 1970), in the cells of the sum of `decided` windows that decided.
 * The evidence has a pool of API_BEGAN_WITHIN windows. Exact in 99 % of shifts by half a standard deviation in windows of 200. */
int64_t api_pool_began(const struct api_evidence *evidence, size_t decided);
