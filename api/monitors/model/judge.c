#include "api/monitors/model/judge.h"

#include <math.h>
#include <string.h>

/* EXPECTED: counts that a cell needs, of those that are expected in the smaller of both samples. LEFT: the logarithm of how
 * much likelier the newest windows of a sum must be under the reference than under the others to take no part. MAX_CELLS:
 * with one of what was joined, and one of a text without a bin. */
enum { EXPECTED = 5, LEFT = 3, MAX_CELLS = API_MAX_BINS + KL_OUTER_BINS + 2 };

/* SMOOTHED: added to each count of a distribution that windows are likely under (Krichevsky and Trofimov, 1981). */
#define SMOOTHED 0.5

double api_min_observations(const struct api_monitor_settings *settings,
                            const struct api_bins *bins)
{
    double min = settings->min_observations;
    return !isnan(min) ? min : bins->labelled ? 50 : fmax(50, 5 * (double)bins->n);
}

/* ---- Cells */

/* cells: what is judged: bins, or what is left of them after joining; the last one is `other`, with what was joined. */
struct cells {
    size_t n, joined; /* bins that were joined with others */
    double counts[MAX_CELLS], reference[MAX_CELLS];
    unsigned short bins[MAX_CELLS]; /* index of each bin; n_bins of what was joined of intervals */
    unsigned short of_bin[MAX_CELLS]; /* index of the cell of each bin */
};

/* judging: a sum that is judged. kept: which bins are cells of their own. */
struct judging {
    const struct api_evidence *evidence;
    const struct api_sum *sum;
    size_t other; /* index of the bin; n_bins of intervals */
    double n, n_reference;
    bool kept[MAX_CELLS];
    enum api_verdict level;
    struct api_pooled *pooled;
};

double api_sum_n(const struct api_sum *sum) { return api_counts_sum(sum->counts, sum->n_bins); }

/* True if enough is expected in a cell of both samples together. Beside an exact reference, which is as if it were of
 * infinitely many, that is what it says alone. */
static bool is_enough(const struct judging *j, double c, double r)
{
    double n = j->n, all = j->n_reference;
    return (j->evidence->exact ? r * n : (c + r) * fmin(n, all) / (n + all)) >= EXPECTED;
}

/* Begins to judge a sum, whose small cells are joined if it is of labels, or if that is asked for. */
static void begin(struct judging *j, const struct api_evidence *evidence, const struct api_sum *sum,
                  bool joins)
{
    bool labelled = evidence->bins->labelled;
    j->evidence = evidence;
    j->sum = sum;
    j->other = labelled ? api_bins_other(evidence->bins) : sum->n_bins;
    j->n = api_sum_n(sum);
    j->n_reference = api_counts_sum(sum->reference, sum->n_bins);
    for (size_t i = 0; i < sum->n_bins; i++) {
        double c = sum->counts[i], r = sum->reference[i];
        bool is_impossible = evidence->exact && labelled && r == 0 && c > 0;
        j->kept[i] = i != j->other && (!joins || is_impossible || is_enough(j, c, r));
    }
}

static size_t add_cell(struct cells *cells, size_t bin, double c, double r)
{
    cells->counts[cells->n] = c;
    cells->reference[cells->n] = r;
    cells->bins[cells->n] = (unsigned short)bin;
    return cells->n++;
}

/* True for a label that is joined with others, and holds something. */
static bool is_small(const struct judging *j, size_t bin)
{
    return bin != j->other && !j->kept[bin] && j->sum->counts[bin] + j->sum->reference[bin] > 0;
}

/* Makes a cell of each kept bin, and of `other` with those that are not; or, if these stand `apart`, one of them, too. */
static void make_cells(const struct judging *j, bool apart, struct cells *cells)
{
    const struct api_sum *sum = j->sum;
    size_t n_bins = sum->n_bins;
    cells->n = cells->joined = 0;
    for (size_t i = 0; i < n_bins; i++)
        if (j->kept[i])
            cells->of_bin[i] =
                (unsigned short)add_cell(cells, i, sum->counts[i], sum->reference[i]);
    size_t joined = apart ? add_cell(cells, j->other, 0, 0) : cells->n;
    size_t other = add_cell(cells, j->other, 0, 0);
    for (size_t i = 0; i < n_bins; i++) {
        if (j->kept[i])
            continue;
        size_t cell = i == j->other ? other : joined;
        cells->of_bin[i] = (unsigned short)cell;
        cells->counts[cell] += sum->counts[i];
        cells->reference[cell] += sum->reference[i];
        cells->joined += is_small(j, i);
    }
}

