/* False alarms, and drift that is seen: the rule of monitors at its defaults beside the rules of other tools, on the
 * same draws. Each history draws a reference of 10,000 values, then windows of n. */
#include "api/monitors/model/state.h"
#include "lib/drift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFERENCE = 10000, MAX = 10000, BINS = 10, ALL = BINS + 1 + KL_OUTER_BINS, CALM = 20 };
enum rule { OURS, G_TEST, KOLMOGOROV, WASSERSTEIN, JENSEN, PSI, CHUNKS, RULES };
enum world { NORMAL, LOGNORMAL, T3, ZEROS, LABELS, RATE };
static const char *const worlds[] = {"normal",     "lognormal", "t, 3 df",
                                     "30 % zeros", "3 labels",  "rate of 2 %"};

/* drift: what becomes of values. */
struct drift {
    const char *name;
    enum world world;
    double shift, spread, missing, moved;
};

/* column: a reference, and what rules make of it. */
struct column {
    struct api_monitor_settings settings;
    struct api_bins bins;
    double sorted[REFERENCE], edges[BINS + 2], counts[ALL], deviation, chunk_limit;
    size_t n_bins;
    bool is_labelled;
    struct api_pool *pool;
    struct api_turns turns;
    struct api_state_history history;
    int64_t time;
    size_t changes;
};

static double values[MAX];

static double normal(void) { return sqrt(-2 * log(1 - drand48())) * cos(2 * M_PI * drand48()); }

static double draw(const struct drift *d, bool drifts)
{
    double z = normal(), u = drand48(), moved = drifts ? d->moved : 0;
    if (drifts && drand48() < d->missing)
        return (double)NAN;
    if (d->world == LABELS)
        return u < 0.5 - moved ? 0 : u < 0.8 ? 1 : 2;
    if (d->world == RATE)
        return u < 0.02 + moved;
    if (d->world == T3)
        z /= sqrt((pow(normal(), 2) + pow(normal(), 2) + pow(normal(), 2)) / 3);
    z = drifts ? z * d->spread + d->shift : z;
    return d->world == LOGNORMAL ? exp(z) : d->world == ZEROS && u < 0.3 ? 0 : z;
}

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void count(const struct column *c, const double *from, size_t n, double *counts)
{
    uint64_t whole[ALL] = {0};
    kl_bin_counts(c->edges, c->n_bins, KL_FLOAT64, from, n, whole);
    for (size_t i = 0; i < c->n_bins + KL_OUTER_BINS; i++)
        counts[i] = (double)whole[i];
}

static struct kl_drift score(const struct column *c, const double *counts, double significance)
{
    const struct kl_drift_options options = {.pseudocount = 0.5, .significance = significance};
    struct kl_drift drift;
    kl_drift(counts, c->counts, c->n_bins + KL_OUTER_BINS, &options, &drift, NULL);
    return drift;
}

/* NannyML's limit: the mean of 20 chunks of the reference and three deviations. */
static double limit_of_chunks(const struct column *c, const struct drift *d, size_t n)
{
    double sum = 0, squares = 0, counts[ALL];
    for (int chunk = 0; chunk < 20; chunk++) {
        for (size_t i = 0; i < n; i++)
            values[i] = draw(d, false);
        count(c, values, n, counts);
        double distance = sqrt(score(c, counts, 1).js);
        sum += distance, squares += distance * distance;
    }
    return sum / 20 + 3 * sqrt(fmax(0, squares / 20 - sum * sum / 400));
}

static void begin(struct column *c, const struct drift *d, size_t n)
{
    static const double of_labels[] = {0, 0.5, 1.5, 2};
    double sum = 0, squares = 0;
    *c = (struct column){.turns = API_NO_TURNS};
    api_settings_init(&c->settings);
    api_state_begin(&c->history, &c->settings);
    for (size_t i = 0; i < REFERENCE; i++) {
        c->sorted[i] = draw(d, false);
        sum += c->sorted[i], squares += c->sorted[i] * c->sorted[i];
    }
    c->deviation = sqrt(squares / REFERENCE - sum * sum / REFERENCE / REFERENCE);
    c->is_labelled = d->world >= LABELS;
    c->n_bins = c->is_labelled ? 3 : kl_quantile_edges(c->sorted, REFERENCE, BINS, c->edges);
    if (c->is_labelled)
        memcpy(c->edges, of_labels, sizeof of_labels);
    qsort(c->sorted, REFERENCE, sizeof *c->sorted, compare);
    c->bins.n = c->n_bins;
    c->bins.n_bins = c->n_bins + KL_OUTER_BINS;
    count(c, c->sorted, REFERENCE, c->counts);
    c->chunk_limit = limit_of_chunks(c, d, n);
    c->pool = api_pool_new(&c->settings, &c->bins);
}

