/* Monitors in the store's thread. A transaction reads the row of a monitor when it first touches it, changes the structure, and
 * writes the row if it has changed; others see that after the commit. What is made of rows, a parsed config, the open window and
 * the last closed ones, stays in memory for later transactions, which use it if the row's number of writes is the same. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Give a monitor by its id, or by its names; NULL if there is none, or it cannot be read, which is told once. `known`, if it is
 * not NULL, has its config. False if the store or memory fails. */
bool api_touch(struct api_monitors *monitors, int64_t id, const struct api_known *known,
               struct api_monitor **monitor);
bool api_touch_named(struct api_monitors *monitors, const char *group, const char *name,
                     struct api_monitor **monitor);

/* Likewise by a row that was just read. */
bool api_touch_row(struct api_monitors *monitors, const struct api_monitor *row,
                   const struct api_known *known, struct api_monitor **monitor);

/* Gives a monitor that is in memory, touched or not; NULL if it is not there. Touches one whose row is known to be as it is in
 * memory. */
struct api_monitor *api_in_memory(const struct api_monitors *monitors, int64_t id);
void api_touch_known(struct api_monitors *monitors, struct api_monitor *monitor);

/* Touches monitors that jobs of this transaction change beside other servers, in order of their ids, which they are locked in;
 * and reads their open windows. `jobs` is a list. */
bool api_touch_jobs(struct api_monitors *monitors, const struct api_store_job *jobs);

/* Appends the whole number that each row of a statement begins with, an int64_t. */
bool api_read_ids(struct api_monitors *monitors, enum api_statement statement,
                  const struct api_datum *of, struct api_buffer *ids);

/* Gives the config of a version of a monitor, if it is in memory; else NULL. */
struct api_config *api_touched_config(const struct api_monitors *monitors, int64_t id,
                                      int64_t version);

/* Gives a monitor that is in memory, if its row has this number of writes, and so many observations; else NULL. */
const struct api_monitor *api_touched_row(const struct api_monitors *monitors, int64_t id,
                                          int64_t changed, int64_t observations);

/* Reads the config of a monitor, held; NULL, with *good true, if it cannot be read, which is told once. */
struct api_config *api_read_config(struct api_monitors *monitors, const struct api_monitor *row,
                                   bool *good);

/* Reads of all monitors, at the start, whether they can be read; tells of those that cannot, and of time zones that are known by
 * their last rules alone. *n becomes the number of monitors. */
bool api_check_all(struct api_monitors *monitors, size_t *n);

/* True if a version of a monitor was found to be unreadable. */
bool api_is_unreadable(const struct api_monitors *monitors, int64_t id, int64_t version);

/* Notes that a monitor has changed: all of its row. */
static inline void api_touch_all(struct api_monitor *monitor) { monitor->writes = API_WRITE_ALL; }

/* Gives a monitor another config, which it takes, and no windows. */
void api_touch_set_config(struct api_monitor *monitor, struct api_config *config);

/* Writes the row of a monitor, if it has changed. */
bool api_touch_write(struct api_monitors *monitors, struct api_monitor *monitor);

/* Marks the window of a snapshot as changed, which it takes; the snapshot may be NULL after a failure. */
struct api_dirty_window *api_mark_dirty(struct api_monitors *monitors, struct api_monitor *monitor,
                                        struct api_snapshot *snapshot);

/* Has the windows of its pools read again if one that starts then is among them: it changes, or goes. */
void api_touch_forget_pool(struct api_monitor *monitor, int64_t start);

/* Forgets the windows that were changed, once they are written; keeps the open one that was added to last, because the next
 * observations will most likely be for it. */
void api_touch_clear(struct api_monitor *monitor);

/* True if the monitors of a transaction have more bytes than may stay in memory after it: a task that goes through many goes on
 * in another one. */
bool api_touch_exceeds(const struct api_monitors *monitors);

/* Ends a transaction: touched monitors stay in memory, as far as there is room; or nothing of them, if it failed. */
void api_touch_end(struct api_monitors *monitors, bool is_committed);

/* Forgets a monitor, of which nothing is to be written. */
void api_touch_remove(struct api_monitors *monitors, struct api_monitor *monitor);

/* Forgets all that is in memory; or of a group, or of its monitor `name`, which was deleted. */
void api_touch_forget(struct api_monitors *monitors);
void api_touch_forget_deleted(struct api_monitors *monitors, const char *group, const char *name);
