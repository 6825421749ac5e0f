/* Retention lets windows and events go alike, counted back from the newest window. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

/* HOURS: windows, one an hour; each brings an event. KEPT: hours that are kept. */
enum { HOUR = 3600, HOURS = 400, KEPT = 24, BEGIN = 1600000000 };

static size_t count(const struct api_service *service, const char *what)
{
    char line[60];
    snprintf(line, sizeof line, "GET /monitors/g/m/%s?limit=500", what);
    json_t *json = monitors_get(service, line, NULL, 200);
    size_t n = json_array_size(json_object_get(json, what));
    json_decref(json);
    return n;
}

static void observe(const struct api_service *service, int hour)
{
    char body[100];
    snprintf(body, sizeof body, "{\"counts\": [%d, %d], \"timestamp\": %d}", hour % 2 ? 900 : 500,
             hour % 2 ? 100 : 500, BEGIN + hour * HOUR);
    monitors_expect(service, "POST /monitors/g/m/observations", body, 200);
}

Test(monitors_retention, events_go_with_their_windows)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?retention_days=1&clear_after=1",
                    "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [500, 500]}}",
                    201);
    for (int hour = 0; hour < HOURS; hour++)
        observe(&service, hour);
    cr_expect_eq(count(&service, "windows"), KEPT + 1);
    cr_expect_eq(count(&service, "events"), KEPT + 1);
    monitors_end(&service);
}

/* The event that made the state is kept, so that it can be told since when it holds. */
Test(monitors_retention, the_last_event_stays)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?retention_days=1",
                    "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [500, 500]}}",
                    201);
    for (int hour = 0; hour < HOURS; hour += 2)
        observe(&service, hour);
    cr_expect_eq(count(&service, "events"), 1);
    monitors_end(&service);
}