/* The rule of monitors, as api/monitors/README.md tells it, after a window. */
static void advance(struct column *c, const double *counts, const double *reference)
{
    struct api_evidence evidence = {.settings = &c->settings,
                                    .bins = &c->bins,
                                    .at = {c->time, c->time},
                                    .counts = counts,
                                    .reference = reference,
                                    .pool = c->pool,
                                    .turns = c->turns};
    const struct kl_drift_options options = {.pseudocount = 0.5, .significance = 1};
    struct api_scores scores = {.drift = {.kl = (double)NAN}};
    double n = 0;
    for (size_t i = 0; i < c->bins.n_bins; i++)
        n += reference[i];
    if (n > 0)
        kl_drift(counts, reference, c->bins.n_bins, &options, &scores.drift, NULL);
    api_pool_judge(&evidence, &scores);
    enum api_verdict before = c->history.state;
    api_state_follow(&c->history, &evidence, &scores, &c->turns);
    c->changes += c->history.state != before && before != API_INSUFFICIENT;
    struct api_pool *pool = api_pool_with(&evidence);
    api_pool_release(c->pool);
    c->pool = pool;
    c->time++;
}

/* Kolmogorov and Smirnov's test at 0.05, and Wasserstein's distance of a tenth of a deviation. */
static void order(const struct column *c, size_t n, bool *alarms)
{
    double greatest = 0, area = 0, last = 0,
           limit = sqrt(-log(0.025) / 2 * (1. / REFERENCE + 1. / (double)n));
    size_t present = 0, i = 0, j = 0;
    for (size_t k = 0; k < n; k++)
        if (!isnan(values[k]))
            values[present++] = values[k];
    qsort(values, present, sizeof *values, compare);
    while (i < REFERENCE && j < present) {
        double at = fmin(c->sorted[i], values[j]);
        double apart = fabs((double)i / REFERENCE - (double)j / (double)present);
        greatest = fmax(greatest, apart);
        area += i + j > 0 ? apart * (at - last) : 0;
        for (; i < REFERENCE && c->sorted[i] == at; i++)
            continue;
        for (; j < present && values[j] == at; j++)
            continue;
        last = at;
    }
    alarms[KOLMOGOROV] = greatest > limit;
    alarms[WASSERSTEIN] = area / c->deviation >= 0.1;
}

/* Draws a window, and sets which rules alarm; the first is in alarm while its state is warning or worse. */
static void observe(struct column *c, const struct drift *d, size_t n, bool drifts, bool *alarms)
{
    double counts[ALL];
    for (size_t i = 0; i < n; i++)
        values[i] = draw(d, drifts);
    count(c, values, n, counts);
    struct kl_drift scores = score(c, counts, 1);
    advance(c, counts, c->counts);
    memset(alarms, 0, RULES * sizeof *alarms);
    alarms[OURS] = c->history.state >= API_WARNING;
    alarms[G_TEST] = scores.p_value < 0.01;
    alarms[JENSEN] = sqrt(scores.js) >= 0.1;
    alarms[PSI] = scores.psi >= 0.2;
    alarms[CHUNKS] = sqrt(scores.js) > c->chunk_limit;
    if (!c->is_labelled)
        order(c, n, alarms);
}

static void print_row(const double *numbers, bool is_labelled)
{
    for (int i = 0; i < RULES; i++)
        if (is_labelled && (i == KOLMOGOROV || i == WASSERSTEIN))
            printf(" | –");
        else
            printf(" | %.3g", numbers[i]);
    printf(" |\n");
    fflush(stdout);
}

static const char head[] =
    "| | n |%s ours | G 0.01 | KS 0.05 | Wasserstein 0.1 | JS 0.1 | PSI 0.2 | 20 chunks |\n"
    "|---|---|%s---|---|---|---|---|---|---|\n";

/* Counts false alarms in 1,000 windows: of ours changes to warning or worse, of others windows in alarm. */
static void false_alarms(enum world world, size_t n, int histories, int windows)
{
    const struct drift none = {worlds[world], world, 0, 1, 0, 0};
    double sums[RULES] = {0};
    for (int h = 0; h < histories; h++) {
        static struct column c;
        bool alarms[RULES], was = false;
        begin(&c, &none, n);
        for (int w = 0; w < windows; w++) {
            observe(&c, &none, n, false, alarms);
            sums[OURS] += alarms[OURS] && !was;
            was = alarms[OURS];
            for (int i = 1; i < RULES; i++)
                sums[i] += alarms[i];
        }
        api_pool_release(c.pool);
    }
    for (int i = 0; i < RULES; i++)
        sums[i] *= 1000. / histories / windows;
    printf("| %s | %zu", worlds[world], n);
    print_row(sums, world >= LABELS);
}

/* Percent of histories in which a drift is seen within so many windows; the end of an alarm within 6, and
 * changes of state in 55 windows of drift, are of ours. */
