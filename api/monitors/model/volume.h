/* Verdicts by the number of rows of a window, beside those of windows before.
 *
 * It is judged by Student's t of its logarithm, as a prediction from k windows: p = P(|T| > |t|), t = (log(n + 1/2) - m) / (s sqrt(1 + 1/k)), m
 * the mean of their logarithms (Hahn and Meeker, "Statistical intervals", 1991, 4.8). Numbers of rows vary more than a Poisson variable does, and
 * a variance of so few windows is itself uncertain. So where there is a season, s^2 and the degrees of freedom are pooled with those of the
 * same time of other weekdays; s^2 is at least that of the k windows, and 2 / mean, as logarithms of small numbers are skewed to the
 * left. Windows with an alarm take no part in m and s: an outage that lasts would else hide itself. The rule in Python, with its rates of false alarms: tests/tools/golden/volume.py. */
#pragma once

#include "api/monitors/model/window.h"

/* API_VOLUME_WINDOWS: windows that are looked at; API_VOLUME_MAX if a season has more. */
enum { API_VOLUME_WINDOWS = 8, API_VOLUME_MAX = 64, API_WEEKDAYS = 7 };

/* api_volumes: numbers of rows of some windows; of those without an alarm by their rows again. */
struct api_volumes {
    size_t n, n_without_alarm;
    double of[API_VOLUME_MAX], without_alarm[API_VOLUME_MAX];
};
void api_volumes_add(struct api_volumes *volumes, double rows, bool is_alarm);

/* api_volumes_before: of closed windows before one. */
struct api_volumes_before {
    struct api_volumes
        season[API_WEEKDAYS]; /* at the same time of the season, and as many days before */
    struct api_volumes last;  /* the last ones, if the settings have no season */
};

/* Judges a number of rows by the windows of the season, or if these are too few, by the last ones. The level is then that of the smallest
 * ratio to what is usual by the last ones, at this time of the season, and at this time of the day; ok if one ratio is above 1 and another
 * below. Of fewer than API_VOLUME_MIN windows nothing is said: `windows` is 0. Sorts the lists. */
struct api_volume api_volume_judge(const struct api_monitor_settings *settings, double rows,
                                   struct api_volumes_before *before);

/* Raises the verdict of scores to the level of a volume, which is kept in them. */
void api_volume_apply(const struct api_volume *volume, struct api_scores *scores);

/* Appends it as an object, or null. */
void api_volume_write(const struct api_volume *volume, struct api_buffer *out);
