/* Settings as query parameters. */
#pragma once

#include "api/monitors/model/settings.h"

/* Adds the parameters of a raw query to `object`, as the members that they stand for; NULL: none are valid.
 * `known` lists parameters that are no settings, NULL at the end; gives an object that has their values as
 * strings. NULL for other names, and for a setting that is given twice with different values. */
json_t *api_settings_from_query(json_t *object, const char *query, const char *const *known,
                                struct api_problem *problem);
