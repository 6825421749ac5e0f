/* Works on their way from a request to the store's thread and back. */
#ifndef KLDIV_API_MONITORS_THREAD_H
#define KLDIV_API_MONITORS_THREAD_H

#include "api/monitors/state/transaction.h"

/* Queues a work; false if too many wait. */
bool api_work_submit(struct api_monitors *monitors, struct api_work *work);

/* Called by the thread when a work is done: has its exchange resumed, or wakes who waits for it. */
void api_work_finish(struct api_work *work);

#endif
