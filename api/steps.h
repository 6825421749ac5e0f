/* The driver of requests: takes the steps of an endpoint in order, each where it belongs. */
#pragma once

#include "api/request/endpoint.h"

/* Takes the steps before `write`, until one costs more than `max_ns`, which x->cost_ns says, or has to wait, which
 * x->work says. False with a problem. */
bool api_steps_take(struct api_exchange *x, double max_ns);

/* Takes the last step: makes the response, or completes what `handle` has made. */
bool api_steps_write(struct api_exchange *x);

/* Has the store's thread, or the sender of notifications, do x->work; false if too much waits for it. */
bool api_steps_submit(struct api_exchange *x);

/* Frees the state, and the body that was inflated. */
void api_steps_end(struct api_exchange *x);
