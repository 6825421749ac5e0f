#include "api/monitors/model/score.h"

#include "api/monitors/model/format.h"
#include "api/monitors/model/top.h"
#include "api/text/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Views */

struct api_view *api_view_new(struct api_config *config)
{
    struct api_view *view = calloc(1, sizeof *view);
    if (!view)
        return NULL;
    view->references = 1;
    view->config = api_config_hold(config);
    view->settings = config->settings;
    view->counts = calloc(config->bins.places, sizeof *view->counts);
    if (view->counts)
        return view;
    api_view_release(view);
    return NULL;
}

struct api_view *api_view_copy(const struct api_view *view)
{
    struct api_view *copy = api_view_new(view->config);
    size_t size = view->config->bins.places * sizeof *view->counts;
    if (!copy)
        return NULL;
    copy->window = view->window;
    copy->window.settings = NULL;
    copy->window.reference = NULL;
    copy->state = view->state;
    copy->exact = view->exact;
    memcpy(copy->counts, view->counts, size);
    copy->reference = view->reference ? malloc(size) : NULL;
    if (copy->reference)
        memcpy(copy->reference, view->reference, size);
    if (!view->reference || copy->reference)
        return copy;
    api_view_release(copy);
    return NULL;
}

bool api_view_refer(struct api_view *view)
{
    const struct api_weights *reference = &view->config->reference;
    size_t places = view->config->bins.places;
    if (reference->form == API_NO_WEIGHTS)
        return true;
    view->reference = malloc(places * sizeof *view->reference);
    if (!view->reference)
        return false;
    api_weights_score(reference, places, view->reference);
    view->exact = reference->form == API_PROBABILITIES;
    return true;
}

void api_view_release(struct api_view *view)
{
    if (!view || atomic_fetch_sub(&view->references, 1) > 1)
        return;
    api_config_release(view->config);
    api_window_free(&view->window);
    free(view->counts);
    free(view->reference);
    free(view);
}

/* ---- Scores */

static enum api_verdict judge(const struct api_view *view, const struct api_scores *scores)
{
    const struct api_settings *settings = &view->settings;
    double least = settings->min_observations, kl = scores->drift.kl;
    bool shows = scores->drift.p_value < settings->significance || settings->significance >= 1;
    if (isnan(least))
        least = fmax(50, 5 * (double)view->config->bins.n);
    if (!scores->known || scores->drift.n < least)
        return API_INSUFFICIENT;
    if (scores->infinite || (kl >= settings->critical && shows))
        return API_CRITICAL;
    return kl >= settings->warning && shows ? API_WARNING : API_OK;
}

static double sum(const double *v, size_t n)
{
    double total = 0;
    for (size_t i = 0; v && i < n; i++)
        total += v[i];
    return total;
}

void api_view_score(const struct api_view *view, struct api_scores *scores,
                    struct kl_drift_bin *of_bins)
{
    const struct api_bins *bins = &view->config->bins;
    const struct kl_drift_options options = {.pseudocount = view->settings.pseudocount,
                                             .significance = view->settings.significance,
                                             .exact_reference = view->exact};
    struct kl_drift_bin unasked[API_MAX_BINS + KL_OUTER_BINS];
    double n = sum(view->counts, bins->places), nothing = (double)NAN;
    if (!of_bins)
        of_bins = unasked;
    *scores = (struct api_scores){.known = n > 0 && sum(view->reference, bins->places) > 0};
    if (scores->known)
        kl_drift(view->counts, view->reference, bins->places, &options, &scores->drift, of_bins);
    else
        scores->drift = (struct kl_drift){.n = n,
                                          .n_reference = nothing,
                                          .kl = nothing,
                                          .kl_reverse = nothing,
                                          .js = nothing,
                                          .psi = nothing,
                                          .statistic = nothing,
                                          .p_value = nothing,
                                          .critical_kl = nothing,
                                          .noise_floor = nothing,
                                          .unseen_ratio = nothing};
    for (size_t i = 0; !scores->known && i < bins->places; i++)
        of_bins[i] = (struct kl_drift_bin){.reference = nothing,
                                           .current = n > 0 ? view->counts[i] / n : nothing,
                                           .contribution = nothing,
                                           .share = nothing};
    scores->infinite = isinf(scores->drift.kl);
    scores->missing_ratio = n > 0 ? view->counts[api_bins_missing(bins)] / n : nothing;
    scores->verdict = judge(view, scores);
    scores->top = api_top_of(of_bins, bins->places);
    scores->top_share = api_top_share(scores->top, of_bins);
}

