#include "api/monitors/model/sentence.h"

#include "api/json/format.h"
#include "api/text/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PERCENT: bytes of a fraction in percent. MAX_LABEL: those of a label that are shown. */
enum { PERCENT = 24, MAX_LABEL = 40 };

/* Sums of shares that differ by less are equal but for their rounding. */
#define ROUNDED 1e-9

/* Formats a fraction: 0 %, < 0.1 %, 0.7 %, 4 %, 11 %; or with three digits more. */
static void format_percent(double fraction, bool is_precise, char to[PERCENT])
{
    double percent = 100 * fraction;
    int tenths = (int)lround(10 * percent);
    if (is_precise)
        snprintf(to, PERCENT, percent > 0 && percent < 0.1 ? "%.3g %%" : "%.3f %%", percent);
    else if (percent > 0 && percent < 0.1)
        snprintf(to, PERCENT, "< 0.1 %%");
    else if (percent < 9.95 && tenths % 10)
        snprintf(to, PERCENT, "%d.%d %%", tenths / 10, tenths % 10);
    else
        snprintf(to, PERCENT, "%d %%", (int)lround(percent));
}

static void write_change(const struct kl_drift_bin *bin, struct api_buffer *out)
{
    char before[PERCENT], now[PERCENT];
    format_percent(bin->reference, false, before);
    format_percent(bin->current, false, now);
    if (strcmp(before, now) == 0) {
        format_percent(bin->reference, true, before);
        format_percent(bin->current, true, now);
    }
    api_append_format(out, "%s → %s", before, now);
}

static void write_new(double fraction, struct api_buffer *out)
{
    char percent[PERCENT];
    format_percent(fraction, false, percent);
    api_append_format(out, ", never seen before, is %s", percent);
}

/* Appends a label in quotes. C1 are the characters from C2 80 to C2 9F. */
static void write_label(const char *label, struct api_buffer *out)
{
    size_t size = strlen(label), shown = api_utf8_cut(label, size, MAX_LABEL);
    api_append_text(out, "“");
    for (size_t i = 0; i < shown; i++) {
        unsigned char byte = (unsigned char)label[i];
        bool is_c1 = byte == 0xc2 && (unsigned char)label[i + 1] < 0xa0;
        bool is_control = byte < 0x20 || byte == 0x7f || is_c1;
        api_append(out, is_control ? " " : label + i, 1);
        i += is_c1;
    }
    api_append_text(out, shown < size ? "…”" : "”");
}

static void write_number(double number, struct api_buffer *out)
{
    char text[API_DECIMAL_MAX];
    api_append(out, text, api_label_of_number(text, number));
}

static double rounded(double value, int digits)
{
    char text[API_DECIMAL_MAX];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL);
}

/* Rounds an edge to six digits, by which a reader tells it from its neighbours. */
static double shorten(double edge) { return rounded(edge, 6); }

/* Appends an interval: the value that has a bin of its own, or is that of a constant column, or both edges. Above such a value an interval begins at the next
 * double, and is told as open at the value. */
static void write_interval(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    double lower = bins->edges[bin - 1], upper = bins->edges[bin];
    bool is_value = upper == nextafter(lower, INFINITY);
    bool is_open = bin > 1 && lower == nextafter(bins->edges[bin - 2], INFINITY);
    lower = is_open ? bins->edges[bin - 2] : lower;
    if (shorten(lower) < shorten(upper) || is_value) {
        lower = shorten(lower);
        upper = shorten(upper);
    }
    bool is_constant = bins->n == 1 && shorten(lower) == shorten(upper);
    api_append_text(out, is_value || is_constant ? "" : is_open ? "(" : "[");
    write_number(is_constant ? shorten(upper) : lower, out);
    if (is_value || is_constant)
        return;
    api_append_text(out, ", ");
    write_number(upper, out);
    api_append_text(out, bin == bins->n ? "]" : ")");
}

/* Appends what a bin holds; false for one whose values may well have been there before without a count. */
static bool write_subject(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    bool is_outer = api_bins_outer_name(bins, bin) != NULL;
    if (bin == api_bins_missing(bins)) {
        api_append_text(out, "missing");
    } else if (is_outer && bins->labelled) {
        api_append_text(out, "other labels");
    } else if (is_outer) {
        api_append_text(out, bin == 0 ? "values below " : "values above ");
        write_number(shorten(bins->edges[bin == 0 ? 0 : bins->n]), out);
    } else if (bins->labelled) {
        write_label(api_bins_label(bins, bin), out);
    } else {
        write_interval(bins, bin, out);
    }
    return !is_outer;
}

