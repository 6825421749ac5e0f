#include "api/monitors/model/window.h"

#include "api/text/date.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct api_window api_no_window = {.end = API_NO_TIME,
                                         .n = (double)NAN,
                                         .scores = {.drift = {.n_reference = (double)NAN,
                                                              .kl = (double)NAN,
                                                              .kl_reverse = (double)NAN,
                                                              .js = (double)NAN,
                                                              .psi = (double)NAN,
                                                              .statistic = (double)NAN,
                                                              .p_value = (double)NAN,
                                                              .critical_kl = (double)NAN,
                                                              .noise_floor = (double)NAN,
                                                              .unseen_ratio = (double)NAN},
                                                    .missing_ratio = (double)NAN,
                                                    .spread = API_NO_SPREAD,
                                                    .reference_spread = API_NO_SPREAD,
                                                    .top = API_TOP_UNKNOWN,
                                                    .top_share = (double)NAN}};

void api_window_free(struct api_window *window)
{
    free(window->settings);
    free(window->reference);
    free(window->counts);
    window->settings = window->reference = window->counts = NULL;
}

void api_window_write(const struct api_window *window, struct api_buffer *out)
{
    if (window->id == 0)
        api_append_text(out, "null");
    else
        api_write_json(out, "{'id':%ld,'start':%jd,'end':%jd,'closed':%d,'restated':%d}",
                       window->id, window->start, window->end, window->closed, window->restated);
}

/* ---- Times */

/* 1970 began on a Thursday. */
static const int64_t week_us = 7 * API_DAY_US, monday_us = 4 * API_DAY_US;

/* Begin of the interval of a size that a time is in. */
static int64_t align(int64_t time, int64_t size)
{
    int64_t from = size % week_us == 0 ? monday_us : 0;
    return time - ((time - from) % size + size) % size;
}

/* The first time of a local day: its midnight, or where the clocks skip that, when they do so. */
static int64_t begin_of_day(const struct api_zone *zone, int64_t midnight)
{
    int64_t skipped, time = api_zone_to_utc(zone, midnight, NULL, &skipped);
    return skipped < time ? skipped : time;
}

/* The window of a time. Where clocks go back over midnight, what they repeat belongs to the day that has begun before. */
struct api_window_span api_window_span(const struct api_monitor_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * API_SECOND_US;
    if (settings->window != API_SECONDS)
        return (struct api_window_span){time, time};
    if (size != API_DAY_US && size != week_us)
        return (struct api_window_span){align(time, size), align(time, size) + size};
    int64_t midnight = align(api_zone_to_local(settings->zone, time, NULL), size);
    struct api_window_span span = {begin_of_day(settings->zone, midnight),
                                   begin_of_day(settings->zone, midnight + size)};
    for (; span.end <= time; span.end = begin_of_day(settings->zone, midnight + size)) {
        span.start = span.end;
        midnight += size;
    }
    return span;
}

/* Days from 1970 to the first of a month; months count from the year 0. */
static int64_t first_of_month(int64_t month)
{
    return api_days_since_1970(month / 12, (unsigned)(month % 12) + 1, 1);
}

/* Moves a local time back by months: the day of the month stays, and the last day of a month goes to the last day, where no
 * other day goes. API_NO_TIME if the month has no such day. */
static int64_t months_before(int64_t local, int64_t months)
{
    int64_t midnight = align(local, API_DAY_US), day = midnight / API_DAY_US;
    time_t seconds = midnight / API_SECOND_US;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    int64_t month = (tm.tm_year + 1900) * INT64_C(12) + tm.tm_mon,
            first = first_of_month(month - months);
    int64_t last = first_of_month(month - months + 1) - 1, same = first + tm.tm_mday - 1;
    bool is_last = day + 1 == first_of_month(month + 1);
    if (same >= last && !is_last)
        return API_NO_TIME;
    return (is_last ? last : same) * API_DAY_US + local - midnight;
}

int64_t api_window_before(const struct api_monitor_settings *settings, int64_t start, int64_t k)
{
    int64_t skipped, shift = k * (int64_t)settings->period * API_SECOND_US;
    bool is_month = settings->period == API_MONTH;
    if (shift % API_DAY_US != 0)
        return start - shift;
    int64_t local = api_zone_to_local(settings->zone, start, NULL);
    local = is_month ? months_before(local, k) : local - shift;
    if (local == API_NO_TIME)
        return API_NO_TIME;
    int64_t time = api_zone_to_utc(settings->zone, local, NULL, &skipped);
    return skipped < INT64_MAX ? API_NO_TIME : api_window_span(settings, time).start;
}

/* ---- Verdicts */

const char *const api_verdict_names[API_VERDICTS] = {"insufficient_data", "ok", "warning",
                                                     "critical"};

void api_verdicts_write(const size_t counts[API_VERDICTS], struct api_buffer *out)
{
    static const enum api_verdict order[API_VERDICTS] = {API_OK, API_WARNING, API_CRITICAL,
                                                         API_INSUFFICIENT};
    for (size_t i = 0; i < API_VERDICTS; i++)
        api_write_json(out, i ? ",%s:%zu" : "{%s:%zu", api_verdict_names[order[i]],
                       counts[order[i]]);
    api_append(out, "}", 1);
}

enum api_verdict api_verdict_of(int64_t number)
{
    return number >= 0 && number < API_VERDICTS ? (enum api_verdict)number : API_INSUFFICIENT;
}

/* ---- Bins that contribute most */

enum { BITS = 16 };

size_t api_top_at(int64_t top, size_t rank)
{
    return top > 0 ? (size_t)(top >> (BITS * rank)) & ((1 << BITS) - 1) : 0;
}

int64_t api_top_of(const struct kl_drift_bin *of_bins, size_t n_bins)
{
    size_t ranks[API_TOP], n = 0;
    int64_t top = 0;
    for (size_t i = 0; i < n_bins; i++) {
        size_t at = n;
        if (!(of_bins[i].contribution > 0))
            continue;
        while (at > 0 && of_bins[ranks[at - 1]].contribution < of_bins[i].contribution)
            at--;
        if (at == API_TOP)
            continue;
        n += n < API_TOP;
        memmove(ranks + at + 1, ranks + at, (n - at - 1) * sizeof *ranks);
        ranks[at] = i;
    }
    for (size_t i = 0; i < n; i++)
        top |= (int64_t)(ranks[i] + 1) << (BITS * i);
    return top;
}

double api_top_share(int64_t top, const struct kl_drift_bin *of_bins)
{
    double share = 0;
    for (size_t i = 0; i < API_TOP && api_top_at(top, i); i++)
        share += of_bins[api_top_at(top, i) - 1].share;
    return share > 0 ? fmin(share, 1) : (double)NAN; /* rounded shares may sum to more */
}

bool api_top_fits(int64_t top, const struct api_bins *bins)
{
    bool fits = top >= 0 && top >> (BITS * API_TOP) == 0;
    for (size_t i = 0; i < API_TOP; i++)
        fits = fits && api_top_at(top, i) <= bins->n_bins;
    return fits;
}

void api_top_write(int64_t top, const struct api_bins *bins, struct api_buffer *out)
{
    api_append(out, "[", 1);
    for (size_t i = 0; i < API_TOP && api_top_at(top, i); i++) {
        api_append(out, ",", i > 0);
        api_bins_write_name(bins, api_top_at(top, i) - 1, out);
    }
    api_append(out, "]", 1);
}