static void power(const struct drift *d, size_t n, int within, int histories)
{
    double seen[RULES] = {0}, ended = 0, steady = 0;
    for (int h = 0; h < histories; h++) {
        static struct column c;
        bool alarms[RULES], once[RULES] = {false};
        begin(&c, d, n);
        for (int w = 0; w < CALM; w++)
            observe(&c, d, n, false, alarms);
        c.changes = 0;
        for (int w = 0; w < 55; w++) {
            observe(&c, d, n, true, alarms);
            for (int i = 0; i < RULES; i++)
                once[i] |= w < within && alarms[i];
        }
        steady += c.changes <= 2;
        for (int i = 0; i < RULES; i++)
            seen[i] += once[i] * 100. / histories;
        for (int w = 0; w < 6; w++)
            observe(&c, d, n, false, alarms);
        ended += !alarms[OURS];
        api_pool_release(c.pool);
    }
    printf("| %s | %zu | %d | %.0f | %.0f", d->name, n, within, 100 * ended / histories,
           100 * steady / histories);
    print_row(seen, d->world >= LABELS);
}

/* Hours with a daily cycle, against the same hour of seven days before: false alarms in 1,000 windows after a
 * week, and percent of breaks of half a deviation seen within 4 windows. */
static void season(size_t n, int histories)
{
    enum { WEEK = 7 * 24, DAYS = 60, CYCLE = DAYS * 24 };
    static double counts[CYCLE + 4][ALL];
    const struct drift d = {"", NORMAL, 0, 1, 0, 0};
    double raised = 0, seen = 0;
    for (int h = 0; h < histories; h++) {
        static struct column c;
        bool was = false;
        begin(&c, &d, n);
        c.settings.period = 86400;
        c.settings.previous = 7;
        api_pool_release(c.pool);
        c.pool = api_pool_new(&c.settings, &c.bins);
        for (int w = 0; w < CYCLE + 4; w++) {
            double reference[ALL] = {0}, at = 0.44 * sin(2 * M_PI * w / 24) + 0.5 * (w >= CYCLE);
            for (size_t i = 0; i < n; i++)
                values[i] = normal() + at;
            count(&c, values, n, counts[w]);
            for (int day = 1; day <= 7 && w >= 24 * day; day++)
                for (size_t i = 0; i < c.bins.n_bins; i++)
                    reference[i] += counts[w - 24 * day][i];
            advance(&c, counts[w], reference);
            raised += w >= WEEK && w < CYCLE && c.history.state >= API_WARNING && !was;
            was = c.history.state >= API_WARNING;
        }
        seen += was;
        api_pool_release(c.pool);
    }
    printf("| %zu | %.2g | %.0f |\n", n, raised * 1000 / histories / (CYCLE - WEEK),
           100 * seen / histories);
    fflush(stdout);
}

int main(void)
{
    static const size_t sizes[] = {20, 50, 200, 1000, 10000};
    static const struct {
        struct drift drift;
        size_t n;
        int within;
    } drifts[] = {
        {{"shift of 0.5 sd", NORMAL, 0.5, 1, 0, 0}, 20, 24},
        {{"shift of 0.5 sd", NORMAL, 0.5, 1, 0, 0}, 50, 8},
        {{"shift of 0.3 sd", NORMAL, 0.3, 1, 0, 0}, 50, 32},
        {{"shift of 0.3 sd", NORMAL, 0.3, 1, 0, 0}, 1000, 1},
        {{"shift of 0.2 sd", NORMAL, 0.2, 1, 0, 0}, 200, 24},
        {{"shift of 0.2 sd", NORMAL, 0.2, 1, 0, 0}, 1000, 8},
        {{"shift of 0.1 sd", NORMAL, 0.1, 1, 0, 0}, 10000, 16},
        {{"spread x 1.2", NORMAL, 0, 1.2, 0, 0}, 1000, 4},
        {{"10 points of a label", LABELS, 0, 1, 0, 0.1}, 1000, 4},
        {{"rate of 2 % to 10 %", RATE, 0, 1, 0, 0.08}, 10000, 1},
        {{"2 % missing", NORMAL, 0, 1, 0.02, 0}, 1000, 2},
        {{"5 % missing", NORMAL, 0, 1, 0.05, 0}, 200, 4},
    };
    srand48(1);
    printf("\nFalse alarms in 1,000 windows without drift\n\n");
    printf(head, "", "");
    for (int world = NORMAL; world <= RATE; world++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            false_alarms(world, sizes[i], sizes[i] > 1000 ? 5 : 40, 200);
    printf("\nDrift that is seen, percent of histories\n\n");
    printf(head, " within windows | ended within 6 | at most 2 changes in 55 |", "---|---|---|");
    for (size_t i = 0; i < sizeof drifts / sizeof *drifts; i++)
        power(&drifts[i].drift, drifts[i].n, drifts[i].within, drifts[i].n > 1000 ? 20 : 100);
    printf("\nHours with a daily cycle of 0.44 sd, compare=previous:7@24h\n\n"
           "| n | false alarms in 1,000 windows | breaks of 0.5 sd seen within 4, percent "
           "|\n|---|---|---|\n");
    for (size_t i = 1; i < 4; i++)
        season(sizes[i], 20);
    return 0;
}
