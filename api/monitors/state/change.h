/* The one way in which monitors are made or changed: a list of configs that monitors of a group are to have. */
#pragma once

#include "api/monitors/rows/touch.h"

/* api_replacement: a monitor that is to have a config. */
struct api_replacement {
    char *name;
    struct api_config *config;

    /* Set by api_change_configs: */
    bool is_new, changes, revises;
    int64_t id, revision, version;
    struct api_monitor_state state;
    struct api_config *former; /* held; NULL of a new one */
};

/* Frees what a replacement holds. */
void api_replacement_free(struct api_replacement *replacement);

/* Fails with too_many_monitors if there were more than are allowed with n new ones. */
bool api_check_new_monitors(const struct api_monitors *monitors, size_t n,
                            struct api_problem *problem);

/* Gives monitors, different ones, their configs: those that there are close the windows that cannot stay open, by the former
 * config, before. With `is_dry`, nothing is written. Fails with store_full or too_many_monitors. */
bool api_change_configs(struct api_monitors *monitors, const char *group,
                        struct api_replacement *replacements, size_t n, bool is_dry,
                        struct api_problem *problem);

/* Appends a monitor with its definition and its settings, as the store has them, in the form that PUT takes, as an object
 * without its last brace. */
void api_config_write(const char *definition, const char *settings, const char *group,
                      const char *name, const struct api_monitor_state *state, int64_t revision,
                      struct api_buffer *out);
