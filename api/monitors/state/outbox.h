/* The outbox: changes of state for receivers. A change is stored in the transaction that makes it, and deleted once
 * it is delivered. */
#pragma once

#include "api/monitors/rows/transaction.h"
#include "api/notify/message.h"
#include "api/notify/notifier.h"

/* Stores a change of a monitor for each receiver that wants it. If the monitor is muted, notes instead what
 * receivers know. A monitor that is ok by its first verdict is no news. */
bool api_outbox_put(struct api_monitors *monitors, struct api_monitor *monitor,
                    const struct api_change *change);

/* ---- For the sender */

/* api_outbox_job: deletes what was delivered, and gives the next message of a receiver. The sender fills the first part,
 * and submits it; a message that is not deleted is given again, with its id and with the same
 * changes. */
struct api_outbox_job {
    struct api_store_job job;
    struct api_problem problem;
    const struct api_receiver *receiver;
    int64_t delivered; /* number of a message that is to be deleted, or 0 */
    int64_t server;    /* number of this server, to tell it from others on the store */
    bool repeats;      /* if there is no message, what lasts is wanted, for an Alertmanager */
    bool takes_none;   /* no message is wanted: this server ends */
    bool ends_lease;   /* nothing is wanted but that another server may send at once */

    bool writes_history;                 /* this server has made an attempt since it was written */
    struct api_receiver_history history; /* as this server knows it; or as the store has it */

    bool is_shared;                /* other servers may use the store */
    bool is_repetition;            /* what is given are present states: warning, critical, stale */
    int64_t number;                /* of the message; 0 if there is none */
    int64_t wait;                  /* microseconds until there may be one; 0 if nothing waits */
    size_t pending, expired;       /* changes that wait; that were given up for their age */
    struct api_buffer rows, texts; /* its changes; their texts */
    size_t n;
};

/* Prepares a job; frees what it gave. api_outbox_changes: the changes of the message. */
void api_outbox_job_init(struct api_outbox_job *job, struct api_budget *budget);
void api_outbox_job_free(struct api_outbox_job *job);
const struct api_change *api_outbox_changes(struct api_outbox_job *job);