/* Appends the most frequent of labels that the reference has none of, and how much the rest of them is. */
static void write_unseen(const struct kl_drift_bin *bin, const struct api_scores *scores,
                         const struct api_unseen *unseen, struct api_buffer *out)
{
    char percent[PERCENT];
    double first = fmin((double)unseen->count / scores->drift.n, bin->current);
    write_label(unseen->first, out);
    write_new(first, out);
    format_percent(bin->current - first, false, percent);
    if (bin->current - first > 1e-9)
        api_append_format(out, " (other new labels %s)", percent);
}

/* True for labels that the reference has none of, and of which one is known. */
static bool is_new_label(const struct api_bins *bins, size_t bin, const struct kl_drift_bin *of_bin,
                         const struct api_unseen *unseen)
{
    return bins->labelled && bin == api_bins_other(bins) && of_bin->reference == 0 &&
           unseen->count > 0;
}

static void write_clause(const struct api_bins *bins, size_t bin, const struct api_scores *scores,
                         const struct kl_drift_bin *of_bins, const struct api_unseen *unseen,
                         struct api_buffer *out)
{
    const struct kl_drift_bin *of_bin = &of_bins[bin];
    if (is_new_label(bins, bin, of_bin, unseen)) {
        write_unseen(of_bin, scores, unseen, out);
    } else if (write_subject(bins, bin, out) && of_bin->reference == 0) {
        write_new(of_bin->current, out);
    } else {
        api_append_text(out, bin == api_bins_missing(bins) ? " " : ": ");
        write_change(of_bin, out);
    }
}

/* Appends a number before and now: with as many digits as tell them apart, or with few if not even many do. */
static void write_pair(const char *name, double before, double now, struct api_buffer *out)
{
    enum { FEW = 3, MANY = 6 };
    int digits = FEW;
    while (digits <= MANY && rounded(before, digits) == rounded(now, digits))
        digits++;
    digits = digits <= MANY ? digits : FEW;
    api_append_text(out, name);
    write_number(rounded(before, digits), out);
    api_append_text(out, " → ");
    write_number(rounded(now, digits), out);
}

/* Maximum change of mean and standard deviation that is not told, in standard deviations of the reference. */
#define STEADY 0.02

/* Appends mean and standard deviation, which people look at first, if both are known and one has changed. */
static void write_spread(const struct api_scores *scores, struct api_buffer *out)
{
    const struct api_spread *now = &scores->spread, *before = &scores->reference_spread;
    if (!isfinite(now->mean + now->sd + before->mean + before->sd))
        return;
    double min_change = STEADY * before->sd;
    if (fabs(now->mean - before->mean) <= min_change && fabs(now->sd - before->sd) <= min_change)
        return;
    write_pair("mean ", before->mean, now->mean, out);
    write_pair(", sd ", before->sd, now->sd, out);
    api_append_text(out, "; ");
}

/* Finds the bin that a sentence names for a cell that was judged by its ratio. A cell of joined bins is named by the bin that
 * holds at least half of the cell; n_bins if no bin does. *bin becomes the shares that are told. */
static size_t bin_of_ratio(const struct api_bins *bins, const struct api_pooled_ratio *ratio,
                           const struct kl_drift_bin *of_bins, struct kl_drift_bin *bin)
{
    size_t cell = (size_t)ratio->bin - 1;
    bool is_joined = cell == (bins->labelled ? api_bins_other(bins) : bins->n_bins);
    for (size_t i = 0; is_joined && i < bins->n_bins; i++) {
        *bin = of_bins[i];
        bool is_within = bin->reference <= ratio->reference * (1 + ROUNDED) &&
                         bin->current <= ratio->current * (1 + ROUNDED);
        if (is_within && (ratio->ratio >= 1 ? 2 * bin->current >= ratio->current
                                            : 2 * bin->reference >= ratio->reference))
            return i;
    }
    *bin = (struct kl_drift_bin){.reference = ratio->reference, .current = ratio->current};
    return is_joined ? bins->n_bins : cell;
}

/* Appends what was judged by its ratio: "fraud: 0.2 % → 0.4 %, 2 times"; how many times if the bin is all of the cell, and the
 * reference has some of it. */
