/* Routing: the endpoint of a request's path and method, and the parameters of its query. */
#pragma once

#include "api/request/endpoint.h"

/* Finds the service's endpoint for the path, which is percent-encoded, and the method. If there is none, returns an
 * endpoint of the path with another method; otherwise NULL. Fills x->captures. */
const struct api_endpoint *api_route_find(struct api_exchange *x, bool *method_allowed);

/* For a path that lacks the monitor's name: the endpoint of the path with a name inserted before its last segment,
 * such as /monitors/{group}/{name}/evaluate for /monitors/g/evaluate, which is else taken for a monitor of the name
 * evaluate. NULL if there is none. */
const struct api_endpoint *api_route_with_name(const struct api_exchange *x);

/* True if the request changes state, as its endpoint and its method say. */
bool api_route_writes(const struct api_exchange *x);

/* Formats the methods that the path supports: "GET, HEAD". */
void api_route_methods(const struct api_exchange *x, char *to, size_t size);

/* API_PARAMETER: maximum bytes of a name, or of a value, without its NUL. */
enum { API_PARAMETER = 1024 };
struct api_parameter {
    char name[API_PARAMETER + 1], value[API_PARAMETER + 1];
};

/* Reads the next parameter and moves *query past it. False at the end, and, with query_malformed, for
 * one that is too long or not encoded properly, whose name is empty if that is at fault. */
bool api_query_next(const char **query, struct api_parameter *parameter,
                    struct api_problem *problem);
