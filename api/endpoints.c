#include "api/endpoints.h"

#include "api/health.h"
#include "api/loss/handlers.h"
#include "api/loss/oip.h"
#include "api/monitors/http/endpoints.h"
#include "api/regions/endpoints.h"
#include "api/request/response.h"
#include "api/web/web.h"

/* Embeds the document; the Makefile lists it as a prerequisite of this object. */
__asm__(".pushsection .rodata\n"
        ".global api_openapi\n"
        ".type api_openapi, %object\n"
        "api_openapi: .incbin \"api/openapi.json\"\n"
        ".byte 0\n"
        ".size api_openapi, . - api_openapi\n"
        ".popsection\n");

static bool show_openapi(struct api_exchange *x)
{
    return api_response_json(&x->response, api_openapi);
}

#define MODEL "/v2/models/" API_OIP_MODEL "[/versions/" API_OIP_VERSION "]"

#define REPOSITORY "/v2/repository"
#define TRACE "/v2[/models/" API_OIP_MODEL "]/trace/setting"
#define SYSTEM "/v2/systemsharedmemory"
#define CUDA "/v2/cudasharedmemory"
#define REGION "[/region/{region}]"

#define GROUP "/monitors/{group}"
#define MONITOR GROUP "/{name}"

/* An endpoint that only writes a response. */
#define WRITE_ONLY(function)                                                                       \
    &(const struct api_steps) { .write = (function) }

