#include "api/monitors/model/state.h"

#include "api/json/format.h"

#include <math.h>
#include <string.h>

enum api_verdict api_state_after(enum api_verdict before, const enum api_verdict *verdicts,
                                 size_t n, size_t fire_after, size_t clear_after)
{
    enum api_verdict state = before < API_OK ? API_OK : before;
    enum api_verdict min = API_CRITICAL, max = API_OK;
    for (size_t i = 0; i < fire_after && i < n; i++)
        if (verdicts[n - 1 - i] < min)
            min = verdicts[n - 1 - i];
    for (size_t i = 0; i < clear_after && i < n; i++)
        if (verdicts[n - 1 - i] > max)
            max = verdicts[n - 1 - i];
    if (n >= fire_after && min > state)
        return min;
    return n >= clear_after && max < state ? max : state;
}

void api_state_begin(struct api_state_history *history, const struct api_monitor_settings *settings)
{
    *history = (struct api_state_history){.fire_after = (size_t)settings->fire_after,
                                          .clear_after = (size_t)settings->clear_after,
                                          .has_pools = api_settings_pool(settings) > 1};
    size_t fire = history->fire_after, clear = history->clear_after;
    history->rows.max = clear > fire ? clear : fire;
    history->verdicts.max = history->has_pools ? fire : history->rows.max;
}

/* Adds a level, in the place of the first if there is no room. */
static void add_level(struct api_levels *levels, enum api_verdict level)
{
    if (levels->n == levels->max) {
        memmove(levels->of, levels->of + 1, (levels->max - 1) * sizeof *levels->of);
        levels->n--;
    }
    levels->of[levels->n++] = level;
}

/* The level by counts, and by rows, of a window. */
static enum api_verdict level_by_counts(const struct api_scores *scores)
{
    return scores->volume.windows > 0 ? (enum api_verdict)scores->volume.counts_level
                                      : scores->verdict;
}
static enum api_verdict level_by_rows(const struct api_volume *volume)
{
    return volume->windows > 0 ? (enum api_verdict)volume->level : API_OK;
}

void api_state_learn(struct api_state_history *history, const struct api_scores *scores)
{
    enum api_verdict level = level_by_counts(scores);
    if (level != API_INSUFFICIENT)
        add_level(&history->verdicts, level);
}

void api_state_learn_rows(struct api_state_history *history, const struct api_volume *volume)
{
    enum api_verdict level = level_by_rows(volume), counts = (enum api_verdict)volume->counts_level;
    add_level(&history->rows, level);
    history->has_alarm |= level > API_OK;
    if (counts > history->by_counts)
        history->by_counts = counts;
}

void api_state_set(struct api_state_history *history, enum api_verdict state)
{
    if (!history->has_alarm || history->by_counts > state)
        history->by_counts = state;
    history->state = state;
}

static enum api_verdict after(const struct api_state_history *history, enum api_verdict before,
                              const struct api_levels *levels, size_t clear_after)
{
    return api_state_after(before, levels->of, levels->n, history->fire_after, clear_after);
}

/* Adds the next window. Evidence is NULL if pools have no part in it. */
static void advance(struct api_state_history *history, const struct api_scores *scores,
                    const struct api_evidence *evidence, struct api_turns *turns)
{
    enum api_verdict before = history->state, counts = history->by_counts;
    enum api_verdict rows = before > counts ? before : API_OK, level = level_by_counts(scores);
    if (level != API_INSUFFICIENT) {
        add_level(&history->verdicts, level);
        history->by_counts = after(history, counts, &history->verdicts,
                                   history->has_pools ? SIZE_MAX : history->clear_after);
    }
    if (evidence && history->by_counts > counts)
        turns->rose = evidence->at;
    else if (evidence && history->has_pools && level != API_INSUFFICIENT &&
             history->by_counts == counts && counts > API_OK)
        history->by_counts = api_pool_fall(evidence, counts, scores->alone, &turns->pool_from);
    add_level(&history->rows, level_by_rows(&scores->volume));
    rows = after(history, rows, &history->rows, history->clear_after);
    history->state = rows > API_OK && rows > history->by_counts ? rows : history->by_counts;
    if (history->state < API_OK && before >= API_OK)
        history->state = API_OK;
}

void api_state_advance(struct api_state_history *history, const struct api_scores *scores)
{
    advance(history, scores, NULL, NULL);
}

void api_state_follow(struct api_state_history *history, const struct api_evidence *evidence,
                      const struct api_scores *scores, struct api_turns *turns)
{
    advance(history, scores, evidence, turns);
}

const char *api_state_name(int state)
{
    return state == API_STALE ? "stale" : api_verdict_names[state];
}

void api_event_write(const struct api_event *event, struct api_buffer *out)
{
    api_write_json(out, "'at':%jd,'from':%s,'to':%s,'kl':%g,'infinite':%d,'window':%g,'began':%jd",
                   event->at, api_state_name(event->from), api_state_name(event->to), event->kl,
                   isinf(event->kl), event->window ? (double)event->window : (double)NAN,
                   event->began);
}
