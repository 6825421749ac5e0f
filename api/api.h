/* The whole service without a socket: requests and responses as bytes. The host (a server, a test,
 * a fuzzer) owns connections and threads; this owns what requests mean.
 *
 *     struct api_exchange x = {.service = &service, .request = {...}};
 *     if (api_begin(&x)) {              the header was enough to go on
 *         ... read the body into x.request.body
 *         api_handle(&x, HUGE_VAL);
 *     }
 *     ... send x.response
 *     api_end(&x);
 */
#pragma once

#include "api/request/exchange.h"

/* Checks everything but the body: host, token, path, method, media types, declared length. Returns false if
 * the request is refused: the response is complete, and the body need not be read. Never blocks. */
bool api_begin(struct api_exchange *x);

/* Makes the response; called after api_begin returned true and the body is complete. Returns true once the response
 * is complete. Returns false
 *
 * - before work of more than about `max_ns`, with an estimate of it in x->cost_ns: call it again with a larger `max_ns`,
 *   from a thread that has the time;
 * - with x->work set, if the response has to wait for the store: call api_wait, then this function again.
 *
 * Once *stop is true, work ends at the next chunk, and the response is of no use. */
bool api_handle(struct api_exchange *x, double max_ns);

/* Has the store do x->work; its end calls x->resume, perhaps before this function returns. False if too much waits
 * for the store: the response, which says so, is complete. */
bool api_wait(struct api_exchange *x);

/* Makes the response to a request that the host refuses, with any code of api/json/problem.c. Replaces
 * an earlier response. */
void api_refuse(struct api_exchange *x, const char *code, const char *detail);

/* Frees what the exchange holds, its response included. */
void api_end(struct api_exchange *x);
