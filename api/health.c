#include "api/handlers.h"

#include "api/clock.h"
#include "api/formats/coding.h"
#include "api/monitors/monitors.h"
#include "api/response.h"

#include <string.h>

/* Fails if /readyz does not answer 200: the host drains, or the store fails that it needs. */
static bool check_ready(const struct api_service *service, struct api_problem *problem)
{
    if (service->ready && !service->ready(service->host))
        return api_fail(problem, "draining", "the server is shutting down");
    if (service->monitors && service->ready_needs_store &&
        !api_monitors_are_stored(service->monitors))
        return api_fail(problem, "store_unavailable", "the store cannot be written now");
    return true;
}

bool api_live(struct api_exchange *x)
{
    return api_response_json(&x->response, "{\"status\":\"ok\"}\n");
}

bool api_ready(struct api_exchange *x)
{
    const struct api_service *service = x->service;
    if (!check_ready(service, &x->problem))
        return false;
    if (!service->monitors)
        return api_live(x);
    return api_response_json(&x->response, api_monitors_are_stored(service->monitors)
                                               ? "{\"status\":\"ok\",\"store\":\"up\"}\n"
                                               : "{\"status\":\"ok\",\"store\":\"down\"}\n");
}

/* ---- Metrics: lines of the host and of the store, and those of monitors, which all requests share */

bool api_metrics_prepare(struct api_exchange *x, double max_ns)
{
    enum { FEW = 10 }; /* monitors whose lines a network thread may make */
    struct api_monitors *monitors = x->service->monitors;
    (void)max_ns;
    if (x->prepared == 0)
        x->prepared = 1e3 * api_seconds();
    x->cost_ns = monitors && api_monitors_count(monitors) > FEW ? 2 * API_LIGHT_NS : 0;
    return true;
}

static void write_own(const struct api_service *service, struct api_buffer *out)
{
    struct api_problem ignored = {.code = NULL};
    if (service->metrics)
        service->metrics(service->host, out);
    api_append_format(out,
                      "# HELP kldiv_ready 1 if /readyz answers 200, else 0.\n"
                      "# TYPE kldiv_ready gauge\nkldiv_ready %d\n",
                      check_ready(service, &ignored));
    if (service->monitors)
        api_monitors_write_store(service->monitors, out);
}

bool api_metrics(struct api_exchange *x)
{
    const char *accepted = api_request_header(&x->request, "Accept-Encoding");
    const char *coding = api_coding_choose(accepted);
    struct api_monitors *monitors = x->service->monitors;
    x->response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    write_own(x->service, &x->response.body);
    if (!monitors || api_monitors_count(monitors) == 0) {
        x->response.compress = true;
        return true;
    }
    api_response_header(&x->response, "Vary", "Accept-Encoding");
    return api_monitors_expose(monitors, x->prepared / 1e3, coding && strcmp(coding, "gzip") == 0,
                               &x->response) ||
           api_fail_oom(&x->problem);
}
