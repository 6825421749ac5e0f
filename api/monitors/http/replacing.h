/* api_replacing: the steps of requests that make or replace monitors: PUT, PATCH, POST reference. Their parse or run makes
 * the replacements; the rest is here. */
#pragma once

#include "api/monitors/http/parse.h"
#include "api/monitors/http/references.h"
#include "api/monitors/http/request.h"
#include "api/monitors/state/rejudge.h"
#include "api/monitors/state/window_load.h"

struct api_replacing {
    struct api_references references;
    bool is_dry;   /* true if nothing is to be stored: the client wants to see the result */
    bool previews; /* a dry run tells what the windows of a monitor would have raised */
    struct api_replay replay;
    struct api_period period;        /* whose windows become the reference */
    bool has_table;                  /* or a table does */
    bool renews_columns;             /* columns without a monitor are others than before */
    struct api_buffer columns;       /* those that are left out: see api_columns_renew */
    struct api_named_rows renewed;   /* after it, until they are published */
    struct api_observations history; /* rows of a reference that have times: windows, too */
    struct api_monitor **stand_ins;  /* see history_of_reference.c; NULL for those without one */
};

/* A reference whose rows have times of their own: they are also observations of the monitors that it makes, as if the table
 * were sent once more. Reads them by the configs that were made; checks, before anything is written, that the windows are
 * not too old; adds them after the monitors are written. */
bool api_history_read(struct api_exchange *x, struct api_table *table, const json_t *parameters);
bool api_history_check(struct api_exchange *x, struct api_monitors *monitors);
bool api_history_store(struct api_exchange *x, struct api_monitors *monitors);
void api_history_free(struct api_replacing *d);

/* Reads dry_run from the parameters; with it the request only reads the store. */
bool api_replacing_read_dry(struct api_exchange *x, const json_t *parameters);

/* Makes room for the response. */
bool api_replacing_reserve(struct api_exchange *x);

/* Begins the state, before its parts are made. */
struct api_replacing *api_replacing_init(struct api_exchange *x);

bool api_replacing_store(struct api_exchange *x, struct api_monitors *monitors);
bool api_replacing_read_back(struct api_exchange *x, struct api_monitors *monitors);
void api_replacing_publish(struct api_exchange *x, struct api_monitors *monitors);
bool api_replacing_write(struct api_exchange *x);
void api_replacing_drop(struct api_exchange *x);

/* API_REPLACES: what those endpoints have in common. */
#define API_REPLACES                                                                               \
    .place = API_STORE_WRITES, .state = sizeof(struct api_replacing),                              \
    .read_back = api_replacing_read_back, .publish = api_replacing_publish,                        \
    .write = api_replacing_write, .drop = api_replacing_drop