/* ---- Results */

static void write_test(const struct api_scores *scores, struct api_buffer *out)
{
    if (!scores->known) {
        api_append_text(out, ",\"g_test\":null");
        return;
    }
    api_append_text(out, ",\"g_test\":{\"statistic\":");
    api_write_number(out, scores->drift.statistic);
    api_write_member(out, "df", (double)scores->drift.df);
    api_write_member(out, "p_value", scores->drift.p_value);
    api_write_member(out, "critical_kl", scores->drift.critical_kl);
    api_append(out, "}", 1);
}

/* Writes `,"name":` and a number where there is room for it; returns the end. */
static char *put_member(char *to, const char *name, size_t size, double number)
{
    memcpy(to, name, size);
    to += size;
    if (isfinite(number))
        return to + api_label_of_number(to, number);
    memcpy(to, "null", 4);
    return to + 4;
}

#define PUT(to, name, number) put_member(to, ",\"" name "\":", sizeof(name) + 3, number)

/* Writes the members of each bin, most of an answer, without a check of the buffer for each. */
static void write_bins(const struct api_view *view, const struct kl_drift_bin *of_bins,
                       struct api_buffer *out)
{
    enum { ROOM = 4 * (API_DECIMAL_MAX + 16) };
    api_append_text(out, ",\"bins\":[");
    for (size_t i = 0; i < view->config->bins.places; i++) {
        api_append_text(out, i ? ",{" : "{");
        api_bins_write_description(&view->config->bins, i, out);
        if (!api_buffer_room(out, ROOM))
            return;
        char *start = out->data + out->size, *end = start;
        end = PUT(end, "reference", of_bins[i].reference);
        end = PUT(end, "current", of_bins[i].current);
        end = PUT(end, "contribution", of_bins[i].contribution);
        end = PUT(end, "share", of_bins[i].share);
        *end++ = '}';
        out->size += (size_t)(end - start);
    }
    api_append(out, "]", 1);
}

static void write_scores(const struct api_scores *scores, struct api_buffer *out)
{
    const struct kl_drift *drift = &scores->drift;
    api_write_member(out, "kl", drift->kl);
    api_write_flag(out, "infinite", scores->infinite);
    api_write_member(out, "kl_reverse", drift->kl_reverse);
    api_write_member(out, "js", drift->js);
    api_write_member(out, "psi", drift->psi);
    write_test(scores, out);
    api_write_member(out, "noise_floor", drift->noise_floor);
    api_write_member(out, "unseen_ratio", drift->unseen_ratio);
    api_write_member(out, "missing_ratio", scores->missing_ratio);
}

void api_view_write(const struct api_view *view, bool with_bins, struct api_buffer *out)
{
    struct api_scores scores;
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    api_view_score(view, &scores, of_bins);
    api_append_text(out, "\"window\":");
    api_window_write(&view->window, out);
    api_write_member(out, "revision", (double)view->window.revision);
    api_write_member(out, "n", scores.drift.n);
    api_write_member(out, "n_reference", scores.drift.n_reference);
    api_append_format(out, ",\"verdict\":\"%s\",\"state\":\"%s\"",
                      api_verdict_names[scores.verdict], api_verdict_names[view->state]);
    write_scores(&scores, out);
    api_append_text(out, ",\"top\":");
    api_top_write(scores.top, &view->config->bins, out);
    api_append_text(out, ",\"compare\":");
    api_write_compare(&view->settings, out);
    api_write_member(out, "pseudocount", view->settings.pseudocount);
    api_append_text(out, ",\"thresholds\":");
    api_write_thresholds(&view->settings, out);
    api_append_text(out, ",\"unit\":\"nats\"");
    if (with_bins)
        write_bins(view, of_bins, out);
}
