/* Mutes: monitors and groups that are muted until a time: no receiver is told about them. Their states, events and pages go
 * on. */
#pragma once

#include "api/json/problem.h"
#include "api/memory/buffer.h"
#include "api/request/tokens.h"

#include <stdint.h>

/* API_MAX_NAME: bytes of the name of a monitor or a group. API_MAX_MUTE_REASON: those of a reason. */
enum { API_MAX_NAME = 128, API_MAX_MUTE_REASON = 200 };

/* api_mute: until when, API_NO_TIME if not at all; a text without control characters, which may be empty. */
struct api_mute {
    int64_t until;
    bool of_group; /* the mute is of the whole group */
    char reason[API_MAX_MUTE_REASON + 1];
    char by[API_TOKEN_NAME]; /* name of the token that muted; empty without tokens */
};
extern const struct api_mute api_no_mute;

/* api_muted: a row of the store, of a monitor, or of a group, which has no name. */
struct api_muted {
    char group[API_MAX_NAME + 1], name[API_MAX_NAME + 1];
    struct api_mute mute;
};

/* api_mutes: rows of mutes, in order of their names. */
struct api_mutes {
    struct api_buffer rows; /* struct api_muted */
    bool is_read;           /* from the store, also if there are none */
};

/* Compares rows by their names, for qsort. */
int api_mutes_compare(const void *a, const void *b);

/* The mute at a time of a monitor: its own, that of its group, or that of the group whose segment this is, whichever ends last;
 * with the name NULL, of the group. */
struct api_mute api_mutes_find(const struct api_mutes *mutes, const char *group, const char *name,
                               int64_t now);

/* Appends {"until","reason","by","scope"}, without an empty `by`, or null. */
void api_mute_write(const struct api_mute *mute, struct api_buffer *out);
