/* api_monitors: all drift monitors, with their store and the thread that owns it. */
#pragma once

#include "api/metrics/metrics.h"
#include "api/request/exchange.h"
#include "api/store/store_metrics.h"

/* Opens the store at a location, see api/store/store.h, and reads its monitors. `max_monitors` is the number
 * of monitors beyond which none is made. Call it before the process gives up its rights, and before
 * threads use jansson. NULL with a sentence in `reason`. */
struct api_monitors *api_monitors_open(const char *location, size_t max_monitors,
                                       struct api_budget *budget, char *reason, size_t size);

/* Bounds the store: a job that would make it grow beyond so many bytes is refused; 0 is no bound. Call it before
 * api_monitors_start. */
void api_monitors_limit_store(struct api_monitors *monitors, size_t bytes);

/* Leaves the lines of single monitors out of the metrics; before requests. */
void api_monitors_expose_groups_only(struct api_monitors *monitors);

/* The store, which the thread uses once it is started. Its folder and files, the schema that was found, and the reason why it
 * does not work, may be read beside it. */
struct api_store;
struct api_store *api_monitors_store(struct api_monitors *monitors);

/* Starts the thread; false if it cannot be started. Without it, requests wait for ever. The thread calls `log` when
 * the store fails, and when it works again. */
bool api_monitors_start(struct api_monitors *monitors,
                        void (*log)(bool is_failure, const char *sentence));

/* Has changes of state stored for the receivers of a notifier, which the caller keeps; before api_monitors_start. */
struct api_notifier;
void api_monitors_notify(struct api_monitors *monitors, struct api_notifier *notifier);

struct api_store_job;

/* Queues a job for the thread, which calls api_store_job_finish; false if too many wait. */
bool api_monitors_submit(struct api_monitors *monitors, struct api_store_job *job);

/* Ends the thread after it has done what waits; call it when no request is left. */
void api_monitors_stop(struct api_monitors *monitors);
void api_monitors_free(struct api_monitors *monitors); /* NULL is fine */

/* True if the last write worked. Any thread may ask. */
bool api_monitors_are_stored(const struct api_monitors *monitors);

/* If the last write failed, copies since when writes fail, and why; false if it did not. */
bool api_monitors_outage(struct api_monitors *monitors, struct api_outage *outage);

/* Monitors that there were when the store was read last. */
size_t api_monitors_count(const struct api_monitors *monitors);

/* Appends the metrics of the store, and of the receivers that a token may see, as Prometheus text. */
struct api_token;
void api_monitors_write_store(struct api_monitors *monitors, const struct api_token *token,
                              struct api_buffer *out);

/* Frees what was kept for requests and not used for `seconds`; call it now and then. */
void api_monitors_trim(struct api_monitors *monitors, double seconds);
