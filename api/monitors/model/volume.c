#include "api/monitors/model/volume.h"

#include <math.h>
#include <stdlib.h>

/* Probability of chance below which a number of rows is not usual: 1 in 1,000 windows. */
#define SIGNIFICANCE 0.001

/* Added to numbers of rows before logarithms. */
#define HALF 0.5

/* A ratio that is rounded may be so much smaller than a limit. */
#define ROUNDED (1 - 1e-12)

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

void api_volumes_add(struct api_volumes *volumes, double rows, bool is_alarm)
{
    if (volumes->n == API_VOLUME_MAX)
        return;
    volumes->of[volumes->n++] = rows;
    if (!is_alarm)
        volumes->without_alarm[volumes->n_without_alarm++] = rows;
}

/* spread: of the logarithms of numbers of rows. */
struct spread {
    double n, mean, squares, sum; /* squares about the mean; sum of rows + 1/2 */
};

static struct spread spread_of(const struct api_volumes *volumes)
{
    bool has_enough = volumes->n_without_alarm > 1;
    size_t n = has_enough ? volumes->n_without_alarm : volumes->n;
    const double *rows = has_enough ? volumes->without_alarm : volumes->of;
    struct spread spread = {.n = (double)n};
    for (size_t i = 0; i < n; i++) {
        spread.mean += log(rows[i] + HALF) / spread.n;
        spread.sum += rows[i] + HALF;
    }
    for (size_t i = 0; i < n; i++)
        spread.squares += pow(log(rows[i] + HALF) - spread.mean, 2);
    return spread;
}

/* The p-value by some windows; the variance of n_others lists is pooled with theirs. */
static double p_value_of(double rows, const struct api_volumes *of,
                         const struct api_volumes *others, size_t n_others)
{
    const struct spread own = spread_of(of);
    double squares = own.squares, df = own.n - 1;
    for (size_t i = 0; i < n_others; i++) {
        const struct spread other = spread_of(&others[i]);
        if (other.n < 2)
            continue;
        squares += other.squares;
        df += other.n - 1;
    }
    double min_variance = fmax(own.squares / (own.n - 1), 2 * own.n / own.sum);
    double variance = fmax(squares / df, min_variance);
    double t = fabs(log(rows + HALF) - own.mean) / sqrt(variance * (1 + 1 / own.n));
    return t > 0 ? fmin(1, student_tails(t, df)) : 1;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The median, by sorting. */
static double median(double *rows, size_t n)
{
    qsort(rows, n, sizeof *rows, compare);
    return (rows[(n - 1) / 2] + rows[n / 2]) / 2;
}

static double ratio_of(double rows, double usual)
{
    return usual > 0 ? rows / usual : (rows + HALF) / HALF;
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
    struct api_volumes *season = before->season;
    double days[API_WEEKDAYS * API_VOLUME_MAX] = {0};
    size_t n = 0;
    for (size_t day = 1; day < API_WEEKDAYS; day++)
        for (size_t i = 0; i < season[day].n; i++)
            days[n++] = season[day].of[i];
    if (season[0].n > 0)
        ratio = weaker(ratio, ratio_of(rows, median(season[0].of, season[0].n)));
    return n > 0 ? weaker(ratio, ratio_of(rows, median(days, n))) : ratio;
}

struct api_volume api_volume_judge(const struct api_monitor_settings *settings, double rows,
                                   struct api_volumes_before *before)
{
    bool has_season = before->season[0].n >= API_VOLUME_MIN;
    struct api_volumes *of = has_season ? &before->season[0] : &before->last;
    if (of->n < API_VOLUME_MIN)
        return (struct api_volume){.windows = 0};
    double p_value = p_value_of(rows, of, before->season + 1, has_season ? API_WEEKDAYS - 1 : 0);
    double usual = median(of->of, of->n), ratio = ratio_of(rows, usual);
    struct api_volume volume = {.rows = rows,
                                .usual = usual,
                                .windows = (double)of->n,
                                .ratio = ratio,
                                .p_value = p_value,
                                .level = API_OK};
    ratio = has_season ? ratio : weaken(ratio, rows, before);
    double times = ratio < 1 ? 1 / ratio : ratio;
    if (p_value < SIGNIFICANCE && times >= settings->volume_warning * ROUNDED)
        volume.level = times >= settings->volume_critical * ROUNDED ? API_CRITICAL : API_WARNING;
    return volume;
}

void api_volume_apply(const struct api_volume *volume, struct api_scores *scores)
{
    enum api_verdict level = (enum api_verdict)volume->level;
    if (!(volume->windows > 0))
        return;
    scores->volume = *volume;
    scores->volume.counts_level = scores->verdict;
    if (level > API_OK && level > scores->verdict)
        scores->verdict = level;
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
