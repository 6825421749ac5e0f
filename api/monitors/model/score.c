#include "api/monitors/model/score.h"

#include "api/json/format.h"
#include "api/monitors/model/volume.h"

#include "api/text/decimal.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api_snapshot *api_snapshot_new(struct api_config *config)
{
    struct api_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return NULL;
    snapshot->refcount = 1;
    snapshot->config = api_config_hold(config);
    snapshot->settings = config->settings;
    snapshot->turns = API_NO_TURNS;
    snapshot->reference_spread = (struct api_spread)API_NO_SPREAD;
    snapshot->unseen_share = 1;
    snapshot->counts = calloc(config->bins.n_bins, sizeof *snapshot->counts);
    if (snapshot->counts)
        return snapshot;
    api_snapshot_release(snapshot);
    return NULL;
}

struct api_snapshot *api_snapshot_copy(const struct api_snapshot *snapshot)
{
    struct api_snapshot *copy = api_snapshot_new(snapshot->config);
    size_t size = snapshot->config->bins.n_bins * sizeof *snapshot->counts;
    if (!copy)
        return NULL;
    copy->window = snapshot->window;
    copy->window.settings = copy->window.reference = copy->window.counts = NULL;
    copy->state = snapshot->state;
    copy->exact = snapshot->exact;
    copy->unseen_share = snapshot->unseen_share;
    copy->reference_spread = snapshot->reference_spread;
    memcpy(copy->counts, snapshot->counts, size);
    copy->reference = snapshot->reference ? malloc(size) : NULL;
    if (copy->reference)
        memcpy(copy->reference, snapshot->reference, size);
    if (!snapshot->reference || copy->reference)
        return copy;
    api_snapshot_release(copy);
    return NULL;
}

bool api_snapshot_refer(struct api_snapshot *snapshot)
{
    const struct api_weights *reference = &snapshot->config->reference;
    size_t n_bins = snapshot->config->bins.n_bins;
    if (reference->form == API_NO_WEIGHTS)
        return true;
    snapshot->reference = malloc(n_bins * sizeof *snapshot->reference);
    if (!snapshot->reference)
        return false;
    api_weights_score(reference, n_bins, snapshot->reference);
    snapshot->exact = reference->form == API_PROBABILITIES;
    snapshot->unseen_share = api_weights_unseen_share(reference, &snapshot->config->bins);
    if (reference->has_spread)
        snapshot->reference_spread = reference->spread;
    return true;
}

void api_snapshot_release(struct api_snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub(&snapshot->refcount, 1) > 1)
        return;
    api_config_release(snapshot->config);
    api_window_free(&snapshot->window);
    free(snapshot->counts);
    free(snapshot->reference);
    api_pool_release(snapshot->pool);
    free(snapshot);
}

/* ---- Scores */

struct api_evidence api_snapshot_evidence(const struct api_snapshot *snapshot)
{
    return (struct api_evidence){.settings = &snapshot->settings,
                                 .bins = &snapshot->config->bins,
                                 .at = api_position_of(&snapshot->window),
                                 .counts = snapshot->counts,
                                 .reference = snapshot->reference,
                                 .exact = snapshot->exact,
                                 .unseen = &snapshot->unseen,
                                 .unseen_share = snapshot->unseen_share,
                                 .pool = snapshot->pool,
                                 .turns = snapshot->turns};
}