static void write_ratio(const struct api_bins *bins, size_t i, const struct kl_drift_bin *bin,
                        const struct api_scores *scores, const struct api_unseen *unseen,
                        struct api_buffer *out)
{
    const struct api_pooled_ratio *ratio = &scores->pooled.ratio;
    if (i < bins->n_bins && is_new_label(bins, i, bin, unseen)) {
        write_unseen(bin, scores, unseen, out);
        return;
    }
    if (i < bins->n_bins)
        write_subject(bins, i, out);
    else
        api_append_text(out, bins->labelled ? "rare labels together" : "rare values together");
    api_append_text(out, i < bins->n_bins && i == api_bins_missing(bins) ? " " : ": ");
    write_change(bin, out);
    if (!(ratio->ratio >= 0.01 && ratio->ratio < INFINITY) || bin->reference < ROUNDED ||
        ratio->current - bin->current + ratio->reference - bin->reference > ROUNDED)
        return;
    api_append_text(out, ", ");
    write_number(rounded(ratio->ratio, 2), out);
    api_append_text(out, " times");
}

/* Appends a number of rows with commas between thousands. */
static void write_rows(double rows, struct api_buffer *out)
{
    char digits[40];
    int size = snprintf(digits, sizeof digits, "%.0f", rows);
    for (int i = 0; i < size; i++) {
        api_append(out, ",", i > 0 && (size - i) % 3 == 0);
        api_append(out, digits + i, 1);
    }
}

/* Appends how a number of rows compares with what is usual: "rows: 12,000 → 4,100, a third of usual". */
static void write_volume(const struct api_volume *volume, struct api_buffer *out)
{
    static const struct {
        double of;
        const char *name;
    } parts[] = {{2, "half"}, {3, "a third"}, {4, "a quarter"}, {10, "a tenth"}};
    double x = volume->ratio;
    api_append_text(out, "rows: ");
    write_rows(volume->usual, out);
    api_append_text(out, " → ");
    write_rows(volume->rows, out);
    api_append_text(out, ", ");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (fabs(x * parts[i].of - 1) < 0.05) {
            api_append_format(out, "%s of usual", parts[i].name);
            return;
        }
    if (x >= 100)
        write_rows(rounded(x, 2), out);
    else
        write_number(rounded(x < 1 ? fmax(100 * x, 0.01) : x, 2), out);
    api_append_text(out, x < 1 ? " % of usual" : " times the usual");
}

void api_sentence_write(const struct api_bins *bins, const struct api_scores *scores,
                        const struct kl_drift_bin *of_bins, const struct api_unseen *unseen,
                        size_t windows, char to[API_SENTENCE])
{
    char memory[API_SENTENCE];
    struct api_buffer out = {0};
    api_buffer_borrow(&out, memory, sizeof memory);
    const struct api_pooled_ratio *ratio = &scores->pooled.ratio;
    bool has_ratio = ratio->bin > 0 && ratio->bin <= (double)bins->n_bins + 1;
    struct kl_drift_bin changed;
    size_t of_ratio = has_ratio ? bin_of_ratio(bins, ratio, of_bins, &changed) : 0;
    bool says_anything = api_top_at(scores->top, 0) || has_ratio;
    if (scores->volume.windows > 0 && scores->volume.level > API_OK)
        write_volume(&scores->volume, &out);
    if (api_volume_decides(&scores->volume) && scores->volume.counts_level <= API_OK)
        says_anything = has_ratio = false;
    else if (out.size > 0 && says_anything)
        api_append_text(&out, "; ");
    if (says_anything && windows > 1)
        api_append_format(&out, "with the %zu before: ", windows - 1);
    if (says_anything)
        write_spread(scores, &out);
    if (has_ratio)
        write_ratio(bins, of_ratio, &changed, scores, unseen, &out);
    for (size_t rank = 0; rank < API_TOP && says_anything; rank++) {
        size_t bin = api_top_at(scores->top, rank);
        if (bin == 0 || (rank > 0 && (bins->is_presence ||
                                      !(of_bins[bin - 1].contribution >= scores->drift.kl / 20))))
            break;
        if (bins->is_presence)
            bin = api_bins_missing(bins) + 1;
        if (has_ratio && (bin == of_ratio + 1 || ratio->is_alone))
            continue;
        api_append_text(&out, rank > 0 || has_ratio ? "; " : "");
        write_clause(bins, bin - 1, scores, of_bins, unseen, &out);
    }
    size_t size = api_utf8_cut(out.data, out.size, API_SENTENCE - 1);
    memcpy(to, out.data, size);
    to[size] = '\0';
    api_buffer_free(&out);
}
