#include "api/monitors/model/judge.h"

#include <math.h>

/* EXPECTED: counts that a cell needs, of those that are expected in the smaller of both samples. MAX_CELLS: with one of
 * what was joined, and one of a text without a bin. */
enum { EXPECTED = 5, MAX_CELLS = API_MAX_BINS + KL_OUTER_BINS + 2 };

double api_min_observations(const struct api_monitor_settings *settings,
                            const struct api_bins *bins)
{
    double min = settings->min_observations;
    return !isnan(min) ? min : bins->labelled ? 50 : fmax(50, 5 * (double)bins->n);
}

/* ---- Cells */

/* cells: what is judged: bins, or what is left of them after joining; the last one has what was joined. */
struct cells {
    size_t n, joined; /* bins that were joined with others */
    double counts[MAX_CELLS], reference[MAX_CELLS];
    unsigned short bins[MAX_CELLS]; /* index of each bin; n_bins of what was joined of intervals */
};

static double add_up(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

double api_sum_n(const struct api_sum *sum) { return add_up(sum->counts, sum->n_bins); }

/* True if enough is expected in a cell of both samples together. Beside an exact reference, which is as if it were of
 * infinitely many, that is what it says alone. */
static bool is_kept(const struct api_evidence *evidence, double c, double r, double n,
                    double n_reference)
{
    double expected = evidence->exact ? r * n : (c + r) * fmin(n, n_reference) / (n + n_reference);
    return expected >= EXPECTED;
}

static void add_cell(struct cells *cells, size_t bin, double c, double r)
{
    cells->counts[cells->n] = c;
    cells->reference[cells->n] = r;
    cells->bins[cells->n++] = (unsigned short)bin;
}

/* Joins cells that are too small with `other`; of intervals with one another. */
static void join(const struct api_evidence *evidence, const struct api_sum *sum,
                 struct cells *cells)
{
    bool labelled = evidence->bins->labelled;
    size_t other = labelled ? api_bins_other(evidence->bins) : sum->n_bins;
    double n = add_up(sum->counts, sum->n_bins), n_reference = add_up(sum->reference, sum->n_bins);
    double rest_counts = labelled ? sum->counts[other] : 0;
    double rest_reference = labelled ? sum->reference[other] : 0;
    cells->n = cells->joined = 0;
    for (size_t i = 0; i < sum->n_bins; i++) {
        double c = sum->counts[i], r = sum->reference[i];
        if (i == other)
            continue;
        if (is_kept(evidence, c, r, n, n_reference)) {
            add_cell(cells, i, c, r);
        } else {
            rest_counts += c;
            rest_reference += r;
            cells->joined += c + r > 0;
        }
    }
    add_cell(cells, other, rest_counts, rest_reference);
}

static void score(const struct api_evidence *evidence, const double *counts,
                  const double *reference, size_t n, struct kl_drift *drift)
{
    const struct kl_drift_options options = {.pseudocount = evidence->settings->pseudocount,
                                             .significance = 1, /* no critical_kl is asked for */
                                             .exact_reference = evidence->exact};
    kl_drift(counts, reference, n, &options, drift, NULL);
}

static void score_cells(const struct api_evidence *evidence, const struct cells *cells,
                        struct kl_drift *drift)
{
    score(evidence, cells->counts, cells->reference, cells->n, drift);
}

double api_judge_noise_floor(const struct api_evidence *evidence, const struct api_sum *sum)
{
    struct cells cells;
    bool labelled = evidence->bins->labelled;
    const double *counts = labelled ? cells.counts : sum->counts;
    const double *reference = labelled ? cells.reference : sum->reference;
    double used = 0;
    if (labelled)
        join(evidence, sum, &cells);
    size_t n = labelled ? cells.n : sum->n_bins;
    for (size_t i = 0; i < n; i++)
        used += counts[i] + reference[i] > 0;
    double per_count = 1 / add_up(counts, n) + (evidence->exact ? 0 : 1 / add_up(reference, n));
    return (used - 1) / 2 * per_count;
}

void api_judge_score(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct kl_drift *drift)
{
    struct cells cells;
    if (evidence->bins->labelled) {
        join(evidence, sum, &cells);
        score_cells(evidence, &cells, drift);
    } else {
        score(evidence, sum->counts, sum->reference, sum->n_bins, drift);
    }
}

/* ---- Levels */

/* Significance of one test: the windows of each size are a test of their own (Bonferroni). */
static double significance_of(const struct api_monitor_settings *settings)
{
    return settings->significance / (log2((double)api_settings_pool(settings)) + 1);
}

static enum api_verdict level_of(const struct api_monitor_settings *settings, double kl,
                                 double p_value)
{
    bool shows = p_value < significance_of(settings) || settings->significance >= 1;
    if (isinf(kl) || (kl >= settings->critical && shows))
        return API_CRITICAL;
    return kl >= settings->warning && shows ? API_WARNING : API_OK;
}

/* ---- Texts without a bin */

/* Probability that of n trials at least k succeed, each with this probability, in (0, 1); 1 if as many are expected: so
 * much tells nothing. Terms from k on, which fall, until no more is added. Within a relative 1e-9 for n to 1e6. */
static double binomial_tail(double k, double n, double probability)
{
    if (k <= n * probability)
        return 1;
    double odds = probability / (1 - probability), sum = 0;
    double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(probability) +
                      (n - k) * log1p(-probability));
    while (k <= n && term > sum * 1e-17) {
        sum += term;
        term *= (n - k) / (k + 1) * odds;
        k += 1;
    }
    return fmin(1, sum);
}