void api_evidence_score(const struct api_evidence *evidence, const double *counts,
                        const double *reference, size_t n, struct kl_drift *drift,
                        struct kl_drift_bin *of_bins)
{
    const struct kl_drift_options options = {.pseudocount = evidence->settings->pseudocount,
                                             .significance =
                                                 of_bins ? evidence->settings->significance : 1,
                                             .exact_reference = evidence->exact};
    kl_drift(counts, reference, n, &options, drift, of_bins);
}

static void score_cells(const struct api_evidence *evidence, const struct cells *cells,
                        struct kl_drift *drift)
{
    api_evidence_score(evidence, cells->counts, cells->reference, cells->n, drift, NULL);
}

/* Makes the cells of a sum, whose small ones are joined if it is of labels. */
static void join(struct judging *j, const struct api_evidence *evidence, const struct api_sum *sum,
                 struct cells *cells)
{
    begin(j, evidence, sum, evidence->bins->labelled);
    make_cells(j, false, cells);
}

void api_judge_score(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct kl_drift *drift)
{
    struct judging j;
    struct cells cells;
    join(&j, evidence, sum, &cells);
    score_cells(evidence, &cells, drift);
}

void api_judge_cells(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct api_cells *cells)
{
    struct judging j;
    struct cells made;
    join(&j, evidence, sum, &made);
    cells->n = made.n;
    memcpy(cells->of_bin, made.of_bin, sum->n_bins * sizeof *cells->of_bin);
}

double api_judge_g(const struct api_evidence *evidence, const struct api_sum *sum,
                   const struct api_cells *cells)
{
    double counts[MAX_CELLS] = {0}, reference[MAX_CELLS] = {0};
    struct kl_drift drift;
    for (size_t i = 0; i < sum->n_bins; i++) {
        counts[cells->of_bin[i]] += sum->counts[i];
        reference[cells->of_bin[i]] += sum->reference[i];
    }
    api_evidence_score(evidence, counts, reference, cells->n, &drift, NULL);
    return drift.statistic;
}

