/* The endpoint that a path and a method lead to. */
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
