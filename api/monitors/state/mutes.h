/* api_mutes: monitors and groups that are muted until a time: no receiver is told about them. Their states, events
 * and pages go on. Guarded by the lock of the registry that holds them. */
#pragma once

#include "api/json/problem.h"
#include "api/memory/buffer.h"
#include "api/request/tokens.h"

#include <stdint.h>

/* API_MAX_NAME: bytes of the name of a monitor or a group. API_MAX_MUTE_REASON: those of a reason. */
enum { API_MAX_NAME = 128, API_MAX_MUTE_REASON = 200 };

/* API_UNTIL_OK: end of a mute that lasts until what it is of is ok, or all monitors of the group are. */
#define API_UNTIL_OK INT64_MAX

/* api_mute: until when, API_NO_TIME if not at all; a text without control characters, which may be empty. */
struct api_mute {
    int64_t until;
    bool of_group; /* the mute is of the whole group */
    char reason[API_MAX_MUTE_REASON + 1];
    char by[API_TOKEN_NAME]; /* name of the token that muted; empty without tokens */
};
extern const struct api_mute api_no_mute;

/* api_muted: the mute of a monitor, or of a group, as which it has the name "". */
struct api_muted {
    char group[API_MAX_NAME + 1], name[API_MAX_NAME + 1];
    struct api_mute mute;
};

/* api_mutes: an array of api_muted. */
struct api_mutes {
    struct api_buffer list;
    size_t counted; /* bytes that the budget has */
    bool is_read;   /* from the store, also if it is empty */
};

/* The mute at a time of a monitor: its own or that of its group, whichever ends last; with the name NULL, of the
 * group alone. */
struct api_mute api_mutes_find(const struct api_mutes *mutes, const char *group, const char *name,
                               int64_t now);

/* Appends {"until","reason","by","scope"}, without an empty `by`, or null. API_MUTE_SIZE: bytes that it has at most. */
enum { API_MUTE_SIZE = 2 * (API_MAX_MUTE_REASON + API_TOKEN_NAME) + 100 };
void api_mute_write(const struct api_mute *mute, struct api_buffer *out);

/* Sorts a list by groups and names, for searches. */
void api_mutes_sort(struct api_mutes *mutes);

/* Frees a list, which is empty then. */
void api_mutes_free(struct api_mutes *mutes, struct api_budget *budget);
