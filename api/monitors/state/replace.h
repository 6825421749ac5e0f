/* Monitors are read from the store: all of them first, then the ones that other servers changed; they are made, replaced and
 * deleted, in the store's thread. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Brings the registry up to date with the store, in a transaction that has done nothing else yet. False
 * if the store or memory fails; the registry is then as it was, and the next call tries again. Monitors
 * that cannot be read are left out. */
bool api_load(struct api_monitors *monitors);

/* Logs the monitors that were left out before there was a log. */
void api_load_tell(struct api_monitors *monitors);

/* api_replacement: a monitor that is to have a config. */
struct api_replacement {
    const char *group;
    char *name;
    struct api_config *config;
    int64_t of_id, of_version; /* of the monitor that it was made of, if it was; for the caller */

    /* Set by the functions below: */
    struct api_monitor *made; /* not in the registry yet */
    bool is_new, changes, revises;
    int64_t id, revision, version;
    struct api_monitor_state state;
};

/* Frees what a replacement holds. */
void api_replacement_free(struct api_replacement *replacement);

/* The three steps of a job: writes; after the windows of former revisions are closed, writes what
 * begins anew; lets others see it. `n` replacements are of different monitors. */
bool api_replace(struct api_monitors *monitors, struct api_replacement *replacements, size_t n,
                 struct api_problem *problem);
bool api_replace_after_windows(struct api_monitors *monitors, struct api_replacement *replacements,
                               size_t n);
void api_replace_publish(struct api_monitors *monitors, struct api_replacement *replacements,
                         size_t n);

/* As the first step, sets its results, and fails as it would, but writes nothing. */
bool api_replace_dry_run(struct api_monitors *monitors, struct api_replacement *replacements,
                         size_t n, struct api_problem *problem);

/* Appends a config, in the form that PUT takes, as an object without its last brace. */
void api_config_write(const struct api_config *config, const char *group, const char *name,
                      const struct api_monitor_state *state, int64_t revision,
                      struct api_buffer *out);
