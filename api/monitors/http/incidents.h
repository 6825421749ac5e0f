/* Incidents: chains of monitors of a group that are not ok, and left ok within a window of each other. */
#pragma once

#include "api/monitors/state/registry.h"

/* api_onset: when a monitor left ok. An onset within the reach of another one belongs together with it. */
struct api_onset {
    const struct api_monitor *monitor;
    size_t rank;                  /* of the monitor among those, 0 is the worst */
    int64_t since;                /* or API_NO_TIME */
    struct api_window_span reach; /* around `since`, both ends included */
    bool is_last;                 /* its chain ends with it */
};

/* Sorts onsets by time, those of one time worst first, and marks the last one of each chain. */
void api_incidents_link(struct api_onset *onsets, size_t n);

/* When a monitor that is not ok left ok, and the window that ended then, and the one that began. */
struct api_onset api_onset_of(const struct api_monitor *monitor, size_t rank);

/* Appends the member `incidents` of the onsets of a group, which it sorts; false if memory is exhausted. */
bool api_incidents_write(const struct api_registry *registry, struct api_onset *onsets, size_t n,
                         struct api_buffer *out);