void api_snapshot_score(const struct api_snapshot *snapshot, struct api_scores *scores,
                        struct kl_drift_bin *of_bins)
{
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    const struct api_scores *stored = &snapshot->window.scores;
    const struct api_bins *bins = evidence.bins;
    double n = api_counts_sum(snapshot->counts, bins->n_bins), nothing = (double)NAN;
    *scores = api_no_window.scores;
    scores->drift.n = n;
    if (n > 0 && api_counts_sum(snapshot->reference, bins->n_bins) > 0)
        api_evidence_score(&evidence, snapshot->counts, snapshot->reference, bins->n_bins,
                           &scores->drift, of_bins);
    else
        for (size_t i = 0; i < bins->n_bins; i++)
            of_bins[i] = (struct kl_drift_bin){.reference = nothing,
                                               .current = n > 0 ? snapshot->counts[i] / n : nothing,
                                               .contribution = nothing,
                                               .share = nothing};
    scores->spread = api_moments_spread(&snapshot->window.moments, bins, n);
    scores->reference_spread = snapshot->reference_spread;
    scores->missing_ratio = n > 0 ? snapshot->counts[api_bins_missing(bins)] / n : nothing;
    if (snapshot->window.closed) {
        scores->verdict = stored->verdict;
        scores->pooled = stored->pooled;
        scores->volume = stored->volume;
        /* The store keeps the noise floor alone of a pool that is the window as it is. */
        if (scores->pooled.windows == 1 && isnan(scores->pooled.n))
            scores->pooled = api_pooled_of(1, &scores->drift);
    } else {
        api_pool_judge(&evidence, scores);
        api_volume_apply(&snapshot->volume, scores);
    }
    scores->top = api_top_of(of_bins, bins->n_bins);
    scores->top_share = api_top_share(scores->top, of_bins);
}

/* Finds the name of the heaviest text without a bin in a sum: windows before the newest keep hashes alone, so the name is known
 * if the newest window has the text. */
static void find_text(const struct api_unseen *unseen, const struct api_unseen_sum *sum,
                      struct api_unseen *of_sum)
{
    struct api_buffer list = {0};
    json_t *objects, *object;
    size_t i;
    api_append(&list, "[", 1);
    api_append(&list, unseen->objects.data, unseen->objects.size);
    api_append(&list, "]", 1);
    objects = list.failed ? NULL : json_loadb(list.data, list.size, 0, NULL);
    json_array_foreach(objects, i, object)
    {
        const char *text = json_string_value(json_object_get(object, "label"));
        if (!text || of_sum->count > 0 || api_unseen_sum_count(sum, text) < sum->most)
            continue;
        snprintf(of_sum->first, sizeof of_sum->first, "%s", text);
        of_sum->count = (size_t)sum->most;
    }
    json_decref(objects);
    api_buffer_free(&list);
}

/* As api_snapshot_explain, of the sum that decided; false if the windows before are not at hand. */
static bool explain_sum(const struct api_snapshot *snapshot, const struct api_scores *alone,
                        const struct api_unseen *unseen, char to[API_SENTENCE])
{
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    struct api_scores scores = api_no_window.scores; /* without means, which a sum has not */
    struct api_sum sum;
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    struct api_unseen of_sum = {.count = 0};
    if (!snapshot->reference || !api_pool_add_up(&evidence, alone->pooled.windows, &sum))
        return false;
    api_evidence_score(&evidence, sum.counts, sum.reference, sum.n_bins, &scores.drift, of_bins);
    scores.pooled = alone->pooled;
    scores.volume = alone->volume;
    scores.top = api_top_of(of_bins, sum.n_bins);
    if (unseen->count > 0)
        find_text(unseen, &sum.unseen, &of_sum);
    api_sentence_write(&snapshot->config->bins, &scores, of_bins, &of_sum, sum.windows, to);
    return true;
}

void api_snapshot_explain(const struct api_snapshot *snapshot, const struct api_scores *scores,
                          const struct kl_drift_bin *of_bins, const struct api_unseen *unseen,
                          char to[API_SENTENCE])
{
    if (scores->verdict < API_WARNING || scores->pooled.windows < 2 || !snapshot->pool ||
        !explain_sum(snapshot, scores, unseen, to))
        api_sentence_write(&snapshot->config->bins, scores, of_bins, unseen, 1, to);
}

/* ---- Results */

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