double api_judge_noise_floor(const struct api_evidence *evidence, const struct api_sum *sum)
{
    struct judging j;
    struct cells cells;
    double used = 0;
    join(&j, evidence, sum, &cells);
    for (size_t i = 0; i < cells.n; i++)
        used += cells.counts[i] + cells.reference[i] > 0;
    return (used - 1) / 2 * (1 / j.n + (evidence->exact ? 0 : 1 / j.n_reference));
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

/* ---- Windows that take part */

/* Adds the counts of a window, newest first, in cells. The last cell is that of a text without a bin, if `text` is its
 * hash. */
static void add_window(const struct judging *j, size_t window, const struct cells *cells,
                       const uint64_t *text, double *counts)
{
    const struct api_unseen_counts *unseen = j->sum->unseen_of[window];
    for (size_t i = 0; i < j->sum->n_bins; i++)
        counts[cells->of_bin[i]] += j->sum->counts_of[window][i];
    for (size_t i = 0; text && i < unseen->n; i++)
        if (unseen->labels[i].hash == *text) {
            counts[cells->of_bin[j->other]] -= unseen->labels[i].count;
            counts[cells->n - 1] += unseen->labels[i].count;
        }
}

/* Logarithm of how much likelier the newest windows of a sum are under the others than under the reference. */
static double likelihood_ratio(const struct judging *j, const struct cells *cells,
                               const double *newest)
{
    double used = 0, n_newest = 0, n = 0, n_reference = 0, sum = 0;
    for (size_t i = 0; i < cells->n; i++) {
        used += cells->counts[i] + cells->reference[i] > 0;
        n += cells->counts[i];
        n_newest += newest[i];
        n_reference += cells->reference[i];
    }
    for (size_t i = 0; i < cells->n; i++) {
        if (!(newest[i] > 0))
            continue;
        double p = (cells->counts[i] - newest[i] + SMOOTHED) / (n - n_newest + SMOOTHED * used);
        double q = j->evidence->exact
                       ? cells->reference[i]
                       : (cells->reference[i] + SMOOTHED) / (n_reference + SMOOTHED * used);
        sum += newest[i] * log(p / q);
    }
    return sum;
}

/* False if the newest windows have left the drift that a test shows in these cells. */
static bool takes_part(const struct judging *j, const struct cells *cells, const uint64_t *text)
{
    double newest[MAX_CELLS] = {0};
    size_t n = 0;
    for (size_t half = 1; half <= j->sum->windows / 2; half *= 2) {
        for (; n < half; n++)
            add_window(j, n, cells, text, newest);
        if (likelihood_ratio(j, cells, newest) < -LEFT)
            return false;
    }
    return true;
}

/* Has a test decide if its level is above those before. Its p-value is that of G, unless it is given. */
static void test(struct judging *j, const struct cells *cells, const struct kl_drift *known,
                 const double *p_value, const uint64_t *text)
{
    struct kl_drift drift;
    if (known)
        drift = *known;
    else
        score_cells(j->evidence, cells, &drift);
    if (p_value)
        drift.p_value = *p_value;
    enum api_verdict level = level_of(j->evidence->settings, drift.kl, drift.p_value);
    if (level > API_OK && level > j->level && !takes_part(j, cells, text))
        level = API_OK;
    if (level <= j->level)
        return;
    j->level = level;
    *j->pooled = api_pooled_of(j->sum->windows, &drift);
}

/* ---- Labels that are joined */

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

/* Survival function of the gamma distribution of shape a, over its density, for x > a + 1: Legendre's continued fraction by
 * Lentz's method (Press et al., "Numerical recipes", 6.2). */
static double gamma_mills_ratio(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int i = 1; i < 1000; i++) {
        double factor = -i * (i - a);
        b += 2;
        d = 1 / (factor * d + b);
        c = b + factor / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return x * h;
}

/* Upper bound, at 1e-6, of the mean of a Poisson variable that was r: the point of the gamma distribution of shape r + 1
 * beyond which that probability lies. From Wilson and Hilferty's approximation by Newton's method on the logarithm; within a
 * relative 1e-12. */
static double poisson_bound(double r)
{
    static const double z = 4.753424308822899, tail = -13.815510557964274; /* of 1e-6; log(1e-6) */
    double a = r + 1, x = a * pow(1 - 1 / (9 * a) + z / (3 * sqrt(a)), 3);
    for (int i = 0; i < 6; i++) {
        double mills = gamma_mills_ratio(a, x);
        x += (log(mills) - x + (a - 1) * log(x) - lgamma(a) - tail) * mills;
    }
    return x;
}

/* A bound that is below poisson_bound, at little cost. */
static double rough_bound(double r) { return r + 1 + 4.7 * sqrt(r + 1); }

/* Finds the joined label that is least likely to be so frequent by chance; gives that probability, times the number of joined
 * labels. */
static double find_heaviest(const struct judging *j, size_t *heaviest)
{
    const double *counts = j->sum->counts, *reference = j->sum->reference;
    bool exact = j->evidence->exact;
    double min = 1, n_small = 0;
    for (size_t i = 0; i < j->sum->n_bins; i++) {
        if (!is_small(j, i))
            continue;
        n_small++;
        if (!exact && counts[i] <= j->n * rough_bound(reference[i]) / j->n_reference)
            continue;
        double share = exact ? reference[i] : poisson_bound(reference[i]) / j->n_reference;
        double p = share < 1 ? binomial_tail(counts[i], j->n, share) : 1;
        if (p < min) {
            min = p;
            *heaviest = i;
        }
    }
    return fmin(1, min * n_small);
}

/* Judges the heaviest of the joined labels by itself, and all of them together beside `other`. */
static void test_joined(struct judging *j, struct cells *cells)
{
    size_t heaviest = 0;
    double c = 0, r = 0, p_value = find_heaviest(j, &heaviest);
    for (size_t i = 0; i < j->sum->n_bins; i++)
        if (is_small(j, i)) {
            c += j->sum->counts[i];
            r += j->sum->reference[i];
        }
    if (p_value < significance_of(j->evidence->settings)) {
        j->kept[heaviest] = true;
        make_cells(j, false, cells);
        j->kept[heaviest] = false;
        test(j, cells, NULL, &p_value, NULL);
    }
    if (is_enough(j, c, r) && is_enough(j, j->sum->counts[j->other], j->sum->reference[j->other])) {
        make_cells(j, true, cells);
        test(j, cells, NULL, NULL, NULL);
    }
}

/* ---- Texts without a bin */

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
        if (sum->slots[at].count > sum->most) {
            sum->most = sum->slots[at].count;
            sum->heaviest = added->hash;
        }
    }
}

double api_unseen_sum_count(const struct api_unseen_sum *sum, const char *text)
{
    uint64_t hash = api_unseen_hash(text, strlen(text));
    size_t at = hash % API_UNSEEN_SLOTS;
    while (sum->slots[at].count > 0 && sum->slots[at].hash != hash)
        at = (at + 1) % API_UNSEEN_SLOTS;
    return sum->slots[at].count;
}

