/* api_replacing: the steps of requests that make or replace monitors: PUT, PATCH, POST reference. Their parse or run makes
 * the replacements; the rest is here. */
#pragma once

#include "api/monitors/http/period.h"
#include "api/monitors/http/references.h"
#include "api/monitors/http/request.h"
#include "api/monitors/state/replay.h"

struct api_replacing {
    struct api_references references;
    bool is_dry;   /* true if nothing is to be stored: the client wants to see the result */
    bool previews; /* a dry run tells what the windows of a monitor would have raised */
    struct api_replay replay;
    struct api_period period;   /* whose windows become the reference */
    bool has_table;             /* or a table does */
    bool renews_columns;        /* columns without a monitor are others than before */
    struct api_buffer columns;  /* those that are left out: see api_columns_renew */
    struct api_columns renewed; /* after it, until they are published */
};

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
