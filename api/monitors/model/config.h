/* api_config: what a monitor is: its bins, its reference, its settings. Never changed after it is
 * made, so that any thread may read one that it holds a reference to. */
#pragma once

#include "api/monitors/model/settings.h"
#include "api/monitors/model/weights.h"

#include <stdatomic.h>
#include <stdint.h>

struct api_config {
    atomic_uint refcount;
    struct api_monitor_settings settings;
    struct api_bins bins;
    struct api_weights reference;
    char *definition; /* {"bins": ..., "reference": ...}: changes with the revision alone */
    char *others;     /* {"window": ..., ..., "annotations": ...} */

    struct api_budget *budget; /* that has counted `retained` bytes for it, see api_config_retain */
    size_t retained;
};

/* Names of members of a monitor, beside settings; NULL at the end. */
extern const char *const api_config_members[];

/* Makes a config with one reference, from settings that are given or defaults, a body's members, and from bins and a
 * reference that were made of values, or are empty; it takes them, and leaves them empty. NULL with a problem. */
struct api_config *api_config_new(const struct api_monitor_settings *given, const json_t *members,
                                  struct api_bins *bins, struct api_weights *reference,
                                  struct api_problem *problem);

/* Appends a definition, as the store has it. */
void api_config_write_definition(const struct api_bins *bins, const struct api_weights *reference,
                                 struct api_buffer *out);

/* Counts, for the budget, what a config holds until it is released, and what a monitor in memory holds by it: its
 * open window with a reference, its pool, and `more` bytes. Fails with out_of_memory. */
bool api_config_retain(struct api_config *config, struct api_budget *budget, size_t more,
                       struct api_problem *problem);

/* API_MAX_CONFIG: bytes of the texts of a config. PUT makes at most 512 KiB: labels of which each byte is escaped, a thousand
 * counts and edges, annotations. Former versions had no limit of labels. */
enum { API_MAX_CONFIG = 4 << 20 };

/* Makes a config from its two texts, as the store has them, beside the budget, which requests may have used up. Fails with
 * out_of_memory only where the process has none. */
struct api_config *api_config_load(const char *definition, const char *others,
                                   struct api_problem *problem);

/* Makes a config with the bins and the reference of one, the format of its numbers among them, and the settings of another. */
struct api_config *api_config_renew(const struct api_config *config,
                                    const struct api_config *former, struct api_problem *problem);

double api_config_result_ns(const struct api_config *config);

struct api_config *api_config_hold(struct api_config *config);
void api_config_release(struct api_config *config); /* NULL is fine */
