#include "api/monitors/model/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Windows */

static size_t size_of(const struct api_monitor_settings *settings, size_t n_bins)
{
    size_t max = api_settings_pool(settings) - 1, each = settings->period > 0 ? 2 : 1;
    return sizeof(struct api_pool) + max * (2 * sizeof(int64_t) + each * n_bins * sizeof(double));
}

size_t api_pool_size(const struct api_monitor_settings *settings, size_t n_bins)
{
    return api_settings_pool(settings) > 1 ? size_of(settings, n_bins) : 0;
}

struct api_pool *api_pool_new(const struct api_monitor_settings *settings, size_t n_bins)
{
    struct api_pool *pool = malloc(size_of(settings, n_bins));
    if (!pool)
        return NULL;
    *pool = (struct api_pool){.references = 1,
                              .compared = settings->period > 0,
                              .max = api_settings_pool(settings) - 1,
                              .n_bins = n_bins,
                              .starts = (int64_t *)(pool + 1)};
    pool->ids = pool->starts + pool->max;
    pool->counts = (double *)(void *)(pool->ids + pool->max);
    return pool;
}

struct api_pool *api_pool_hold(struct api_pool *pool)
{
    if (pool)
        atomic_fetch_add(&pool->references, 1);
    return pool;
}

void api_pool_release(struct api_pool *pool)
{
    if (pool && atomic_fetch_sub(&pool->references, 1) == 1)
        free(pool);
}

struct api_pool *api_pool_with(const struct api_evidence *evidence)
{
    const struct api_pool *before = evidence->pool;
    struct api_pool *pool = api_pool_new(evidence->settings, before->n_bins);
    size_t size = before->n_bins * sizeof(double);
    if (!pool)
        return NULL;
    size_t kept = before->n < pool->max ? before->n : pool->max - 1;
    pool->n = kept + 1;
    pool->starts[0] = evidence->at.start;
    pool->ids[0] = evidence->at.id;
    memcpy(pool->starts + 1, before->starts, kept * sizeof *pool->starts);
    memcpy(pool->ids + 1, before->ids, kept * sizeof *pool->ids);
    memcpy(api_pool_counts(pool, 0), evidence->counts, size);
    if (pool->compared)
        memcpy(api_pool_reference(pool, 0), evidence->reference, size);
    memcpy(api_pool_counts(pool, 1), before->counts, kept * size * (pool->compared ? 2 : 1));
    return pool;
}

bool api_pool_is_before(const struct api_pool *pool, struct api_position at)
{
    return pool->n == 0 ||
           api_position_compare((struct api_position){pool->starts[0], pool->ids[0]}, at) < 0;
}

/* ---- Sums */

/* sums: of the last n windows up to that of one. */
struct sums {
    const struct api_evidence *evidence;
    size_t n, n_bins;
    int64_t start; /* of the first */
    double counts[API_MAX_BINS + KL_OUTER_BINS], reference[API_MAX_BINS + KL_OUTER_BINS];
};

static void begin(struct sums *sums, const struct api_evidence *evidence)
{
    sums->evidence = evidence;
    sums->n = 1;
    sums->n_bins = evidence->bins->n_bins;
    sums->start = evidence->at.start;
    memcpy(sums->counts, evidence->counts, sums->n_bins * sizeof(double));
    memcpy(sums->reference, evidence->reference, sums->n_bins * sizeof(double));
}

static double add(double *to, const double *counts, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] += counts[i];
        sum += counts[i];
    }
    return sum;
}

/* Adds the window before. False if there is none, or it starts before evidence counts, or it had nothing to
 * be compared with: beside the reference of others it would be drift. */
static bool add_window(struct sums *sums)
{
    const struct api_pool *pool = sums->evidence->pool;
    size_t i = sums->n - 1;
    if (!pool || i >= pool->n || pool->starts[i] < sums->evidence->pool_from ||
        (pool->compared && !(add(sums->reference, api_pool_reference(pool, i), sums->n_bins) > 0)))
        return false;
    add(sums->counts, api_pool_counts(pool, i), sums->n_bins);
    sums->start = pool->starts[i];
    sums->n++;
    return true;
}

