#include "lib/drift.h"
#include "lib/drift/chi_squared.h"
#include "lib/drift/deviance.h"

/* pair: two probabilities, and p - q more exactly than their difference. */
struct pair {
    double p, q, difference;
};

/* table: the totals and options of all bins. */
struct table {
    double n, n_reference;             /* sums of the counts */
    double smoothed_n, smoothed_ref_n; /* with the pseudocounts */
    double pseudocount;
    bool exact;
};

/* sums: totals over the bins. */
struct sums {
    struct kl_sum kl, kl_reverse, js, g, p_less_q, raw_p_less_q, unseen;
};

/* a b - c d, rounded almost once (Jeannerod, Louvet and Muller, "Further analysis of Kahan's algorithm
 * for the accurate computation of 2x2 determinants", 2013). */
static double determinant(double a, double b, double c, double d)
{
    double cd = c * d, error = fma(c, d, -cd);
    return fma(a, b, -cd) - error;
}

static double divergence(struct pair v) { return kl_deviance(v.p, v.q, v.difference); }

static struct pair reversed(struct pair v) { return (struct pair){v.q, v.p, -v.difference}; }

/* Half of the divergences of both from their mean. */
static double js(struct pair v)
{
    double mean = (v.p + v.q) / 2, half = v.difference / 2;
    return (divergence((struct pair){v.p, mean, half}) +
            divergence((struct pair){v.q, mean, -half})) /
           2;
}

/* Fractions of two counts. */
static struct pair of_counts(double c, double n, double r, double n_reference)
{
    double difference = determinant(c, n_reference, r, n) / n / n_reference;
    return (struct pair){c / n, r / n_reference, difference};
}

/* A fraction beside a probability, from which it differs if it does so as a double. */
static struct pair of_probability(double c, double n, double q)
{
    double p = c / n;
    return (struct pair){p, q, p == q ? 0 : fma(-q, n, c) / n};
}

static struct pair smoothed(const struct table *t, double c, double r)
{
    c += t->pseudocount;
    return t->exact ? of_probability(c, t->smoothed_n, r)
                    : of_counts(c, t->smoothed_n, r + t->pseudocount, t->smoothed_ref_n);
}

/* A bin's part of G / 2: of two counts, the divergences of both from their common fraction. */
static double g_part(const struct table *t, double c, double r, struct pair raw)
{
    if (t->exact)
        return t->n * divergence(raw);
    double together = t->n + t->n_reference, share = (c + r) / together;
    struct pair current = {raw.p, share, raw.difference * (t->n_reference / together)};
    struct pair reference = {raw.q, share, -raw.difference * (t->n / together)};
    return t->n * divergence(current) + t->n_reference * divergence(reference);
}

/* Adds a bin of counts c and r, and returns its contribution. */
static double add_bin(const struct table *t, double c, double r, struct sums *sums)
{
    struct pair v = smoothed(t, c, r);
    struct pair raw = t->exact ? of_probability(c, t->n, r) : of_counts(c, t->n, r, t->n_reference);
    double contribution = divergence(v);
    kl_sum_add(&sums->kl, contribution);
    kl_sum_add(&sums->kl_reverse, divergence(reversed(v)));
    kl_sum_add(&sums->js, js(v));
    kl_sum_add(&sums->g, g_part(t, c, r, raw));
    kl_sum_add(&sums->unseen, r == 0 ? c : 0);
    if (t->exact) {
        kl_sum_add(&sums->p_less_q, v.difference);
        kl_sum_add(&sums->raw_p_less_q, raw.difference);
    }
    return contribution;
}

static double value_of(const struct kl_sum *sum) { return sum->high + sum->low; }

/* The sum of p - q, but 0 where no more than the rounding of each q is left of it. */
static double excess(const struct kl_sum *p_less_q, double bins)
{
    double value = value_of(p_less_q);
    return fabs(value) <= bins * 0x1p-53 ? 0 : value;
}