/* Judges the heaviest text without a bin by itself: how probable it is that one of as many as there are is so frequent,
 * if each had the largest share that it may have had. Of texts that were not kept each may be one of its own. */
static void test_unseen(struct judging *j, struct cells *cells)
{
    const struct api_unseen_sum *unseen = &j->sum->unseen;
    double share = j->evidence->unseen_share;
    double texts = (double)unseen->n + j->sum->counts[j->other] - unseen->total;
    if (unseen->n == 0 || !(share < 1))
        return;
    double p_value = fmin(1, binomial_tail(unseen->most, j->n, share) * texts);
    if (!(p_value < significance_of(j->evidence->settings)))
        return;
    make_cells(j, false, cells);
    size_t last = cells->n - 1;
    double seen = fmin(share * j->n_reference, j->sum->reference[j->other]);
    cells->counts[last] -= unseen->most;
    cells->reference[last] -= seen;
    add_cell(cells, cells->bins[last], unseen->most, seen);
    test(j, cells, NULL, &p_value, &unseen->heaviest);
}

/* ---- Single cells */

/* The p-value of G of one cell against all others. */
static double p_of_cell(const struct api_evidence *evidence, double c, double n, double r,
                        double n_reference)
{
    struct kl_drift drift;
    const double counts[] = {c, fmax(0, n - c)}, reference[] = {r, fmax(0, n_reference - r)};
    api_evidence_score(evidence, counts, reference, 2, &drift, NULL);
    return drift.p_value;
}

/* Judges each cell by itself: what is rare and matters has no weight in the divergence, however sure its change is. */
static enum api_verdict judge_ratios(const struct api_evidence *evidence, const struct cells *cells,
                                     struct api_pooled_ratio *ratio)
{
    const struct api_monitor_settings *settings = evidence->settings;
    double n = api_counts_sum(cells->counts, cells->n),
           all = api_counts_sum(cells->reference, cells->n);
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

/* True if an exact reference has no `other`, and the sum has: joined labels would hide that the divergence is infinite. */
static bool is_other_impossible(const struct judging *j)
{
    return j->evidence->exact && j->other < j->sum->n_bins && j->sum->reference[j->other] == 0 &&
           j->sum->counts[j->other] > 0;
}

/* True if the reference holds `other` alone, beside missing values: what it consists of is not known. */
static bool is_all_other(const struct judging *j)
{
    size_t other = j->other, missing = api_bins_missing(j->evidence->bins);
    double known = 0;
    for (size_t i = 0; i < j->sum->n_bins; i++)
        if (i != other && i != missing)
            known += j->sum->reference[i];
    return other < j->sum->n_bins && known == 0 && j->sum->reference[other] > 0;
}

enum api_verdict api_judge(const struct api_evidence *evidence, const struct api_sum *sum,
                           const struct kl_drift *known, struct api_pooled *pooled)
{
    struct judging j __attribute__((uninitialized));
    struct cells cells __attribute__((uninitialized));
    struct api_pooled_ratio ratio = {0};
    enum api_verdict by_ratio = API_OK;
    bool labelled = evidence->bins->labelled;
    if (api_sum_n(sum) < api_min_observations(evidence->settings, evidence->bins))
        return API_INSUFFICIENT;
    begin(&j, evidence, sum, labelled);
    j.level = API_INSUFFICIENT;
    j.pooled = pooled;
    make_cells(&j, is_other_impossible(&j), &cells);
    test(&j, &cells, cells.joined == 0 ? known : NULL, NULL, NULL);
    if (evidence->settings->ratio_warning > 0) {
        struct judging joined;
        struct cells joined_cells;
        begin(&joined, evidence, sum, true);
        make_cells(&joined, false, &joined_cells);
        by_ratio = judge_ratios(evidence, &joined_cells, &ratio);
        if (by_ratio > API_OK && !takes_part(&j, &cells, NULL))
            by_ratio = API_OK;
    }
    if (cells.joined > 0)
        test_joined(&j, &cells);
    if (labelled)
        test_unseen(&j, &cells);
    if (j.level == API_OK && by_ratio <= API_OK && is_all_other(&j))
        return API_INSUFFICIENT;
    if (by_ratio > API_OK && by_ratio >= j.level) {
        ratio.is_alone = by_ratio > j.level;
        j.level = by_ratio;
        pooled->ratio = ratio;
    }
    return j.level;
}
