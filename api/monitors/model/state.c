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
                                          .clear_after = (size_t)settings->clear_after};
    history->max = history->fire_after;
    if (api_settings_pool(settings) > 1)
        history->clear_after = SIZE_MAX; /* it falls by pools alone */
    else if (history->clear_after > history->max)
        history->max = history->clear_after;
}

void api_state_advance(struct api_state_history *history, enum api_verdict verdict)
{
    if (verdict == API_INSUFFICIENT)
        return;
    if (history->n == history->max) {
        memmove(history->verdicts, history->verdicts + 1,
                (history->max - 1) * sizeof *history->verdicts);
        history->n--;
    }
    history->verdicts[history->n++] = verdict;
    history->state = api_state_after(history->state, history->verdicts, history->n,
                                     history->fire_after, history->clear_after);
}

void api_state_follow(struct api_state_history *history, const struct api_evidence *evidence,
                      const struct api_scores *scores, struct api_turns *turns)
{
    enum api_verdict before = history->state;
    if (scores->verdict == API_INSUFFICIENT)
        return;
    api_state_advance(history, scores->verdict);
    if (history->state > before)
        turns->rose = evidence->at;
    else if (api_settings_pool(evidence->settings) > 1 && history->state == before &&
             before > API_OK && scores->pooled.windows > 0)
        history->state = api_pool_fall(evidence, before, scores->alone, &turns->pool_from);
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