static void finish(const struct table *t, const struct sums *sums, double bins, double significance,
                   struct kl_drift *scores)
{
    double beyond = excess(&sums->p_less_q, bins);
    double per_count = (1 / t->n + (t->exact ? 0 : 1 / t->n_reference)) / 2;
    scores->n = t->n;
    scores->n_reference = t->exact ? (double)INFINITY : t->n_reference;
    scores->kl = value_of(&sums->kl) + beyond;
    scores->kl_reverse = value_of(&sums->kl_reverse) - beyond;
    scores->js = value_of(&sums->js);
    scores->psi = scores->kl + scores->kl_reverse;
    scores->statistic = 2 * (value_of(&sums->g) + t->n * excess(&sums->raw_p_less_q, bins));
    scores->df = (size_t)bins - 1;
    scores->p_value = scores->df == 0 || !(scores->statistic > 0)
                          ? 1
                          : kl_chi_squared(scores->statistic, scores->df).tail;
    scores->critical_kl =
        scores->df == 0 ? 0 : kl_chi_squared_point(significance, scores->df) * per_count;
    scores->noise_floor = (double)scores->df * per_count;
    scores->unseen_ratio = value_of(&sums->unseen) / t->n;
}

/* True of what counts, sums of them and pseudocounts may be. */
static bool is_count(double value) { return value >= 0 && value < (double)INFINITY; }

/* Sums the counts, and tells the number of bins where there are any; false if there are no scores of them. */
static bool total(const double *current, const double *reference, size_t bins,
                  const struct kl_drift_options *options, struct table *t, double *bins_used)
{
    struct kl_sum n = {0}, n_reference = {0};
    size_t used = 0;
    bool good =
        is_count(options->pseudocount) && options->significance > 0 && options->significance <= 1;
    for (size_t i = 0; i < bins; i++) {
        good &= is_count(current[i]) && is_count(reference[i]);
        kl_sum_add(&n, current[i]);
        kl_sum_add(&n_reference, reference[i]);
        used += current[i] + reference[i] > 0;
    }
    double added = options->pseudocount * (double)used;
    *t = (struct table){.n = value_of(&n),
                        .n_reference = value_of(&n_reference),
                        .pseudocount = options->pseudocount,
                        .exact = options->exact_reference};
    t->smoothed_n = t->n + added;
    t->smoothed_ref_n = t->n_reference + added;
    *bins_used = (double)used;
    return good && is_count(t->n) && t->n > 0 && is_count(t->n_reference) && t->n_reference > 0;
}

/* The scores of counts that have none. */
static void store_nothing(size_t bins, struct kl_drift *scores, struct kl_drift_bin *of_bins)
{
    const double none = (double)NAN;
    *scores =
        (struct kl_drift){none, none, none, none, none, none, none, none, none, none, none, 0};
    for (size_t i = 0; of_bins && i < bins; i++)
        of_bins[i] = (struct kl_drift_bin){none, none, none, none};
}

static double share(double contribution, double kl)
{
    return isinf(kl) ? (double)NAN : kl > 0 ? contribution / kl : 0;
}

void kl_drift(const double *current, const double *reference, size_t bins,
              const struct kl_drift_options *options, struct kl_drift *scores,
              struct kl_drift_bin *of_bins)
{
    struct table t;
    struct sums sums = {0};
    double used;
    if (!total(current, reference, bins, options, &t, &used)) {
        store_nothing(bins, scores, of_bins);
        return;
    }
    for (size_t i = 0; i < bins; i++) {
        double c = current[i], r = reference[i];
        double contribution = c + r > 0 ? add_bin(&t, c, r, &sums) : 0;
        if (of_bins)
            of_bins[i] =
                (struct kl_drift_bin){t.exact ? r : r / t.n_reference, c / t.n, contribution, 0};
    }
    finish(&t, &sums, used, options->significance, scores);
    if (of_bins)
        for (size_t i = 0; i < bins; i++)
            of_bins[i].share = share(of_bins[i].contribution, scores->kl);
}
