/* How the value of each option is read. */
#ifndef KLDIV_API_OPTION_VALUES_H
#define KLDIV_API_OPTION_VALUES_H

#include "api/options.h"

struct api_option_row {
    const char *name;
    size_t offset, size;  /* of its field in struct api_options */
    const char *expected; /* "a string": what values it takes */
    bool is_list;
    const char *const *words; /* that it takes, NULL at the end; NULL where it takes others */

    /* Reads one value; of a list, adds it to what is there. API_NULL stands for absence. Fails with a
     * code and a detail, or with none: then the value is of the wrong kind. */
    bool (*read)(const struct api_value *value, struct api_setting *to, struct kl_problem *problem);
};

extern const struct api_option_row api_option_rows[API_OPTIONS];

#endif
