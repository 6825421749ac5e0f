/* api_replacing: the steps of requests that make or replace monitors: PUT, PATCH, POST reference. Their parse or run makes
 * the list of configs; the rest is here. */
#pragma once

#include "api/monitors/http/parse.h"
#include "api/monitors/http/references.h"
#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/rejudge.h"

struct api_replacing {
    struct api_references references;
    bool is_dry;   /* true if nothing is to be stored: the client wants to see the result */
    bool previews; /* a dry run tells what the windows of a monitor would have raised */
    struct api_replay replay;
    struct api_period period;   /* whose windows become the reference */
    bool has_table;             /* or a table does */
    struct api_buffer columns;  /* names of those that get no monitor: see api_columns_leave_out */
    struct api_problem problem; /* of labels that only a monitor may have that has them already */
    size_t n_warnings;          /* bytes of warnings that parse made, and one more; 0 before run */
    json_t *parameters;         /* of a new reference, into which `include` points; or NULL */
};

/* Reads dry_run from the parameters; with it the request only reads the store. */
bool api_replacing_read_dry(struct api_exchange *x, const json_t *parameters);

/* Begins the state, before its parts are made. */
struct api_replacing *api_replacing_init(struct api_exchange *x);

/* Checks conditions, and changes the monitors, in the store's thread. */
bool api_replacing_store(struct api_exchange *x, struct api_monitors *monitors);
bool api_replacing_write(struct api_exchange *x);
void api_replacing_drop(struct api_exchange *x);

/* API_REPLACES: what those endpoints have in common. */
#define API_REPLACES                                                                               \
    .place = API_STORE_WRITES, .state = sizeof(struct api_replacing),                              \
    .write = api_replacing_write, .drop = api_replacing_drop
