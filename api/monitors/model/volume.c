#include "api/monitors/model/volume.h"

#include <math.h>
#include <stdlib.h>

/* Probability of chance below which a number of rows is not usual: 1 in 1,000 windows. */
#define SIGNIFICANCE 0.001

/* Added to numbers of rows before logarithms and ratios. */
#define HALF 0.5

/* P(|T| > t) of Student's t with f degrees of freedom, t > 0: the incomplete beta function I_x(f/2, 1/2), x = f / (f + t^2), by its
 * continued fraction (DLMF 8.17.22) with Lentz's method where that converges fast, else by its complement. Within a relative 1e-12. */
static double student_tails(double t, double f)
{
    double x = f / (f + t * t), a = f / 2, b = 0.5;
    bool is_complement = x > (a + 1) / (a + b + 2);
    if (is_complement) {
        x = 1 - x;
        a = 0.5;
        b = f / 2;
    }
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a;
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return is_complement ? 1 - front * h : front * h;
}

/* Sum of squares of the logarithms about their mean. */
static double squares_of(const struct api_volumes *rows, double *mean)
{
    double sum = 0;
    *mean = 0;
    for (size_t i = 0; i < rows->n; i++)
        *mean += log(rows->of[i] + HALF) / (double)rows->n;
    for (size_t i = 0; i < rows->n; i++)
        sum += pow(log(rows->of[i] + HALF) - *mean, 2);
    return sum;
}

/* The p-value by some windows; the variance of n_others lists is pooled with theirs. */
static double p_value_of(double rows, const struct api_volumes *of,
                         const struct api_volumes *others, size_t n_others)
{
    double k = (double)of->n, mean, other_mean, mean_rows = 0, squares = squares_of(of, &mean);
    double least = squares / (k - 1), df = k - 1;
    for (size_t i = 0; i < of->n; i++)
        mean_rows += of->of[i] / k;
    for (size_t i = 0; i < n_others; i++)
        if (others[i].n > 1) {
            squares += squares_of(&others[i], &other_mean);
            df += (double)others[i].n - 1;
        }
    double variance = fmax(fmax(squares / df, least), 2 / (mean_rows + HALF));
    double t = fabs(log(rows + HALF) - mean) / sqrt(variance * (1 + 1 / k));
    return t > 0 ? fmin(1, student_tails(t, df)) : 1;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The median; 0 of none. */
static double usual_of(struct api_volumes *rows)
{
    size_t n = rows->n;
    qsort(rows->of, n, sizeof *rows->of, compare);
    return n > 0 ? (rows->of[(n - 1) / 2] + rows->of[n / 2]) / 2 : 0;
}

static double ratio_of(double rows, struct api_volumes *of)
{
    return (rows + HALF) / (usual_of(of) + HALF);
}

/* The ratio that is nearer to 1; 1 if one is above and the other below. */
static double weaker(double a, double b)
{
    if ((a - 1) * (b - 1) < 0)
        return 1;
    return fabs(log(a)) < fabs(log(b)) ? a : b;
}

/* The ratio that is left of one if it may be usual at this time of the season, or of the day. */
static double weaken(double ratio, double rows, struct api_volumes_before *before)
{
    struct api_volumes days = {.n = 0};
    for (size_t day = 1; day < API_WEEKDAYS; day++)
        for (size_t i = 0; i < before->season[day].n; i++)
            days.of[days.n++] = before->season[day].of[i];
    if (before->season[0].n > 0)
        ratio = weaker(ratio, ratio_of(rows, &before->season[0]));
    return days.n > 0 ? weaker(ratio, ratio_of(rows, &days)) : ratio;
}

struct api_volume api_volume_judge(const struct api_monitor_settings *settings, double rows,
                                   struct api_volumes_before *before)
{
    bool has_season = before->season[0].n >= API_VOLUME_LEAST;
    struct api_volumes *of = has_season ? &before->season[0] : &before->last;
    if (of->n < API_VOLUME_LEAST)
        return (struct api_volume){.windows = 0};
    struct api_volume volume = {
        .rows = rows,
        .usual = usual_of(of),
        .windows = (double)of->n,
        .ratio = ratio_of(rows, of),
        .p_value = p_value_of(rows, of, before->season + 1, has_season ? API_WEEKDAYS - 1 : 0),
        .level = API_OK};
    double ratio = has_season ? volume.ratio : weaken(volume.ratio, rows, before);
    double times = fmax(ratio, 1 / ratio);
    if (volume.p_value < SIGNIFICANCE && times >= settings->volume_warning)
        volume.level = times >= settings->volume_critical ? API_CRITICAL : API_WARNING;
    return volume;
}

void api_volume_apply(const struct api_volume *volume, struct api_scores *scores)
{
    enum api_verdict level = volume->windows > 0 ? (enum api_verdict)volume->level : API_OK;
    scores->volume = *volume;
    scores->volume.counts_level = volume->windows > 0 ? scores->verdict : API_INSUFFICIENT;
    if (level <= API_OK)
        return;
    scores->verdict = level > scores->verdict ? level : scores->verdict;
    scores->alone = level > scores->alone ? level : scores->alone;
}

void api_volume_write(const struct api_volume *volume, struct api_buffer *out)
{
    if (!(volume->windows > 0)) {
        api_append_text(out, "null");
        return;
    }
    api_write_json(out, "{'usual':%g,'windows':%g,'ratio':%g,'p_value':%g,'level':%s}",
                   volume->usual, volume->windows, volume->ratio, volume->p_value,
                   api_verdict_names[api_verdict_of((int64_t)volume->level)]);
}
