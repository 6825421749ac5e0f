/* api_window: a window of a monitor, with its scores. */
#pragma once

#include "api/memory/buffer.h"
#include "api/monitors/model/top.h"
#include "api/monitors/model/verdict.h"

/* Times are microseconds since 1970. Scores are those of the last scoring, NaN where there was no
 * reference or no scoring. */
struct api_window {
    int64_t id, revision, start, end;
    bool closed, restated;
    double n, kl, kl_reverse, js, psi, p_value, unseen_ratio, missing_ratio;
    enum api_verdict verdict;
    enum api_verdict state; /* of the monitor after the window, once closed */
    int64_t top;            /* see top.h; API_TOP_UNKNOWN where there was no scoring */
    double top_share;
    char *settings;     /* by which it was scored, as JSON; NULL if it was not */
    double *reference;  /* counts that it was compared with, unless the config's; or NULL */
    size_t n_reference; /* number of those */
};

/* Frees what a window holds, not the window itself. */
void api_window_free(struct api_window *window);

/* Appends a window as an object; null for a window of id 0. */
void api_window_write(const struct api_window *window, struct api_buffer *out);
