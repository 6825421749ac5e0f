#include "api/monitors/http/rank.h"

#include <math.h>
#include <string.h>

int api_severity(enum api_verdict state, bool stale)
{
    enum { STALE = 2 };
    static const int severities[API_VERDICTS] = {
        [API_CRITICAL] = 4, [API_WARNING] = 3, [API_INSUFFICIENT] = 1, [API_OK] = 0};
    return stale && severities[state] < STALE ? STALE : severities[state];
}

struct api_rank api_rank_of(const struct api_monitor *monitor)
{
    double kl = monitor->status.last.scores.drift.kl;
    double ratio = isnan(kl) ? -1 : kl / monitor->config->settings.warning;
    int severity = api_severity(monitor->status.state, api_monitor_is_stale(monitor));
    return (struct api_rank){monitor, severity, isnan(ratio) ? 0 : ratio, monitor->id};
}

int api_rank_compare(const void *a, const void *b)
{
    const struct api_rank *first = a, *second = b;
    if (first->severity != second->severity)
        return first->severity > second->severity ? -1 : 1;
    if (first->ratio != second->ratio)
        return first->ratio > second->ratio ? -1 : 1;
    return first->id < second->id ? -1 : first->id > second->id;
}

/* A cursor is severity, bits of the ratio, number. */
enum { SEVERITY, RATIO, ID, NUMBERS };

bool api_rank_read(struct api_rank *rank, const struct api_pagination *page,
                   struct api_problem *problem)
{
    int64_t numbers[NUMBERS] = {0};
    if (!api_pagination_cursor(page, numbers, NUMBERS, problem))
        return false;
    *rank = (struct api_rank){.severity = (int)numbers[SEVERITY], .id = numbers[ID]};
    memcpy(&rank->ratio, &numbers[RATIO], sizeof rank->ratio);
    return !isnan(rank->ratio) || api_pagination_fail(problem);
}

void api_rank_end(const struct api_rank *last, struct api_buffer *out)
{
    int64_t numbers[NUMBERS];
    if (last) {
        numbers[SEVERITY] = last->severity;
        memcpy(&numbers[RATIO], &last->ratio, sizeof last->ratio);
        numbers[ID] = last->id;
    }
    api_pagination_end(numbers, last ? NUMBERS : 0, out);
}

bool api_check_states(const struct api_pagination *page, struct api_problem *problem)
{
    const char *state = api_pagination_text(page, "state"),
               *stale = api_pagination_text(page, "stale");
    if (stale && strcmp(stale, "true") != 0 && strcmp(stale, "false") != 0)
        return api_fail_at(problem, API_QUERY, "stale", "option_invalid",
                           "stale must be true or false");
    for (size_t i = 0; i < API_VERDICTS; i++)
        if (!state || strcmp(state, api_verdict_names[i]) == 0)
            return true;
    return api_fail_at(problem, API_QUERY, "state", "option_invalid",
                       "state must be critical, warning, insufficient_data or ok");
}
