/* api_replacing: the steps of requests that make or replace monitors: PUT, PATCH, POST reference. */
#pragma once

#include "api/monitors/http/period.h"
#include "api/monitors/http/references.h"
#include "api/monitors/http/request.h"
#include "api/monitors/state/replay.h"

struct api_replacing {
    struct api_store_job job;
    struct api_exchange *x;
    const struct api_replacing_kind *kind;
    struct api_buffer inflated;
    struct api_references references;
    json_t *parameters; /* of the query, that are no settings; while the body is read */
    bool is_read;
    bool is_dry; /* true if nothing is to be stored: the client wants to see what would be */
    struct api_replay replay; /* of a dry run that previews */
    struct api_period period; /* whose windows become the reference */
};

/* api_replacing_kind: where the configs come from. */
struct api_replacing_kind {
    bool (*read)(struct api_replacing *d); /* reads the body, the coding of which is undone */

    /* Makes the replacements of monitors that exist, in the store's thread, and room for the response; NULL
     * if `read` did. May be called again after its transaction failed. */
    bool (*make)(struct api_replacing *d, struct api_monitors *monitors);

    bool previews; /* true if a dry run tells what the windows of a monitor would have raised */
};

bool api_replacing_prepare(struct api_exchange *x, const struct api_replacing_kind *kind,
                           double max_ns);

/* Reads dry_run of the query. */
bool api_replacing_read_dry(struct api_replacing *d, const json_t *parameters);

/* Makes room for the response before anything is stored: what is stored is not refused for memory. */
bool api_replacing_reserve(const struct api_replacing *d, struct api_problem *problem);