const struct api_endpoint api_endpoints[] = {
    {"POST", "/kl_div", "Loss of two tensors", 0, &api_kl_div},
    {"POST", MODEL "/infer", "Loss, by the Open Inference Protocol", 0, &api_infer},
    {"POST", "/compare", "Two tables, column by column; nothing is stored", 0, &api_compare_tables},
    {"GET", "/monitors", "Drift monitors, worst first", API_HEAVY | API_TAGGED, &api_list_monitors},
    {"PUT", GROUP, "Create monitors from a reference table", API_WRITES, &api_put},
    {"GET", GROUP, "Monitors of a group", API_HEAVY | API_TAGGED, &api_show_configs},
    {"PATCH", GROUP, "Change settings of all monitors of a group", API_WRITES, &api_patch},
    {"DELETE", GROUP, "Delete a group", API_WRITES, &api_delete},
    {"POST", GROUP "/observations", "Observations of a table",
     API_WRITES | API_OBSERVES | API_RESERVES, &api_observations},
    {"POST", GROUP "/evaluate", "Score a table without storing it", 0, &api_evaluate},
    {"POST", GROUP "/reference", "New references of a group, by a table or closed windows",
     API_WRITES, &api_renew_references},
    {"PUT", MONITOR, "Create or replace a monitor", API_WRITES, &api_put},
    {"GET", MONITOR, "Config of a monitor", 0, &api_show_configs},
    {"PATCH", MONITOR, "Change settings of a monitor", API_WRITES, &api_patch},
    {"DELETE", GROUP "/windows", "Delete windows of a group, and judge later ones again",
     API_WRITES, &api_delete_group_windows},
    {"DELETE", MONITOR, "Delete a monitor", API_WRITES, &api_delete},
    {"POST", MONITOR "/observations", "Observations of a monitor", API_WRITES | API_OBSERVES,
     &api_observations},
    {"POST", MONITOR "/evaluate", "Score a body without storing it", 0, &api_evaluate},
    {"POST", MONITOR "/mute", "Mute a monitor until a time", API_WRITES, &api_mute},
    {"DELETE", MONITOR "/mute", "End the mute of a monitor", API_WRITES, &api_unmute},
    {"GET", MONITOR "/windows", "Windows of a monitor, newest first", API_TAGGED, &api_windows},
    {"GET", MONITOR "/windows/{window}", "A window: latest, current or a number", API_TAGGED,
     &api_window},
    {"DELETE", MONITOR "/windows", "Delete windows of a monitor, and judge later ones again",
     API_WRITES, &api_delete_windows},
    {"DELETE", MONITOR "/windows/{window}", "Delete a window, and judge later ones again",
     API_WRITES, &api_delete_window},
    {"GET", MONITOR "/compare", "Windows of a period against those of another", 0, &api_compare},
    {"GET", MONITOR "/events", "Changes of a monitor's state, newest first", API_TAGGED,
     &api_events},
    {"GET", MONITOR "/notes", "Notes on a monitor, latest first", API_TAGGED, &api_notes},
    {"POST", MONITOR "/notes", "Write a note on a period of a monitor", API_WRITES, &api_note_add},
    {"DELETE", MONITOR "/notes/{note}", "Delete a note on a monitor", API_WRITES, &api_note_delete},
    {"GET", "/groups", "Groups of monitors, worst first", API_HEAVY | API_TAGGED, &api_list_groups},
    {"GET", "/groups/{group}", "A group: what drifts, since when, and its history",
     API_HEAVY | API_TAGGED, &api_group},
    {"POST", "/groups/{group}/mute", "Mute a group until a time", API_WRITES, &api_mute},
    {"DELETE", "/groups/{group}/mute", "End the mute of a group", API_WRITES, &api_unmute},
    {"GET", "/groups/{group}/notes", "Notes on a group, latest first", API_TAGGED, &api_notes},
    {"POST", "/groups/{group}/notes", "Write a note on a period of a group", API_WRITES,
     &api_note_add},
    {"DELETE", "/groups/{group}/notes/{note}", "Delete a note on a group", API_WRITES,
     &api_note_delete},
    {"GET", "/events", "Changes of the states of all monitors, newest first", API_TAGGED,
     &api_all_events},
    {"GET", "/notifications", "Receivers of notifications, with their successes and failures", 0,
     &api_notifications},
    {"POST", "/notifications/{name}/test", "Send a test message", API_WRITES, &api_notify_test},
    {"GET", "/", "This list; for browsers a calculator", API_PUBLIC, &api_web_root},
    {"GET", "/dashboard", "Drift monitors, as a page", API_PUBLIC, &api_web},
    {"GET", "/dashboard/{file}", "Assets of the dashboard", API_PUBLIC, &api_web},
    {"GET", "/docs", "The API, to read and to try", API_PUBLIC, &api_web},
    {"GET", "/docs/{file}", "Assets of the documentation", API_PUBLIC, &api_web},
    {"GET", "/openapi.json", "OpenAPI document", 0, WRITE_ONLY(show_openapi)},
    {"GET", "/metrics", "Counters, for Prometheus", API_PROBE, &api_metrics},
    {"GET", "/v2", "Server metadata", 0, WRITE_ONLY(api_oip_server)},
    {"GET", "/v2/health/live", "Liveness probe", API_HEALTH, WRITE_ONLY(api_oip_live)},
    {"GET", "/v2/health/ready", "Readiness probe", API_HEALTH, WRITE_ONLY(api_oip_ready)},
    {"GET", MODEL, "Model metadata", 0, WRITE_ONLY(api_oip_model)},
    {"GET", "/v2/models/stats", "Statistics of all models", 0, WRITE_ONLY(api_oip_stats)},
    {"GET", MODEL "/ready", "Readiness probe of the model", API_HEALTH,
     WRITE_ONLY(api_oip_model_ready)},
    {"GET", MODEL "/config", "Model configuration", 0, WRITE_ONLY(api_oip_config)},
    {"GET", MODEL "/stats", "Statistics of the model", 0, WRITE_ONLY(api_oip_stats)},
    {"GET", TRACE, "Settings of traces; there are none", 0, WRITE_ONLY(api_oip_trace)},
    {"POST", TRACE, "Confirm the settings, which are fixed", 0, &api_oip_set_trace},
    {"GET", "/v2/logging", "Settings of the log", 0, WRITE_ONLY(api_oip_logging)},
    {"POST", "/v2/logging", "Confirm the settings, which are fixed", 0, &api_oip_set_logging},
    {"POST", REPOSITORY "/index", "List of models", 0, WRITE_ONLY(api_oip_index)},
    {"POST", REPOSITORY "/models/" API_OIP_MODEL "/load", "Nothing to do", 0,
     WRITE_ONLY(api_oip_load)},
    {"POST", REPOSITORY "/models/" API_OIP_MODEL "/unload", "Refused", 0,
     WRITE_ONLY(api_oip_unload)},
    {"GET", SYSTEM REGION "/status", "Regions of shared memory", 0, WRITE_ONLY(api_region_status)},
    {"POST", SYSTEM "/region/{region}/register", "Register a region", API_WRITES,
     &api_region_register},
    {"POST", SYSTEM REGION "/unregister", "Unregister a region, or all", API_WRITES,
     WRITE_ONLY(api_region_unregister)},
    {"GET", CUDA REGION "/status", "Regions of a GPU; there are none", 0,
     WRITE_ONLY(api_cuda_region_status)},
    {"POST", CUDA "/region/{region}/register", "Refused", API_WRITES, &api_cuda_region_register},
    {"POST", CUDA REGION "/unregister", "Nothing to do", API_WRITES,
     WRITE_ONLY(api_cuda_region_unregister)},
    {"GET", "/livez", "Liveness probe", API_HEALTH, WRITE_ONLY(api_live)},
    {"GET", "/healthz", "Liveness probe", API_HEALTH, WRITE_ONLY(api_live)},
    {"GET", "/readyz", "Readiness probe", API_HEALTH, WRITE_ONLY(api_ready)},
    {0},
};
_Static_assert(sizeof api_endpoints / sizeof *api_endpoints <= API_MAX_ENDPOINTS,
               "raise API_MAX_ENDPOINTS, the size of the metrics' arrays");
