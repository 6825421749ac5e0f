#include "api/health.h"

#include "api/json/format.h"
#include "api/metrics/metrics.h"
#include "api/monitors/monitors.h"
#include "api/monitors/rows/metric_rows.h"
#include "api/request/access.h"
#include "api/request/coding.h"
#include "api/request/response.h"
#include "api/text/clock.h"

#include <string.h>

/* Fails with the time since when the store is down, and with the reason if `with_reason`. */
static bool fail_outage(const struct api_outage *outage, bool with_reason,
                        struct api_problem *problem)
{
    struct api_buffer since = {0};
    api_write_bare_time(&since, outage->since);
    api_append(&since, "", 1);
    api_fail(problem, "store_unavailable", "the store cannot be written since %s%s%s",
             since.failed ? "?" : since.data, with_reason ? ": " : "",
             with_reason ? outage->error : "");
    api_buffer_free(&since);
    return false;
}

/* Fails if /readyz does not answer 200: the host drains, or the store fails that it needs. */
static bool check_ready(const struct api_service *service, bool with_reason,
                        struct api_problem *problem)
{
    struct api_outage outage;
    if (service->ready && !service->ready(service->host))
        return api_fail(problem, "draining", "the server is shutting down");
    return !service->monitors || !service->ready_needs_store ||
           !api_monitors_outage(service->monitors, &outage) ||
           fail_outage(&outage, with_reason, problem);
}

bool api_live(struct api_exchange *x)
{
    return api_response_json(&x->response, "{\"status\":\"ok\"}\n");
}

/* Probes need no token. But the reason why the store fails names files and hosts: if the server has tokens, only
 * clients with a token see it. */
bool api_ready(struct api_exchange *x)
{
    const struct api_service *service = x->service;
    struct api_buffer *out = &x->response.body;
    struct api_outage outage;
    bool with_reason = api_has_token(x);
    if (!check_ready(service, with_reason, &x->problem))
        return false;
    if (!service->monitors)
        return api_live(x);
    if (!api_monitors_outage(service->monitors, &outage))
        return api_response_json(&x->response, "{\"status\":\"ok\",\"store\":\"up\"}\n");
    api_response_json(&x->response, "{\"status\":\"ok\",\"store\":\"down\"");
    api_write_json(out, ",'store_since':%jd", outage.since);
    if (with_reason)
        api_write_json(out, ",'store_error':%s", outage.error);
    api_append_text(out, "}\n");
    return true;
}

/* ---- Metrics: lines of the host and of the store, and those of monitors, which all requests share */

/* scrape: when it came, of api_seconds; numbers of monitors. */
struct scrape {
    double came;
    struct api_metric_samples samples;
};

static enum api_metrics_format format_of(const struct api_exchange *x)
{
    return api_metrics_choose(api_request_header(&x->request, "Accept"));
}

/* While the store fails, the last lines are sent. */
static enum api_outcome parse(struct api_exchange *x)
{
    struct scrape *scrape = x->state;
    struct api_outage outage;
    scrape->came = api_seconds();
    scrape->samples.of_monitors.budget = scrape->samples.labels.budget = x->service->budget;
    if (x->service->monitors && !api_monitors_outage(x->service->monitors, &outage))
        x->place = API_STORE_READS;
    return API_DONE;
}

static bool read_samples(struct api_exchange *x, struct api_monitors *monitors)
{
    enum { FEW = 10 }; /* monitors whose lines a network thread may make */
    struct scrape *scrape = x->state;
    bool good =
        api_metric_samples_read(monitors, &x->token, format_of(x), scrape->came, &scrape->samples);
    scrape->samples.is_short = !good && monitors->out_of_memory;
    x->cost_ns = api_metric_samples_count(&scrape->samples) > FEW ? 2 * API_LIGHT_NS : 0;
    return good;
}

static void drop_samples(struct api_exchange *x)
{
    api_metric_samples_free(&((struct scrape *)x->state)->samples);
}

static void write_own(const struct api_service *service, const struct api_token *token,
                      struct api_buffer *out)
{
    struct api_problem ignored = {.code = NULL};
    if (service->metrics)
        service->metrics(service->host, out);
    api_metrics_value(out, "kldiv_ready", "1 if /readyz answers 200, else 0.",
                      check_ready(service, false, &ignored));
    if (service->monitors)
        api_monitors_write_store(service->monitors, token, out);
}

static bool write_metrics(struct api_exchange *x)
{
    const char *accepted = api_request_header(&x->request, "Accept-Encoding");
    const char *coding = api_coding_choose(accepted);
    struct api_monitors *monitors = x->service->monitors;
    enum api_metrics_format format = format_of(x);
    x->response.content_type = api_metrics_content_types[format];
    if (monitors &&
        !api_monitor_metrics_update(&monitors->metrics, &((struct scrape *)x->state)->samples,
                                    &x->token, format, &x->response, x->service->budget))
        return api_fail_oom(&x->problem);
    write_own(x->service, &x->token, &x->response.body);
    if (format == API_METRICS_OPEN) {
        api_metrics_open(&x->response.body);
        api_append_text(&x->response.body, "# EOF\n");
    }
    if (monitors)
        api_monitor_metrics_response(&monitors->metrics, &x->token, format,
                                     coding && strcmp(coding, "gzip") == 0, &x->response,
                                     x->service->budget);
    x->response.compress = !x->response.shared;
    if (x->response.shared) {
        api_response_header(&x->response, "Vary", "Accept-Encoding");
        api_response_header(&x->response, "Vary", "Accept");
    }
    return true;
}

const struct api_steps api_metrics = {.state = sizeof(struct scrape),
                                      .parse = parse,
                                      .read_back = read_samples,
                                      .write = write_metrics,
                                      .drop = drop_samples};
