/* Settings as query parameters. */
#pragma once

#include "api/monitors/model/settings.h"

/* Adds the parameters of a raw query to `object`, as the members that they stand for. `known` lists
 * parameters that are no settings, NULL at the end; their values become members of `others`, as
 * strings. Fails for other names, and for a setting that is given twice with different values. */
bool api_settings_from_query(json_t *object, const char *query, const char *const *known,
                             json_t *others, struct api_problem *problem);
