/* The table of options, with a reader for each value. */
#ifndef KLDIV_API_OPTION_VALUES_H
#define KLDIV_API_OPTION_VALUES_H

#include "api/options.h"

struct api_option_row {
    const char *name;
    size_t offset, size;  /* of its field in struct api_options */
    const char *expected; /* description of its values: "a string" */
    bool is_list;
    const char *const *words; /* its values, NULL at the end; NULL if it has others */

    /* Reads one value; appends it if the option is a list. API_NULL resets the option. Fails
     * with a code and a detail, or with neither if the value is of the wrong kind. */
    bool (*read)(const struct api_value *value, struct api_setting *to, struct kl_problem *problem);
};

extern const struct api_option_row api_option_rows[API_OPTIONS];

#endif