void api_unseen_sum_add(struct api_unseen_sum *sum, const struct api_unseen_counts *unseen)
{
    for (size_t i = 0; i < unseen->n; i++) {
        const struct api_unseen_count *added = &unseen->labels[i];
        size_t at = added->hash % API_UNSEEN_SLOTS;
        while (sum->slots[at].count > 0 && sum->slots[at].hash != added->hash)
            at = (at + 1) % API_UNSEEN_SLOTS;
        sum->n += sum->slots[at].count == 0;
        sum->slots[at].hash = added->hash;
        sum->slots[at].count += added->count;
        sum->total += added->count;
        sum->most = fmax(sum->most, sum->slots[at].count);
    }
}

/* Judges the heaviest text without a bin by itself: how probable it is that one of as many as there are is so frequent,
 * if each had the largest share that it may have had. Of texts that were not kept each may be one of its own. */
static void judge_unseen(const struct api_evidence *evidence, const struct api_sum *sum,
                         struct cells *cells, enum api_verdict *level, struct api_pooled *pooled)
{
    const struct api_unseen_sum *unseen = &sum->unseen;
    struct kl_drift drift;
    size_t last = cells->n - 1;
    double n = add_up(cells->counts, cells->n), share = evidence->unseen_share;
    double texts = (double)unseen->n + sum->counts[api_bins_other(evidence->bins)] - unseen->total;
    if (unseen->n == 0 || !(share < 1))
        return;
    double p_value = fmin(1, binomial_tail(unseen->most, n, share) * texts);
    if (!(p_value < significance_of(evidence->settings)))
        return;
    double seen = fmin(share * add_up(cells->reference, cells->n), cells->reference[last]);
    cells->counts[last] -= unseen->most;
    cells->reference[last] -= seen;
    add_cell(cells, cells->bins[last], unseen->most, seen);
    score_cells(evidence, cells, &drift);
    drift.p_value = p_value;
    if (level_of(evidence->settings, drift.kl, p_value) <= *level)
        return;
    *level = level_of(evidence->settings, drift.kl, p_value);
    *pooled = api_pooled_of(sum->windows, &drift);
}

/* ---- Single cells */

/* The p-value of G of one cell against all others. */
static double p_of_cell(const struct api_evidence *evidence, double c, double n, double r,
                        double n_reference)
{
    struct kl_drift drift;
    const double counts[] = {c, fmax(0, n - c)}, reference[] = {r, fmax(0, n_reference - r)};
    score(evidence, counts, reference, 2, &drift);
    return drift.p_value;
}

/* Judges each cell by itself: what is rare and matters has no weight in the divergence, however sure its change is. */
static enum api_verdict judge_ratios(const struct api_evidence *evidence, const struct cells *cells,
                                     struct api_pooled_ratio *ratio)
{
    const struct api_monitor_settings *settings = evidence->settings;
    double n = add_up(cells->counts, cells->n), all = add_up(cells->reference, cells->n);
    double used = 0, added = settings->pseudocount;
    enum api_verdict worst = API_OK;
    for (size_t i = 0; i < cells->n; i++)
        used += cells->counts[i] + cells->reference[i] > 0;
    for (size_t i = 0; i < cells->n; i++) {
        double c = cells->counts[i], r = cells->reference[i];
        double p = (c + added) / (n + added * used);
        double q = evidence->exact ? r : (r + added) / (all + added * used), x = p / q;
        bool is_far = fmax(x, 1 / x) >= settings->ratio_warning && c + r > 0;
        double p_value = is_far ? fmin(1, p_of_cell(evidence, c, n, r, all) * used) : 1;
        enum api_verdict level =
            fmax(x, 1 / x) >= settings->ratio_critical ? API_CRITICAL : API_WARNING;
        if (!is_far || level <= worst ||
            !(p_value < significance_of(settings) || settings->significance >= 1))
            continue;
        worst = level;
        *ratio = (struct api_pooled_ratio){.bin = cells->bins[i] + 1.,
                                           .reference = r / all,
                                           .current = c / n,
                                           .ratio = x,
                                           .p_value = p_value};
    }
    return worst;
}

enum api_verdict api_judge(const struct api_evidence *evidence, const struct api_sum *sum,
                           const struct kl_drift *known, struct api_pooled *pooled)
{
    struct cells cells;
    struct kl_drift drift;
    struct api_pooled_ratio ratio = {0};
    enum api_verdict by_ratio = API_OK;
    bool labelled = evidence->bins->labelled, has_ratio = evidence->settings->ratio_warning > 0;
    if (api_sum_n(sum) < api_min_observations(evidence->settings, evidence->bins))
        return API_INSUFFICIENT;
    if (labelled || has_ratio)
        join(evidence, sum, &cells);
    if (has_ratio)
        by_ratio = judge_ratios(evidence, &cells, &ratio);
    if (known && (!labelled || cells.joined == 0))
        drift = *known;
    else if (labelled)
        score_cells(evidence, &cells, &drift);
    else
        score(evidence, sum->counts, sum->reference, sum->n_bins, &drift);
    enum api_verdict level = level_of(evidence->settings, drift.kl, drift.p_value);
    *pooled = api_pooled_of(sum->windows, &drift);
    if (labelled)
        judge_unseen(evidence, sum, &cells, &level, pooled);
    if (by_ratio > API_OK && by_ratio >= level) {
        ratio.is_alone = by_ratio > level;
        level = by_ratio;
        pooled->ratio = ratio;
    }
    return level;
}
