/* srv_delivery: of messages to one receiver, one at a time, so that they come in order. The store is asked for each by a
 * job, which the transfers of libcurl do not wait for. One thread uses all deliveries. */
#pragma once

#include "api/monitors/state/outbox.h"
#include "server/notify/post.h"

#include <stdatomic.h>

/* srv_sender: what all deliveries share. */
struct srv_sender {
    CURLM *multi;
    struct api_notifier *notifier;
    struct api_monitors *monitors;
    struct api_budget *budget;
    int64_t server; /* tells this one from others on the store */
};

struct srv_delivery {
    const struct srv_sender *sender;
    struct api_outbox_job job;
    struct api_exchange asker; /* of the job: `resume` is called at its end */
    bool is_asking;            /* the store's thread has the job */
    atomic_bool is_answered;
    bool is_unanswered; /* the last job failed */
    bool has_news;      /* since the job was begun */
    struct srv_post post;
    bool is_reminder;
    int64_t number;                     /* of the message under way */
    int64_t delivered;                  /* of one that the outbox still has */
    size_t n;                           /* its changes */
    double due;                         /* time of the next step, by api_seconds */
    double next_reminder;               /* time, by api_seconds; 0: not known yet */
    unsigned failures;                  /* in a row */
    bool knows_history;                 /* the store's history of the receiver was read */
    struct api_receiver_history stored; /* as the store has it */
};

/* Begins anew; no job is under way. */
void srv_delivery_reset(struct srv_delivery *delivery, const struct srv_sender *sender);

/* When the next reminder is due, of a message that is no Alertmanager's: at once if one is under way. */
double srv_delivery_reminder(const struct srv_delivery *delivery);

/* Asks the store for the next message of a receiver, which stays until the answer is taken. */
void srv_delivery_ask(struct srv_delivery *delivery, const struct api_receiver *receiver,
                      double now);

/* Tells the store what was delivered to a receiver when the server ends; with `ends_lease`, once it knows that of all
 * receivers, that another server may send. Not if the store did not answer the last time. */
void srv_delivery_leave(struct srv_delivery *delivery, const struct api_receiver *receiver,
                        bool ends_lease);

/* Sends what the store has answered, if it has; true if it has not. */
bool srv_delivery_take_answer(struct srv_delivery *delivery, const struct api_receiver *receiver);

/* Notes what became of the message under way. */
void srv_delivery_finish(struct srv_delivery *delivery, const struct api_receiver *receiver,
                         CURLcode result);
