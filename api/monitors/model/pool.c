#include "api/monitors/model/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Windows */

size_t api_pool_size(const struct api_monitor_settings *settings, const struct api_bins *bins)
{
    size_t max = api_settings_pool(settings) - 1, sums = settings->period > 0 ? 2 : 1;
    size_t unseen = bins->labelled ? sizeof(struct api_unseen_counts) : 0;
    return sizeof(struct api_pool) +
           max * (2 * sizeof(int64_t) + sums * bins->n_bins * sizeof(double) + unseen);
}

struct api_pool *api_pool_new(const struct api_monitor_settings *settings,
                              const struct api_bins *bins)
{
    struct api_pool *pool = malloc(api_pool_size(settings, bins));
    if (!pool)
        return NULL;
    *pool = (struct api_pool){.refcount = 1,
                              .compared = settings->period > 0,
                              .max = api_settings_pool(settings) - 1,
                              .n_bins = bins->n_bins,
                              .starts = (int64_t *)(pool + 1)};
    pool->ids = pool->starts + pool->max;
    pool->counts = (double *)(void *)(pool->ids + pool->max);
    if (bins->labelled)
        pool->unseen = (void *)api_pool_counts(pool, pool->max);
    return pool;
}

struct api_pool *api_pool_hold(struct api_pool *pool)
{
    if (pool)
        atomic_fetch_add(&pool->refcount, 1);
    return pool;
}

void api_pool_release(struct api_pool *pool)
{
    if (pool && atomic_fetch_sub(&pool->refcount, 1) == 1)
        free(pool);
}

struct api_pool *api_pool_with(const struct api_evidence *evidence)
{
    const struct api_pool *before = evidence->pool;
    struct api_pool *pool = api_pool_new(evidence->settings, evidence->bins);
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
    if (!pool->unseen)
        return pool;
    pool->unseen[0] = *evidence->unseen;
    memcpy(pool->unseen + 1, before->unseen, kept * sizeof *pool->unseen);
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
    struct api_position after; /* all windows are */
    struct api_sum sum;
    int64_t start; /* of the first */
    double weight; /* of a season: see add_season */
    double seasons[API_MAX_BINS + KL_OUTER_BINS];
};

/* Adds what a window of a season is compared with, which weighs as the window does: summed references would make a
 * difference without drift of each change of traffic. With n of a window, r and N of its reference, the sum is compared with
 * q = sum(n r / N) / sum(n), as of a sample of sum(n)^2 / sum(n^2 / N), whose mean has the variance of q. */
static void add_season(struct sums *sums, double n, const double *reference, double n_reference)
{
    struct api_sum *sum = &sums->sum;
    double all = api_sum_n(sum);
    sums->weight += n * n / n_reference;
    for (size_t i = 0; i < sum->n_bins; i++) {
        sums->seasons[i] += n * reference[i] / n_reference;
        sum->reference[i] = sums->seasons[i] * all / sums->weight;
    }
}

static void begin(struct sums *sums, const struct api_evidence *evidence, struct api_position after)
{
    struct api_sum *sum = &sums->sum;
    sums->evidence = evidence;
    sums->after = after;
    sums->start = evidence->at.start;
    sum->windows = 1;
    sum->n_bins = evidence->bins->n_bins;
    memcpy(sum->counts, evidence->counts, sum->n_bins * sizeof(double));
    if (evidence->settings->period > 0) {
        sums->weight = 0;
        memset(sums->seasons, 0, sum->n_bins * sizeof(double));
        add_season(sums, api_sum_n(sum), evidence->reference,
                   api_counts_sum(evidence->reference, sum->n_bins));
    }
    memcpy(sum->reference, evidence->reference, sum->n_bins * sizeof(double));
    sum->counts_of[0] = evidence->counts;
    sum->unseen_of[0] = evidence->unseen;
    if (!evidence->bins->labelled)
        return;
    sum->unseen = (struct api_unseen_sum){.n = 0};
    api_unseen_sum_add(&sum->unseen, evidence->unseen);
}

/* Adds the window before. False if there is none, or it starts before evidence counts, or it had nothing to
 * be compared with: beside the reference of others it would be drift. */
