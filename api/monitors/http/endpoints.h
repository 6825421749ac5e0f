/* The endpoints below /monitors, for the table of api/endpoints.c. */
#ifndef KLDIV_API_MONITORS_HTTP_ENDPOINTS_H
#define KLDIV_API_MONITORS_HTTP_ENDPOINTS_H

#include "api/exchange.h"

/* observing.c: POST observations, of a group or a monitor, and evaluate */
bool api_observing_begin(struct api_exchange *x);
bool api_observing_prepare(struct api_exchange *x, double most_ns);
bool api_evaluating_prepare(struct api_exchange *x, double most_ns);
bool api_observing(struct api_exchange *x);
void api_observing_end(struct api_exchange *x);

/* deleting.c: DELETE of a group or a monitor */
bool api_deleting_begin(struct api_exchange *x);
bool api_deleting_prepare(struct api_exchange *x, double most_ns);
bool api_deleting(struct api_exchange *x);
void api_deleting_end(struct api_exchange *x);

/* defining.c: PUT of a group or a monitor, POST reference */
bool api_defining_begin(struct api_exchange *x);
bool api_defining_prepare(struct api_exchange *x, double most_ns);
bool api_defining(struct api_exchange *x);
void api_defining_end(struct api_exchange *x);
bool api_rebasing_begin(struct api_exchange *x);
bool api_rebasing_prepare(struct api_exchange *x, double most_ns);

/* browsing.c: what is known without the store */
bool api_browsing_begin(struct api_exchange *x);
bool api_browsing_prepare(struct api_exchange *x, double most_ns);
void api_browsing_end(struct api_exchange *x);
bool api_list_monitors(struct api_exchange *x);
bool api_list_group(struct api_exchange *x);
bool api_show_monitor(struct api_exchange *x);

/* history.c: windows and events */
bool api_history_begin(struct api_exchange *x);
bool api_windows_prepare(struct api_exchange *x, double most_ns);
bool api_windows(struct api_exchange *x);
bool api_window_prepare(struct api_exchange *x, double most_ns);
bool api_window_show(struct api_exchange *x);
bool api_events_prepare(struct api_exchange *x, double most_ns);
bool api_events(struct api_exchange *x);
void api_history_end(struct api_exchange *x);

#endif