/* Writes the members of each bin, most of a response, without a check of the buffer for each. */
static void write_bins(const struct api_bins *bins, const struct kl_drift_bin *of_bins,
                       size_t n_bins, struct api_buffer *out)
{
    enum { ROOM = 4 * (API_DECIMAL_MAX + 16) };
    api_append_text(out, ",\"bins\":[");
    for (size_t i = 0; i < n_bins; i++) {
        api_append_text(out, i ? ",{" : "{");
        api_bins_write_description(bins, i, out);
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
    api_write_json(out, ",'kl':%g,'infinite':%d,'kl_reverse':%g,'js':%g,'psi':%g", drift->kl,
                   isinf(drift->kl), drift->kl_reverse, drift->js, drift->psi);
    if (isnan(drift->kl))
        api_append_text(out, ",\"g_test\":null");
    else
        api_write_json(out, ",'g_test':{'statistic':%g,'df':%zu,'p_value':%g,'critical_kl':%g}",
                       drift->statistic, drift->df, drift->p_value, drift->critical_kl);
    api_write_json(out, ",'noise_floor':%g,'unseen_ratio':%g,'missing_ratio':%g",
                   drift->noise_floor, drift->unseen_ratio, scores->missing_ratio);
}

static void write_ratio(const struct api_bins *bins, const struct api_pooled_ratio *ratio,
                        struct api_buffer *out)
{
    api_append_text(out, ",\"ratio\":");
    if (!(ratio->bin > 0 && ratio->bin <= (double)bins->n_bins + 1)) {
        api_append_text(out, "null");
        return;
    }
    api_append_text(out, "{\"bin\":");
    if (ratio->bin <= (double)bins->n_bins)
        api_bins_write_name(bins, (size_t)ratio->bin - 1, out);
    else
        api_append_text(out, "\"other\"");
    api_write_json(out, ",'reference':%g,'current':%g,'ratio':%g,'p_value':%g}", ratio->reference,
                   ratio->current, ratio->ratio, ratio->p_value);
}

static void write_pooled(const struct api_bins *bins, const struct api_scores *scores,
                         struct api_buffer *out)
{
    const struct api_pooled *pooled = &scores->pooled;
    if (pooled->windows == 0) {
        api_append_text(out, ",\"pooled\":null");
        return;
    }
    api_write_json(
        out, ",'pooled':{'windows':%zu,'n':%g,'kl':%g,'p_value':%g,'noise_floor':%g,'bins':%g",
        pooled->windows, pooled->n, pooled->kl, pooled->p_value, pooled->noise_floor,
        pooled->bins > 0 ? (double)pooled->bins : (double)NAN);
    write_ratio(bins, &pooled->ratio, out);
    double level = scores->volume.windows > 0 ? scores->volume.counts_level : scores->verdict;
    api_write_json(out, ",'level':%s}", api_verdict_names[api_verdict_of((int64_t)level)]);
}

void api_snapshot_write(const struct api_snapshot *snapshot, bool with_bins,
                        const struct api_unseen *unseen, struct api_buffer *out)
{
    struct api_scores scores;
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    char sentence[API_SENTENCE];
    const struct api_bins *bins = &snapshot->config->bins;
    const size_t n_bins = bins->n_bins;
    api_snapshot_score(snapshot, &scores, of_bins);
    api_append_text(out, "\"window\":");
    api_window_write(&snapshot->window, out);
    api_write_json(out, ",'revision':%ld,'n':%g,'n_reference':%g", snapshot->window.revision,
                   scores.drift.n, scores.drift.n_reference);
    if (!bins->labelled)
        api_write_json(out, ",'mean':%g,'sd':%g,'mean_reference':%g,'sd_reference':%g",
                       scores.spread.mean, scores.spread.sd, scores.reference_spread.mean,
                       scores.reference_spread.sd);
    api_write_json(out, ",'verdict':%s,'state':%s", api_verdict_names[scores.verdict],
                   api_verdict_names[snapshot->state]);
    write_pooled(bins, &scores, out);
    api_append_text(out, ",\"volume\":");
    api_volume_write(&scores.volume, out);
    write_scores(&scores, out);
    if (bins->labelled) {
        api_append_text(out, ",\"unseen\":[");
        api_append(out, unseen->objects.data, unseen->objects.size);
        api_append(out, "]", 1);
        out->failed |= unseen->objects.failed;
    }
    api_append_text(out, ",\"top\":");
    api_top_write(scores.top, bins, out);
    api_append_text(out, ",\"compare\":");
    api_write_compare(&snapshot->settings, out);
    api_write_json(out, ",'pseudocount':%g,'thresholds':", snapshot->settings.pseudocount);
    api_write_thresholds(&snapshot->settings, out);
    api_append_text(out, ",\"unit\":\"nats\"");
    if (!with_bins)
        return;
    write_bins(bins, of_bins, n_bins, out);
    api_snapshot_explain(snapshot, &scores, of_bins, unseen, sentence);
    api_write_json(out, ",'sentence':%s", sentence);
}