static bool add_window(struct sums *sums)
{
    struct api_sum *sum = &sums->sum;
    const struct api_pool *pool = sums->evidence->pool;
    size_t i = sum->windows - 1;
    if (!pool || i >= pool->n || pool->starts[i] < sums->evidence->turns.pool_from ||
        api_position_compare((struct api_position){pool->starts[i], pool->ids[i]}, sums->after) <=
            0)
        return false;
    double n_reference =
        pool->compared ? api_counts_sum(api_pool_reference(pool, i), sum->n_bins) : (double)NAN;
    if (n_reference == 0)
        return false;
    const double *counts = api_pool_counts(pool, i);
    for (size_t bin = 0; bin < sum->n_bins; bin++)
        sum->counts[bin] += counts[bin];
    if (pool->compared)
        add_season(sums, api_counts_sum(counts, sum->n_bins), api_pool_reference(pool, i),
                   n_reference);
    sum->counts_of[sum->windows] = counts;
    sum->unseen_of[sum->windows] = pool->unseen ? &pool->unseen[i] : NULL;
    if (pool->unseen)
        api_unseen_sum_add(&sum->unseen, &pool->unseen[i]);
    sums->start = pool->starts[i];
    sum->windows++;
    return true;
}

bool api_pool_add_up(const struct api_evidence *evidence, size_t windows, struct api_sum *sum)
{
    struct api_evidence all = *evidence;
    struct sums sums;
    all.turns = API_NO_TURNS;
    begin(&sums, &all, API_NO_TURNS.rose);
    while (sums.sum.windows < windows)
        if (!add_window(&sums))
            return false;
    *sum = sums.sum;
    return true;
}

/* ---- Verdicts */

/* Has a pool decide if its level is above those of smaller ones. */
static enum api_verdict consider(const struct sums *sums, const struct kl_drift *known,
                                 struct api_scores *scores)
{
    struct api_pooled pooled;
    enum api_verdict level = api_judge(sums->evidence, &sums->sum, known, &pooled);
    if (level <= scores->verdict)
        return level;
    scores->verdict = level;
    scores->pooled = pooled;
    return level;
}

void api_pool_judge(const struct api_evidence *evidence, struct api_scores *scores)
{
    struct sums sums;
    scores->verdict = scores->alone = API_INSUFFICIENT;
    scores->pooled = (struct api_pooled){.windows = 0};
    if (isnan(scores->drift.kl))
        return;
    begin(&sums, evidence, API_NO_TURNS.rose);
    scores->alone = consider(&sums, &scores->drift, scores);
    if (evidence->at.start < evidence->turns.pool_from)
        return;
    for (size_t size = 2; size <= api_settings_pool(evidence->settings) &&
                          scores->verdict < API_CRITICAL && add_window(&sums);)
        if (sums.sum.windows == size) {
            consider(&sums, NULL, scores);
            size *= 2;
        }
}

/* True if the sum may decide of a fall: it has little noise, or no window can be added to it. */
static bool is_enough(const struct sums *sums)
{
    const struct api_monitor_settings *settings = sums->evidence->settings;
    size_t max = api_settings_pool(settings), windows = sums->sum.windows;
    if ((double)windows < settings->clear_after && windows < max)
        return false;
    return api_sum_n(&sums->sum) >= api_min_observations(settings, sums->evidence->bins) &&
           (windows == max ||
            api_judge_noise_floor(sums->evidence, &sums->sum) <= settings->warning / 2);
}

enum api_verdict api_pool_fall(const struct api_evidence *evidence, enum api_verdict state,
                               enum api_verdict alone, int64_t *from)
{
    const struct api_monitor_settings *settings = evidence->settings;
    struct sums sums;
    struct kl_drift drift;
    struct api_position rose = evidence->turns.rose;
    int order = api_position_compare(evidence->at, rose);
    if (!evidence->reference ||
        !(api_counts_sum(evidence->reference, evidence->bins->n_bins) > 0) ||
        evidence->at.start < evidence->turns.pool_from || order == 0)
        return state;
    begin(&sums, evidence, order > 0 ? rose : API_NO_TURNS.rose);
    while (!is_enough(&sums))
        if (sums.sum.windows == api_settings_pool(settings) || !add_window(&sums))
            return state;
    api_judge_score(evidence, &sums.sum, &drift);
    double k = drift.kl - drift.noise_floor;
    enum api_verdict to = k < settings->warning / 2    ? API_OK
                          : k < settings->critical / 2 ? API_WARNING
                                                       : API_CRITICAL;
    to = alone > to ? alone : to;
    if (to >= state)
        return state;
    *from = sums.start;
    return to;
}

/* ---- When a drift began */

int64_t api_pool_began(const struct api_evidence *evidence, size_t decided)
{
    int64_t began = evidence->at.start;
    double greatest = -1;
    struct api_cells cells;
    struct sums sums;
    begin(&sums, evidence, API_NO_TURNS.rose);
    while (sums.sum.windows < decided && add_window(&sums))
        ;
    api_judge_cells(evidence, &sums.sum, &cells);
    begin(&sums, evidence, API_NO_TURNS.rose);
    do {
        double g = api_judge_g(evidence, &sums.sum, &cells);
        if (g > greatest) {
            greatest = g;
            began = sums.start;
        }
    } while (sums.sum.windows < API_BEGAN_WITHIN && add_window(&sums));
    return began;
}
