#include "api/endpoints.h"

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

const struct api_endpoint api_endpoints[] = {
    {"POST", "/kl_div", "Loss of two tensors", 0, api_kl_div_begin, api_loss_prepare, api_loss,
     api_kl_div_end},
    {"POST", MODEL "/infer", "Loss, by the Open Inference Protocol", 0, api_infer_begin,
     api_loss_prepare, api_loss, api_infer_end},
    {"GET", "/monitors", "Drift monitors, worst first", API_HEAVY | API_TAGGED, api_list_begin,
     api_list_prepare, api_list_monitors, api_list_end},
    {"PUT", GROUP, "Create monitors from a reference table", API_WRITES, api_put_begin,
     api_put_prepare, api_put, api_put_end},
    {"GET", GROUP, "Monitors of a group", API_HEAVY | API_TAGGED, api_list_begin, api_list_prepare,
     api_list_group, api_list_end},
    {"PATCH", GROUP, "Change settings of all monitors of a group", API_WRITES, api_patch_begin,
     api_patch_prepare, api_put, api_put_end},
    {"DELETE", GROUP, "Delete a group", API_WRITES, api_delete_begin, api_delete_prepare,
     api_delete, api_delete_end},
    {"POST", GROUP "/observations", "Observations of a table", API_WRITES | API_OBSERVES,
     api_post_begin, api_post_prepare, api_post, api_post_end},
    {"POST", GROUP "/evaluate", "Score a table without storing it", 0, api_post_begin,
     api_evaluate_prepare, api_post, api_post_end},
    {"PUT", MONITOR, "Create or replace a monitor", API_WRITES, api_put_begin, api_put_prepare,
     api_put, api_put_end},
    {"GET", MONITOR, "Config of a monitor", 0, api_list_begin, api_list_prepare, api_show_monitor,
     api_list_end},
    {"PATCH", MONITOR, "Change settings of a monitor", API_WRITES, api_patch_begin,
     api_patch_prepare, api_put, api_put_end},
    {"DELETE", MONITOR, "Delete a monitor", API_WRITES, api_delete_begin, api_delete_prepare,
     api_delete, api_delete_end},
    {"POST", MONITOR "/observations", "Observations of a monitor", API_WRITES | API_OBSERVES,
     api_post_begin, api_post_prepare, api_post, api_post_end},
    {"POST", MONITOR "/evaluate", "Score a body without storing it", 0, api_post_begin,
     api_evaluate_prepare, api_post, api_post_end},
    {"POST", MONITOR "/reference", "Make closed windows the reference", API_WRITES,
     api_promote_windows_begin, api_promote_windows_prepare, api_put, api_put_end},
    {"POST", MONITOR "/mute", "Tell nobody about a monitor for a while", API_WRITES, api_mute_begin,
     api_mute_prepare, api_mute, api_mute_end},
    {"DELETE", MONITOR "/mute", "Tell about a monitor again", API_WRITES, api_unmute_begin,
     api_unmute_prepare, api_unmute, api_mute_end},
    {"GET", MONITOR "/windows", "Windows of a monitor, newest first", API_TAGGED, api_history_begin,
     api_windows_prepare, api_windows, api_history_end},
    {"GET", MONITOR "/windows/{window}", "A window: latest, current or a number", API_TAGGED,
     api_history_begin, api_window_prepare, api_window_show, api_history_end},
    {"GET", MONITOR "/compare", "Windows of a period against those of another", 0,
     api_history_begin, api_compare_prepare, api_compare, api_compare_end},
    {"GET", MONITOR "/events", "Changes of a monitor's state, newest first", API_TAGGED,
     api_history_begin, api_events_prepare, api_events, api_events_end},
    {"GET", MONITOR "/notes", "Notes on a monitor, latest first", API_TAGGED, api_notes_begin,
     api_notes_prepare, api_notes, api_notes_end},
    {"POST", MONITOR "/notes", "Write a note on a period of a monitor", API_WRITES,
     api_note_add_begin, api_note_add_prepare, api_note_add, api_note_add_end},
    {"DELETE", MONITOR "/notes/{note}", "Delete a note on a monitor", API_WRITES,
     api_note_delete_begin, api_note_delete_prepare, api_note_delete, api_note_add_end},
    {"GET", "/groups", "Groups of monitors, worst first", API_HEAVY | API_TAGGED, api_list_begin,
     api_list_prepare, api_list_groups, api_list_end},
    {"GET", "/groups/{group}", "A group: what drifts, since when, and its history",
     API_HEAVY | API_TAGGED, api_group_begin, api_group_prepare, api_group, api_group_end},
    {"POST", "/groups/{group}/mute", "Tell nobody about a group for a while", API_WRITES,
     api_mute_begin, api_mute_prepare, api_mute, api_mute_end},
    {"DELETE", "/groups/{group}/mute", "Tell about a group again", API_WRITES, api_unmute_begin,
     api_unmute_prepare, api_unmute, api_mute_end},
    {"GET", "/groups/{group}/notes", "Notes on a group, latest first", API_TAGGED, api_notes_begin,
     api_notes_prepare, api_notes, api_notes_end},
    {"POST", "/groups/{group}/notes", "Write a note on a period of a group", API_WRITES,
     api_note_add_begin, api_note_add_prepare, api_note_add, api_note_add_end},
    {"DELETE", "/groups/{group}/notes/{note}", "Delete a note on a group", API_WRITES,
     api_note_delete_begin, api_note_delete_prepare, api_note_delete, api_note_add_end},
    {"GET", "/events", "Changes of the states of all monitors, newest first", API_TAGGED,
     api_all_events_begin, api_all_events_prepare, api_events, api_events_end},
    {"GET", "/notifications", "Who is told of changes, and how that goes", 0,
     api_notifications_begin, NULL, api_notifications, NULL},
    {"POST", "/notifications/{name}/test", "Send a test message", API_WRITES, api_notify_test_begin,
     api_notify_test_prepare, api_notify_test, api_notify_test_end},
    {"GET", "/", "This list; for browsers a calculator", API_PUBLIC, api_web_root_begin, NULL,
     api_web_root, NULL},
    {"GET", "/dashboard", "Drift monitors, as a page", API_PUBLIC, api_web_begin, NULL, api_web,
     NULL},
    {"GET", "/dashboard/{file}", "Assets of the dashboard", API_PUBLIC, api_web_begin, NULL,
     api_web, NULL},
    {"GET", "/docs", "The API, to read and to try", API_PUBLIC, api_web_begin, NULL, api_web, NULL},
    {"GET", "/docs/{file}", "Assets of the documentation", API_PUBLIC, api_web_begin, NULL, api_web,
     NULL},
    {"GET", "/openapi.json", "OpenAPI document", 0, NULL, NULL, show_openapi, NULL},
    {"GET", "/metrics", "Counters, for Prometheus", API_PROBE, NULL, api_metrics_prepare,
     api_metrics, NULL},
    {"GET", "/v2", "Server metadata", 0, NULL, NULL, api_oip_server, NULL},
    {"GET", "/v2/health/live", "Liveness probe", API_HEALTH, NULL, NULL, api_oip_live, NULL},
    {"GET", "/v2/health/ready", "Readiness probe", API_HEALTH, NULL, NULL, api_oip_ready, NULL},
    {"GET", MODEL, "Model metadata", 0, NULL, NULL, api_oip_model, NULL},
    {"GET", "/v2/models/stats", "Statistics of all models", 0, NULL, NULL, api_oip_stats, NULL},
    {"GET", MODEL "/ready", "Readiness probe of the model", API_HEALTH, NULL, NULL,
     api_oip_model_ready, NULL},
    {"GET", MODEL "/config", "Model configuration", 0, NULL, NULL, api_oip_config, NULL},
    {"GET", MODEL "/stats", "Statistics of the model", 0, NULL, NULL, api_oip_stats, NULL},
    {"GET", TRACE, "Settings of traces; there are none", 0, NULL, NULL, api_oip_trace, NULL},
    {"POST", TRACE, "Confirm the settings, which are fixed", 0, api_oip_setting_begin, NULL,
     api_oip_set_trace, NULL},
    {"GET", "/v2/logging", "Settings of the log", 0, NULL, NULL, api_oip_logging, NULL},
    {"POST", "/v2/logging", "Confirm the settings, which are fixed", 0, api_oip_setting_begin, NULL,
     api_oip_set_logging, NULL},
    {"POST", REPOSITORY "/index", "List of models", 0, NULL, NULL, api_oip_index, NULL},
    {"POST", REPOSITORY "/models/" API_OIP_MODEL "/load", "Nothing to do", 0, NULL, NULL,
     api_oip_load, NULL},
    {"POST", REPOSITORY "/models/" API_OIP_MODEL "/unload", "Refused", 0, NULL, NULL,
     api_oip_unload, NULL},
    {"GET", SYSTEM REGION "/status", "Regions of shared memory", 0, NULL, NULL, api_region_status,
     NULL},
    {"POST", SYSTEM "/region/{region}/register", "Register a region", API_WRITES, api_region_begin,
     NULL, api_region_register, NULL},
    {"POST", SYSTEM REGION "/unregister", "Unregister a region, or all", API_WRITES, NULL, NULL,
     api_region_unregister, NULL},
    {"GET", CUDA REGION "/status", "Regions of a GPU; there are none", 0, NULL, NULL,
     api_cuda_region_status, NULL},
    {"POST", CUDA "/region/{region}/register", "Refused", API_WRITES, api_region_begin, NULL,
     api_cuda_region_register, NULL},
    {"POST", CUDA REGION "/unregister", "Nothing to do", API_WRITES, NULL, NULL,
     api_cuda_region_unregister, NULL},
    {"GET", "/livez", "Liveness probe", API_HEALTH, NULL, NULL, api_live, NULL},
    {"GET", "/healthz", "Liveness probe", API_HEALTH, NULL, NULL, api_live, NULL},
    {"GET", "/readyz", "Readiness probe", API_HEALTH, NULL, NULL, api_ready, NULL},
    {0},
};
_Static_assert(sizeof api_endpoints / sizeof *api_endpoints <= API_MAX_ENDPOINTS,
               "raise API_MAX_ENDPOINTS, the size of the metrics' arrays");
