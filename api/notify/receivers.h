/* api_receivers: the receivers of notifications, and the changes that each wants, as the file of --notify says. */
#pragma once

#include "api/json/problem.h"
#include "api/monitors/model/state.h"
#include "api/request/tokens.h"

#include <stdatomic.h>

enum api_notify_format { API_NOTIFY_JSON, API_NOTIFY_SLACK, API_NOTIFY_ALERTMANAGER };
#define API_NOTIFY_FORMATS 3
extern const char *const api_notify_format_names[]; /* NULL at the end */

/* Limits of a file. */
enum { API_MAX_RECEIVERS = 32, API_MAX_GROUP_PATTERNS = 64, API_MAX_NOTIFY_HEADERS = 16 };

struct api_receiver {
    char *name, *url;
    enum api_notify_format format;
    char *groups[API_MAX_GROUP_PATTERNS + 1];  /* patterns of fnmatch, NULL at the end */
    unsigned states;                           /* bit n: state n is told */
    char *headers[API_MAX_NOTIFY_HEADERS + 1]; /* "Name: value", NULL at the end */
    char *secret_file, *ca_file;               /* or NULL */
    char *secret;                              /* what its file holds, set by the host; or NULL */
    size_t secret_size;
};

/* Many may hold the receivers of a file, which nobody changes. */
struct api_receivers {
    atomic_uint refcount;
    size_t n;
    struct api_receiver list[API_MAX_RECEIVERS];
};

/* Reads the text of a file; NULL with the problem and its location in the file. */
struct api_receivers *api_receivers_read(const char *text, size_t size,
                                         struct api_problem *problem);
struct api_receivers *api_receivers_hold(struct api_receivers *receivers);
void api_receivers_release(struct api_receivers *receivers); /* NULL is fine */

/* Index of the receiver of a name, or n. */
size_t api_receivers_find(const struct api_receivers *receivers, const char *name);

/* True if all groups of a receiver are groups that a token is for. */
bool api_receiver_is_of_token(const struct api_receiver *receiver, const struct api_token *token);

/* True if a receiver is to be told that a monitor of a group has gone from one state to another. An Alertmanager is also
 * told of the end of a state. */
bool api_receiver_wants(const struct api_receiver *receiver, const char *group, int from, int to);
