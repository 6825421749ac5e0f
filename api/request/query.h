/* Query strings: their parameters, percent-decoded. */
#pragma once

#include "api/json/problem.h"

/* API_PARAMETER: maximum bytes of a name, or of a value, without its NUL. */
enum { API_PARAMETER = 1024 };
struct api_parameter {
    char name[API_PARAMETER + 1], value[API_PARAMETER + 1];
};

/* Reads the next parameter and moves *query past it. False at the end, and, with query_malformed, for
 * one that is too long or not encoded properly, whose name is empty if that is at fault. */
bool api_query_next(const char **query, struct api_parameter *parameter,
                    struct api_problem *problem);