static void score(const struct sums *sums, struct kl_drift *drift)
{
    const struct kl_drift_options options = {.pseudocount = sums->evidence->settings->pseudocount,
                                             .significance = 1, /* no critical_kl is asked for */
                                             .exact_reference = sums->evidence->exact};
    kl_drift(sums->counts, sums->reference, sums->n_bins, &options, drift, NULL);
}

/* ---- Verdicts */

double api_min_observations(const struct api_monitor_settings *settings,
                            const struct api_bins *bins)
{
    double min = settings->min_observations;
    return isnan(min) ? fmax(50, 5 * (double)bins->n) : min;
}

static double min_observations(const struct api_evidence *evidence)
{
    return api_min_observations(evidence->settings, evidence->bins);
}

static enum api_verdict level_of(const struct api_monitor_settings *settings,
                                 const struct kl_drift *drift)
{
    double sizes = log2((double)api_settings_pool(settings)) + 1;
    bool shows = drift->p_value < settings->significance / sizes || settings->significance >= 1;
    if (isinf(drift->kl) || (drift->kl >= settings->critical && shows))
        return API_CRITICAL;
    return drift->kl >= settings->warning && shows ? API_WARNING : API_OK;
}

/* Has a pool decide if its level is above those of smaller ones. */
static void consider(const struct api_evidence *evidence, size_t windows,
                     const struct kl_drift *drift, struct api_scores *scores)
{
    enum api_verdict level = level_of(evidence->settings, drift);
    if (drift->n < min_observations(evidence) || level <= scores->verdict)
        return;
    scores->verdict = level;
    scores->pooled =
        (struct api_pooled){windows, drift->n, drift->kl, drift->p_value, drift->noise_floor};
}

void api_pool_judge(const struct api_evidence *evidence, struct api_scores *scores)
{
    struct sums sums;
    struct kl_drift drift;
    scores->verdict = API_INSUFFICIENT;
    scores->pooled = (struct api_pooled){.windows = 0};
    if (isnan(scores->drift.kl))
        return;
    consider(evidence, 1, &scores->drift, scores);
    if (!evidence->pool || evidence->pool->n == 0 || evidence->at.start < evidence->pool_from)
        return;
    begin(&sums, evidence);
    for (size_t size = 2; size <= api_settings_pool(evidence->settings) &&
                          scores->verdict < API_CRITICAL && add_window(&sums);)
        if (sums.n == size) {
            score(&sums, &drift);
            consider(evidence, size, &drift, scores);
            size *= 2;
        }
}

/* True if the sum may decide of a fall: it has little noise, or no window can be added to it. */
static bool is_enough(const struct sums *sums)
{
    const struct api_monitor_settings *settings = sums->evidence->settings;
    size_t max = api_settings_pool(settings), used = 0;
    double n = 0, n_reference = 0;
    if ((double)sums->n < settings->clear_after && sums->n < max)
        return false;
    for (size_t i = 0; i < sums->n_bins; i++) {
        n += sums->counts[i];
        n_reference += sums->reference[i];
        used += sums->counts[i] + sums->reference[i] > 0;
    }
    double noise = (1 / n + (sums->evidence->exact ? 0 : 1 / n_reference)) / 2 * ((double)used - 1);
    return n >= min_observations(sums->evidence) &&
           (noise <= settings->warning / 2 || sums->n == max);
}

enum api_verdict api_pool_fall(const struct api_evidence *evidence, enum api_verdict state,
                               int64_t *from)
{
    const struct api_monitor_settings *settings = evidence->settings;
    struct sums sums;
    struct kl_drift drift;
    if (!evidence->reference || evidence->at.start < evidence->pool_from)
        return state;
    begin(&sums, evidence);
    while (!is_enough(&sums))
        if (sums.n == api_settings_pool(settings) || !add_window(&sums))
            return state;
    score(&sums, &drift);
    double k = drift.kl - drift.noise_floor;
    if (!(k < settings->critical / 2))
        return state;
    enum api_verdict to = k < settings->warning / 2 ? API_OK : API_WARNING;
    if (to >= state)
        return state;
    *from = sums.start;
    return to;
}
