#include "api/request/response.h"
#include "api/request/route.h"
#include "server/connection/deadlines.h"
#include "server/request/request.h"

#include <math.h>
#include <string.h>

/* Maximum of work, in ns, that a job of each queue does; a job with more goes on to the next queue. */
static const double max_ns[SRV_QUEUES] = {
    [SRV_LARGE] = 20e6, [SRV_HUGE] = HUGE_VAL, [SRV_PROBES] = HUGE_VAL};

/* True if nobody waits for the response, so that work on it stops. A request whose observations are stored goes on to
 * its response. */
static bool is_stopped(const struct srv_request *request)
{
    return atomic_load(&request->entry->stop) && !request->exchange.is_stored;
}

/* Ends a job whose response nobody waits for. */
static void refuse_stopped(struct srv_request *request)
{
    const struct srv_error *ending = atomic_load(&request->entry->ending);
    if (ending)
        api_refuse(&request->exchange, ending->code, ending->detail);
    else
        api_refuse(&request->exchange, "client_left", "the client closed its side");
}

static bool pass_on(struct srv_request *request);

static void work(struct srv_job *job)
{
    struct srv_request *request =
        (struct srv_request *)((char *)job - offsetof(struct srv_request, job));
    srv_request_mark(request, SRV_QUEUED);
    bool done = is_stopped(request) || api_handle(&request->exchange, max_ns[request->queue]);
    srv_request_mark(request, SRV_COMPUTED);
    if (is_stopped(request))
        refuse_stopped(request);
    else if (!done && pass_on(request))
        return;
    api_buffer_free(&request->body);
    srv_connection_resume(request->entry);
}

/* Queues the request as a job of the queue for its kind or cost. If the queue is full, the request is refused; but if
 * the store already has its observations, this thread makes the response instead. */
static bool hand_over(struct srv_request *request)
{
    request->job.run = work;
    request->job.cost_ns = request->exchange.cost_ns;
    request->queue = request->exchange.cost_ns > max_ns[SRV_LARGE] ? SRV_HUGE : SRV_LARGE;
    if (api_endpoint_is_probe(request->exchange.response.endpoint))
        request->queue = SRV_PROBES;
    const char *refusal = srv_jobs_add(request->queue, &request->job);
    if (!refusal)
        return true;
    if (request->exchange.is_stored && api_handle(&request->exchange, HUGE_VAL))
        return false;
    api_refuse(&request->exchange, "overloaded", refusal);
    return false;
}

/* Leaves the suspended request to the store, or to a job; false if it is refused. */
static bool pass_on(struct srv_request *request)
{
    return request->exchange.work ? api_wait(&request->exchange) : hand_over(request);
}

/* Goes on with a request as far as this thread may, and leaves the rest to others: false then. */
static bool go_on(struct srv_request *request, struct MHD_Connection *connection)
{
    bool done = api_handle(&request->exchange, API_LIGHT_NS);
    srv_request_mark(request, SRV_COMPUTED);
    if (done)
        return true;
    request->step = SRV_WORKING;
    srv_connection_enter(request->entry, SRV_WORK);
    srv_connection_suspend(request->entry, connection);
    if (!pass_on(request))
        srv_connection_resume(request->entry);
    return false;
}

/* Takes the body, which is complete; false if its memory was freed when its last bytes had come. */
static bool take_body(struct srv_request *request)
{
    struct api_buffer *body = &request->body;
    atomic_store(&request->entry->held, 0);
    if (!srv_body_reclaim(request))
        return false;
    srv_request_mark(request, SRV_READ);
    request->exchange.request.body = body->data ? body->data : request->small_body;
    request->exchange.request.body_size = body->size;
    memset(request->exchange.request.body + body->size, 0, API_PADDING);
    return true;
}

bool srv_work(struct srv_request *request, struct MHD_Connection *connection)
{
    bool works = request->step == SRV_WORKING && request->exchange.response.status == 0;
    bool is_done = true;
    if (request->step == SRV_WORKING)
        srv_request_mark(request, SRV_QUEUED);
    /* The endpoint alone knows if its work has been stored. */
    if (works && !request->exchange.work && is_stopped(request))
        refuse_stopped(request);
    else if (works)
        is_done = go_on(request, connection);
    else if (request->step == SRV_READING && !take_body(request))
        refuse_stopped(request);
    else if (request->step == SRV_READING)
        is_done = go_on(request, connection);
    return is_done;
}
